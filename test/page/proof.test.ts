import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Download, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { formatInstant } from '../../src/domain/time.ts'
import { importSample } from '../support/legacy-archive.ts'
import { listenLocally, openApp } from '../support/api-client.ts'
import { run, temporaryFolder } from '../support/dash.ts'
import { signedLogIn } from '../support/signed-log.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../support/workspace.ts'
import { flawsOf, picture, SCREENS, visit, WIDE } from './browser.ts'
import type { Visit } from './browser.ts'

/** A server with a signed log; `own` and `legacy` are pages of an own publication and of one of the legacy ledger. */
async function serveLog(): Promise<{ url: string; own: string; legacy: string; fileName: string }> {
  const workspace = await openWorkspace()
  await importSample(workspace)
  await workspace.feed.importSignals(sampleSignals())
  await publishDays({ ...workspace, log: signedLogIn(workspace.folder) }, [AS_OF])
  const { url } = await listenLocally(openApp(workspace))
  const { timeline } = (await workspace.year.read()).proved
  const own = timeline.at(-1)
  const legacy = timeline.find(({ ledger }) => ledger === 'v1')
  const pageOf = ({ manifest } = own ?? { manifest: { publishedAt: 0 } }): string =>
    `${url}/?sort=year&at=${formatInstant(manifest.publishedAt)}`
  return { url, own: pageOf(), legacy: pageOf(legacy), fileName: `${own?.manifest.publicationId}.json` }
}

const button = (page: Page) => page.getByRole('button', { name: 'Check in this browser' })

/** Opens the seal with the keyboard. */
async function openSeal(page: Page): Promise<void> {
  await page.locator('#proof > summary').focus()
  await page.keyboard.press('Enter')
  await button(page).waitFor()
}

/** Checks the publication of a page; returns the shown sentences. */
async function check(page: Page): Promise<string[]> {
  await openSeal(page)
  await button(page).click()
  await page.locator('#proof-checks li').first().waitFor()
  return page.locator('#proof-checks li').allTextContents()
}

/** Changes a response on its way to the browser, as a dishonest cache would. */
async function tamper({ page }: Visit, path: string, change: (body: string) => string): Promise<void> {
  await page.route(
    (url) => url.pathname.startsWith(path),
    async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, body: change(await response.text()) })
    },
  )
}

const CHANGES: readonly [what: string, path: string, change: (body: string) => string, failed: number][] = [
  ['the publication', '/objects/', (body) => body.replace('"rank":1', '"rank":2'), 1],
  ['an entry of the proof', '/tlog/year/proof', (body) => body.replace(/^extra .{8}/m, 'extra AAAAAAAA'), 2],
  ['the index of the proof', '/tlog/year/proof', (body) => body.replace(/^index \d+/m, 'index 0'), 2],
  [
    'the root of the checkpoint',
    '/tlog/year/proof',
    (body) => body.replace(/^[\w+/]{43}=\n\n—/m, `${'A'.repeat(43)}=\n\n—`),
    2,
  ],
  ['the key of the policy', '/tlog/year/policy', () => 'quorum none\n', 1],
]

test('the checked Proof section is accessible, fits and has no error on every screen', async () => {
  const { own } = await serveLog()
  for (const { name, viewport, colorScheme } of SCREENS) {
    const visited = await visit(own, { viewport, colorScheme })
    await check(visited.page)
    await picture(visited.page, `proof-${name}`)
    expect([name, await flawsOf(visited)]).toEqual([name, []])
  }
})

describe('the check in the browser', () => {
  test('the check passes, is announced, and says what it does not check; a legacy publication has its seal', async () => {
    const { own, legacy } = await serveLog()
    const { page, problems } = await visit(own, { viewport: WIDE })
    await openSeal(page)
    await button(page).focus()
    await page.keyboard.press('Enter')
    await page
      .locator('#announcements', { hasText: 'This publication is in the log.' })
      .waitFor({ state: 'attached' })
    const digest = await page.locator('#proof dd code').nth(1).textContent()
    const shown = await page.locator('#proof-checks li').allTextContents()
    expect(shown).toEqual([
      '✓ This publication is in the log.',
      expect.stringMatching(
        `^✓ Entry \\d+ of the log contains the SHA-256 of this publication, ${digest}\\.$`,
      ),
      expect.stringMatching(/^✓ The hashes of the proof lead from this entry to the root of the checkpoint/),
      '✓ The key of dash.example/tlog/year in the policy of this host signed the checkpoint.',
      expect.stringMatching(/^Not checked: /),
    ])
    expect(
      await button(page).evaluate('document.activeElement === document.querySelector("[data-proof]")'),
    ).toBe(true)
    await page.goto(legacy)
    const [verdict, listed, sealed] = await check(page)
    expect(verdict).toBe('✓ This publication is in the log.')
    expect(listed).toContain('✓ The legacy ledger contains the SHA-256 of this publication')
    expect(sealed).toContain('contains the SHA-256 of the legacy ledger.')
    expect(problems).toEqual([])
  })

  test('the check fails if a file is changed on the way', async () => {
    const { own } = await serveLog()
    for (const [what, path, change, failed] of CHANGES) {
      const visited = await visit(own, { viewport: WIDE })
      await tamper(visited, path, change)
      const [verdict, ...shown] = await check(visited.page)
      expect([what, verdict]).toEqual([
        what,
        `✗ Failed: This publication is NOT proved: ${failed} of 4 checks failed.`,
      ])
      expect(shown.filter((each) => each.startsWith('✗'))).toHaveLength(failed)
    }
  })

  test('the check says which file the server refuses, and that a browser without Ed25519 checks no signature', async () => {
    const { page } = await visit((await serveLog()).own, { viewport: WIDE })
    await page.route('**/tlog/year/proof*', (route) => route.fulfill({ status: 503, body: '{}' }))
    const [problem] = await check(page)
    expect(problem).toMatch(
      /^✗ Failed: The check could not run: \/tlog\/year\/proof\?at=\S+ has status 503\.$/,
    )
    await page.unroute('**/tlog/year/proof*')
    await page.evaluate(
      `crypto.subtle.importKey = () => Promise.reject(new DOMException('', 'NotSupportedError'))`,
    )
    await button(page).click()
    await page.locator('#proof-checks .passed').first().waitFor()
    const shown = await page.locator('#proof-checks li').allTextContents()
    expect(shown[0]).toBe('✓ This publication is in the log.')
    expect(shown).toContain('Not checked: the signature of the log. This browser has no Ed25519.')
  })
})

test('the downloaded files verify offline, also without scripts', async () => {
  const { own, fileName } = await serveLog()
  const { page } = await visit(own, { viewport: WIDE, javaScriptEnabled: false })
  await page.locator('#proof > summary').click()
  expect(await button(page).isVisible()).toBe(false)
  const cwd = temporaryFolder()
  const save = async (name: string): Promise<string> => {
    const started: Promise<Download> = page.waitForEvent('download')
    await page.locator('#proof').getByRole('link', { name, exact: true }).click()
    const download = await started
    await download.saveAs(join(cwd, download.suggestedFilename()))
    return download.suggestedFilename()
  }
  const names = [await save('Publication'), await save('Proof file'), await save('Policy')]
  expect(names).toEqual([fileName, `${fileName}.tlog-proof`, 'policy.txt'])
  const verify = () => run(['verify', fileName, `${fileName}.tlog-proof`, '--policy', 'policy.txt'], { cwd })
  expect(await verify()).toMatchObject({ code: 0 })
  writeFileSync(join(cwd, fileName), '{}')
  expect(await verify()).toMatchObject({ code: 65 })
})
