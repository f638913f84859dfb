import { chmodSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { addDays } from '../../src/domain/time.ts'
import { staticFileHeaders, staticObjectPath } from '../../src/domain/year/log/static-layout.ts'
import { importArchive } from '../../src/jobs/import-archive.ts'
import { signLedger } from '../../src/jobs/sign-checkpoint.ts'
import { dash } from '../support/dash.ts'
import { signedWorkspace } from '../support/exports.ts'
import { importPortsOf, SAMPLE_ARCHIVE } from '../support/legacy-archive.ts'
import { localSource } from '../support/local-source.ts'
import { signedLogIn } from '../support/signed-log.ts'
import { AS_OF, openWorkspace, publishPortsOf } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'
import { flawsOf, picture, SCREENS, visit, WIDE } from './browser.ts'

/** Published days; the third day is a gap. */
const DAYS = [0, 1, 3].map((index) => addDays(AS_OF, index))
const GAP_DAY = addDays(AS_OF, 2)
const NEWEST = addDays(AS_OF, 3)

/** Serves a folder below a path prefix, as a plain web server does. */
async function serveFolder(folder: string): Promise<string> {
  const { url } = await localSource(({ target }, response) => {
    const path = target.replace(/^\/below\/a\/prefix\//, '').replace(/^$/, 'index.html')
    if (!existsSync(join(folder, path))) return response.writeHead(404).end()
    return response.writeHead(200, staticFileHeaders(path)).end(readFileSync(join(folder, path)))
  })
  return `${url}/below/a/prefix/`
}

/** Exports a workspace with its page. */
async function exported({ folder }: Workspace): Promise<{ path: string; url: string }> {
  const path = join(folder, 'export')
  const { code, stderr } = await dash(['export', path, '--page', '--data-dir', folder])
  expect([code, stderr]).toEqual([0, ''])
  return { path, url: await serveFolder(path) }
}

/** Overwrites a file of an export. */
function damage(path: string, name: string, change: (bytes: Buffer) => Buffer): void {
  const file = join(path, name)
  chmodSync(file, 0o644)
  writeFileSync(file, change(readFileSync(file)))
}

describe('the page of an export', () => {
  let workspace: Workspace
  let site: Awaited<ReturnType<typeof exported>>

  beforeEach(async () => {
    workspace = await signedWorkspace(DAYS)
    site = await exported(workspace)
  })

  test('the page lists publications and gaps by date, shows the newest list and checks it', async () => {
    const visited = await visit(site.url, WIDE_SCREEN)
    const { page } = visited
    await page.getByText('all 4 entries give the root').waitFor()
    expect(await page.locator('#days li').allTextContents()).toEqual([
      NEWEST,
      `${GAP_DAY}: gap, no attempt was made`,
      DAYS[1],
      DAYS[0],
    ])
    expect(await page.locator('#summary').textContent()).toBe('Publications: 3. Gaps: 1.')
    expect(await page.locator('h2#publication-title').textContent()).toBe(`Top Year as of ${NEWEST}`)
    expect(await page.locator('#column-lobsters + ol .title').allTextContents()).toEqual(
      [3, 2, 1].map((number) => `lobsters title ${number}`),
    )
    expect(await page.locator('#checks li').allTextContents()).toEqual([
      '✓Checked: the SHA-256 of the file is the one in the index.',
      '✓Checked: entry 4 of the log contains this SHA-256.',
      '✓Checked: all 4 entries give the root of the checkpoint of dash.example/tlog/year.',
    ])
    expect(await page.locator('#announcements').textContent()).toContain('all checks passed')
    expect(await flawsOf(visited)).toEqual([])
  })

  test.each(SCREENS)('the page has no flaws on a $name screen', async ({ name, viewport, colorScheme }) => {
    const visited = await visit(site.url, { viewport, colorScheme })
    await visited.page.getByText('all 4 entries give the root').waitFor()
    await picture(visited.page, `export-${name}`)
    expect(await flawsOf(visited)).toEqual([])
  })

  test('another day is opened with the keyboard, and has an address', async () => {
    const { page } = await visit(site.url)
    await page.getByRole('link', { name: DAYS[0] ?? '' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('entry 1 of the log contains').waitFor()
    expect(await page.locator(':focus').textContent()).toBe(`Top Year as of ${DAYS[0]}`)
    expect(await page.locator('#days [aria-current]').textContent()).toBe(DAYS[0])
    const again = await visit(page.url())
    await again.page.getByText('entry 1 of the log contains').waitFor()
  })

  test('a damaged publication is named and not shown', async () => {
    const { rows } = await workspace.ledger.read()
    const object = staticObjectPath(rows.at(-1)?.sha256 ?? '')
    damage(site.path, object, (bytes) => Buffer.from(bytes.toString().replace('hn title 1', 'hn title 7')))
    const { page } = await visit(site.url)
    await page.locator('#problem', { hasText: 'is damaged' }).waitFor()
    expect(await page.locator('#problem').textContent()).toContain(`${object} is damaged`)
    expect(await page.locator('#checks').textContent()).toContain('Failed')
    expect(await page.locator('#lists').textContent()).toBe('')
  })

  test('a changed entry fails the check of the root', async () => {
    damage(site.path, 'tlog/year/tile/entries/000.p/4', (bytes) =>
      Buffer.from(bytes.toString('latin1').replace('missed', 'misled'), 'latin1'),
    )
    const { page } = await visit(site.url)
    await page.getByText('Failed: it is not true that all 4 entries').waitFor()
    expect(await page.locator('#announcements').textContent()).toContain('a check failed')
  })

  test('a changed root and a missing bundle are reported', async () => {
    damage(site.path, 'tlog/year/checkpoint', (bytes) =>
      Buffer.from(
        bytes.toString().replace(/\n4\n./, (text) => `${text.slice(0, -1)}${text.endsWith('A') ? 'B' : 'A'}`),
      ),
    )
    const changed = await visit(site.url)
    await changed.page.getByText('Failed: it is not true that all 4 entries').waitFor()
    damage(site.path, 'tlog/year/checkpoint', (bytes) =>
      Buffer.from(bytes.toString().replace('\n4\n', '\n5\n')),
    )
    const { page } = await visit(site.url)
    await page.locator('#problem', { hasText: '404' }).waitFor()
    expect(await page.locator('#problem').textContent()).toContain('404 to tlog/year/tile/entries/000.p/5')
  })

  test('a browser without scripts gets a link to the index', async () => {
    const { page } = await visit(site.url, { javaScriptEnabled: false })
    expect(await page.locator('noscript a').getAttribute('href')).toBe('index.json')
  })
})

const WIDE_SCREEN = { viewport: WIDE }

test('a publication of the legacy ledger is checked against its seal', async () => {
  const workspace = await openWorkspace(() => Date.now() + 60_000)
  await importArchive(importPortsOf(workspace, SAMPLE_ARCHIVE))
  await signLedger({ ...publishPortsOf(workspace), log: signedLogIn(workspace.folder) })
  const { path, url } = await exported(workspace)
  expect(readdirSync(path)).toContain('ledger')
  const { page } = await visit(url)
  await page.getByText('(legacy ledger)').first().click()
  await page.getByText('all 4 entries give the root').waitFor()
  expect(await page.locator('#checks li.good').allTextContents()).toHaveLength(4)
  expect(await page.locator('#lists').textContent()).toContain('an older layout')
})
