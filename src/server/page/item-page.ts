import { parseKey } from '../../domain/feed/search.ts'
import type { ItemTrend } from '../../domain/feed/search.ts'
import { isHttpUrl } from '../../domain/address.ts'
import { discussionUrl, itemsOfKey } from '../../domain/feed/source.ts'
import { nameOfSource, unitOf } from '../../domain/feed/subscription.ts'
import { Refusal } from '../../domain/refusal.ts'
import { addDays, formatInstant } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { atOfStop, momentAt, positionsOf } from '../../domain/year/history/calendar.ts'
import type { TimelineStop, YearPosition } from '../../domain/year/history/calendar.ts'
import { ALGORITHM_VERSION } from '../../domain/year/envelope.ts'
import type { YearFeed } from '../../domain/year/schema.ts'
import { similarContract, trendContract } from '../feed/search-routes.ts'
import { codeOf } from '../route.ts'
import type { Log } from '../route.ts'
import { onceFor } from '../single-flight.ts'
import type { ProvedPublication } from '../year/proved-publications.ts'
import { ITEM_CHART_PATH, manifestsOf } from '../year/rank-routes.ts'
import { hostOf, storyRow, untrustedLink } from './feed-items.ts'
import { renderSections } from './home.ts'
import { NOTHING, formatCounted, formatCount, html } from './html.ts'
import type { Html } from './html.ts'
import { HTML_TYPE, ITEM_PATH, PAGE_HEADERS, itemHref, layout, refusalsOf } from './layout.ts'
import type { Frame, PageQuery, Panel } from './layout.ts'
import type { MountPage } from './rendered-pages.ts'
import { CARD_PATHS, bestDayOf, itemFacts, withQuery } from './share/preview.ts'
import { shareBox } from './share/share-box.ts'
import { daysOf, parseTime, refusalOfYear, stopsOnce } from './year/time-travel.ts'

/**
 * Mounts `/item?key=…`: an item with its links, its rank over time as tables that a script draws as charts, and similar
 * items (docs/page.md).
 */
export function mountItemPage(mount: MountPage, frame: Frame, log: Log): void {
  const panels = [ITEM_PANEL, yearRanksPanel(frame.baseUrl), SIMILAR_PANEL]
  mount({
    path: ITEM_PATH,
    query: { known: ['key', 'at'] },
    async render(sources, query, event) {
      const view = { sources, now: sources.clock(), query }
      const rendered = await renderSections(event, panels, ITEM_PANEL, view, log)
      const { sections, status, headers, title, preview } = rendered
      const name = title ?? query.params.get('key') ?? ''
      const main = html`<h1 class="item-name"><bdi>${name === '' ? 'An item over time' : name}</bdi></h1>
        ${sections}`
      const head = html`<link rel="stylesheet" href="${frame.assets.href('uPlot.min.css')}" />
        <script defer src="${frame.assets.href('uPlot.iife.min.js')}"></script>
        <script type="module" src="${frame.assets.href('chart.js')}"></script>`
      const text = layout(frame, { title: `${name} · dash`, head, main, preview })
      return { status, headers: { ...PAGE_HEADERS, ...headers, 'content-type': HTML_TYPE }, text }
    },
  })
}

/** Number of latest observed days shown; the interface returns all. */
const DAYS_MAX = 366

type ObservedDay = ItemTrend['days'][number]

/** The panel of an item's daily rank among the observed items of its source. */
const ITEM_PANEL: Panel = {
  id: 'item',
  title: 'The item, day by day',
  params: ['key'],
  async render({ sources, query }) {
    const trend = await sources.search.itemTrend(parseKey(query.params))
    const [{ source, sourceId } = { source: '', sourceId: '' }] = itemsOfKey(trend.key)
    const shown = trend.days.slice(-DAYS_MAX)
    const json = withQuery('/api/trend', { key: trend.key })
    const content = html`<div class="item-links" data-key="${trend.key}">
        ${itemLinks(trend, discussionUrl(source, sourceId))}
        <span class="title unseen" aria-hidden="true"><bdi>${trend.title}</bdi></span>
        <button type="button" class="discuss needs-script" data-discuss="${trend.key}">Ask about it</button>
      </div>
      ${shown.length === 0 ? NOTHING : html`${bestDay(shown, source)} ${observationTable(shown, source)}`}
      ${truncationNote(trend.days.length, shown.length)}
      <p class="as-of">
        ${nameOfSource(source)} · <code>${trend.key}</code> · <a href="${json}">JSON</a> · rank by
        ${unitOf(source)} among that day's ${nameOfSource(source)} items, from the daily signals; a later
        import can change it
      </p>`
    const preview = {
      description: `${[nameOfSource(source), ...itemFacts(trend, source)].join(' · ')}.`,
      path: itemHref(trend.key),
      card: withQuery(CARD_PATHS.item, { key: trend.key }),
    }
    return { status: 200, content, title: trend.title, preview }
  },
  refusalOf: refusalsOf(trendContract),
}

