import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  learnedRate,
  nextStart,
  STARTS_A_MINUTE,
  vendorOf,
  WINDOW_MS,
} from '../../../src/domain/models/quota.ts'
import type { Pace, Waiting } from '../../../src/domain/models/quota.ts'

const PACE: Pace = { startsAMinute: STARTS_A_MINUTE, notBefore: 0, oneByOne: false }
const call = (vendor: string, readyAt = 0): Waiting => ({ vendor, readyAt })

describe('the next start', () => {
  test('is the first call whose vendor has none open', () => {
    expect(nextStart([call('a'), call('b')], ['a'], [], PACE, 5)).toEqual({ do: 'start', index: 1 })
  })

  test('waits for an open call when there is none, or when enough are open', () => {
    expect(nextStart([call('a')], ['a'], [], PACE, 5)).toEqual({ do: 'settle' })
    expect(nextStart([call('e')], ['a', 'b', 'c', 'd'], [], PACE, 5)).toEqual({ do: 'settle' })
    expect(nextStart([call('b')], ['a'], [], { ...PACE, oneByOne: true }, 5)).toEqual({ do: 'settle' })
    expect(nextStart([], ['a'], [], PACE, 5)).toEqual({ do: 'settle' })
    expect(nextStart([], [], [], PACE, 5)).toEqual({ do: 'done' })
  })

  test('lets a call pass whose retry has to wait', () => {
    expect(nextStart([call('a', 900), call('b', 0)], [], [], PACE, 5)).toEqual({ do: 'start', index: 1 })
    expect(nextStart([call('a', 900)], [], [], PACE, 5)).toEqual({ do: 'wait', until: 900 })
  })

  test('waits for the account, and for the window', () => {
    expect(nextStart([call('a')], [], [], { ...PACE, notBefore: 70 }, 5)).toEqual({ do: 'wait', until: 70 })
    const starts = Array.from({ length: STARTS_A_MINUTE }, (_, index) => index)
    expect(nextStart([call('a')], [], starts, PACE, 30)).toEqual({ do: 'wait', until: WINDOW_MS })
    expect(nextStart([call('a')], [], starts, PACE, WINDOW_MS)).toEqual({ do: 'start', index: 0 })
  })

  test('never crowds a window nor a vendor, in any interleaving, whatever rate was learned on the way', () => {
    const vendors = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { maxLength: 60 })
    const durations = fc.infiniteStream(fc.nat(90_000))
    const learned = fc.array(fc.option(fc.integer({ min: 1, max: 19 })), { maxLength: 60 })
    fc.assert(
      fc.property(vendors, durations, learned, (drawn, lasts, rates) => {
        const queue = drawn.map((vendor) => call(vendor))
        const open: { vendor: string; endsAt: number }[] = []
        const starts: number[] = []
        const pace = { ...PACE }
        let now = 0
        for (;;) {
          const next = nextStart(
            queue,
            open.map(({ vendor }) => vendor),
            starts,
            pace,
            now,
          )
          if (next.do === 'done') break
          if (next.do === 'start') {
            const [started] = queue.splice(next.index, 1)
            expect(open.map(({ vendor }) => vendor)).not.toContain(started?.vendor)
            starts.push(now)
            open.push({ vendor: started?.vendor ?? '', endsAt: now + (lasts.next().value ?? 0) })
            const rate = rates[starts.length] ?? null
            if (rate !== null) pace.startsAMinute = Math.min(rate, pace.startsAMinute)
            const inWindow = starts.filter((at) => at > now - 60_000)
            expect(inWindow.length).toBeLessThanOrEqual(STARTS_A_MINUTE)
            continue
          }
          const ends = Math.min(...open.map(({ endsAt }) => endsAt))
          now = next.do === 'wait' ? Math.min(next.until, ends) : ends
          for (let index = open.length - 1; index >= 0; index -= 1) {
            if ((open[index]?.endsAt ?? 0) <= now) open.splice(index, 1)
          }
        }
        expect(starts).toHaveLength(drawn.length)
      }),
    )
  })
})

describe('a learned rate', () => {
  test('stays two below the limit that was met, and never rises', () => {
    expect(learnedRate(19, 16)).toBe(14)
    expect(learnedRate(10, 16)).toBe(10)
    expect(learnedRate(19, null)).toBe(17)
    expect(learnedRate(2, 1)).toBe(1)
  })
})

describe('the vendor of a model', () => {
  test('is what its id begins with', () => {
    expect(vendorOf('example/model-1:free')).toBe('example')
  })
})
