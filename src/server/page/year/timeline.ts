import { RULE_PARAMS } from '../../../domain/feed/subscription.ts'
import { DAY_MS, daysBetween, startOfDay } from '../../../domain/time.ts'
import type { Day, Instant } from '../../../domain/time.ts'
import { atOfStop, firstDayOf, lastDayOf } from '../../../domain/year/history/calendar.ts'
import type { Moment, TimelineStop } from '../../../domain/year/history/calendar.ts'
import { turnoverBetween } from '../../../domain/year/history/rank-history.ts'
import type { TimelinePeriod } from '../../../domain/year/history/rank-history.ts'
import type { Manifest } from '../../../domain/year/ledger.ts'
import { ranksContract } from '../../year/rank-routes.ts'
import { manifestsOf } from '../../year/year-lists.ts'
import type { ListsByDigest } from '../../year/year-lists.ts'
import { NOTHING, formatCounted, formatDay, formatMinute, html } from '../html.ts'
import type { Html } from '../html.ts'
import type { View } from '../rendered-pages.ts'
import { NO_MOMENTS, daysOf, travelForms } from './time-travel.ts'

/** Path of the rows of Popular in several publications. */
export const ROWS_PATH = '/year/rows'

/** Publications on that page. */
export const ROWS_PART = 10

/** The history around the shown moment. */
export interface History {
  view: View
  stops: readonly TimelineStop[]
  period: TimelinePeriod
  /** Lists of the publications of the period and of the one before it; null if they cannot be shown. */
  lists: ListsByDigest | null
  /** The day of the compared publication; null for none. */
  comparedWith: Day | null
}

/** The last publication of each day of a period, and the publication before it. */
export function publicationsOfPeriod({ before, stops }: TimelinePeriod): Manifest[] {
  const byDay = new Map(manifestsOf(stops).map((manifest) => [manifest.asOfDay, manifest]))
  return [...(before ? manifestsOf([before]) : []), ...byDay.values()]
}

/**
 * Renders the period as bars, one a day with its turnover and gaps hatched; with scripts a slider lies over them. The
 * title with the shown day, the seal, links to the neighbouring days and periods, and the forms for others stand above.
 */
export function timeline(history: History, moment: Moment, seal = NOTHING): Html {
  const { view, period, stops } = history
  const current = stops[moment.stopIndex]
  const firstDay = stops[0] ? firstDayOf(stops[0]) : ''
  const steps = html`<nav class="steps" aria-label="Time travel">
    ${step(view, 'previous', stops[moment.stopIndex - 1])} ${step(view, 'next', stops[moment.stopIndex + 1])}
    ${view.query.params.has('at') ? linkTo(view, 'newest', null, NEWEST) : NOTHING}
    ${periodLink(view, 'Earlier', period.before)} ${periodLink(view, 'Later', period.after)}
  </nav>`
  const forms = travelForms(
    view,
    current ? lastDayOf(current) : firstDay,
    firstDay,
    history.comparedWith ?? '',
  )
  return slider(history, moment, html`${seal} ${steps} ${forms}`)
}

/** A link to the Year of another time. @param id of the element @param at null for the newest */
function linkTo({ query }: View, id: string, at: string | null, text: Html, attributes = NOTHING): Html {
  const changes = { ...NO_MOMENTS, sort: 'year', at, with: query.params.get('with') }
  // The link of the opened page has the focus, so that it can be followed again.
  return query.sectionLink(id, changes, text, html`id="${id}" ${attributes}`)
}

function periodLink(view: View, name: 'Earlier' | 'Later', stop: TimelineStop | undefined): Html {
  return stop ? linkTo(view, name.toLowerCase(), atOfStop(stop, view.now), html`${name} period`) : NOTHING
}

