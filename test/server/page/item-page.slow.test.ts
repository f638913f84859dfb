import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { addDays, startOfDay } from '../../../src/domain/time.ts'
import { NO_CHAT, keysIn, openPage, plainText } from '../../support/api-client.ts'
import { openSampleApp, sampleArchive } from '../../support/sample-archive.ts'
import { signal } from '../../support/signals.ts'
import {
  AS_OF,
  manifestsOf,
  objectFile,
  openWorkspace,
  publishDays,
  publishedWorkspace,
  sampleSignals,
} from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const LAST = addDays(AS_OF, 3)
const NOW = startOfDay(addDays(LAST, 1)) + 12 * 3_600_000

const get = (workspace: Workspace, path: string) => openPage(workspace, path, { clock: () => NOW })

/** An item observed on two days with a day between them, in two publications with a gap between them. */
async function observed(title = 'An item'): Promise<{ workspace: Workspace; key: string }> {
  const workspace = await openWorkspace()
  const [first, ...others] = sampleSignals().filter(({ source }) => source === 'hn')
  if (!first) throw new Error('the sample has no item of hn')
  await workspace.feed.importSignals([{ ...first, title, day: AS_OF, points: 9_000 }, ...others])
  await publishDays(workspace, [AS_OF])
  await workspace.feed.importSignals([{ ...first, title, day: addDays(AS_OF, 2), points: 9_500 }])
  await publishDays(workspace, [LAST])
  return { workspace, key: `hn-${first.sourceId}` }
}

/** Every row of a table, as the texts of its cells. */
function rowsOf(page: string, id: string): string[] {
  const table = new RegExp(`<table class="compared" id="${id}">(.*?)</table>`, 's').exec(page)?.[1] ?? ''
  const body = /<tbody>(.*?)<\/tbody>/s.exec(table)?.[1] ?? ''
  return body.split('</tr>').flatMap((row) => {
    const text = plainText(row).trim()
    return text === '' ? [] : [text]
  })
}

/** The title of each chart, and the number of parts of each of its lines: a move begins a part. */
function chartsOf(page: string): { title: string | undefined; parts: (number | undefined)[] }[] {
  return [...page.matchAll(/<svg[^>]*role="img".*?<\/svg>/gs)].map(([chart]) => ({
    title: /<title>(.*?)<\/title>/.exec(chart)?.[1],
    parts: [...chart.matchAll(/<path d="(M[^"]*)" fill="none"/g)].map(
      ([, line = '']) => line.match(/M/g)?.length,
    ),
  }))
}

