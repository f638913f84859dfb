import { describe, expect, test } from 'vitest'
import { parseInstant, startOfDay } from '../../../src/domain/time.ts'
import {
  atOfDay,
  atOfStop,
  firstDayOf,
  lastDayOf,
  momentAt,
  stopsOf,
} from '../../../src/domain/year/calendar.ts'
import { proveLedger } from '../../../src/domain/year/chain.ts'
import type { ProvedLedger } from '../../../src/domain/year/chain.ts'
import type { EntryContent, LegacyRow } from '../../../src/domain/year/ledger.ts'
import { chainOf, gap, headAt, legacyRow, legacySeal, manifest, publication } from './ledger-rows.ts'

function proved(contents: EntryContent[], legacy: LegacyRow[] = []): ProvedLedger {
  const rows = chainOf(contents)
  return proveLedger({ rows, legacy, founding: null }, headAt(rows, rows.length))
}

const instant = (text: string): number => parseInstant(text) ?? Number.NaN

const NOW = instant('2026-06-01T12:00:00Z')

/** A publication, a recorded gap, a publication, and two days later another one after a hole. */
const HISTORY = proved([
  publication('2026-01-01'),
  gap('2026-01-02'),
  publication('2026-01-03'),
  publication('2026-01-06'),
])
const STOPS = stopsOf(HISTORY)

const moment = (at: string) => momentAt(HISTORY.timeline, STOPS, instant(at))

describe('the stops of a history', () => {
  test('are every publication and every gap by day, holes that no entry names among them', () => {
    expect(STOPS.map((stop) => [stop.kind, firstDayOf(stop), lastDayOf(stop)])).toEqual([
      ['publication', '2026-01-01', '2026-01-01'],
      ['gap', '2026-01-02', '2026-01-02'],
      ['publication', '2026-01-03', '2026-01-03'],
      ['gap', '2026-01-04', '2026-01-05'],
      ['publication', '2026-01-06', '2026-01-06'],
    ])
    expect(STOPS.map((stop) => stop.kind === 'gap' && stop.recorded)).toEqual([
      false,
      { reason: 'missed', attempts: 0, seq: 2 },
      false,
      null,
      false,
    ])
  })

  test('leave out what another publication of the same time hides, and make no gap of its day', () => {
    const time = manifest('2026-01-02').publishedAt
    const legacy = [legacyRow(1, '2026-01-01'), legacyRow(2, '2026-01-02')]
    const hiding = publication('2026-01-03', { publishedAt: time })
    const stops = stopsOf(proved([hiding, legacySeal(legacy)], legacy))
    expect(stops.map((stop) => [stop.kind, firstDayOf(stop)])).toEqual([
      ['publication', '2026-01-01'],
      ['publication', '2026-01-03'],
    ])
  })

  test('are none for an empty ledger', () => {
    expect(stopsOf(proveLedger({ rows: [], legacy: [], founding: null }, null))).toEqual([])
  })

  test.each(STOPS.map((_stop, place) => place))('lead to a time that falls on stop %i again', (place) => {
    const stop = STOPS[place]
    if (!stop) throw new Error('no such stop')
    const at = atOfStop(stop, NOW)
    expect(moment(at).place).toBe(place)
    expect(atOfDay(STOPS, lastDayOf(stop), NOW)).toBe(at)
  })
})

describe('a time', () => {
  test.each([
    ['before the first publication', '2026-01-01T12:00:00Z', null, 'open', -1],
    ['before the publication of a day', '2026-01-02T00:04:59Z', null, 'later', -1],
    ['at a publication', '2026-01-02T00:05:00Z', '2026-01-01', 'published', 0],
    ['while a gap is the due day', '2026-01-03T12:00:00Z', '2026-01-01', 'gap', 1],
    ['before the next publication', '2026-01-04T00:01:00Z', '2026-01-01', 'later', 0],
    ['in a hole', '2026-01-06T12:00:00Z', '2026-01-03', 'gap', 3],
    ['after the last entry', '2026-02-01T00:00:00Z', '2026-01-06', 'open', 4],
  ])('%s falls on what was served, and tells what became of the due day', (_when, at, day, is, place) => {
    const { selected, due, place: found } = moment(at)
    expect([selected?.manifest.asOfDay ?? null, due.is, found]).toEqual([day, is, place])
  })

  test('of a publication that came while a gap was due stops at the publication', () => {
    const late = publication('2026-01-01', { publishedAt: startOfDay('2026-01-03') + 1_000 })
    const history = proved([late, gap('2026-01-02')])
    const stops = stopsOf(history)
    const at = startOfDay('2026-01-03') + 1_000
    expect(momentAt(history.timeline, stops, at)).toMatchObject({ place: 0, due: { is: 'gap' } })
    expect(momentAt(history.timeline, stops, at + 1)).toMatchObject({ place: 1, due: { is: 'gap' } })
  })

  test('of a day that is not over is now', () => {
    expect(atOfDay(STOPS, '2026-05-31', NOW)).toBe('2026-06-01T12:00:00.000Z')
  })
})