function step(view: View, direction: 'previous' | 'next', stop: TimelineStop | undefined): Html {
  const isBack = direction === 'previous'
  const [before, after] = isBack ? [ARROW_BACK, NOTHING] : [NOTHING, ARROW_ON]
  const name = isBack ? 'Previous' : 'Next'
  const word = html`<span class="roomy">${name}</span>`
  if (!stop)
    // A link of another day may lead here.
    return html`<span class="empty" id="${direction}"
      >${before}${word}<span class="unseen">: none</span>${after}</span
    >`
  const days = `${daysOf(stop)}${stop.kind === 'gap' ? ', a gap' : ''}`
  const text = html`${before}${word}<span class="unseen">: ${days}</span>${after}`
  return linkTo(view, direction, atOfStop(stop, view.now), text, html`rel="${isBack ? 'prev' : 'next'}"`)
}

const NEWEST = html`<span class="roomy">Newest</span><span class="narrow" aria-hidden="true">⇥</span>`
const ARROW_BACK = html`<span aria-hidden="true">← </span>`
const ARROW_ON = html`<span aria-hidden="true"> →</span>`

function slider(history: History, moment: Moment, controls: Html): Html {
  const { period, lists, view } = history
  const { params } = view.query
  const { firstDay, lastDay, stops } = period
  const current = history.stops[moment.stopIndex]
  const last = dayNumber(firstDay, lastDay)
  const shownDay = current ? lastDayOf(current) : firstDay
  const value = Math.min(last, Math.max(0, dayNumber(firstDay, shownDay)))
  const dayText = current ? `${lastDayOf(current)}, ${stopText(current)}` : `before ${firstDay}`
  const titleDay = moment.selected?.manifest.asOfDay
  const gaps = stops.filter((stop) => stop.kind === 'gap')
  const isWhole = lists !== null && !FILTERS.some((name) => params.has(name))
  const legend = `${firstDay} to ${lastDay}. Bars: items new in Popular; drag to replay the days as published.${
    gaps.length > 0 ? ` Hatched: ${formatCounted(gaps.length, 'gaps')}.` : ''
  }`
  return html`<div
    class="year-timeline"
    data-first-day="${firstDay}"
    data-days="${last + 1}"
    ${isWhole && !params.has('at') ? html`data-ranks="${ranksContract.path}"` : NOTHING}
    ${isWhole && !params.has('column') ? html`data-rows="${ROWS_PATH}" data-parts="${partsOf(period)}"` : NOTHING}
  >
    <div class="travel">
      <label for="slider" class="unseen needs-script">Day of the history</label>
      <p class="year-title">
        ${titleDay === undefined ? 'Before the first publication' : 'Top of the 365 days to'}
        <output id="slider-day" for="slider" aria-live="off"
          >${titleDay === undefined ? '' : formatDay(titleDay)}</output
        >
      </p>
      ${controls}
    </div>
    <div class="timeline" title="${legend}">
      ${bars(history, value)} ${monthTicks(period)}
      <input
        type="range"
        id="slider"
        class="needs-script"
        autocomplete="off"
        min="0"
        max="${last}"
        step="1"
        value="${value}"
        aria-valuetext="${dayText}"
      />
    </div>
    <p class="unseen">${legend}</p>
  </div>`
}

/** Parameters with which the list is not that of the publication. */
const FILTERS = ['with', ...RULE_PARAMS]

/** Times of the last publication of every part of a period, the newest first. */
function partsOf(period: TimelinePeriod): string {
  const times = period.stops.filter((stop) => stop.kind === 'publication').toReversed()
  return times
    .filter((_, index) => index % ROWS_PART === 0)
    .map((stop) => atOfStop(stop, stop.item.manifest.publishedAt))
    .join(' ')
}

function dayNumber(firstDay: Day, day: Day): number {
  return Math.round((startOfDay(day) - startOfDay(firstDay)) / DAY_MS)
}

/** Least height of a bar, in percent, so that a day without turnover is visible. */
const BAR_MIN = 12

const LEVELS = 4

