import { Refusal } from '../../domain/refusal.ts'
import { DAY_MS, parseDay, startOfDay } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { atOfDay, atOfStop, firstDayOf, lastDayOf, timelineStops } from '../../domain/year/calendar.ts'
import type { GapStop, Moment, TimelineStop } from '../../domain/year/calendar.ts'
import type { ProvedLedger } from '../../domain/year/chain.ts'
import { parsePastInstant } from '../../domain/year/history.ts'
import { lastCompleteDay } from '../../domain/year/ledger.ts'
import { onceFor } from '../single-flight.ts'
import { historyContract } from '../year/history.ts'
import { NOTHING, counted, html, instantOf, readable } from './html.ts'
import type { Html } from './html.ts'
import { refusalsOf } from './layout.ts'
import type { PageQuery, PanelRefusal, View } from './layout.ts'

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
  return parseTime(params, name, code, now)
}

/** The instant of a parameter, as the history takes it; null where none is given. @throws Refusal with the code */
export function parseTime(params: URLSearchParams, name: string, code: string, now: Instant): Instant | null {
  if (!params.has(name)) return null
  const at = parsePastInstant(params.getAll(name), now)
  if (at === null) throw new Refusal(code)
  return at
}

/** The address at which the days of a form are times; null when the question names none. */
export function addressOfDays(
  moments: Moments,
  query: PageQuery,
  stops: readonly TimelineStop[],
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
    <p>${query.roomLink('feed', { ...NO_MOMENTS, sort: 'year' }, 'The newest Year')}</p>`
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
function dayForm(query: PageQuery, { name, label, button, value, first, now }: DayForm): Html {
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

/** What the controls need to know of where they stand. */
export interface Travel {
  moment: Moment
  stops: readonly TimelineStop[]
  query: PageQuery
  now: Instant
  /** Day of the publication it is compared with; empty for none. */
  comparedWith: string
}

/** Ways to other days: previous and next, a date, and with scripts a slider over all of them. */
export function travelControls({ moment, stops, query, now, comparedWith }: Travel): Html {
  const [first, last] = [stops[0], stops.at(-1)]
  if (!first || !last) return NOTHING
  const current = stops[moment.place]
  const [firstDay, lastDay] = [firstDayOf(first), lastDayOf(last)]
  const day = current ? lastDayOf(current) : ''
  const to: LinkTo = (at, text, attributes) => {
    const changes = { ...NO_MOMENTS, sort: 'year', at, with: query.params.get('with') }
    return query.roomLink('feed', changes, text, attributes)
  }
  return html`<nav class="travel" aria-label="Time travel">
    <p class="steps">
      ${step('previous', stops[moment.place - 1], to, now)} ${step('next', stops[moment.place + 1], to, now)}
      ${to(null, html`Newest`, html`id="newest"`)}
    </p>
    ${slider(stops, firstDay, lastDay, current)}
    ${dayForm(query, { name: 'day', label: 'Year up to', button: 'Go', value: day, first: firstDay, now })}
    ${dayForm(query, {
      name: 'withDay',
      label: 'Compare with',
      button: 'Compare',
      value: comparedWith,
      first: firstDay,
      now,
    })}
  </nav>`
}

/** A link to the Year of another time; null is the newest. */
type LinkTo = (at: string | null, text: Html, attributes: Html) => Html

function step(
  direction: 'previous' | 'next',
  stop: TimelineStop | undefined,
  to: LinkTo,
  now: Instant,
): Html {
  const isBack = direction === 'previous'
  const [before, after] = isBack ? [ARROW_BACK, NOTHING] : [NOTHING, ARROW_ON]
  const name = isBack ? 'Previous' : 'Next'
  if (!stop) return html`<span class="empty">${before}${name}: none${after}</span>`
  const text = html`${before}${name}: ${daysOf(stop)}${stop.kind === 'gap' ? ', a gap' : ''}${after}`
  return to(atOfStop(stop, now), text, html`id="${direction}" rel="${isBack ? 'prev' : 'next'}"`)
}

const ARROW_BACK = html`<span aria-hidden="true">← </span>`
const ARROW_ON = html`<span aria-hidden="true"> →</span>`

/** A position a day from the first to the last, with the gaps below it; only scripts can make it move. */
function slider(
  stops: readonly TimelineStop[],
  firstDay: Day,
  lastDay: Day,
  current: TimelineStop | undefined,
): Html {
  const place = (at: Day): number => Math.round((startOfDay(at) - startOfDay(firstDay)) / DAY_MS)
  const last = place(lastDay)
  // The script of the slider says the same of a day while it is moved.
  const said = current ? `${lastDayOf(current)}, ${whatStands(current)}` : `before ${firstDay}`
  const gaps = stops.filter((stop) => stop.kind === 'gap')
  return html`<div class="slider needs-script">
    <label for="slider">Day of the history</label>
    <input
      type="range"
      id="slider"
      min="0"
      max="${last}"
      step="1"
      value="${current ? place(lastDayOf(current)) : 0}"
      aria-valuetext="${said}"
      data-first-day="${firstDay}"
      data-index="/api/feed/history/index"
    />
    <svg class="gaps" viewBox="0 0 ${last + 1} 1" preserveAspectRatio="none" aria-hidden="true">
      ${gaps.map(
        (gap) =>
          html`<rect
            x="${place(gap.firstDay)}"
            y="0"
            width="${place(gap.lastDay) - place(gap.firstDay) + 1}"
            height="1"
          />`,
      )}
    </svg>
    <output id="slider-day" for="slider">${said}</output>
    <p class="as-of">
      ${counted(gaps.length, 'gaps')} between ${firstDay} and ${lastDay}, marked below the slider.
    </p>
  </div>`
}

function whatStands(stop: TimelineStop): string {
  return stop.kind === 'gap' ? 'a gap' : `published ${readable(stop.item.manifest.publishedAt)}`
}

/** What there is to say where the time that is asked for has no publication of its own; nothing where it has. */
export function gapNotice({ dueDay, selected, due }: Moment): Html {
  if (due.is === 'published') return NOTHING
  const served = selected
    ? html`For this time the history serves the one before,
        <strong>as of ${selected.manifest.asOfDay}</strong>, and that is what is shown.`
    : html`For this time the history serves nothing.`
  return html`<p class="gap" role="note">${missing(due, dueDay)} ${served}</p>`
}

function missing(due: Exclude<Moment['due'], { is: 'published' }>, dueDay: Day): Html {
  switch (due.is) {
    case 'gap':
      return html`<strong>Gap: ${dueDay} has no publication</strong>${reasonOf(due.gap)}.`
    case 'later':
      return html`<strong>${dueDay} was not published yet</strong> at this time; it was on
        ${instantOf(due.item.manifest.publishedAt)}.`
    case 'open':
      return html`<strong>${dueDay} has no publication</strong>, and the ledger has no gap for it yet.`
  }
}

function reasonOf({ recorded }: GapStop): string {
  if (!recorded) return ', and the ledger says nothing of it'
  return recorded.reason === 'missed'
    ? ': nobody published that day, and nothing can be published for it afterwards'
    : `: ${counted(recorded.attempts, 'attempts')} failed, and nothing can be published for it afterwards`
}

/** The days of a stop, `2026-03-02` or `2026-03-02 to 2026-03-05`. */
export function daysOf(stop: TimelineStop): string {
  const [first, last] = [firstDayOf(stop), lastDayOf(stop)]
  return first === last ? first : `${first} to ${last}`
}

/** The stops of a proved ledger, made once for each. */
export const stopsOnce = onceFor((proved: ProvedLedger): readonly TimelineStop[] => timelineStops(proved))
