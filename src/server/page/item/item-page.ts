import { nullIfNotFound, parseKey } from '../../../domain/feed/search/search.ts'
import type { ItemTrend } from '../../../domain/feed/search/search.ts'
import { isHttpUrl } from '../../../domain/text.ts'
import { discussionUrl, itemsOfKey } from '../../../domain/feed/source.ts'
import { nameOfSource, unitOf } from '../../../domain/feed/subscription.ts'
import { addDays } from '../../../domain/time.ts'
import { similarContract, trendContract } from '../../feed/search-routes.ts'
import type { ItemChart } from '../../year/item-chart.ts'
import { storiesOf } from '../feed-columns.ts'
import { askLink, hostOf, storyRow, untrustedLink } from '../story-row.ts'
import { NOTHING, formatCounted, formatDay, html, isolated } from '../html.ts'
import type { Html } from '../html.ts'
import { ITEM_PATH, itemHref, withQuery } from '../layout.ts'
import type { View } from '../rendered-pages.ts'
import { htmlOf, refusalsOf, section } from '../sections.ts'
import type { Section, SectionPage } from '../sections.ts'
import {
  hasYearChart,
  yearRanksSection,
  readYearRecord,
  standingIn,
  chartFigure,
  numbersTable,
} from './year-ranks.ts'
import type { NumbersRow, YearRecord } from './year-ranks.ts'

/** `/item?key=…`: where an item stands, how it moved, its links, and similar items (docs/page.md). */
export const ITEM_PAGE: SectionPage = {
  path: ITEM_PATH,
  query: { known: ['key', 'at'] },
  async render(view) {
    // Each section that needs a failed read shows why it failed.
    const readTrend = Promise.resolve().then(() => view.sources.search.itemTrend(parseKey(view.query.params)))
    const readYear = readYearRecord(view)
    const [trend, year] = await Promise.all([orNull(readTrend), orNull(readYear)])
    const item = await itemSection(view, readTrend, year)
    // Without a key, one refusal says so.
    const others =
      item?.status === 400
        ? []
        : await Promise.all([
            yearRanksSection(view, readYear, item?.status !== 404),
            dailyRanksSection(view, trend, !(year && hasYearChart(year))),
            similarSection(view),
          ])
    const sections = [item, ...others]
    const name = item?.title ?? (view.query.params.get('key') || 'An item over time')
    return {
      title: `${name} · dash`,
      sections,
      main: html`<h1 class="item-name">${isolated(name)}</h1>
        ${htmlOf(sections)}`,
    }
  },
}

/** The result of a read, or null if it failed: the section of the read says why. */
function orNull<T>(read: Promise<T>): Promise<T | null> {
  return read.catch(() => null)
}

function itemSection(
  view: View,
  reading: Promise<ItemTrend>,
  year: YearRecord | null,
): Promise<Section | null> {
  return section(
    view,
    { id: 'item', title: 'Standing and links', refusalOf: refusalsOf(trendContract) },
    async () => {
      const trend = await reading
      const [{ source, sourceId } = { source: '', sourceId: '' }] = itemsOfKey(trend.key)
      const content = html`${standing(trend, source, year)}
        <div class="item-links" data-key="${trend.key}">
          ${itemLinks(trend, discussionUrl(source, sourceId))}
          <span class="title unseen" aria-hidden="true">${isolated(trend.title)}</span>
          ${askLink(trend.key, html`Ask about it`)}
        </div>`
      const preview = {
        description: `${[nameOfSource(source), ...itemFacts(trend, source)].join(' · ')}.`,
        path: itemHref(trend.key),
      }
      return { status: 200, content, title: trend.title, preview }
    },
  )
}

/** The first line: rank in the Top Year, latest numbers, source and day of publication. */
function standing({ days, publishedAt }: ItemTrend, source: string, year: YearRecord | null): Html {
  const last = days.at(-1)
  const parts = [
    ...(year ? [standingIn(year, days[0]?.day ?? null)] : []),
    ...(last ? numbersOf(last, source).map((text) => html`${text}`) : []),
    html`${nameOfSource(source)}`,
    ...(publishedAt === null ? [] : [html`${formatDay(publishedAt.slice(0, 10))}`]),
  ].filter((part) => part !== NOTHING)
  return html`<p class="item-standing">
    ${parts.map((part, index) => html`${index === 0 ? NOTHING : ' · '}${part}`)}
  </p>`
}

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
    ...(last ? numbersOf(last, source) : []),
    ...(best ? [`Highest #${best.rank} of ${nameOfSource(source)} on ${best.day}`] : []),
  ]
}

/** Points and comments, in the units of a source. */
function numbersOf({ points, comments }: ObservedDay, source: string): string[] {
  return [
    ...(points === null ? [] : [formatCounted(points, unitOf(source))]),
    ...(comments === null ? [] : [formatCounted(comments, 'comments')]),
  ]
}

