import { DAY_MS, startOfDay } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { atOfStop, firstDayOf, lastDayOf } from '../../domain/year/calendar.ts'
import type { GapStop, Moment, Stop } from '../../domain/year/calendar.ts'
import { counted } from './counts.ts'
import { html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './page-query.ts'
import { instantOf, readable } from './times.ts'
import { dayForm, NO_MOMENTS } from './year-question.ts'

/** What the controls need to know of where they stand. */
export interface Travel {
  moment: Moment
  stops: readonly Stop[]
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
  const to = (at: string | null) =>
    query.link({ ...NO_MOMENTS, sort: 'year', at, with: query.params.get('with') }, 'feed')
  return html`<nav class="travel" aria-label="Time travel">
    <p class="steps">
      ${step('previous', stops[moment.place - 1], to, now)} ${step('next', stops[moment.place + 1], to, now)}
      <a id="newest" href="${to(null)}" data-room="feed">Newest</a>
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

function step(
  direction: 'previous' | 'next',
  stop: Stop | undefined,
  to: (at: string) => string,
  now: Instant,
): Html {
  const isBack = direction === 'previous'
  const [before, after] = isBack ? [ARROW_BACK, NOTHING] : [NOTHING, ARROW_ON]
  const name = isBack ? 'Previous' : 'Next'
  if (!stop) return html`<span class="empty">${before}${name}: none${after}</span>`
  return html`<a
    id="${direction}"
    rel="${isBack ? 'prev' : 'next'}"
    href="${to(atOfStop(stop, now))}"
    data-room="feed"
    >${before}${name}: ${daysOf(stop)}${stop.kind === 'gap' ? ', a gap' : ''}${after}</a
  >`
}

const ARROW_BACK = html`<span aria-hidden="true">← </span>`
const ARROW_ON = html`<span aria-hidden="true"> →</span>`

/** A position a day from the first to the last, with the gaps below it; only scripts can make it move. */
function slider(stops: readonly Stop[], firstDay: Day, lastDay: Day, current: Stop | undefined): Html {
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

function whatStands(stop: Stop): string {
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
function daysOf(stop: Stop): string {
  const [first, last] = [firstDayOf(stop), lastDayOf(stop)]
  return first === last ? first : `${first} to ${last}`
}
