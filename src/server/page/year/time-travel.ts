import { addDays, parseDay } from '../../../domain/time.ts'
import type { Day, Instant } from '../../../domain/time.ts'
import { atOfDay, firstDayOf, lastDayOf, momentAt } from '../../../domain/year/history/calendar.ts'
import type { GapStop, Moment, TimelineStop } from '../../../domain/year/history/calendar.ts'
import { parsePastInstant } from '../../../domain/year/history/history.ts'
import { invalidParameter } from '../../../domain/wire-format.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import { invalidValues } from '../../route.ts'
import { stopsOnce } from '../../year/year-lists.ts'
import { INVALID_AT, historyContract } from '../../year/routes.ts'
import { NOTHING, formatCounted, formatDay, html, instantOf } from '../html.ts'
import type { Html } from '../html.ts'
import type { PageQuery } from '../layout.ts'
import type { View } from '../rendered-pages.ts'
import { refusalsOf } from '../sections.ts'
import type { SectionRefusal } from '../sections.ts'

/** Query parameters that select the Year of another time; `day` and `withDay` are sent by forms. */
export const YEAR_PARAMS = ['at', 'with', 'day', 'withDay'] as const

/** The requested times: instants, or days sent by a form. */
export type Moments = Readonly<Record<'at' | 'with', Instant | Day | null>>

export const NO_MOMENTS = { at: null, with: null, day: null, withDay: null } as const

/** True if the Year is requested, by `sort` or, without it, by a time. */
export function isYear({ params }: PageQuery): boolean {
  const sorts = params.getAll('sort')
  if (sorts.length === 0) return YEAR_PARAMS.some((name) => params.has(name))
  return sorts.length === 1 && sorts[0] === 'year'
}

/**
 * Parses the requested times: instants as in the history interface, or days from a form; null if missing.
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
  if (!params.has(dayName)) return parseTime(params, name, code, now)
  const day = parsePastDay(params, dayName, now)
  if (day === null) throw invalidParameter('invalid_day', dayName, params.getAll(dayName))
  return day
}

/** Null unless the parameter is one complete day. */
export function parsePastDay(params: URLSearchParams, name: string, now: Instant): Day | null {
  const [text = '', ...more] = params.getAll(name)
  const day = more.length === 0 ? parseDay(text) : null
  return day !== null && day <= lastCompleteDay(now) ? day : null
}

/** Parses an instant as in the history interface; null if missing. @throws Refusal with the code */
function parseTime(params: URLSearchParams, name: string, code: string, now: Instant): Instant | null {
  if (!params.has(name)) return null
  const at = parsePastInstant(params.getAll(name), now)
  if (at === null) throw invalidParameter(code, name, params.getAll(name))
  return at
}

/** The verified history and the stop that `at` selects, by default now; -1 before the first one. @throws Refusal */
export async function stopAt({ sources, now, query }: View): Promise<{
  stops: readonly TimelineStop[]
  stopIndex: number
}> {
  const at = parseTime(query.params, 'at', 'invalid_at', now) ?? now
  const proved = await sources.publications.entries()
  const stops = stopsOnce(proved)
  return { stops, stopIndex: momentAt(proved.timeline, stops, at).stopIndex }
}

/** The URL of the home page with the days of a form replaced by instants; null if there are none, or not valid ones. */
export async function addressOfYear({ sources: { publications }, now, query }: View): Promise<string | null> {
  if (!isYear(query)) return null
  try {
    const days = Object.entries(parseMoments(query, now)).flatMap(([name, moment]) =>
      typeof moment === 'string' ? [{ name, day: moment }] : [],
    )
    if (days.length === 0) return null
    const stops = stopsOnce(await publications.entries())
    const instants = Object.fromEntries(days.map(({ name, day }) => [name, atOfDay(stops, day, now)]))
    return query.link({ sort: 'year', day: null, withDay: null, ...instants })
  } catch {
    // The section of the feed refuses for the same reason.
    return null
  }
}

const PAST_DAY = 'an existing past day YYYY-MM-DD, since a Year covers complete UTC days'

const OWN_REFUSALS = {
  invalid_with: invalidValues({ with: INVALID_AT.allowed.at }),
  invalid_day: invalidValues({ day: PAST_DAY, withDay: PAST_DAY }),
}

const refusalOfHistory = refusalsOf(historyContract, OWN_REFUSALS)

/** The refusal of the history interface, with a form for another day. */
export function refusalOfYear(error: unknown, view: View): SectionRefusal {
  const refusal = refusalOfHistory(error)
  return refusal.status === 400 ? { ...refusal, help: timeHelp(view) } : refusal
}

