import { describe, expect, test } from 'vitest'
import { parseInstant, startOfDay } from '../../../../src/domain/time.ts'
import {
  atOfDay,
  atOfStop,
  compareLists,
  firstDayOf,
  lastDayOf,
  momentAt,
  positionsOf,
  timelineStops,
} from '../../../../src/domain/year/history/calendar.ts'
import { legacyRow, legacySeal, manifest, gap, proved, publication } from '../ledger-rows.ts'

const instant = (text: string): number => parseInstant(text) ?? Number.NaN

const NOW = instant('2026-06-01T12:00:00Z')

/** A publication, a recorded gap, a publication, and two days later another one after a hole. */
const HISTORY = proved([
  publication('2026-01-01'),
  gap('2026-01-02'),
  publication('2026-01-03'),
  publication('2026-01-06'),
])
const STOPS = timelineStops(HISTORY)

const moment = (at: string) => momentAt(HISTORY.timeline, STOPS, instant(at))

describe('the stops of a history', () => {
  test('the stops are every publication and every gap by day, including unrecorded gaps', () => {
    expect(STOPS.map((stop) => [stop.kind, firstDayOf(stop), lastDayOf(stop)])).toEqual([
      ['publication', '2026-01-01', '2026-01-01'],
      ['gap', '2026-01-02', '2026-01-02'],
      ['publication', '2026-01-03', '2026-01-03'],
      ['gap', '2026-01-04', '2026-01-05'],
      ['publication', '2026-01-06', '2026-01-06'],
    ])
    const gaps = STOPS.flatMap((stop) => (stop.kind === 'gap' ? [stop.recorded] : []))
    expect(gaps).toEqual([{ reason: 'missed', attempts: 0, seq: 2 }, null])
    expect(timelineStops(proved([]))).toEqual([])
  })

  test('the stops omit a publication superseded at the same time, and make no gap of its day', () => {
    const { publishedAt } = manifest('2026-01-02')
    const legacy = [legacyRow(1, '2026-01-01'), legacyRow(2, '2026-01-02')]
    const hiding = publication('2026-01-03', { publishedAt })
    const stops = timelineStops(proved([hiding, legacySeal(legacy)], legacy))
    expect(stops.map((stop) => [stop.kind, firstDayOf(stop)])).toEqual([
      ['publication', '2026-01-01'],
      ['publication', '2026-01-03'],
    ])
  })

  test.each(STOPS.map((stop, place) => [place, stop] as const))(
    'the time of a stop selects stop %i again',
    (place, stop) => {
      const at = atOfStop(stop, NOW)
      expect(moment(at).stopIndex).toBe(place)
      expect(atOfDay(STOPS, lastDayOf(stop), NOW)).toBe(at)
    },
  )
})

describe('a time', () => {
  test.each([
    ['before the first publication', '2026-01-01T12:00:00Z', null, 'open', -1],
    ['before the publication of a day', '2026-01-02T00:04:59Z', null, 'later', -1],
    ['at a publication', '2026-01-02T00:05:00Z', '2026-01-01', 'published', 0],
    ['before the next publication', '2026-01-04T00:01:00Z', '2026-01-01', 'later', 0],
    ['in a hole', '2026-01-06T12:00:00Z', '2026-01-03', 'gap', 3],
    ['after the last entry', '2026-02-01T00:00:00Z', '2026-01-06', 'open', 4],
  ])('%s selects the served publication and the state of the due day', (_when, at, day, is, place) => {
    const { selected, due, stopIndex: found } = moment(at)
    expect([selected?.manifest.asOfDay ?? null, due.is, found]).toEqual([day, is, place])
  })

  test('the time of a publication made while a gap was due selects the publication', () => {
    const at = startOfDay('2026-01-03') + 1_000
    const history = proved([publication('2026-01-01', { publishedAt: at }), gap('2026-01-02')])
    const stops = timelineStops(history)
    expect(momentAt(history.timeline, stops, at)).toMatchObject({ stopIndex: 0, due: { is: 'gap' } })
    expect(momentAt(history.timeline, stops, at + 1)).toMatchObject({ stopIndex: 1, due: { is: 'gap' } })
  })

  test('the time of an unfinished day is now', () => {
    expect(atOfDay(STOPS, '2026-05-31', NOW)).toBe('2026-06-01T12:00:00.000Z')
  })
})

describe('a comparison of lists', () => {
  const list = (keys: string) => keys.split('').map((key, index) => ({ key, rank: index + 1 }))

  test('a comparison puts every item of both lists in exactly one part', () => {
    const { moved, stayed, entered, left } = compareLists(list('abcd'), list('badx'))
    const rise = moved.map(({ before, after, rose }) => `${after.key} ${before.rank} ${after.rank} ${rose}`)
    expect(rise).toEqual(['b 2 1 1', 'a 1 2 -1', 'd 4 3 1'])
    expect([stayed, entered, left]).toEqual([[], [{ key: 'x', rank: 4 }], [{ key: 'c', rank: 3 }]])
    const kept = compareLists(list('a'), list('a')).stayed.map(({ after }) => after.key)
    expect(kept).toEqual(['a'])
  })

  test('an item is found in the list of its source, in Popular, or in both', () => {
    const item = (key: string, rank: number, points: number) => ({ key, rank, points })
    const none = { lobsters: [], lessWrong: [], midjourney: [] }
    const feed = {
      ...none,
      hackerNews: [item('hn-1', 4, 10)],
      hypeReplicate: [item('hype-github-1', 1, 7)],
      popular: [item('hn-1', 2, 10), item('hn-2', 3, 9)],
    }
    expect(Object.fromEntries(positionsOf(feed))).toEqual({
      'hn-1': { rank: 4, popular: 2, points: 10 },
      'hn-2': { rank: null, popular: 3, points: 9 },
      'hype-github-1': { rank: 1, popular: null, points: 7 },
    })
  })
})
