import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { addDays, DAY_MS, formatInstant, startOfDay } from '../../../../src/domain/time.ts'
import { importArchive } from '../../../../src/jobs/import-archive.ts'
import { openApp, openPage } from '../../../support/api-client.ts'
import { formatDay } from '../../../../src/server/page/html.ts'
import { importPortsOf, recentArchive } from '../../../support/legacy-archive.ts'
import {
  AS_OF,
  manifestsOf,
  objectFile,
  openWorkspace,
  publishDays,
  sampleSignals,
} from '../../../support/workspace.ts'
import type { Workspace } from '../../../support/workspace.ts'

const NEXT = addDays(AS_OF, 1)
const GAP = addDays(AS_OF, 2)
const LAST = addDays(AS_OF, 3)

/** Noon of the day after the last publication. */
const NOW = startOfDay(addDays(LAST, 1)) + 12 * 3_600_000
const noonAfter = (day: string): string => formatInstant(startOfDay(addDays(day, 1)) + 12 * 3_600_000)

/**
 * Three publications with a gap before the last one. Of Hacker News one item has left the window by then, one has
 * entered, and one has risen from the last place to the first.
 */
async function history(change: (title: string) => string = (title) => title): Promise<Workspace> {
  const workspace = await openWorkspace()
  const signals = sampleSignals().map((one) => ({ ...one, title: change(one.title) }))
  const [last] = signals
  if (!last) throw new Error('there is no sample')
  const another = (sourceId: string, points: number, publishedAt: number) => {
    return { ...last, sourceId, url: null, title: change(sourceId), points, publishedAt }
  }
  const firstOfNext = startOfDay(NEXT) + DAY_MS - 365 * DAY_MS
  await workspace.feed.importSignals([...signals, another('old', 15, firstOfNext + 1)])
  await publishDays(workspace, [AS_OF, NEXT])
  await workspace.feed.importSignals([
    { ...last, points: 5_000, day: LAST },
    { ...another('fresh', 25, startOfDay(LAST)), day: LAST },
  ])
  await publishDays(workspace, [LAST])
  return workspace
}

const get = (workspace: Workspace, path: string) =>
  openPage(workspace, path, { clock: () => NOW, baseUrl: () => 'https://dash.example.org' })

describe('the Year of another time', () => {
  test('the Year of another time is the publication of the history, with its proof', async () => {
    const workspace = await history()
    const [first] = await manifestsOf(workspace)
    const at = noonAfter(AS_OF)
    const { status, text, page } = await get(workspace, `/?at=${at}`)
    expect(status).toBe(200)
    const app = openApp(workspace, { clock: () => NOW })
    const api = await app.request(`http://dash.test/api/feed/history?sort=year&at=${at}`)
    expect(api.headers.get('etag')).toBe(`"${first?.sha256}"`)
    const { proved } = await workspace.year.read()
    for (const fact of [
      first?.sha256 ?? 'none',
      `${first?.byteSize.toLocaleString('en')} bytes`,
      `entry 1 of 4, leaf ${proved.entries[0]?.leaf}`,
      `entry 4, leaf ${proved.lastLeaf}`,
    ])
      expect(text).toContain(fact)
    const command = `curl -fsS &#39;https://dash.example.org/api/feed/history?sort=year&amp;at=${formatInstant(first?.publishedAt ?? 0)}&#39; | sha256sum`
    expect(page).toContain(command)
    expect(page).toContain('npx dash verify-archive --url &#39;https://dash.example.org&#39;')
    expect(text).not.toContain('Gap:')
    expect(text).toMatch(/Previous : none .*Next : 2026-03-02/)
  })

  test('the Year in a gap says that the day has no publication, and what the history serves instead', async () => {
    const workspace = await history()
    const { status, text, page } = await get(workspace, `/?sort=year&at=${noonAfter(GAP)}`)
    expect(status).toBe(200)
    expect(text).toContain(`Gap: ${formatDay(GAP)} has no publication : no run tried to publish it`)
    expect(text).toContain(`as of ${formatDay(NEXT)} , shown here`)
    expect(text).toContain(`Previous : ${NEXT}`)
    expect(text).toContain(`Next : ${LAST}`)
    expect(page).toContain(`value="${GAP}"`)
    expect(page).toContain(`aria-valuetext="${GAP}, a gap"`)
    expect(page).toContain(
      `<title>Gap of ${formatDay(GAP)}, Top of the 365 days to ${formatDay(NEXT)} · dash</title>`,
    )
    const before = await get(workspace, `/?sort=year&at=${noonAfter(NEXT)}`)
    expect(before.text).toContain(`Next : ${GAP}, a gap`)
  })

  test('the Year before the publication of its day says when it was published, and before the first one is a 404 that links to it', async () => {
    const workspace = await history()
    const early = await get(workspace, `/?at=${formatInstant(startOfDay(GAP) + 1_000)}`)
    expect(early.text).toContain(`${formatDay(NEXT)} was not published yet at this time`)
    const { status, text, page } = await get(workspace, '/?at=2020-01-01T00:00:00Z')
    expect([status, text]).toEqual([404, expect.stringContaining('year_history_not_found')])
    expect(text).toContain(`Next : ${AS_OF}`)
    expect(page).toMatch(/Before the first publication\s+<output id="slider-day"[^>]*><\/output\s*>/)
  })

  test.each([
    ['at=yesterday', 'invalid_at'],
    ['at=2027-01-01T00:00:00Z', 'invalid_at'],
    ['with=%3Cscript%3E', 'invalid_with'],
    ['day=2026-03-05', 'invalid_day'],
    ['withDay=x', 'invalid_day'],
    ['sort=day&at=2026-03-02T12:00:00Z', 'invalid_sort'],
  ])('a Year requested by %s is refused with %s and an explanation', async (query, code) => {
    const { status, page, text } = await get(await history(), `/?${query}`)
    expect(status).toBe(400)
    expect(page).toContain(`<code>${code}</code>`)
    expect(page).not.toContain('<script>')
    if (code !== 'invalid_sort') expect(text).toContain('Or choose the last day')
  })

  test.each([
    [
      'a published day',
      NEXT,
      async (workspace: Workspace) => (await manifestsOf(workspace))[1]?.publishedAt ?? 0,
    ],
    ['a gap', GAP, async () => startOfDay(addDays(GAP, 2)) - 1],
    ['a day before the first', '2026-01-01', async () => startOfDay('2026-01-03') - 1],
  ])('the Year requested by a form with %s redirects to its time', async (_what, day, time) => {
    const workspace = await history()
    const { status, headers } = await get(workspace, `/?sort=year&day=${day}&column=lobsters`)
    expect(status).toBe(303)
    const address = new URL(headers.get('location') ?? '', 'http://dash.test')
    expect(Object.fromEntries(address.searchParams)).toEqual({
      sort: 'year',
      column: 'lobsters',
      at: formatInstant(await time(workspace)),
    })
    expect((await get(workspace, `${address.pathname}${address.search}`)).page).toMatch(/class="travel"/)
  })

  test('the Year from a damaged archive is a 503, by a form too, and never an older one', async () => {
    const workspace = await history()
    const [, second] = await manifestsOf(workspace)
    writeFileSync(objectFile(workspace, second?.sha256), 'damaged')
    const damaged = await get(workspace, `/?at=${noonAfter(GAP)}`)
    expect(damaged.status).toBe(503)
    expect(damaged.page).toContain('<code>year_history_archive_corrupt</code>')
    expect(damaged.page).not.toContain('data-key=')
    expect((await get(workspace, `/?at=${noonAfter(AS_OF)}`)).status).toBe(200)
    const year = { read: () => Promise.reject(new Error('the disk is gone')) }
    const app = openApp({ ...workspace, year }, { clock: () => NOW })
    const form = await app.request(`http://dash.test/?sort=year&day=${AS_OF}`)
    expect([form.status, await form.text()]).toEqual([
      503,
      expect.stringContaining('year_history_lookup_failed'),
    ])
  })

  test('the Year of an older version is not parsed, with a note', async () => {
    const workspace = await openWorkspace()
    await importArchive(importPortsOf(workspace, recentArchive()))
    const { status, text } = await get(workspace, '/?sort=year')
    expect(status).toBe(200)
    expect(text).toContain('an older version that this page cannot show')
    const { proved } = await workspace.year.read()
    const v1 = proved.timeline.find(({ ledger }) => ledger === 'v1')
    const old = await get(workspace, `/?at=${formatInstant(v1?.manifest.publishedAt ?? 0)}`)
    expect(old.text).toContain('row 1 of the legacy ledger, sealed by entry')
  })
})

