import { COLUMNS, COLUMN_NAMES } from '../../../domain/feed/columns.ts'
import type { ItemTrend } from '../../../domain/feed/search/search.ts'
import { onceFor } from '../../../domain/once.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { formatInstant } from '../../../domain/time.ts'
import type { Day, Instant } from '../../../domain/time.ts'
import { atOfStop } from '../../../domain/year/history/calendar.ts'
import type { TimelineStop, YearPosition } from '../../../domain/year/history/calendar.ts'
import { stayOf } from '../../../domain/year/history/rank-history.ts'
import type { Manifest } from '../../../domain/year/ledger.ts'
import { trendContract } from '../../feed/search-routes.ts'
import { codeOf } from '../../route.ts'
import { ITEM_CHART_PATH } from '../../year/rank-routes.ts'
import { itemChartOf } from '../../year/item-chart.ts'
import { manifestsOf } from '../../year/year-lists.ts'
import { NOTHING, formatDay, html } from '../html.ts'
import type { Html } from '../html.ts'
import { ITEM_PATH, withQuery } from '../layout.ts'
import type { View } from '../rendered-pages.ts'
import { section } from '../sections.ts'
import type { Section, SectionRefusal } from '../sections.ts'
import { daysOf, refusalOfYear } from '../year/time-travel.ts'
import { shareBox } from '../year/year-chart.ts'
import { ranksByDay, stayText } from '../year/rows.ts'
import { chartFigure, numbersTable } from './chart-table.ts'
import type { ChartRow } from './chart-table.ts'
import { positionIn } from './year-record.ts'
import type { YearRecord } from './year-record.ts'

/** Publications and gaps per page of the chart. */
const STOPS_PER_PAGE = 31

/** The publications and gaps that the chart and the table show. */
function shownStops({ stops, stopIndex }: YearRecord): readonly TimelineStop[] {
  return stops.slice(Math.max(0, stopIndex + 1 - STOPS_PER_PAGE), stopIndex + 1)
}

/** The ranks of an item in the shown publications, with the days without a rank and their reason. */
const rowsOf = onceFor((record: YearRecord): readonly ChartRow<YearPosition>[] =>
  shownStops(record).map((stop) =>
    stop.kind === 'gap' ? gapRow(stop) : rankRow(record, stop.item.manifest),
  ),
)

/** True if the ranks in the Year are drawn: for one rank there is nothing to see. */
export function hasYearChart(record: YearRecord): boolean {
  return rowsOf(record).filter((row) => 'row' in row).length > 1
}

/** An item's rank in each publication of the Year, as a chart and a folded table. */
export function yearRanksSection(
  view: View,
  reads: { year: Promise<YearRecord>; trend: Promise<ItemTrend> },
): Promise<Section | null> {
  const { now, query } = view
  return section(view, { id: 'year-ranks', title: 'In the Top Year', refusalOf }, async () => {
    const record = await reads.year
    const { key, stops, stopIndex, manifests, lists } = record
    const rows = rowsOf(record)
    const links = pageLinks(stops, stopIndex, now)
    const listed = rows.flatMap((row) => ('row' in row ? [row] : []))
    if (listed.length === 0 && (links.length === 0 || !(await isStored(reads.trend)))) return null
    const shown = shownStops(record)
    const folded = foldAbsent(rows)
    const chart = hasYearChart(record) ? itemChartOf(shown, lists, key) : null
    const stays = staysIn(manifests, record, manifests[0] === manifestsOf(stops)[0])
    const pages = links.map(({ at, text }) => query.sectionLink('year-ranks', { at }, text))
    const share = listed.length > 0 ? shareItem(view.frame.baseUrl(), key, manifestsOf(shown)) : NOTHING
    return html`${chart === null ? NOTHING : chartFigure({ ...chart, heading: 'Rank in the Top Year' })}
    ${stays} ${fewRanks(listed, folded)} ${folded.length > 1 ? table(folded) : NOTHING}
    ${pages.length > 0 ? html`<p>${pages}</p>` : NOTHING} ${share}`
  })
}

function refusalOf(error: unknown, view: View): SectionRefusal {
  return codeOf(trendContract, error) === 'invalid_key' ? INVALID_KEY : refusalOfYear(error, view)
}

/** What stands in place of a chart of less than two ranks, unless the table says it. */
function fewRanks(
  [only, ...others]: readonly { day: Day; row: YearPosition }[],
  folded: readonly ChartRow<YearPosition>[],
): Html {
  if (others.length > 0) return NOTHING
  if (only)
    return html`<p>
      #${only.row.popular ?? only.row.rank ?? '–'} on ${formatDay(only.day)}, and on no other of these days.
    </p>`
  return folded.length > 1 ? NOTHING : html`<p>Not among the first hundred on these days.</p>`
}

/** A sentence with the best rank and the stay of an item in each list of the newest publication. */
function staysIn(manifests: readonly Manifest[], { lists, key }: YearRecord, isStart: boolean): Html {
  const stays = COLUMN_NAMES.flatMap((name) => {
    const stay = stayOf(key, ranksByDay(manifests, lists, name), isStart)
    return stay ? [`${COLUMNS[name]}: ${stayText(stay)}`] : []
  })
  return stays.length === 0 ? NOTHING : html`<p class="stay">${stays.join('; ')}.</p>`
}

/** False if no item with a key is stored; the first section of the page says so. */
async function isStored(trend: Promise<ItemTrend>): Promise<boolean> {
  try {
    await trend
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

function rankRow(record: YearRecord, manifest: Manifest): ChartRow<YearPosition> {
  const { algorithmVersion, asOfDay } = manifest
  const position = positionIn(record, manifest)
  if (position === undefined)
    return { days: asOfDay, reason: `not shown: ${algorithmVersion} has an older layout` }
  return position ? { day: asOfDay, row: position } : { days: asOfDay, reason: ABSENT }
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

function table(rows: readonly ChartRow<YearPosition>[]): Html {
  return numbersTable<YearPosition>({
    id: 'year-ranks-table',
    caption: 'Rank in the Top Year, by as-of day',
    series: [
      { title: 'In its list', valueOf: ({ rank }) => rank },
      { title: 'In Popular', valueOf: ({ popular }) => popular },
      { title: 'Points', valueOf: ({ points }) => points },
    ],
    rows,
  })
}

/** Links to earlier and later publications. */
function pageLinks(
  stops: readonly TimelineStop[],
  place: number,
  now: Instant,
): { at: string; text: string }[] {
  const earlier = stops[place - STOPS_PER_PAGE]
  const later =
    place < stops.length - 1 ? stops[Math.min(place + STOPS_PER_PAGE, stops.length - 1)] : undefined
  return [
    ...(earlier ? [{ at: atOfStop(earlier, now), text: 'Earlier' }] : []),
    ...(later ? [{ at: atOfStop(later, now), text: 'Later' }] : []),
  ]
}
