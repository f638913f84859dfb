import { RULE_PARAMS } from '../../../domain/feed/subscription.ts'
import { DAY_MS, daysBetween, startOfDay } from '../../../domain/time.ts'
import type { Day, Instant } from '../../../domain/time.ts'
import { atOfStop, firstDayOf, lastDayOf } from '../../../domain/year/history/calendar.ts'
import type { GapStop, Moment, TimelineStop } from '../../../domain/year/history/calendar.ts'
import { turnoverBetween } from '../../../domain/year/history/rank-history.ts'
import type { TimelinePeriod } from '../../../domain/year/history/rank-history.ts'
import type { Manifest } from '../../../domain/year/ledger.ts'
import { ranksContract } from '../../year/rank-routes.ts'
import { manifestsOf } from '../../year/year-lists.ts'
import type { ListsByDigest } from '../../year/year-lists.ts'
import { NOTHING, formatCounted, formatDay, formatMinute, html } from '../html.ts'
import type { Html } from '../html.ts'
import type { PageQuery } from '../layout.ts'
import { NO_MOMENTS, daysOf, travelForms } from './time-travel.ts'

/** Path of the rows of Popular in several publications. */
export const ROWS_PATH = '/year/rows'

/** Publications on that page. */
export const ROWS_PART = 10

/** The state of the timeline. */
export interface TimelineState {
  moment: Moment
  period: TimelinePeriod
  stops: readonly TimelineStop[]
  /** Lists of the publications of the period and of the one before it; null if they cannot be shown. */
  lists: ListsByDigest | null
  /** The day of the compared publication; null for none. */
  comparedWith: Day | null
  query: PageQuery
  now: Instant
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
export function timeline(state: TimelineState, seal: Html): Html {
  const { moment, period, stops, query, now } = state
  const current = stops[moment.stopIndex]
  const firstDay = stops[0] ? firstDayOf(stops[0]) : ''
  const isNewest = !query.params.has('at')
  const linkTo: LinkTo = (id, at, text, attributes = NOTHING) => {
    const changes = { ...NO_MOMENTS, sort: 'year', at, with: query.params.get('with') }
    // The link of the opened page has the focus, so that it can be followed again.
    return query.sectionLink(id, changes, text, html`id="${id}" ${attributes}`)
  }
  const steps = html`<nav class="steps" aria-label="Time travel">
    ${step('previous', stops[moment.stopIndex - 1], linkTo, now)}
    ${step('next', stops[moment.stopIndex + 1], linkTo, now)}
    ${isNewest ? NOTHING : linkTo('newest', null, NEWEST)}
    ${periodLink('Earlier', period.before, linkTo, now)} ${periodLink('Later', period.after, linkTo, now)}
  </nav>`
  const forms = travelForms({
    day: current ? lastDayOf(current) : firstDay,
    firstDay,
    isNewest,
    comparedWith: state.comparedWith ?? '',
    query,
    now,
  })
  return slider(state, current, html`${seal} ${steps} ${forms}`)
}

/** Makes a link to the Year of another time; null is the newest. @param id of the element, unique on the page */
type LinkTo = (id: string, at: string | null, text: Html, attributes?: Html) => Html

function periodLink(
  name: 'Earlier' | 'Later',
  stop: TimelineStop | undefined,
  linkTo: LinkTo,
  now: Instant,
): Html {
  const text = html`${name} period`
  return stop ? linkTo(name.toLowerCase(), atOfStop(stop, now), text) : NOTHING
}

function step(
  direction: 'previous' | 'next',
  stop: TimelineStop | undefined,
  linkTo: LinkTo,
  now: Instant,
): Html {
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
  return linkTo(direction, atOfStop(stop, now), text, html`rel="${isBack ? 'prev' : 'next'}"`)
}

const NEWEST = html`<span class="roomy">Newest</span><span class="narrow" aria-hidden="true">⇥</span>`
const ARROW_BACK = html`<span aria-hidden="true">← </span>`
const ARROW_ON = html`<span aria-hidden="true"> →</span>`

function slider(
  { moment, period, lists, comparedWith, query }: TimelineState,
  current: TimelineStop | undefined,
  controls: Html,
): Html {
  const { firstDay, lastDay, stops } = period
  const last = dayNumber(firstDay, lastDay)
  const shownDay = current ? lastDayOf(current) : firstDay
  const value = Math.min(last, Math.max(0, dayNumber(firstDay, shownDay)))
  const dayText = current ? `${lastDayOf(current)}, ${stopText(current)}` : `before ${firstDay}`
  const titleDay = moment.selected?.manifest.asOfDay
  const gaps = stops.filter((stop) => stop.kind === 'gap')
  const isWhole = lists !== null && !FILTERS.some((name) => query.params.has(name))
  const legend = `${firstDay} to ${lastDay}. Bars: items new in Popular; drag to replay the days as published.${
    gaps.length > 0 ? ` Hatched: ${formatCounted(gaps.length, 'gaps')}.` : ''
  }`
  return html`<div
    class="year-timeline"
    data-first-day="${firstDay}"
    data-days="${last + 1}"
    ${isWhole && !query.params.has('at') ? html`data-ranks="${ranksContract.path}"` : NOTHING}
    ${isWhole && !query.params.has('column') ? html`data-rows="${ROWS_PATH}" data-parts="${partsOf(period)}"` : NOTHING}
  >
    <div class="travel">
      <label for="slider" class="unseen needs-script">Day of the history</label>
      <p class="year-title">
        ${titleDay === undefined ? 'Before the first publication' : 'Top of the 365 days to'}
        <output id="slider-day" for="slider">${titleDay === undefined ? '' : formatDay(titleDay)}</output>
      </p>
      ${controls}
    </div>
    <div class="timeline" title="${legend}">
      ${bars(period, lists, value, comparedWith)} ${monthTicks(period)}
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

/** Levels of colour. */
const LEVELS = 4

function bars(
  period: TimelinePeriod,
  lists: ListsByDigest | null,
  value: number,
  comparedWith: Day | null,
): Html {
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
    ${stops.filter((stop) => stop.kind === 'gap').map((gap) => gapBar(gap, period, count, x))}
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

function gapBar(
  gap: GapStop,
  { firstDay, lastDay }: TimelinePeriod,
  count: number,
  x: (day: Day) => number,
): Html {
  const [first, last] = [
    gap.firstDay < firstDay ? firstDay : gap.firstDay,
    gap.lastDay > lastDay ? lastDay : gap.lastDay,
  ]
  const width = percent((dayNumber(first, last) + 1) / count)
  return html`<rect class="hatched" x="${x(first)}%" y="0" width="${width}%" height="100%" />`
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
