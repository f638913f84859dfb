import { parseKey } from '../../domain/feed/search.ts'
import type { ItemTrend } from '../../domain/feed/search.ts'
import { discussionUrl, itemsOfKey } from '../../domain/feed/source.ts'
import { nameOfSource, unitOf } from '../../domain/feed/subscription.ts'
import { addDays } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { atOfStop, momentAt, standingsOf } from '../../domain/year/calendar.ts'
import type { TimelineStop, YearStanding } from '../../domain/year/calendar.ts'
import type { YearFeed } from '../../domain/year/schema.ts'
import { trendContract } from '../feed/search-routes.ts'
import { codeOf } from '../route.ts'
import type { Log } from '../route.ts'
import { onceFor } from '../single-flight.ts'
import type { ProvedPublication } from '../year/proved-publications.ts'
import { linkedTitle } from './feed-items.ts'
import { renderSections } from './home.ts'
import { NOTHING, counted, formatCount, html } from './html.ts'
import type { Html } from './html.ts'
import { HTML_TYPE, ITEM_PATH, PAGE_HEADERS, layout, refusalsOf } from './layout.ts'
import type { Frame, PageQuery, Panel } from './layout.ts'
import type { MountPage } from './rendered-pages.ts'
import { daysOf, parseTime, refusalOfYear, stopsOnce } from './time-travel.ts'

/** Mounts `/item?key=…`: the rank of an item over time, as tables that a script draws (docs/page.md). */
export function mountItemPage(mount: MountPage, frame: Frame, log: Log): void {
  const panels = [ITEM_PANEL, YEAR_RANKS_PANEL]
  mount({
    path: ITEM_PATH,
    query: { known: ['key', 'at'] },
    async render(sources, query, event) {
      const view = { sources, now: sources.clock(), query }
      const { sections, status, headers } = await renderSections(event, panels, ITEM_PANEL, view, log)
      const main = html`<h1>Rank over time</h1>
        ${sections}`
      const head = html`<link rel="stylesheet" href="${frame.assets.href('uPlot.min.css')}" />
        <script defer src="${frame.assets.href('uPlot.iife.min.js')}"></script>
        <script type="module" src="${frame.assets.href('chart.js')}"></script>`
      const title = `Rank over time: ${query.params.get('key') ?? ''}`
      const text = layout(frame, { title, head, rooms: ROOMS, main })
      return { status, headers: { ...PAGE_HEADERS, ...headers, 'content-type': HTML_TYPE }, text }
    },
  })
}

const ROOMS = [
  { href: '/#feed', title: 'Feed' },
  { href: '/?sort=year#feed', title: 'Year' },
]

/** Days of observation that are shown, the latest; the interface gives all. */
const DAYS_SHOWN = 366

type ObservedDay = ItemTrend['days'][number]

/** An item, and its rank among what its source was observed with, day by day. */
const ITEM_PANEL: Panel = {
  id: 'item',
  title: 'The item, day by day',
  params: ['key'],
  async render({ sources, query }) {
    const trend = await sources.search.itemTrend(parseKey(query.params))
    const [{ source, sourceId } = { source: '', sourceId: '' }] = itemsOfKey(trend.key)
    const shown = trend.days.slice(-DAYS_SHOWN)
    const json = `/api/trend?${String(new URLSearchParams({ key: trend.key }))}`
    return html`<div class="item-title">
        ${linkedTitle({ title: trend.title, url: null, discussionUrl: discussionUrl(source, sourceId) })}
      </div>
      <p class="as-of">${nameOfSource(source)} · <code>${trend.key}</code> · <a href="${json}">JSON</a></p>
      <p>
        The place by ${unitOf(source)} among all that ${nameOfSource(source)} was observed with on a day, from
        the daily signals: what is current, and may still change with a later import.
      </p>
      ${shown.length === 0 ? NOTHING : observationTable(shown, source)}
      ${cut(trend.days.length, shown.length)}`
  },
  refusalOf: refusalsOf(trendContract),
}

function observationTable(days: readonly ObservedDay[], source: string): Html {
  const unit = unitOf(source)
  return chartTable<ObservedDay>({
    id: 'daily-ranks',
    caption: `Rank among ${nameOfSource(source)} of the day`,
    series: [
      { title: 'Rank', drawn: true, valueOf: ({ rank }) => rank },
      { title: 'of', drawn: false, valueOf: ({ of }) => of },
      { title: unit.charAt(0).toUpperCase() + unit.slice(1), drawn: false, valueOf: ({ points }) => points },
      { title: 'Comments', drawn: false, valueOf: ({ comments }) => comments },
    ],
    rows: days.flatMap((day, index) => [...unobserved(days[index - 1], day), { day: day.day, row: day }]),
  })
}

function unobserved(before: ObservedDay | undefined, { day }: ObservedDay): ChartRow<ObservedDay>[] {
  if (!before) return []
  const [first, last] = [addDays(before.day, 1), addDays(day, -1)]
  if (first > last) return []
  return [{ days: first === last ? first : `${first} to ${last}`, absent: 'not observed' }]
}

function cut(all: number, shown: number): Html {
  return all > shown
    ? html`<p class="as-of">The latest of ${counted(all, 'days')} with an observation; the JSON has all.</p>`
    : NOTHING
}

/** A column of numbers by day; those with a chart are drawn. */
interface Series<Row> {
  title: string
  drawn: boolean
  valueOf: (row: Row) => number | null
}

/** A day with numbers, or days without an observation and why. */
type ChartRow<Row> = { day: Day; row: Row } | { days: string; absent: string }

