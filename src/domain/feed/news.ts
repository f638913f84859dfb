import { DAY_MS, dayOf, formatInstant } from '../time.ts'
import type { Instant } from '../time.ts'

/** What a page says of the rows of a live period that entered its lists since a time. */
export interface News {
  /** `15 new since yesterday 18:00 UTC`. */
  text: string
  /** False where a mark beside each new row would tell nothing: most rows are new. */
  isMarked: boolean
}

/** Share of the rows up to which new ones are marked. */
const MARKED_SHARE = 0.5

/**
 * @param entered number of rows that entered since then
 * @param shown number of all rows
 */
export function newsOf(entered: number, shown: number, since: Instant, now: Instant): News {
  const isMarked = entered <= shown * MARKED_SHARE
  const count = entered === 0 ? 'nothing' : isMarked ? `${entered}` : `${entered} of ${shown}`
  return { text: `${count} new since ${minuteSeenFrom(now, since)}`, isMarked }
}

/** An instant to the minute, with its day named as seen from `now`. */
function minuteSeenFrom(now: Instant, at: Instant): string {
  const day = dayOf(at)
  const name = day === dayOf(now) ? 'today' : day === dayOf(now - DAY_MS) ? 'yesterday' : day
  return `${name} ${formatInstant(at).slice(11, 16)} UTC`
}
