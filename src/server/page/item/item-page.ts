import { parseKey } from '../../../domain/feed/search/search.ts'
import type { ItemTrend } from '../../../domain/feed/search/search.ts'
import { isHttpUrl } from '../../../domain/address.ts'
import { discussionUrl, itemsOfKey } from '../../../domain/feed/source.ts'
import { nameOfSource, unitOf } from '../../../domain/feed/subscription.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { addDays } from '../../../domain/time.ts'
import type { ItemChart } from '../../year/rank-charts.ts'
import { similarContract, trendContract } from '../../feed/search-routes.ts'
import { askLink, hostOf, storyRow, untrustedLink } from '../feed-items.ts'
import { NOTHING, formatCount, formatCounted, html, isolated } from '../html.ts'
import type { Html } from '../html.ts'
import { ITEM_PATH, itemHref, withQuery } from '../layout.ts'
import type { View } from '../rendered-pages.ts'
import { htmlOf, refusalsOf, section } from '../sections.ts'
import type { Section, SectionPage } from '../sections.ts'
import { chartTable } from './chart-table.ts'
import type { ChartRow } from './chart-table.ts'
import { yearRanksSection } from './year-ranks.ts'

/** `/item?key=…`: an item with its links, its rank over time as charts and tables, and similar items (docs/page.md). */
export const ITEM_PAGE: SectionPage = {
  path: ITEM_PATH,
  query: { known: ['key', 'at'], linksRepeatQuery: false },
  async render(view) {
    const sections = await Promise.all([itemSection(view), yearRanksSection(view), similarSection(view)])
    const name = sections[0]?.title ?? view.query.params.get('key') ?? ''
    return {
      title: `${name} · dash`,
      sections,
      main: html`<h1 class="item-name">${isolated(name === '' ? 'An item over time' : name)}</h1>
        ${htmlOf(sections)}`,
    }
  },
}

/** Number of latest observed days shown; the interface returns all. */
const DAYS_MAX = 366

type ObservedDay = ItemTrend['days'][number]

/** An item's daily rank among the observed items of its source. */
function itemSection(view: View): Promise<Section | null> {
  const { sources, query } = view
  return section(
    view,
    { id: 'item', title: 'Links and ranks by day', refusalOf: refusalOfTrend },
    async () => {
      const trend = await sources.search.itemTrend(parseKey(query.params))
      const [{ source, sourceId } = { source: '', sourceId: '' }] = itemsOfKey(trend.key)
      const shown = trend.days.slice(-DAYS_MAX)
      const json = withQuery('/api/trend', { key: trend.key })
      const content = html`<div class="item-links" data-key="${trend.key}">
          ${itemLinks(trend, discussionUrl(source, sourceId))}
          <span class="title unseen" aria-hidden="true">${isolated(trend.title)}</span>
          ${askLink(trend.key, html`Ask about it`)}
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
      }
      return { status: 200, content, title: trend.title, preview }
    },
  )
}

const refusalOfTrend = refusalsOf(trendContract)

/** Links to the article and to its discussion. */
function itemLinks({ url }: ItemTrend, discussion: string | null): Html {
  const article =
    url !== null && isHttpUrl(url) ? untrustedLink(url, html`Article (${hostOf(url)})`) : NOTHING
  const talk =
    discussion === null || discussion === url ? NOTHING : untrustedLink(discussion, html`Discussion`)
  return html`${article} ${talk}`
}

/** The facts of an item for its description: where it links to, its latest numbers, its best rank of a day. */
function itemFacts({ url, days }: Pick<ItemTrend, 'url' | 'days'>, source: string): string[] {
  const [last, best] = [days.at(-1), bestDayOf(days)]
  return [
    ...(url !== null && isHttpUrl(url) ? [hostOf(url)] : []),
    ...(last ? [numbersOf(last, source)] : []),
    ...(best ? [`Highest #${best.rank} of ${nameOfSource(source)} on ${best.day}`] : []),
  ]
}

/** Points and comments, in the units of a source. */
function numbersOf({ points, comments }: ObservedDay, source: string): string {
  const numbers = [
    ...(points === null ? [] : [`${formatCount(points)} ${unitOf(source)}`]),
    ...(comments === null ? [] : [formatCounted(comments, 'comments')]),
  ]
  return numbers.join(' · ')
}

/** The day with the best rank, the first of equals; undefined if no day has a rank. */
function bestDayOf(days: readonly ObservedDay[]): (ObservedDay & { rank: number }) | undefined {
  const ranked = days.filter((day): day is ObservedDay & { rank: number } => day.rank !== null)
  return ranked.toSorted((a, b) => a.rank - b.rank)[0]
}

/** A sentence with the best rank and the days of observation. */
function bestDay(days: readonly ObservedDay[], source: string): Html {
  const best = bestDayOf(days)
  if (!best) return NOTHING
  const first = days[0]?.day ?? best.day
  const rank = `#${best.rank} of ${nameOfSource(source)} on ${best.day}`
  const text =
    days.length === 1
      ? `${rank}, the only day of observation.`
      : `Highest ${rank}; observed on ${days.length} days, first on ${first}.`
  return html`<p class="stay">${text}</p>`
}

function observationTable(days: readonly ObservedDay[], source: string): Html {
  const unit = unitOf(source)
  const caption = `Rank among ${nameOfSource(source)} of the day`
  return chartTable<ObservedDay>({
    id: 'daily-ranks',
    caption,
    chart: days.length > 1 ? dailyChart(days, caption, unit) : null,
    series: [
      { title: 'Rank', valueOf: ({ rank }) => rank },
      { title: 'of', valueOf: ({ of }) => of },
      { title: unit.charAt(0).toUpperCase() + unit.slice(1), valueOf: ({ points }) => points },
      { title: 'Comments', valueOf: ({ comments }) => comments },
    ],
    rows: days.flatMap((day, index) => [...unobservedDays(days[index - 1], day), { day: day.day, row: day }]),
  })
}

/** The ranks of every day from the first to the last one; a day without an observation breaks the line. */
function dailyChart(days: readonly ObservedDay[], caption: string, unit: string): Omit<ItemChart, 'theme'> {
  const ranks = new Map(days.map(({ day, rank }) => [day, rank]))
  const columns: ItemChart['columns'][number][] = []
  const [first, last] = [days[0]?.day ?? '', days.at(-1)?.day ?? '']
  for (let day = first; day <= last; day = addDays(day, 1))
    columns.push({ firstDay: day, lastDay: day, isGap: false })
  const series = [{ name: `by ${unit}`, ranks: columns.map(({ firstDay }) => ranks.get(firstDay) ?? null) }]
  return { heading: caption, title: caption, columns, series }
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

/** Number of similar items shown. */
const SIMILAR_MAX = 8

/** An item that is stored but not indexed yet has no similar ones; one that is not stored is the first section's refusal. */
function notIndexedYet(error: unknown): null {
  if (error instanceof Refusal && error.code === 'item_not_found') return null
  throw error
}

function similarSection(view: View): Promise<Section | null> {
  const { sources, now, query } = view
  return section(view, { id: 'similar', title: 'Similar items', refusalOf: refusalOfSimilar }, async () => {
    const items = await sources.search.similar(parseKey(query.params), SIMILAR_MAX).catch(notIndexedYet)
    if (items === null) return null
    if (items.length === 0) return html`<p class="empty">Nothing stored is similar.</p>`
    return html`<ul class="items">
      ${items.map((item) => storyRow({ item, others: [] }, now, true))}
    </ul>`
  })
}

const refusalOfSimilar = refusalsOf(similarContract)
