import { expect, test } from 'vitest'
import { COLUMN_NAMES } from '../../../../src/domain/feed/columns.ts'
import { addDays } from '../../../../src/domain/time.ts'
import type { TimelineStop, YearPosition } from '../../../../src/domain/year/history/calendar.ts'
import type { Manifest } from '../../../../src/domain/year/ledger.ts'
import { standingIn } from '../../../../src/server/page/item/year-ranks.ts'
import type { YearRecord } from '../../../../src/server/page/item/year-ranks.ts'

/** The place of the item in a publication: in Popular, in the list of its source alone, absent, or of an older layout. */
type Place = { popular: number } | { own: number } | 'absent' | 'older'

/** A history with a publication for each day of March 2026 that is named. */
function recordOf(places: Readonly<Record<string, Place>>): YearRecord {
  const listsOf = (place: Place) => {
    if (place === 'older') return null
    const rank = place === 'absent' ? null : 'own' in place ? place.own : 1
    const popular = place !== 'absent' && 'popular' in place ? place.popular : null
    const own = new Map(rank === null ? [] : [['hn-1', rank]])
    const ranks = COLUMN_NAMES.map((name) => [name, name === 'hackerNews' ? own : new Map()] as const)
    const position: YearPosition = { rank, popular, points: 5 }
    const positions = new Map(rank === null ? [] : [['hn-1', position]])
    return { ranks: Object.fromEntries(ranks), positions }
  }
  const lists = new Map(Object.entries(places).map(([day, place]) => [day, listsOf(place)])) as unknown
  const manifests = Object.keys(places).map((day) => ({ asOfDay: `2026-03-${day}`, sha256: day }) as Manifest)
  const stops = manifests.map((manifest) => ({ kind: 'publication', item: { manifest } }) as TimelineStop)
  const now = Date.parse(`${addDays(manifests.at(-1)?.asOfDay ?? '2026-03-02', 1)}T09:00:00Z`)
  const known = { lists: lists as YearRecord['lists'], manifests, now }
  return { key: 'hn-1', stops, stopIndex: stops.length - 1, ...known }
}

const textOf = (record: YearRecord, firstDay: string | null): string =>
  standingIn(record, firstDay)
    .html.replaceAll(/<[^>]*>/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()

const KNOWN: Record<string, Place> = { '01': { popular: 9 }, '02': { popular: 8 } }

test.each<[what: string, places: Record<string, Place>, text: string]>([
  ['as of the day before', KNOWN, '#8 in Top Year (yesterday #9)'],
  ['across a gap', { '01': { popular: 9 }, '04': { popular: 8 } }, '#8 in Top Year (1 Mar 2026 #9)'],
  ['as new', { '01': 'absent', '02': { popular: 8 } }, '#8 in Top Year (new since yesterday)'],
  ['in the first publication', { '02': { popular: 8 } }, '#8 in Top Year'],
  ['after an older layout', { '01': 'older', '02': { popular: 8 } }, '#8 in Top Year'],
  [
    'in the list of its source',
    { '01': { own: 4 }, '02': { own: 3 } },
    '#3 in Top Year, Hacker News (yesterday #4)',
  ],
  ['after it left', { '01': { popular: 9 }, '02': 'absent' }, 'Left the Top Year after 1 Mar 2026'],
  ['as never listed', { '01': 'absent', '02': 'absent' }, 'Never in the Top Year'],
  ['not at all in an older layout', { '01': { popular: 9 }, '02': 'older' }, ''],
  ['not at all without a publication', {}, ''],
])('the standing of an item is said %s', (_what, places, text) => {
  expect(textOf(recordOf(places), '2026-03-01')).toBe(text)
})

test('an item is never said to be never listed when a publication that could list it was not read', () => {
  const places: Record<string, Place> = { '01': 'absent', '02': 'absent', '03': 'absent' }
  const whole = recordOf(places)
  const newest = { ...whole, manifests: whole.manifests.slice(1) }
  expect(textOf(newest, '2026-03-02')).toBe('Never in the Top Year')
  expect(textOf(newest, '2026-03-01')).toBe('Not in the newest 2 Top Years')
  expect(textOf(newest, null)).toBe('Not in the newest 2 Top Years')
  expect(textOf(recordOf({ '01': 'older', '02': 'absent' }), '2026-03-01')).toBe(
    'Not in the newest 1 Top Year',
  )
})

test('an item that was first seen after the newest publication is too new for it', () => {
  const record = recordOf({ '01': 'absent', '02': 'absent' })
  expect(textOf(record, '2026-03-03')).toBe('Too new for the Top Year')
})

test('the publication before the newest one is of yesterday only while the newest one is of the last complete day', () => {
  const record = recordOf(KNOWN)
  expect(textOf({ ...record, now: record.now + 86_400_000 }, null)).toBe('#8 in Top Year (the day before #9)')
})

test('the standing of an item at an earlier moment names its day', () => {
  const { stops, ...rest } = recordOf(KNOWN)
  const later = { ...rest, stops: [...stops, stops[0] as TimelineStop] }
  expect(textOf(later, null)).toBe('#8 in Top Year up to 2 Mar 2026 (the day before #9)')
  expect(textOf({ ...later, key: 'hn-2' }, '2026-03-01')).toBe('Not in the Top Year up to 2 Mar 2026')
})