function bars({ period, lists, comparedWith }: History, value: number): Html {
  const { firstDay, lastDay, stops } = period
  const count = dayNumber(firstDay, lastDay) + 1
  const turnovers = turnoversOf(period, lists)
  const most = Math.max(1, ...turnovers.values())
  const x = (day: Day): number => percent(Math.max(0, dayNumber(firstDay, day)) / count)
  const days = new Map(manifestsOf(stops).map((manifest) => [manifest.asOfDay, manifest]))
  return html`<svg class="bars" aria-hidden="true">
    <defs>
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6 6 0" /></pattern>
    </defs>
    <rect class="chosen" x="${percent(value / count)}%" y="0" width="${percent(1 / count)}%" height="100%" />
    ${
      comparedWith === null || comparedWith < firstDay || comparedWith > lastDay
        ? NOTHING
        : html`<rect class="with" x="${x(comparedWith)}%" y="0" width="${percent(1 / count)}%" height="100%">
            <title>Compared: ${formatDay(comparedWith)}</title>
          </rect>`
    }
    ${stops
      .filter((stop) => stop.kind === 'gap')
      .map((gap) => {
        const [first, last] = [
          Math.max(0, dayNumber(firstDay, gap.firstDay)),
          dayNumber(firstDay, gap.lastDay),
        ]
        const width = percent((Math.min(last, count - 1) - first + 1) / count)
        return html`<rect
          class="hatched"
          x="${percent(first / count)}%"
          y="0"
          width="${width}%"
          height="100%"
        />`
      })}
    ${[...days.values()].map(({ asOfDay, publishedAt, sha256 }) => {
      const turnover = turnovers.get(sha256)
      const share = (turnover ?? 0) / most
      const height = percent(BAR_MIN / 100 + (1 - BAR_MIN / 100) * share)
      const level = turnover === undefined ? 0 : Math.ceil(share * LEVELS)
      return html`<rect
        class="level-${level}"
        data-day="${asOfDay}"
        data-state="${publishedText(publishedAt)}"
        data-new="${turnover ?? ''}"
        x="${percent(0.1 / count + x(asOfDay) / 100)}%"
        y="${percent(1 - height / 100)}%"
        width="${percent(0.8 / count)}%"
        height="${height}%"
      >
        <title>${formatDay(asOfDay)}${turnover === undefined ? '' : `: ${turnover} new`}</title>
      </rect>`
    })}
  </svg>`
}

const MONTH_FORMAT = new Intl.DateTimeFormat('en-GB', { month: 'short', timeZone: 'UTC' })

/** What the bars show, beside the first month; their title says more. */
const LEGEND = html`<tspan> · bars: new in Popular</tspan>`

/** Ticks below the bars where months begin, and the name of the first month where it has room. */
function monthTicks({ firstDay, lastDay }: TimelinePeriod): Html {
  const days = daysBetween(firstDay, lastDay)
  const starts = days.flatMap((day, index) => (index === 0 || day.endsWith('-01') ? [{ day, index }] : []))
  const [first, second] = starts
  const shown = first && second && second.index - first.index < days.length / 5 ? starts.slice(1) : starts
  return html`<svg class="ticks" aria-hidden="true">
    ${shown.map(
      ({ day, index }, place) =>
        html`<line
            x1="${percent(index / days.length)}%"
            x2="${percent(index / days.length)}%"
            y1="0"
            y2="100%"
          />
          <text x="${percent(index / days.length)}%" dx="3" y="10">
            ${MONTH_FORMAT.format(Date.parse(day))}${place === 0 ? LEGEND : NOTHING}
          </text>`,
    )}
  </svg>`
}

/** Number of items that entered Popular with each publication, by digest. */
function turnoversOf(period: TimelinePeriod, lists: ListsByDigest | null): ReadonlyMap<string, number> {
  const manifests = publicationsOfPeriod(period)
  const ranksOf = (manifest: Manifest | undefined) =>
    lists?.get(manifest?.sha256 ?? '')?.ranks.popular ?? null
  return new Map(
    manifests.flatMap((manifest, index): [string, number][] => {
      const turnover = turnoverBetween(ranksOf(manifests[index - 1]), ranksOf(manifest))
      return turnover === null ? [] : [[manifest.sha256, turnover]]
    }),
  )
}

function percent(share: number): number {
  return Math.round(share * 10_000) / 100
}

function stopText(stop: TimelineStop): string {
  return stop.kind === 'gap' ? 'a gap' : publishedText(stop.item.manifest.publishedAt)
}

function publishedText(publishedAt: Instant): string {
  return `published ${formatMinute(publishedAt)}`
}
