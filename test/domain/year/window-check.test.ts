import { expect, test } from 'vitest'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import type { YearEvent } from '../../../src/domain/year/rank.ts'
import { examineWindow } from '../../../src/domain/year/window-check.ts'
import type { ExaminedWindow } from '../../../src/domain/year/window-check.ts'
import { AS_OF_DAY, yearEvents } from './year-events.ts'

function examined(events: YearEvent[]): ExaminedWindow {
  return examineWindow({ window: windowEnding(AS_OF_DAY), events, observed: [], titles: new Map() }, 0)
}

const stories = (count: number, changes: Partial<YearEvent>): YearEvent[] =>
  yearEvents('hn', count, () => changes)

const long = { title: 'x'.repeat(1_001) }

/** Rows within the bounds whose control characters take six bytes each in JSON. */
const wide = ['hn', 'lobsters', 'lesswrong'].flatMap((source) =>
  yearEvents(source, 100).map((event, index) => ({
    ...event,
    title: `${index}${'\u0001'.repeat(990)}`,
    url: `https://example.org/${index}?${'\u0001'.repeat(4_000)}`,
  })),
)

test.each<[problem: string | RegExp, events: YearEvent[]]>([
  ['2 stored events are too long for a publication', stories(2, long)],
  [/^1 stored event is too long .* 2026-03-14: its title has more than 1000 /, stories(1, long)],
  ['its URL has more than 4096 bytes', stories(1, { url: `https://${'x'.repeat(5_000)}` })],
  ['provenance has more than 256 characters', stories(1, { titleProvenance: 'x'.repeat(257) })],
  ['the stored rows are not valid for a publication', stories(1, { title: ' ' })],
  [/has \d+ bytes; the maximum is 8388608; largest rows: \w+ \w+ of 2026-03-14 \(\d+ bytes\), /, wide],
])('a window is refused with "%s"', (message, events) => {
  const { problem, seal } = examined(events)
  expect(seal).toBeNull()
  expect(problem?.message([AS_OF_DAY])).toMatch(message)
})

test('a window is not refused for a long row below the published ones, or a long title that is yet to be fetched', () => {
  const published = stories(100, { points: 9 })
  const below = stories(101, { ...long, points: 0 }).slice(100)
  expect(examined([...published, ...below]).seal).not.toBeNull()
  const unverified = yearEvents('lobsters', 1, () => ({ ...long, titleProvenance: null }))
  expect(examined([...published, ...unverified])).toMatchObject({ problem: null, seal: null })
})
