import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { formatDay } from '../../src/server/page/html.ts'
import { addDays, formatInstant, startOfDay } from '../../src/domain/time.ts'
import { historyIndexSchema } from '../../src/domain/year/history/history.ts'
import { serveDemo } from '../support/dash.ts'
import { flawsOf, visit, WIDE } from './browser.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

let demo: Awaited<ReturnType<typeof serveDemo>>
let index: z.infer<typeof historyIndexSchema>

beforeAll(async () => {
  demo = await serveDemo()
  const response = await fetch(`${demo.url}/api/feed/history/index`)
  index = historyIndexSchema.parse(await response.json())
})

afterAll(() => demo.close())

/** The demo's one gap, and the days beside it. */
function gapDays(): { before: string; gap: string; after: string } {
  const gap = index.gaps[0]?.asOfDay ?? ''
  return { before: addDays(gap, -1), gap, after: addDays(gap, 1) }
}

const noonAfter = (day: string): string => formatInstant(startOfDay(addDays(day, 1)) + 12 * 3_600_000)
const addressOfGap = (): string => `/?sort=year&at=${noonAfter(gapDays().gap)}`
const digestShown = (page: Page) => page.locator('#proof dd code').nth(1).textContent()

/** The response of the history interface for the time in a page's URL. */
async function answered(page: Page): Promise<{ etag: string; asOfDay: string }> {
  const at = new URL(page.url()).searchParams.get('at')
  const response = await fetch(`${demo.url}/api/feed/history?sort=year${at === null ? '' : `&at=${at}`}`)
  const { asOfDay } = (await response.json()) as { asOfDay: string }
  return { etag: (response.headers.get('etag') ?? '').replaceAll('"', ''), asOfDay }
}

describe.each([
  ['without scripts', false],
  ['with scripts', true],
])('%s', (_name, javaScriptEnabled) => {
  const open = (path: string) => visit(`${demo.url}${path}`, { javaScriptEnabled, viewport: WIDE })

  test('previous and next stop at the gap', async () => {
    const { before, gap, after } = gapDays()
    const visited = await open(`/?sort=year&at=${noonAfter(before)}`)
    const { page } = visited
    expect(await page.locator('#next').textContent()).toContain(`Next: ${gap}, a gap`)
    expect(await page.locator('.gap').count()).toBe(0)
    await page.locator('#next').click()
    await page.locator('.gap', { hasText: `Gap: ${formatDay(gap)} has no publication` }).waitFor()
    expect(await page.evaluate('[document.activeElement.id, scrollY]')).toEqual(['next', 0])
    expect(await page.locator('.gap').textContent()).toContain(`as of ${formatDay(before)}`)
    if (javaScriptEnabled) expect(await flawsOf(visited)).toEqual([])
    const served = await answered(page)
    expect([served.asOfDay, await digestShown(page)]).toEqual([before, served.etag])
    await page.locator('#next').click()
    await page.locator('.as-of', { hasText: `up to ${formatDay(after)}` }).waitFor()
    expect(await page.locator('.gap').count()).toBe(0)
    expect(await digestShown(page)).toBe((await answered(page)).etag)
    await page.locator('#previous', { hasText: `${gap}, a gap` }).click()
    await page.locator('.gap').waitFor()
    await page.goBack()
    await page.locator('.as-of', { hasText: `up to ${formatDay(after)}` }).waitFor()
    expect(visited.problems).toEqual([])
  })
})

test('both commands of the proof, copied as they stand, succeed against this server', async () => {
  const { page } = await visit(`${demo.url}${addressOfGap()}`, {
    viewport: WIDE,
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  await page.locator('#proof > summary').click()
  const output = async (name: string): Promise<string> => {
    await page.getByRole('button', { name }).click()
    await page.locator('#announcements', { hasText: 'Copied.' }).waitFor({ state: 'attached' })
    const command = await page.evaluate<string>('navigator.clipboard.readText()')
    return (await promisify(execFile)('sh', ['-c', command], { cwd: ROOT })).stdout
  }
  const digest = await output('Copy the command that prints the SHA-256')
  expect(digest.slice(0, 64)).toBe(await digestShown(page))
  const audit = await output('Copy the command that audits the archive')
  expect(audit).toContain(`${index.publications.length} publications`)
})