/** Links to the article and to its discussion. */
function itemLinks({ url }: ItemTrend, discussion: string | null): Html {
  const article =
    url !== null && isHttpUrl(url) ? untrustedLink(url, html`Article (${hostOf(url)})`) : NOTHING
  const talk =
    discussion === null || discussion === url ? NOTHING : untrustedLink(discussion, html`Discussion`)
  return html`${article} ${talk}`
}

/** A sentence with the best rank and the days of observation. */
function bestDay(days: readonly ObservedDay[], source: string): Html {
  const best = bestDayOf(days)
  if (!best) return NOTHING
  const first = days[0]?.day ?? best.day
  return html`<p class="stay">
    Highest #${best.rank} of ${nameOfSource(source)} on ${best.day}; observed on
    ${formatCounted(days.length, 'days')}, first on ${first}.
  </p>`
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
    rows: days.flatMap((day, index) => [...unobservedDays(days[index - 1], day), { day: day.day, row: day }]),
  })
}

function unobservedDays(previous: ObservedDay | undefined, { day }: ObservedDay): ChartRow<ObservedDay>[] {
  if (!previous) return []
  const [first, last] = [addDays(previous.day, 1), addDays(day, -1)]
  if (first > last) return []
  return [{ days: first === last ? first : `${first} to ${last}`, reason: 'not observed' }]
}

function truncationNote(total: number, shown: number): Html {
  return total > shown
    ? html`<p class="as-of">
        The latest of ${formatCounted(total, 'days')} with an observation; the JSON has all of them.
      </p>`
    : NOTHING
}

/** A column of numbers by day, which the chart may draw. */
interface Series<Row> {
  title: string
  drawn: boolean
  valueOf: (row: Row) => number | null
}

/** A day with numbers, or days without numbers and the reason. */
type ChartRow<Row> = { day: Day; row: Row } | { days: string; reason: string }

interface ChartTable<Row> {
  /** Id of the table. */
  id: string
  caption: string
  series: readonly Series<Row>[]
  rows: readonly ChartRow<Row>[]
}

/**
 * Renders ranks by day as a table, from which a script draws a chart (assets/page/chart.js). Days without an observation
 * are separate rows.
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
          ${rows.map((chartRow) => rowOf(chartRow, series))}
        </tbody>
      </table>
    </div>
  </figure>`
}

function rowOf<Row>(chartRow: ChartRow<Row>, series: readonly Series<Row>[]): Html {
  if ('reason' in chartRow)
    return html`<tr class="absent">
      <th scope="row">${chartRow.days}</th>
      <td colspan="${series.length}">${chartRow.reason}</td>
    </tr>`
  const numbers = series.map(({ valueOf }) => valueOf(chartRow.row))
  return html`<tr data-day="${chartRow.day}">
    <th scope="row">${chartRow.day}</th>
    ${numbers.map((number) =>
      number === null ? html`<td>–</td>` : html`<td data-value="${number}">${formatCount(number)}</td>`,
    )}
  </tr>`
}

/** Number of similar items shown. */
const SIMILAR_MAX = 8

/** An item that is stored but not indexed yet has no similar ones; one that is not stored is the first panel's refusal. */
function notIndexedYet(error: unknown): [] {
  if (error instanceof Refusal && error.code === 'item_not_found') return []
  throw error
}

const SIMILAR_PANEL: Panel = {
  id: 'similar',
  title: 'Similar items',
  params: ['key'],
  async render({ sources, now, query }) {
    const items = await sources.search.similar(parseKey(query.params), SIMILAR_MAX).catch(notIndexedYet)
    if (items.length === 0) return html`<p class="empty">Nothing stored is similar.</p>`
    return html`<ul class="items">
      ${items.map((item) => storyRow({ item, others: [] }, now, true))}
    </ul>`
  },
  refusalOf: refusalsOf(similarContract),
}

/** Publications and gaps per page: each publication is verified. */
const STOPS_PER_PAGE = 31

