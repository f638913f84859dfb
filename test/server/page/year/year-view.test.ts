import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { addDays, formatInstant, startOfDay } from '../../../../src/domain/time.ts'
import { formatDay } from '../../../../src/server/page/html.ts'
import { gapReason } from '../../../../src/server/page/year/time-travel.ts'
import { keysIn, openPage, plainText } from '../../../support/api-client.ts'
import { LATER, changedYear, story } from '../../../support/changed-year.ts'
import {
  AS_OF,
  manifestsOf,
  objectFile,
  openWorkspace,
  publishDays,
  publishedWorkspace,
} from '../../../support/workspace.ts'
import type { Workspace } from '../../../support/workspace.ts'

async function namesOf(workspace: Workspace): Promise<string[]> {
  const { timeline } = (await workspace.year.read()).proved
  return timeline.map(({ seq, manifest }) => `${seq}-${manifest.sha256}`)
}

/** The row of an item in Popular. */
function rowOf(page: string, key: string): string {
  return plainText(new RegExp(`<li class="item" data-key="${key}"[^>]*>.*?</li>`, 's').exec(page)?.[0] ?? '')
}

test('rows of the Year have the change of their rank, and best rank and stay unless both only repeat the record', async () => {
  const { page } = await openPage(await changedYear(), '/?sort=year')
  expect(rowOf(page, 'hn-15')).toMatch(/▲ up 14 /)
  expect(rowOf(page, 'hn-15')).not.toContain('best #')
  expect(rowOf(page, 'hn-1')).toMatch(
    /▼ down 1 .* highest #1, 3 days, there since the first publication, of 1 March/,
  )
  expect(rowOf(page, 'hn-16')).toMatch(/NEW .* 1 day highest #15, 1 day, entered 3 March/)
})

test('the rows of several publications, which the slider shows, are those of their own pages', async () => {
  const workspace = await changedYear()
  const listOf = (page: string, start: string): string =>
    page
      .slice(page.indexOf(start))
      .split('</ol>')[0]
      ?.replace(/^.*?<ol/s, '')
      .replaceAll(/\s+/g, ' ') ?? ''
  const rows = await openPage(workspace, '/year/rows')
  expect([...rows.page.matchAll(/data-rows="([^"]*)"/g)].map(([, day]) => day)).toEqual([AS_OF, LATER])
  const newest = await openPage(workspace, '/?sort=year')
  expect(listOf(rows.page, `data-rows="${LATER}"`)).toBe(listOf(newest.page, 'id="column-popular"'))
  expect(newest.page).toMatch(/data-rows="\/year\/rows"\s+data-parts="[^" ]+"/)
  for (const query of ['q=story', 'column=popular', `with=${formatInstant(startOfDay(LATER))}`])
    expect((await openPage(workspace, `/?sort=year&${query}`)).page).not.toContain('data-rows')
  expect((await openPage(workspace, '/year/rows?at=yesterday')).status).toBe(400)
  expect((await openPage(await openWorkspace(), '/year/rows')).text).toContain('Nothing had been published')
})

test('the timeline has a bar a day with its turnover and hatches gaps, in one of which the chart goes up to the publication before it', async () => {
  const workspace = await changedYear()
  const { page } = await openPage(workspace, '/?sort=year')
  expect([...page.matchAll(/data-day="([^"]*)"/g)].map(([, day]) => day)).toEqual([AS_OF, LATER])
  expect(page.match(/class="hatched"/g)).toHaveLength(1)
  expect(page).toMatch(new RegExp(`class="level-4"\\s+data-day="${LATER}"`))
  const inGap = await openPage(workspace, `/?sort=year&at=${addDays(AS_OF, 2)}T12:00:00Z`)
  expect(inGap.text).toContain(`Gap: ${formatDay(addDays(AS_OF, 1))} has no publication`)
  expect(inGap.page).toContain('id="chart-table"')
})

test('a Year is compared with the day, the week and the month before it, as far as the archive goes', async () => {
  const newest = addDays(AS_OF, 30)
  const workspace = await publishedWorkspace([AS_OF, addDays(AS_OF, 7), newest])
  const onDay = (day: string) => (): number => startOfDay(day) + 3_600_000
  const daysOf = async (
    path: string,
    clock = onDay(addDays(newest, 1)),
  ): Promise<[day: string | undefined, name: string | undefined][]> => {
    const { page } = await openPage(workspace, path, { clock })
    return [...page.matchAll(/withDay=([\d-]*)[^"]*"[^>]*>([a-z ]+)</g)].map(([, day, name]) => [day, name])
  }
  expect(await daysOf('/?sort=year')).toEqual([
    [addDays(newest, -1), 'yesterday'],
    [addDays(newest, -7), 'a week ago'],
    [AS_OF, 'a month ago'],
  ])
  expect(await daysOf(`/?sort=year&at=${formatInstant(startOfDay(addDays(AS_OF, 8)) + 3_600_000)}`)).toEqual([
    [addDays(AS_OF, 6), 'the day before'],
    [AS_OF, 'a week before'],
  ])
  // A day later, the newest publication is not of yesterday.
  const late = await daysOf('/?sort=year', onDay(addDays(newest, 2)))
  expect(late.map(([, name]) => name)).toEqual(['the day before', 'a week before', 'a month before'])
})

test('the image of the chart has its height, the table under it has its ranks, and a gap is no rank', async () => {
  const workspace = await changedYear()
  const { page, text } = await openPage(workspace, '/?sort=year')
  expect(text).toMatch(/Link to this moment .* Chart in Markdown .* Chart in HTML, light and dark /)
  const [table = ''] = /<table class="compared" id="chart-table">.*?<\/table>/s.exec(page) ?? []
  const rows = [...table.matchAll(/<tr data-key="([^"]*)">(.*?)<\/tr>/gs)].map(([, key, cells = '']) =>
    [key, ...Array.from(cells.matchAll(/<td>([^<]*)<\/td>/g), ([, cell]) => cell)].join(' '),
  )
  expect([rows.length, rows[0], rows.at(-1)]).toEqual([15, 'hn-15 15 gap 1', 'hn-16 – gap 15'])
  const [, src = '', height] =
    /<img\s[^>]*src="(\/charts\/year.svg\?at=[^"]*)"[^>]* height="(\d+)"/.exec(page) ?? []
  const chart = await openPage(workspace, src.replaceAll('&amp;', '&'))
  expect(chart.page).toContain(` height="${height}" viewBox`)
})

test('a rule selects items of the Year, and another chart than of 30 or 90 publications is refused', async () => {
  const workspace = await changedYear()
  const { page, text } = await openPage(workspace, '/?sort=year&minPoints=1000')
  expect(keysIn(page.match(/<li class="item" data-key="[^"]*"/g)?.join('') ?? '')).toEqual(['hn-15', 'hn-1'])
  expect(text).toContain('Points of at least')
  expect((await openPage(workspace, '/?sort=year&minPoints=many')).text).toContain(
    'invalid_rule , minPoints is &quot;many&quot;: it must be',
  )
  expect((await openPage(workspace, '/?sort=year&q=nothing-like-this')).text).toContain('matches the filter')
  expect((await openPage(workspace, '/?sort=year&chart=90')).status).toBe(200)
  const refused = await openPage(workspace, '/?sort=year&chart=31')
  expect([refused.status, refused.text.includes('invalid_chart')]).toEqual([400, true])
})

test('a damaged earlier publication hides what derives from it, and not the shown publication', async () => {
  const workspace = await changedYear()
  const [first] = await manifestsOf(workspace)
  writeFileSync(objectFile(workspace, first?.sha256), 'damaged')
  const { status, page, text } = await openPage(workspace, '/?sort=year')
  expect(status).toBe(200)
  expect(text).toContain('Earlier publications cannot be shown: year_history_archive_corrupt')
  expect(page).toContain('data-key="hn-15"')
  expect(page).not.toMatch(/class="stay"|class="rose|chart-table/)
  const clock = (): number => startOfDay(addDays(AS_OF, 3))
  const missed = await openPage(workspace, `/?since=${AS_OF}`, { clock })
  expect([missed.status, missed.text]).toEqual([503, expect.not.stringContaining('feed_snapshot_corrupt')])
})

test('the home page says what changed since the publication before, without a script', async () => {
  const gapped = await openPage(await changedYear(), '/')
  expect(gapped.text).toContain(
    `Top Year: new #1, 1 entered, #14 left, 1 moved by 10 or more , since ${formatDay(AS_OF)}`,
  )
  const leaving = await openWorkspace()
  const old = { publishedAt: startOfDay(addDays(AS_OF, -364)) }
  await leaving.feed.importSignals([story(1, AS_OF, 9), story(2, AS_OF, 8, old), story(3, AS_OF, 7, old)])
  await publishDays(leaving, [AS_OF])
  await leaving.feed.importSignals([story(1, LATER, 9)])
  await publishDays(leaving, [LATER])
  expect((await openPage(leaving, '/')).text).toContain('Top Year: #2 and #3 left , since')
  const workspace = await publishedWorkspace([AS_OF, addDays(AS_OF, 1)])
  const on = async (day: string) =>
    openPage(workspace, '/', { clock: () => startOfDay(day) + 12 * 3_600_000 })
  expect((await on(addDays(AS_OF, 2))).text).toContain('Top Year: nothing entered or left , since yesterday')
  // A day later, the newest publication is not of yesterday.
  const late = `Top Year: nothing entered or left , since ${formatDay(AS_OF)}`
  expect((await on(addDays(AS_OF, 3))).text).toContain(late)
  await workspace.feed.importSignals([story(99, LATER, 1)])
  await publishDays(workspace, [LATER])
  expect((await on(addDays(LATER, 1))).text).toContain('Top Year: 1 entered , since yesterday')
})

test('the changes since a known publication are shown, and since the one before for any other value', async () => {
  const workspace = await changedYear()
  const [first = '', second = ''] = await namesOf(workspace)
  const known = await openPage(workspace, `/since?since=${first}`)
  expect(known.text).toContain(`since your last visit of ${formatDay(AS_OF)}`)
  expect(known.page).toContain(`data-base="${first}"`)
  expect(known.text).toMatch(/New number 1: Story 15 .*1 item entered #15 Story 16 .*#15 → #1 Story 15/)
  const otherSeq = first.replace(/^\d+/, '9')
  for (const value of ['', 'yesterday', first.replace('-', '-0'), otherSeq, `1-${'0'.repeat(64)}`]) {
    const { status, text } = await openPage(workspace, `/since?since=${value}`)
    expect([value, status, text.includes(`since ${formatDay(AS_OF)}`)]).toEqual([value, 200, true])
  }
  const newest = await openPage(workspace, `/since?since=${second}`)
  expect(newest.text).toContain('No publication of the Year since then.')
})

test('the page of what was missed lists the tops of the days since then, each story once with its days', async () => {
  const clock = (): number => startOfDay(addDays(AS_OF, 3)) + 3_600_000
  const workspace = await changedYear()
  const { status, page, text } = await openPage(workspace, `/?since=${addDays(AS_OF, 1)}`, { clock })
  expect([status, page.includes('These lists as')]).toEqual([200, false])
  expect(text).toContain('1 publication from 3 Mar 2026 to 3 Mar 2026')
  expect(text).toContain('3 Mar , 1 day, #1 in Popular')
  expect(new Set(keysIn(page)).size).toBe(keysIn(page).length)
  const whole = await openPage(workspace, `/?since=${addDays(AS_OF, -9)}`, { clock })
  expect(whole.text).toContain('1 to 3 Mar , 2 days, #')
  expect(whole.text).toContain('The archive begins with 1 Mar 2026.')
  // What came after the first day stands before what was there.
  const marks = [...whole.page.matchAll(/<li class="item" data-key="([^"]*)".*?<\/li>/gs)].map((row) => [
    row[1],
    row[0].includes('>NEW<'),
  ])
  expect(marks.slice(0, 2)).toEqual([
    ['hn-16', true],
    ['hn-1', false],
  ])
  const sinceFirst = await openPage(workspace, `/?since=${AS_OF}`, { clock })
  expect(sinceFirst.text).not.toContain('The archive begins')
  const empty = await openPage(await openWorkspace(), `/?since=${AS_OF}`, { clock })
  expect([empty.status, empty.text]).toEqual([200, expect.stringContaining('Nothing has been published yet')])
})

test.each(['yesterday', '2026-02-30', '2026-03-04', '2025-11-01', `${AS_OF}&since=${AS_OF}`])(
  'the page of what was missed refuses the day %s, and offers others',
  async (day) => {
    const clock = (): number => startOfDay(addDays(AS_OF, 3)) + 3_600_000
    const { status, text, page } = await openPage(await changedYear(), `/?since=${day}`, { clock })
    expect([status, text]).toEqual([400, expect.stringContaining('invalid_since')])
    expect(text).toContain('two weeks')
    expect(page).toContain('name="since"')
  },
)

test('the reason of a gap is that no run tried, or the number of its failed attempts', () => {
  expect(gapReason({ seq: 1, reason: 'missed', attempts: 0 })).toBe('no run tried to publish it')
  expect(gapReason({ seq: 1, reason: 'attempts_spent', attempts: 3 })).toBe('3 attempts failed')
})