interface ChartTable<Row> {
  /** Id of the table. */
  id: string
  caption: string
  series: readonly Series<Row>[]
  rows: readonly ChartRow<Row>[]
}

/**
 * Ranks by day as a table, which a script draws as a chart above it (assets/page/chart.js): the chart is made of nothing
 * but the table. Days without an observation are rows of their own.
 */
function chartTable<Row>({ id, caption, series, rows }: ChartTable<Row>): Html {
  return html`<figure class="over-time">
    <div class="chart needs-script" data-table="${id}"></div>
    <div class="wide rows" tabindex="0" role="group" aria-label="${caption}">
      <table class="compared" id="${id}">
        <caption>
          ${caption}
        </caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            ${series.map(
              ({ title, drawn }) =>
                html`<th scope="col" class="number" ${drawn ? html`data-drawn` : NOTHING}>${title}</th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${rows.map((each) => rowOf(each, series))}
        </tbody>
      </table>
    </div>
  </figure>`
}

function rowOf<Row>(each: ChartRow<Row>, series: readonly Series<Row>[]): Html {
  if ('absent' in each)
    return html`<tr class="absent">
      <th scope="row">${each.days}</th>
      <td colspan="${series.length}">${each.absent}</td>
    </tr>`
  const numbers = series.map(({ valueOf }) => valueOf(each.row))
  return html`<tr data-day="${each.day}">
    <th scope="row">${each.day}</th>
    ${numbers.map((number) =>
      number === null ? html`<td>–</td>` : html`<td data-value="${number}">${formatCount(number)}</td>`,
    )}
  </tr>`
}

/** Publications and gaps that are read for one answer: each publication is proved. */
const STOPS_SHOWN = 31

/** The layout whose lists are known; older ones are served and not read (docs/ranking.md). */
const KNOWN_ALGORITHM = 'top-year-v3'

/** The rank of an item in the Year, publication by publication, each read from its proved bytes. */
const YEAR_RANKS_PANEL: Panel = {
  id: 'year-ranks',
  title: 'In the Top Year',
  params: ['key', 'at'],
  async render({ sources: { publications }, now, query }) {
    const key = parseKey(query.params)
    const at = parseTime(query.params, 'at', 'invalid_at', now) ?? now
    const proved = await publications.entries()
    const stops = stopsOnce(proved)
    const { place } = momentAt(proved.timeline, stops, at)
    const shown = stops.slice(Math.max(0, place + 1 - STOPS_SHOWN), place + 1)
    const rows: ChartRow<YearStanding>[] = []
    // One after another: each is proved on the one thread that answers everybody.
    for (const stop of shown) {
      if (stop.kind === 'gap') rows.push(gapRow(stop))
      else rows.push(rankRow(await publications.publication(stop.item.manifest), key))
    }
    return html`<p>
        The place in the list of its source and in <em>Popular</em>, as it was published; nothing changes it
        afterwards.
      </p>
      ${shown.length === 0 ? NOTHING_YET : table(rows)} ${pages(stops, place, query, now)}`
  },
  refusalOf: (error, view) =>
    codeOf(trendContract, error) === 'invalid_key' ? INVALID_KEY : refusalOfYear(error, view),
}

const INVALID_KEY = { status: 400, code: 'invalid_key', when: trendContract.refusals.invalid_key.when }

/** Where each item stood in a publication of the known layout. */
const standingsIn = onceFor(({ published }: ProvedPublication): ReadonlyMap<string, YearStanding> => {
  // Proved bytes of this version have the schema of the Year.
  const { feed } = JSON.parse(published.body.toString('utf8')) as { feed: YearFeed }
  return standingsOf(feed)
})

function rankRow(publication: ProvedPublication, key: string): ChartRow<YearStanding> {
  const { algorithmVersion, asOfDay } = publication.manifest
  if (algorithmVersion !== KNOWN_ALGORITHM)
    return { days: asOfDay, absent: `not read: ${algorithmVersion} has another layout` }
  const standing = standingsIn(publication).get(key)
  return standing ? { day: asOfDay, row: standing } : { days: asOfDay, absent: 'not in the first hundred' }
}

function gapRow(stop: TimelineStop): ChartRow<YearStanding> {
  return { days: daysOf(stop), absent: 'gap: nothing was published' }
}

const NOTHING_YET = html`<p class="empty">Nothing had been published by this time.</p>`

function table(rows: readonly ChartRow<YearStanding>[]): Html {
  return chartTable<YearStanding>({
    id: 'year-ranks-table',
    caption: 'Rank in the Year, by as-of day',
    series: [
      { title: 'In its list', drawn: true, valueOf: ({ rank }) => rank },
      { title: 'In Popular', drawn: true, valueOf: ({ popular }) => popular },
      { title: 'Points', drawn: false, valueOf: ({ points }) => points },
    ],
    rows,
  })
}

/** Ways to earlier and later publications than those shown. */
function pages(stops: readonly TimelineStop[], place: number, query: PageQuery, now: Instant): Html {
  const earlier = stops[place - STOPS_SHOWN]
  const later = place < stops.length - 1 ? stops[Math.min(place + STOPS_SHOWN, stops.length - 1)] : undefined
  const link = (stop: TimelineStop | undefined, text: string) =>
    stop ? query.roomLink('year-ranks', { at: atOfStop(stop, now) }, text) : NOTHING
  return html`<p>${link(earlier, 'Earlier')} ${link(later, 'Later')}</p>`
}
