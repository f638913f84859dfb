import type { Draw } from './draw.ts'
import type { Grade } from './suite.ts'

/** The puzzle of a day: a time written with wedges in base 60, by a clock that runs ahead. */
export interface ClockItem {
  task: string
  /** `hh:mm:ss` */
  expected: string
}

/** Pairs of signs, for ten and for one. */
const SIGNS = ['<Y', '#o', 'xi', 'Lv', '=-', '@t'].map((pair) => Array.from(pair))

/** Number of signs in all three places: the same every day, so that every day is equally hard to count. */
const WEDGES = 24

/**
 * Draws the puzzle. The hours have one ten, every number has at least one of each sign, and subtracting the clock's lead
 * always borrows exactly one hour.
 */
export function drawClock(draw: Draw): ClockItem {
  const [ten = '', one = ''] = draw.pick(SIGNS)
  const [hours, minutes, seconds] = draw.pick(READINGS)
  const lead = draw.integer(40, 59)
  const smallestFirst = draw.pick([true, false])
  const places = [hours, minutes, seconds].map(
    (value) => ten.repeat(Math.floor(value / 10)) + one.repeat(value % 10),
  )
  const written = (smallestFirst ? places.toReversed() : places).join(' / ')
  const task = `A Babylonian clock writes a time of day as three numbers. In each number "${ten}" counts ten and "${one}" counts one. The order is ${smallestFirst ? 'seconds / minutes / hours' : 'hours / minutes / seconds'}. It shows: ${written}
The clock is exactly ${lead} minutes ahead of the true time. Give the true time as hh:mm:ss on the 24-hour clock.`
  const right = [hours - 1, minutes + 60 - lead, seconds]
  return { task, expected: right.map((value) => String(value).padStart(2, '0')).join(':') }
}

/** Grades a time: full points when it is right, some for two right places. A null `received` is a missing time. */
export function gradeClock({ expected }: ClockItem, received: string | null): Grade {
  const places = /^(\d{1,2}):(\d{1,2}):(\d{1,2})$/.exec(received ?? '')?.slice(1) ?? []
  const right = expected.split(':').filter((place, index) => Number(places[index]) === Number(place)).length
  return {
    points: right === 3 ? 100 : right === 2 ? 40 : 0,
    details: { expected, received: received ?? '' },
  }
}

/** Every time of day with that many signs. */
const READINGS = range(13, 19).flatMap((hours) =>
  range(11, 39).flatMap((minutes) =>
    range(11, 59).flatMap((seconds): [number, number, number][] => {
      const digits = Array.from(`${hours}${minutes}${seconds}`, Number)
      const signs = digits.reduce((sum, digit) => sum + digit, 0)
      return signs === WEDGES && !digits.includes(0) ? [[hours, minutes, seconds]] : []
    }),
  ),
)

function range(least: number, greatest: number): number[] {
  return Array.from({ length: greatest - least + 1 }, (_, index) => least + index)
}