const SIMILAR_MAX = 8

function similarSection(view: View): Promise<Section | null> {
  const { sources, now, query } = view
  return section(view, { id: 'similar', title: 'Similar items', refusalOf: refusalOfSimilar }, async () => {
    // An item that is not indexed yet has no similar ones; one that is not stored is the first section's refusal.
    const items = await sources.search.similar(parseKey(query.params), SIMILAR_MAX).catch(nullIfNotFound)
    if (items === null) return null
    if (items.length === 0) return html`<p class="empty">Nothing stored is similar.</p>`
    return html`<ul class="items">
      ${storiesOf(items).map((story) => storyRow(story, now, true))}
    </ul>`
  })
}

const refusalOfSimilar = refusalsOf(similarContract)

/** Number of latest observed days shown; the interface returns all. */
const DAYS_MAX = 366

type ObservedDay = ItemTrend['days'][number]

/**
 * An item's daily rank among the observed items of its source.
 *
 * @param trend null if it cannot be read, which the first section of the page says
 * @param isDrawn false if another chart of the page shows how the item moved
 */
function dailyRanksSection(view: View, trend: ItemTrend | null, isDrawn: boolean): Promise<Section | null> {
  const [{ source } = { source: '' }] = trend ? itemsOfKey(trend.key) : []
  const title = `By day on ${nameOfSource(source)}`
  return section(view, { id: 'by-day', title, refusalOf: refusalsOf(trendContract) }, async () => {
    if (trend === null || trend.days.length === 0) return null
    const shown = trend.days.slice(-DAYS_MAX)
    const caption = `Rank by ${unitOf(source)} among the ${nameOfSource(source)} items of the day`
    const hasSeveral = shown.length > 1
    return html`${hasSeveral && isDrawn ? chartFigure(dailyChart(shown, caption, source)) : NOTHING}
      ${bestDay(shown)} ${hasSeveral ? table(shown, caption, source) : NOTHING}
      <p class="as-of">
        <a href="${withQuery('/api/trend', { key: trend.key })}">JSON</a>
        ${trend.days.length > shown.length ? html`of all ${formatCounted(trend.days.length, 'days')}` : NOTHING}
        · from the daily signals; a later import can change it
      </p>`
  })
}

/** The day with the best rank, the first of equals; undefined if no day has a rank. */
function bestDayOf(days: readonly ObservedDay[]): (ObservedDay & { rank: number }) | undefined {
  const ranked = days.filter((day): day is ObservedDay & { rank: number } => day.rank !== null)
  return ranked.toSorted((a, b) => a.rank - b.rank)[0]
}

/** A sentence with the best rank and the days of observation. */
function bestDay(days: readonly ObservedDay[]): Html {
  const best = bestDayOf(days)
  if (!best) return NOTHING
  const first = days[0]?.day ?? best.day
  const rank = `#${best.rank} on ${formatDay(best.day)}`
  const text =
    days.length === 1
      ? `${rank}, the only day of observation.`
      : `Highest ${rank}; observed on ${days.length} days, first on ${formatDay(first)}.`
  return html`<p class="stay">${text}</p>`
}

function table(days: readonly ObservedDay[], caption: string, source: string): Html {
  const unit = unitOf(source)
  const heads = ['Rank', 'of', unit.charAt(0).toUpperCase() + unit.slice(1), 'Comments']
  const rows = days.flatMap((each, index): NumbersRow[] => [
    ...unobservedDays(days[index - 1], each),
    { days: each.day, numbers: [each.rank, each.of, each.points, each.comments] },
  ])
  return numbersTable('daily-ranks', caption, heads, rows)
}

/** The ranks and numbers of every day from the first to the last one; a day without an observation breaks the lines. */
function dailyChart(days: readonly ObservedDay[], caption: string, source: string): Omit<ItemChart, 'theme'> {
  const byDay = new Map(days.map((each) => [each.day, each]))
  const columns: ItemChart['columns'][number][] = []
  const [first, last] = [days[0]?.day ?? '', days.at(-1)?.day ?? '']
  for (let day = first; day <= last; day = addDays(day, 1))
    columns.push({ firstDay: day, lastDay: day, isGap: false })
  const values = (name: 'rank' | 'points') =>
    columns.map(({ firstDay }) => byDay.get(firstDay)?.[name] ?? null)
  return {
    heading: `Rank among ${nameOfSource(source)} of the day`,
    title: caption,
    columns,
    series: [{ name: `by ${unitOf(source)}`, ranks: values('rank') }],
    numbers: { name: unitOf(source), values: values('points') },
  }
}

function unobservedDays(previous: ObservedDay | undefined, { day }: ObservedDay): NumbersRow[] {
  if (!previous) return []
  const [first, last] = [addDays(previous.day, 1), addDays(day, -1)]
  if (first > last) return []
  return [{ days: first === last ? first : `${first} to ${last}`, reason: 'not observed' }]
}