describe('the page of an item', () => {
  test('the page of an item has its numbers in a line, a broken chart, and its ranks by day and by publication as tables, with missing days named', async () => {
    const { workspace, key } = await observed()
    const { status, page, text } = await get(workspace, `/item?key=${key}`)
    expect(status).toBe(200)
    expect(text.replaceAll('# ', '#')).toContain(
      'An item Standing and links #1 in Top Year (1 Mar 2026 #1) · 9,500 points · 1 comment · Hacker News · 28 Feb 2026',
    )
    expect(chartsOf(page)).toEqual([{ title: 'An item: rank in the Year', parts: [2, 2, 2] }])
    const daily = rowsOf(page, 'daily-ranks')
    expect(daily).toHaveLength(3)
    expect(daily[0]).toMatch(new RegExp(`^${AS_OF} 1 \\d+ 9,000 `))
    expect(daily[1]).toBe(`${addDays(AS_OF, 1)} not observed`)
    expect(daily[2]).toMatch(new RegExp(`^${addDays(AS_OF, 2)} 1 1 9,500 `))
    expect(rowsOf(page, 'year-ranks-table')).toEqual([
      expect.stringMatching(new RegExp(`^${AS_OF} 1 \\d+ 9,000$`)),
      `${addDays(AS_OF, 1)} gap: nothing was published`,
      `${addDays(AS_OF, 2)} gap: nothing was published`,
      expect.stringMatching(new RegExp(`^${LAST} 1 \\d+ 9,500$`)),
    ])
  })

  test('the page of an item reads a month of publications at a time, and links to the others', async () => {
    const archive = sampleArchive(40)
    const clock = () => (archive.contents.rows.at(-1)?.publishedAt ?? 0) + 1
    const app = openSampleApp(archive, { clock })
    const ask = async (path: string) => (await app.request(`http://dash.test${path}`)).text()
    const newest = await ask('/item?key=hn-1')
    const rows = rowsOf(newest, 'year-ranks-table')
    expect(rows).toHaveLength(31)
    expect(rows.at(-1)).toBe('2026-02-13 not shown: top-year-v2 has an older layout')
    expect(newest).not.toContain('>Later<')
    const [, earlier = ''] = /href="([^"]*)"\s*>Earlier</.exec(newest) ?? []
    const before = await ask(earlier.replaceAll('&amp;', '&'))
    // The day before the first of them; two legacy days, one of them hidden, an imported one and a gap stand first.
    expect(rowsOf(before, 'year-ranks-table').at(-1)).toMatch(/^2026-01-13 /)
    expect(rowsOf(before, 'year-ranks-table')).toHaveLength(12)
    expect(before).toContain('>Later<')
    expect(before).not.toContain('>Earlier<')
  })

  test.each([
    ['/item', 400, 'invalid_key'],
    ['/item?key=%3Cscript%3E', 400, 'invalid_key'],
    ['/item?key=hn-hn1&at=yesterday', 400, 'invalid_at'],
    ['/item?key=hn-999999999', 404, 'item_not_found'],
    ['/chat?key=hn-999999999', 404, 'item_not_found'],
    ['/chat?key=%3Cscript%3E', 400, 'invalid_key'],
  ])(
    'a page of an item or of the chat about it responds to %s with %i and %s',
    async (path, status, code) => {
      const { workspace } = await observed()
      const response = await get(workspace, path)
      expect(response.status).toBe(status)
      expect(response.page).toContain(`<code>${code}</code>`)
      expect(response.page).not.toContain('<script>')
      if (code === 'invalid_key' && path.startsWith('/item'))
        expect(response.page.match(/class="refusal"/g)).toHaveLength(1)
      if (status === 404) expect(response.text).not.toMatch(/In the Top Year|Similar items/)
    },
  )

  test('the page of the chat is about an item only if the chat offers that', async () => {
    const { workspace, key } = await observed()
    const keysWith = async (itemChat: boolean): Promise<string[]> => {
      const config = async () => ({ ...(await NO_CHAT.config()), enabled: true, itemChat })
      return keysIn((await openPage(workspace, `/chat?key=${key}`, { agent: { ...NO_CHAT, config } })).page)
    }
    expect([await keysWith(true), await keysWith(false)]).toEqual([[key], []])
  })

  test('the page of an item that was never in the Year draws its ranks by day and its points below them', async () => {
    const workspace = await openWorkspace()
    const days = [AS_OF, addDays(AS_OF, 2), LAST]
    await workspace.feed.importSignals(days.map((day) => signal({ sourceId: 'hn1', day })))
    const { page, text } = await get(workspace, '/item?key=hn-hn1')
    const title = 'Rank by points among the Hacker News items of the day'
    expect(chartsOf(page)).toEqual([{ title, parts: [2, 2] }])
    expect([...page.matchAll(/class="day".*?<title>(.*?):/gs)].at(-1)?.[1]).toBe(LAST)
    expect(text).not.toContain('In the Top Year')
  })

  test('the page of an item draws no chart and has no table of a single day, and is linked from every row of a list', async () => {
    const workspace = await publishedWorkspace([AS_OF])
    const { page, text } = await get(workspace, '/item?key=hn-hn1')
    expect(page).not.toMatch(/<table|role="img"/)
    expect(text).toContain('the only day of observation')
    const list = (await get(workspace, '/?sort=year')).page
    const rows = list.match(/<li class="item" data-key="/g)?.length
    expect(list.match(/class="rank" href="\/item\?key=/g)).toHaveLength(rows ?? 0)
    expect(list.match(/class="history" href="\/item\?key=[^>]*>history</g)).toHaveLength(rows ?? 0)
  })

  test('the page of an item escapes a title, and keeps the ranks by day when the archive is damaged', async () => {
    const { workspace, key } = await observed('</h2><script>alert(1)</script>')
    const [first] = await manifestsOf(workspace)
    writeFileSync(objectFile(workspace, first?.sha256), 'damaged')
    const { status, page } = await get(workspace, `/item?key=${key}`)
    expect(status).toBe(200)
    expect(page).toContain('&lt;/h2&gt;&lt;script&gt;alert(1)')
    expect(page).not.toContain('<script>')
    expect(page).toContain('<code>year_history_archive_corrupt</code>')
    expect(page).not.toContain('id="year-ranks-table"')
    expect(rowsOf(page, 'daily-ranks')).toHaveLength(3)
  })
})
