/**
 * When the next call may start. Times are milliseconds of a clock that only goes forward, so that a wall clock that is
 * set cannot crowd a minute.
 */

/** Fewer than the service's limit of 20 a minute. */
export const STARTS_A_MINUTE = 19

/** A minute, and what calls may be late by on their way. */
export const WINDOW_MS = 61_000

/** Calls open at the same time. */
const OPEN_AT_ONCE = 4

/** No model is waited for longer than this; a limit of its own that lasts longer costs the call. */
export const LONGEST_PAUSE_MS = 65_000

/** The account is waited for no longer than this at a time; a limit that lasts longer ends the run. */
export const LONGEST_ACCOUNT_PAUSE_MS = 300_000

/** A call that is to be made. */
export interface Waiting {
  /** The part of the model's id before the slash: one call at a time goes to each. */
  vendor: string
  readyAt: number
}

export interface Pace {
  startsAMinute: number
  /** The account must not be asked before. */
  notBefore: number
  /** True after a limit of the account, until a call has shown that it ended. */
  oneByOne: boolean
}

export type NextStart =
  | { do: 'start'; index: number }
  /** Nothing may start before this time, unless an open call ends. */
  | { do: 'wait'; until: number }
  /** Only the end of an open call can change anything. */
  | { do: 'settle' }
  | { do: 'done' }

/**
 * The next thing to do.
 *
 * @param queue in order; the first that may start does
 * @param open vendors of the open calls
 * @param starts of every call in the last {@link WINDOW_MS}, ascending; earlier ones do no harm
 */
export function nextStart(
  queue: readonly Waiting[],
  open: readonly string[],
  starts: readonly number[],
  { startsAMinute, notBefore, oneByOne }: Pace,
  now: number,
): NextStart {
  if (queue.length === 0) return { do: open.length === 0 ? 'done' : 'settle' }
  const free = queue.filter(({ vendor }) => !open.includes(vendor))
  if (open.length >= (oneByOne ? 1 : OPEN_AT_ONCE) || free.length === 0) return { do: 'settle' }
  const soonest = Math.min(...free.map(({ readyAt }) => readyAt))
  const at = Math.max(soonest, notBefore, windowOpensAt(starts, startsAMinute, now))
  if (at > now) return { do: 'wait', until: at }
  const index = queue.findIndex(({ vendor, readyAt }) => readyAt <= now && !open.includes(vendor))
  return { do: 'start', index }
}

/** The earliest time at which one more start keeps every window under its limit. */
function windowOpensAt(starts: readonly number[], startsAMinute: number, now: number): number {
  const oldest = starts.at(-startsAMinute)
  return oldest === undefined || starts.length < startsAMinute ? now : oldest + WINDOW_MS
}

/** The rate to keep to after the account's minute limit was met at `limit` a minute, or at one not told. */
export function learnedRate(startsAMinute: number, limit: number | null): number {
  const below = limit === null || limit < 1 ? startsAMinute - 2 : Math.min(startsAMinute, limit - 2)
  return Math.max(1, below)
}

/** The vendor of a model: its id up to the slash. */
export function vendorOf(model: string): string {
  return model.split('/', 1)[0] ?? model
}
