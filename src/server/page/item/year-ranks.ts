import { COLUMNS, COLUMN_NAMES } from '../../../domain/feed/columns.ts'
import { parseKey } from '../../../domain/feed/search/search.ts'
import { onceFor } from '../../../domain/once.ts'
import { formatInstant, addDays } from '../../../domain/time.ts'
import type { Day, Instant } from '../../../domain/time.ts'
import { atOfStop } from '../../../domain/year/history/calendar.ts'
import type { TimelineStop, YearPosition } from '../../../domain/year/history/calendar.ts'
import { stayOf, lastStops } from '../../../domain/year/history/rank-history.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import type { Manifest } from '../../../domain/year/ledger.ts'
import { ITEM_CHART_PATH } from '../../year/rank-routes.ts'
import { itemChartOf, itemChartSvg } from '../../year/item-chart.ts'
import type { ItemChart } from '../../year/item-chart.ts'
import { manifestsOf, PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import type { ListsByDigest } from '../../year/year-lists.ts'
import { NOTHING, formatDay, html, formatCounted, formatCount } from '../html.ts'
import type { Html } from '../html.ts'
import { ITEM_PATH, withQuery } from '../layout.ts'
import type { View } from '../rendered-pages.ts'
import { section } from '../sections.ts'
import type { Section } from '../sections.ts'
import { daysOf, refusalOfYear, stopAt } from '../year/time-travel.ts'
import { shareBox } from '../year/year-chart.ts'
import { ranksByDay, stayText } from '../year/year-view.ts'

/** Publications and gaps per page of the chart. */
const STOPS_PER_PAGE = 31

function shownStops({ stops, stopIndex }: YearRecord): readonly TimelineStop[] {
  return stops.slice(Math.max(0, stopIndex + 1 - STOPS_PER_PAGE), stopIndex + 1)
}

/** The ranks of an item in the shown publications, with the days without a rank and their reason. */
const rowsOf = onceFor((record: YearRecord): readonly NumbersRow[] =>
  shownStops(record).map((stop) => {
    if (stop.kind === 'gap') return { days: daysOf(stop), reason: 'gap: nothing was published' }
    const { manifest } = stop.item
    const { algorithmVersion, asOfDay: days } = manifest
    const position = positionIn(record, manifest)
    if (position === undefined) return { days, reason: `not shown: ${algorithmVersion} has an older layout` }
    if (position === null) return { days, reason: ABSENT }
    return { days, numbers: [position.rank, position.popular, position.points] }
  }),
)

const ABSENT = 'not in the first hundred'

/** Id, caption and heads of the table. */
const TABLE = [
  'year-ranks-table',
  'Rank in the Top Year, by as-of day',
  ['In its list', 'In Popular', 'Points'],
] as const

function listedRows(record: YearRecord): DayRow[] {
  return rowsOf(record).filter((row) => 'numbers' in row)
}

/** True if the ranks in the Year are drawn: for one rank there is nothing to see. */
export function hasYearChart(record: YearRecord): boolean {
  return listedRows(record).length > 1
}

/**
 * An item's rank in each publication of the Year, as a chart and a folded table.
 *
 * @param isStored false if no such item is stored, which the first section of the page says
 */
export function yearRanksSection(
  view: View,
  year: Promise<YearRecord>,
  isStored: boolean,
): Promise<Section | null> {
  return section(view, { id: 'year-ranks', title: 'In the Top Year', refusalOf: refusalOfYear }, async () => {
    const record = await year
    const { key, stops, manifests, lists } = record
    const links = pageLinks(view, record)
    const listed = listedRows(record)
    if (listed.length === 0 && (links.length === 0 || !isStored)) return null
    const shown = shownStops(record)
    const folded = foldAbsent(rowsOf(record))
    const chart = hasYearChart(record) ? itemChartOf(shown, lists, key) : null
    const stays = staysIn(manifests, record, manifests[0] === manifestsOf(stops)[0])
    const share = listed.length > 0 ? shareItem(view.frame.baseUrl(), key, manifestsOf(shown)) : NOTHING
    return html`${chart === null ? NOTHING : chartFigure({ ...chart, heading: 'Rank in the Top Year' })}
    ${stays} ${fewRanks(listed, folded)} ${folded.length > 1 ? numbersTable(...TABLE, folded) : NOTHING}
    ${links.length > 0 ? html`<p>${links}</p>` : NOTHING} ${share}`
  })
}

/** What stands in place of a chart of less than two ranks, unless the table says it. */
function fewRanks([only, ...others]: readonly DayRow[], folded: readonly NumbersRow[]): Html {
  if (others.length > 0) return NOTHING
  if (only)
    return html`<p>
      #${only.numbers[1] ?? only.numbers[0] ?? '–'} on ${formatDay(only.days)}, and on no other of these days.
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

/** Offers the shown ranks to other pages, as of the newest publication among them. */
function shareItem(baseUrl: string, key: string, shown: readonly Manifest[]): Html {
  const newest = shown.at(-1)
  if (!newest) return NOTHING
  const params = { key, at: formatInstant(newest.publishedAt) }
  const chart = { path: ITEM_CHART_PATH, params, alt: `Ranks of ${key} in the Year up to ${newest.asOfDay}` }
  return shareBox(baseUrl, withQuery(ITEM_PATH, params), chart)
}

/** Joins consecutive days on which the item was not listed to one row. */
function foldAbsent(rows: readonly NumbersRow[]): NumbersRow[] {
  const folded: NumbersRow[] = []
  for (const row of rows) {
    const last = folded.at(-1)
    if (last && isAbsent(last) && isAbsent(row))
      folded[folded.length - 1] = { days: `${last.days.slice(0, 10)} to ${row.days}`, reason: ABSENT }
    else folded.push(row)
  }
  return folded
}

function isAbsent(row: NumbersRow): boolean {
  return 'reason' in row && row.reason === ABSENT
}

function pageLinks({ query, now }: View, { stops, stopIndex }: YearRecord): Html[] {
  const linkTo = (stop: TimelineStop | undefined, text: string): Html[] =>
    stop ? [query.sectionLink('year-ranks', { at: atOfStop(stop, now) }, text)] : []
  const last = stops.length - 1
  const later = stopIndex < last ? stops[Math.min(stopIndex + STOPS_PER_PAGE, last)] : undefined
  return [...linkTo(stops[stopIndex - STOPS_PER_PAGE], 'Earlier'), ...linkTo(later, 'Later')]
}

/** The ranks of one item in the publications up to the requested moment. */
export interface YearRecord {
  key: string
  stops: readonly TimelineStop[]
  /** Index of the shown stop; -1 before the first one. */
  stopIndex: number
  /** The newest publications up to that stop, ascending, whose verified lists are read. */
  manifests: readonly Manifest[]
  lists: ListsByDigest
  now: Instant
}

/** Reads the ranks of the item of a page from verified bytes. @throws Refusal of the key, the time or the archive */
export async function readYearRecord(view: View): Promise<YearRecord> {
  const key = parseKey(view.query.params)
  const { stops, stopIndex } = await stopAt(view)
  const manifests = manifestsOf(lastStops(stops, stopIndex, PUBLICATIONS_MAX))
  return { key, stops, stopIndex, manifests, lists: await view.sources.lists(manifests), now: view.now }
}

/** The position of an item in a publication; null if it is not listed, undefined for an older layout. */
function positionIn(
  { lists, key }: Pick<YearRecord, 'lists' | 'key'>,
  { sha256 }: Manifest,
): YearPosition | null | undefined {
  const list = lists.get(sha256)
  return list ? (list.positions.get(key) ?? null) : undefined
}

/**
 * Where an item stands in the Top Year, in a phrase; nothing if that is not known.
 *
 * @param firstDay first day on which the item was observed: no earlier publication can list it
 */
export function standingIn(record: YearRecord, firstDay: Day | null): Html {
  const { stops, stopIndex, manifests } = record
  const [before, newest] = [manifests.at(-2), manifests.at(-1)]
  if (!newest) return NOTHING
  const position = positionIn(record, newest)
  if (position === undefined) return NOTHING
  const isNow = stopIndex === stops.length - 1
  const list = isNow ? 'Top Year' : `Top Year up to ${formatDay(newest.asOfDay)}`
  if (position) {
    const rank = position.popular ?? position.rank
    return html`<strong>#${rank ?? '–'}</strong> in
      ${list}${position.popular === null ? ownList(record, newest) : ''}
      ${before ? comparedWith(record, before, newest) : NOTHING}`
  }
  const last = manifests.findLast((manifest) => positionIn(record, manifest))
  if (last) return html`Left the Top Year after ${formatDay(last.asOfDay)}`
  if (!isNow) return html`Not in the ${list}`
  if (firstDay !== null && firstDay > newest.asOfDay) return html`Too new for the Top Year`
  if (isWholeRecord(record, firstDay)) return html`Never in the Top Year`
  const known = manifests.filter((manifest) => positionIn(record, manifest) !== undefined)
  return html`Not in the newest ${formatCounted(known.length, 'Top Years')}`
}

/** The list of the item's source in a publication. */
function ownList({ lists, key }: YearRecord, { sha256 }: Manifest): string {
  const own = COLUMN_NAMES.find((name) => lists.get(sha256)?.ranks[name].has(key))
  return own === undefined ? '' : `, ${COLUMNS[own]}`
}

function comparedWith(record: YearRecord, before: Manifest, newest: Manifest): Html {
  const position = positionIn(record, before)
  if (position === undefined) return NOTHING
  const day = dayOfPrevious(record, before, newest)
  return position === null
    ? html`(new since ${day})`
    : html`(${day} #${position.popular ?? position.rank ?? '–'})`
}

function dayOfPrevious({ stops, stopIndex, now }: YearRecord, before: Manifest, newest: Manifest): string {
  if (before.asOfDay !== addDays(newest.asOfDay, -1)) return formatDay(before.asOfDay)
  const isNewest = stopIndex === stops.length - 1 && newest.asOfDay === lastCompleteDay(now)
  return isNewest ? 'yesterday' : 'the day before'
}

/** True if every publication that can list an item is read. */
function isWholeRecord({ stops, manifests, lists }: YearRecord, firstDay: Day | null): boolean {
  if (firstDay === null) return false
  const possible = manifestsOf(stops).filter(({ asOfDay }) => asOfDay >= firstDay)
  return possible.every((manifest) => manifests.includes(manifest) && lists.get(manifest.sha256))
}

/** Renders the ranks of an item over time as a picture in the colours of the page. */
export function chartFigure(chart: Omit<ItemChart, 'theme'>): Html {
  const svg: Html = { html: itemChartSvg({ ...chart, theme: 'page' }) }
  return html`<figure class="over-time">${svg}</figure>`
}

/** Numbers of a day, or days without any and the reason. */
export type NumbersRow = DayRow | { days: string; reason: string }

interface DayRow {
  days: string
  numbers: readonly (number | null)[]
}

/** Renders numbers by day as a folded table. Days without an observation are separate rows. */
export function numbersTable(
  id: string,
  caption: string,
  heads: readonly string[],
  rows: readonly NumbersRow[],
): Html {
  return html`<details class="folded">
    <summary>${caption}, as a table</summary>
    <div class="wide rows" tabindex="0" role="group" aria-label="${caption}">
      <table class="compared" id="${id}">
        <caption class="unseen">
          ${caption}
        </caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            ${heads.map((title) => html`<th scope="col" class="number">${title}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map((row) => rowOf(row, heads.length))}
        </tbody>
      </table>
    </div>
  </details>`
}

function rowOf(row: NumbersRow, width: number): Html {
  if ('reason' in row)
    return html`<tr class="absent">
      <th scope="row">${row.days}</th>
      <td colspan="${width}">${row.reason}</td>
    </tr>`
  return html`<tr>
    <th scope="row">${row.days}</th>
    ${row.numbers.map((number) => html`<td>${number === null ? '–' : formatCount(number)}</td>`)}
  </tr>`
}