describe('two times compared', () => {
  test('two compared times show what entered, left and moved, with ranks and points then and now, in either order, and escaped titles', async () => {
    const workspace = await history((title) => `</td><script>alert("${title}")</script>`)
    const query = `at=${noonAfter(AS_OF)}&with=${noonAfter(LAST)}&column=hackerNews`
    const { status, text, page } = await get(workspace, `/?${query}`)
    expect(status).toBe(200)
    expect(text).toContain(`Between ${formatDay(AS_OF)} and ${formatDay(LAST)}`)
    expect(page).toContain('&lt;/td&gt;&lt;script&gt;alert(')
    expect(page).not.toContain('<script>')
    const rows = [...page.matchAll(/<tr role="row" data-key="([^"]*)" data-change="([^"]*)">(.*?)<\/tr>/gs)]
    const told = rows.map(([, key, change, cells = '']) => {
      const numbers = cells.matchAll(/data-title="[^"]*">\s*([^<]*?)\s*<\/td>/g)
      return [key, change, ...Array.from(numbers, ([, number]) => number)].join(' ')
    })
    expect(told).toEqual([
      'hn-old left 3 → – 15 → –',
      'hn-fresh entered – → 3 – → 25',
      'hn-hn1 up 4 → 1 10 → 5,000',
      'hn-hn3 down 1 → 2 30',
      'hn-hn2 down 2 → 4 20',
    ])
    expect(text).toContain('▲ up 3')
    expect(text).toMatch(/Hacker News 1 1 3 0 Lobsters 0 0 0 3/)
    expect(text).not.toMatch(/Images \d/)
    const turned = await get(workspace, `/?at=${noonAfter(LAST)}&with=${noonAfter(AS_OF)}&column=hackerNews`)
    expect(turned.page.match(/data-change="[^"]*"/g)).toEqual(page.match(/data-change="[^"]*"/g))
    expect(page.match(/class="proof"/g)).toHaveLength(2)
  })

  test('two times of one publication, or of equal lists, are shown as equal, and one before the first publication is a 404', async () => {
    const workspace = await history()
    const one = await get(workspace, `/?at=${noonAfter(NEXT)}&with=${noonAfter(GAP)}`)
    expect(one.text).toContain('the same publication, byte for byte')
    expect(one.text).toContain(`Gap: ${formatDay(GAP)} has no publication`)
    const equal = await get(workspace, `/?at=${noonAfter(AS_OF)}&with=${noonAfter(NEXT)}`)
    expect(equal.text).toContain('The lists are equal')
    const early = await get(workspace, '/?with=2020-01-01T00:00:00Z')
    expect([early.status, early.text]).toEqual([404, expect.stringContaining('one of the two times')])
    expect(early.text).not.toMatch(/Next leads|no gap for it yet/)
  })
})
