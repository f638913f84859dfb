import { DAY_MS, formatInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { html } from './html.ts'
import type { Html } from './html.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Each unit of an age, with the age from which the next larger one is used. */
const UNITS: readonly (readonly [name: string, ms: number, below: number])[] = [
  ['min', MINUTE_MS, HOUR_MS],
  ['h', HOUR_MS, 2 * DAY_MS],
  ['d', DAY_MS, 90 * DAY_MS],
  ['months', 30 * DAY_MS, 720 * DAY_MS],
]

/** How long ago, in the largest unit that still tells: `under a minute`, `35 min`, `7 h`, `12 d`, `5 months`, `3 years`. */
function formatAge(ageMs: number): string {
  const age = Math.max(0, ageMs)
  if (age < MINUTE_MS) return 'under a minute'
  const [name, ms] = UNITS.find(([, , below]) => age < below) ?? ['years', 365 * DAY_MS]
  return `${Math.floor(age / ms)} ${name}`
}

/** The age of an instant, with the instant itself for machines and for whoever points at it. */
export function ageOf(at: Instant, now: Instant): Html {
  const instant = formatInstant(at)
  return html`<time datetime="${instant}" title="${readable(at)}">${formatAge(now - at)} ago</time>`
}

/** An instant to the minute, `2026-03-02 00:10 UTC`, with the instant itself for machines. */
export function instantOf(at: Instant): Html {
  return html`<time datetime="${formatInstant(at)}">${readable(at)}</time>`
}

/** An instant to the minute as plain text, where no element can stand. */
export function readable(at: Instant): string {
  return `${formatInstant(at).slice(0, 16).replace('T', ' ')} UTC`
}