function timeHelp(view: View): Html {
  return html`<p>
      A time is written like <code>2026-03-02T00:10:00Z</code>. Or choose the last day of the Year:
    </p>
    ${dayForm(view, 'day', 'Year up to', 'Go')}
    <p>${view.query.sectionLink('feed', { ...NO_MOMENTS, sort: 'year' }, 'The newest Year')}</p>`
}

/**
 * A form that requests the Year up to a day. It works without scripts.
 *
 * @param value the initial day; empty for none
 * @param first the first selectable day; empty if unknown
 */
function dayForm(
  { query, now }: View,
  name: 'day' | 'withDay',
  label: Html | string,
  button: string,
  value: Day = '',
  first: Day = '',
): Html {
  const replaced = name === 'day' ? ['sort', 'day', 'at'] : ['sort', 'withDay', 'with']
  return html`<form class="day-form" action="/#feed" method="get">
    ${query.hiddenFields(replaced)}<input type="hidden" name="sort" value="year" />
    <label
      >${label}
      <input
        type="date"
        id="${name}-field"
        autocomplete="off"
        name="${name}"
        value="${value}"
        min="${first}"
        max="${lastCompleteDay(now)}"
        required
    /></label>
    <button type="submit" id="${name}-button">${button}</button>
  </form>`
}

/** On a narrow screen the button alone says it. */
const GO_TO = html`<span class="roomy">Go to</span>`

/** Days that a comparison offers, with their names seen from the last complete day and from another one. */
const EARLIER_DAYS = [
  [1, 'yesterday', 'the day before'],
  [7, 'a week ago', 'a week before'],
  [30, 'a month ago', 'a month before'],
] as const

/**
 * A field for another day, and the days for a comparison. They work without scripts.
 *
 * @param comparedWith the day of the compared publication; empty for none
 */
export function travelForms(view: View, day: Day, first: Day, comparedWith: Day): Html {
  const isNewest = day === lastCompleteDay(view.now)
  const links = EARLIER_DAYS.map(([days, ago, before]) => {
    const withDay = addDays(day, -days)
    if (withDay < first) return NOTHING
    const changes = { sort: 'year', with: null, withDay }
    return html`<li>${view.query.sectionLink('feed', changes, isNewest ? ago : before)}</li>`
  })
  return html`${dayForm(view, 'day', GO_TO, 'Go', day, first)}
    <details class="menu compare" name="menu">
      <summary>Compare<span class="roomy"> with</span></summary>
      <div>
        <ul>
          ${links}
        </ul>
        ${dayForm(view, 'withDay', 'Another day', 'Compare', comparedWith, first)}
      </div>
    </details>`
}

/** A notice if no publication was made for the requested day; else empty. */
export function gapNotice({ dueDay, selected, due }: Moment): Html {
  // No publication is due before the first one.
  if (due.is === 'published' || (due.is === 'open' && !selected)) return NOTHING
  const servedText = selected
    ? html`For this time the history serves the previous publication,
        <strong>as of ${formatDay(selected.manifest.asOfDay)}</strong>, shown here.`
    : html`For this time the history has no publication.`
  return html`<p class="gap" role="note">${dueText(due, dueDay)} ${servedText}</p>`
}

function dueText(due: Exclude<Moment['due'], { is: 'published' }>, dueDay: Day): Html {
  const day = formatDay(dueDay)
  switch (due.is) {
    case 'gap':
      return html`<strong>Gap: ${day} has no publication</strong>${reasonOf(due.gap)}.`
    case 'later':
      return html`<strong>${day} was not published yet</strong> at this time; it was published on
        ${instantOf(due.item.manifest.publishedAt)}.`
    case 'open':
      return html`<strong>${day} has no publication</strong>, and the ledger has no gap for it yet.`
  }
}

function reasonOf({ recorded }: GapStop): string {
  return recorded
    ? `: ${gapReason(recorded)}, and the gap is permanent`
    : ', and the ledger has no entry for it'
}

/** Why a recorded day has no publication. */
export function gapReason({ reason, attempts }: NonNullable<GapStop['recorded']>): string {
  return reason === 'missed' ? 'no run tried to publish it' : `${formatCounted(attempts, 'attempts')} failed`
}

/** Formats the days of a stop, `2026-03-02` or `2026-03-02 to 2026-03-05`. */
export function daysOf(stop: TimelineStop): string {
  const [first, last] = [firstDayOf(stop), lastDayOf(stop)]
  return first === last ? first : `${first} to ${last}`
}

export const NO_PUBLICATION = html`<p class="empty">
  Nothing has been published yet. Import signals, then run <code>dash publish-year</code>.
</p>`
