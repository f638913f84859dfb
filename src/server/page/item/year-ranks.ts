import { COLUMNS, COLUMN_NAMES } from '../../../domain/feed/columns.ts'
import { parseKey } from '../../../domain/feed/search/search.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { formatInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { atOfStop, momentAt, positionsOf } from '../../../domain/year/history/calendar.ts'
import type { TimelineStop, YearPosition } from '../../../domain/year/history/calendar.ts'
import { lastStops, stayOf } from '../../../domain/year/history/rank-history.ts'
import type { Manifest } from '../../../domain/year/ledger.ts'
import { onceFor } from '../../../domain/once.ts'
import { trendContract } from '../../feed/search-routes.ts'
import { codeOf } from '../../route.ts'
import { envelopeOf } from '../../year/proved-publications.ts'
import type { ItemChart } from '../../year/rank-charts.ts'
import type { ProvedPublication } from '../../year/proved-publications.ts'
import { ITEM_CHART_PATH, itemChartOf, manifestsOf, stopsOnce } from '../../year/rank-routes.ts'
import { PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import type { ListsByDigest } from '../../year/year-lists.ts'
import { NOTHING, html } from '../html.ts'
import type { Html } from '../html.ts'
import { ITEM_PATH, withQuery } from '../layout.ts'
import type { PageQuery } from '../layout.ts'
import type { PageSources, View } from '../rendered-pages.ts'
import { section } from '../sections.ts'
import type { Section, SectionRefusal } from '../sections.ts'
import { daysOf, parseTime, refusalOfYear } from '../year/time-travel.ts'
import { shareBox } from '../year/year-chart.ts'
import { ranksByDay, stayText } from '../year/year-view.ts'
import { chartTable } from './chart-table.ts'
import type { ChartRow } from './chart-table.ts'

/** Publications and gaps per page: each publication is verified. */
const STOPS_PER_PAGE = 31

/** An item's rank in each publication of the Year, read from verified bytes. */
export function yearRanksSection(view: View): Promise<Section | null> {
  const { sources, now, query } = view
  const { publications, lists, search } = sources
  return section(view, { id: 'year-ranks', title: 'In the Top Year', refusalOf }, async () => {
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
    const isListed = rows.some((each) => 'row' in each)
    if (!isListed && !(await isStored(search, key))) return null
    const recent = manifestsOf(lastStops(stops, stopIndex, PUBLICATIONS_MAX))
    const read = await lists(recent)
    const stays = staysIn(recent, read, key, recent[0] === manifestsOf(stops)[0])
    const isDrawn = rows.filter((row) => 'row' in row).length > 1
    const chart = isDrawn ? itemChartOf({ stops: shown, lists: read }, key) : null
    return html`${stays} ${shown.length === 0 ? NO_PUBLICATION : table(folded, chart)}
      <p class="as-of">
        The published rank in the list of its source and in <em>Popular</em>; a published rank never changes.
      </p>
      ${pageLinks(stops, stopIndex, query, now)}
      ${isListed ? shareItem(view.frame.baseUrl(), key, manifestsOf(shown)) : NOTHING}`
  })
}

function refusalOf(error: unknown, view: View): SectionRefusal {
  return codeOf(trendContract, error) === 'invalid_key' ? INVALID_KEY : refusalOfYear(error, view)
}

/** A sentence with the best rank and the stay of an item in each list of the newest publication. */
function staysIn(manifests: readonly Manifest[], lists: ListsByDigest, key: string, isStart: boolean): Html {
  const stays = COLUMN_NAMES.flatMap((name) => {
    const stay = stayOf(key, ranksByDay(manifests, lists, name), isStart)
    return stay ? [`${COLUMNS[name]}: ${stayText(stay)}`] : []
  })
  return stays.length === 0 ? NOTHING : html`<p class="stay">${stays.join('; ')}.</p>`
}

/** False if no item with a key is stored; the first section of the page says so. */
async function isStored(search: PageSources['search'], key: string): Promise<boolean> {
  try {
    await search.itemTrend(key)
    return true
  } catch (error) {
    return !(error instanceof Refusal && error.code === 'item_not_found')
  }
}

/** Offers the shown ranks to other pages, as of the newest publication among them. */
function shareItem(baseUrl: string, key: string, shown: readonly Manifest[]): Html {
  const newest = shown.at(-1)
  if (!newest) return NOTHING
  const params = { key, at: formatInstant(newest.publishedAt) }
  const chart = { path: ITEM_CHART_PATH, params, alt: `Ranks of ${key} in the Year up to ${newest.asOfDay}` }
  return shareBox({ baseUrl, path: withQuery(ITEM_PATH, params), chart })
}

const INVALID_KEY = { status: 400, code: 'invalid_key', when: trendContract.refusals.invalid_key.when }

/** The standing of each item in a publication; null for an older layout. */
const standingsIn = onceFor((publication: ProvedPublication): ReadonlyMap<string, YearPosition> | null => {
  const envelope = envelopeOf(publication)
  return envelope && positionsOf(envelope.feed)
})

function rankRow(publication: ProvedPublication, key: string): ChartRow<YearPosition> {
  const { algorithmVersion, asOfDay } = publication.manifest
  const standings = standingsIn(publication)
  if (standings === null)
    return { days: asOfDay, reason: `not shown: ${algorithmVersion} has an older layout` }
  const standing = standings.get(key)
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

function table(rows: readonly ChartRow<YearPosition>[], chart: Omit<ItemChart, 'theme'> | null): Html {
  return chartTable<YearPosition>({
    id: 'year-ranks-table',
    caption: 'Rank in the Year, by as-of day',
    chart,
    series: [
      { title: 'In its list', valueOf: ({ rank }) => rank },
      { title: 'In Popular', valueOf: ({ popular }) => popular },
      { title: 'Points', valueOf: ({ points }) => points },
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