/** The panel of an item's rank in each publication of the Year, read from verified bytes. */
const yearRanksPanel = (baseUrl: () => string): Panel => ({
  id: 'year-ranks',
  title: 'In the Top Year',
  params: ['key', 'at'],
  async render({ sources: { publications }, now, query }) {
    const key = parseKey(query.params)
    const at = parseTime(query.params, 'at', 'invalid_at', now) ?? now
    const proved = await publications.entries()
    const stops = stopsOnce(proved)
    const { stopIndex } = momentAt(proved.timeline, stops, at)
    const shown = stops.slice(Math.max(0, stopIndex + 1 - STOPS_PER_PAGE), stopIndex + 1)
    const rows: ChartRow<YearPosition>[] = []
    // One after another: verification blocks the thread that serves all requests.
    for (const stop of shown) {
      if (stop.kind === 'gap') rows.push(gapRow(stop))
      else rows.push(rankRow(await publications.publication(stop.item.manifest), key))
    }
    const folded = foldAbsent(rows)
    return html`<p>
        The published rank in the list of its source and in <em>Popular</em>; a published rank never changes.
      </p>
      ${shown.length === 0 ? NO_PUBLICATION : table(folded)} ${pageLinks(stops, stopIndex, query, now)}
      ${rows.some((each) => 'row' in each) ? shareItem(baseUrl(), key, shown) : NOTHING}`
  },
  refusalOf: (error, view) =>
    codeOf(trendContract, error) === 'invalid_key' ? INVALID_KEY : refusalOfYear(error, view),
})

/** Offers the shown ranks to other pages, as of the newest publication among them. */
function shareItem(baseUrl: string, key: string, shown: readonly TimelineStop[]): Html {
  const newest = manifestsOf(shown).at(-1)
  if (!newest) return NOTHING
  const params = { key, at: formatInstant(newest.publishedAt) }
  const alt = `Ranks of ${key} in the Year up to ${newest.asOfDay}`
  return shareBox({
    baseUrl,
    path: withQuery(ITEM_PATH, params),
    chart: { path: ITEM_CHART_PATH, params, alt },
  })
}

const INVALID_KEY = { status: 400, code: 'invalid_key', when: trendContract.refusals.invalid_key.when }

/** The standing of each item in a publication of the known layout. */
const standingsIn = onceFor(({ published }: ProvedPublication): ReadonlyMap<string, YearPosition> => {
  // Verified bytes of this version have the schema of the Year.
  const { feed } = JSON.parse(published.body.toString('utf8')) as { feed: YearFeed }
  return positionsOf(feed)
})

function rankRow(publication: ProvedPublication, key: string): ChartRow<YearPosition> {
  const { algorithmVersion, asOfDay } = publication.manifest
  if (algorithmVersion !== ALGORITHM_VERSION)
    return { days: asOfDay, reason: `not shown: ${algorithmVersion} has an older layout` }
  const standing = standingsIn(publication).get(key)
  return standing ? { day: asOfDay, row: standing } : { days: asOfDay, reason: ABSENT }
}

/** Joins consecutive days without a rank for the same reason to one row. */
function foldAbsent(rows: readonly ChartRow<YearPosition>[]): ChartRow<YearPosition>[] {
  const folded: ChartRow<YearPosition>[] = []
  for (const row of rows) {
    const last = folded.at(-1)
    if (last && 'reason' in last && 'reason' in row && last.reason === row.reason && row.reason === ABSENT)
      folded[folded.length - 1] = { days: `${last.days.slice(0, 10)} to ${row.days}`, reason: ABSENT }
    else folded.push(row)
  }
  return folded
}

const ABSENT = 'not in the first hundred'

function gapRow(stop: TimelineStop): ChartRow<YearPosition> {
  return { days: daysOf(stop), reason: 'gap: nothing was published' }
}

const NO_PUBLICATION = html`<p class="empty">Nothing had been published by this time.</p>`

function table(rows: readonly ChartRow<YearPosition>[]): Html {
  return chartTable<YearPosition>({
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

/** Links to earlier and later publications. */
function pageLinks(stops: readonly TimelineStop[], place: number, query: PageQuery, now: Instant): Html {
  const earlier = stops[place - STOPS_PER_PAGE]
  const later =
    place < stops.length - 1 ? stops[Math.min(place + STOPS_PER_PAGE, stops.length - 1)] : undefined
  const link = (stop: TimelineStop | undefined, text: string) =>
    stop ? query.sectionLink('year-ranks', { at: atOfStop(stop, now) }, text) : NOTHING
  return html`<p>${link(earlier, 'Earlier')} ${link(later, 'Later')}</p>`
}
