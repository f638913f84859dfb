import { Refusal } from '../../domain/refusal.ts'
import { parseDay } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { atOfDay } from '../../domain/year/calendar.ts'
import type { Stop } from '../../domain/year/calendar.ts'
import { parsePastInstant } from '../../domain/year/history.ts'
import { lastCompleteDay } from '../../domain/year/window.ts'
import { historyContract } from '../year/contract.ts'
import { html } from './html.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './page-query.ts'
import { refusalsOf } from './panel.ts'
import type { PanelRefusal, View } from './panel.ts'

/** Parameters by which the Year of another time is asked for; `day` and `withDay` are what a form sends for a time. */
export const YEAR_PARAMS = ['at', 'with', 'day', 'withDay'] as const

/** The times asked for: an instant, or a day as a form sends it. */
export type Moments = Readonly<Record<'at' | 'with', Instant | Day | null>>

/** Takes every question about another time away from an address. */
export const NO_MOMENTS = { at: null, with: null, day: null, withDay: null } as const

/** True when the Year is asked for: by `sort`, or without one by a time. */
export function isYear({ params }: PageQuery): boolean {
  const given = params.getAll('sort')
  if (given.length === 0) return YEAR_PARAMS.some((name) => params.has(name))
  return given.length === 1 && given[0] === 'year'
}

/**
 * The times that are asked for: an instant as the history takes it, or a day from a form; null where none is.
 *
 * @throws Refusal `invalid_at`, `invalid_with`, `invalid_day`
 */
export function parseMoments({ params }: PageQuery, now: Instant): Moments {
  return {
    at: parseMoment(params, 'at', 'day', 'invalid_at', now),
    with: parseMoment(params, 'with', 'withDay', 'invalid_with', now),
  }
}

function parseMoment(
  params: URLSearchParams,
  name: string,
  dayName: string,
  code: string,
  now: Instant,
): Moments['at'] {
  if (params.has(dayName)) {
    const [text = '', ...others] = params.getAll(dayName)
    const day = others.length === 0 ? parseDay(text) : null
    if (day === null || day > lastCompleteDay(now)) throw new Refusal('invalid_day')
    return day
  }
  if (!params.has(name)) return null
  const at = parsePastInstant(params.getAll(name), now)
  if (at === null) throw new Refusal(code)
  return at
}

/** The address at which the days of a form are times; null when the question names none. */
export function addressOfDays(
  moments: Moments,
  query: PageQuery,
  stops: readonly Stop[],
  now: Instant,
): string | null {
  const changes = Object.entries(moments).flatMap(([name, moment]) =>
    typeof moment === 'string' ? [[name, atOfDay(stops, moment, now)] as const] : [],
  )
  if (changes.length === 0) return null
  const to = { sort: 'year', day: null, withDay: null, ...Object.fromEntries(changes) }
  return query.link(to, 'feed')
}

/** What the page itself refuses beside what the history does. */
const OWN: Readonly<Record<string, string>> = {
  invalid_with: '`with` is not a real UTC instant as `at` takes it, or more than five minutes ahead',
  invalid_day: 'a date is not a real day, or not over yet: a Year is published of complete UTC days',
}

const refusalOfHistory = refusalsOf(historyContract)

/** What the history would have refused with, and how to ask instead. */
export function refusalOfYear(error: unknown, { query, now }: View): PanelRefusal {
  const code = error instanceof Refusal ? error.code : ''
  const when = OWN[code]
  const refusal = when === undefined ? refusalOfHistory(error) : { status: 400, code, when }
  return refusal.status === 400 ? { ...refusal, help: askAgain(query, now) } : refusal
}

function askAgain(query: PageQuery, now: Instant): Html {
  return html`<p>
      A time is written like <code>2026-03-02T00:10:00Z</code>. Or choose the day the Year is to end with:
    </p>
    ${dayForm(query, { name: 'day', label: 'Year up to', button: 'Go', value: '', first: '', now })}
    <p>
      <a href="${query.link({ ...NO_MOMENTS, sort: 'year' }, 'feed')}" data-room="feed">The newest Year</a>
    </p>`
}

interface DayForm {
  /** Parameter the day is sent as. */
  name: 'day' | 'withDay'
  label: string
  button: string
  /** The day it shows; empty for none. */
  value: string
  /** The first day that can be chosen; empty where it is not known. */
  first: string
  now: Instant
}

/** A form that asks for the Year up to a day; works without scripts. */
export function dayForm(query: PageQuery, { name, label, button, value, first, now }: DayForm): Html {
  const replaced = name === 'day' ? ['sort', 'day', 'at'] : ['sort', 'withDay', 'with']
  return html`<form class="day-form" action="/" method="get" data-room="feed">
    ${query.carry(replaced)}<input type="hidden" name="sort" value="year" />
    <label
      >${label}
      <input
        type="date"
        id="${name}-field"
        name="${name}"
        value="${value}"
        min="${first}"
        max="${lastCompleteDay(now)}"
        required
    /></label>
    <button type="submit" id="${name}-button">${button}</button>
  </form>`
}
