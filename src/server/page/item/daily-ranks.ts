import type { ItemTrend } from '../../../domain/feed/search/search.ts'
import { itemsOfKey } from '../../../domain/feed/source.ts'
import { nameOfSource, unitOf } from '../../../domain/feed/subscription.ts'
import { addDays } from '../../../domain/time.ts'
import type { ItemChart } from '../../year/item-chart.ts'
import { trendContract } from '../../feed/search-routes.ts'
import { NOTHING, formatCounted, formatDay, html } from '../html.ts'
import type { Html } from '../html.ts'
import { withQuery } from '../layout.ts'
import type { View } from '../rendered-pages.ts'
import { refusalsOf, section } from '../sections.ts'
import type { Section } from '../sections.ts'
import { chartFigure, numbersTable } from './chart-table.ts'
import type { ChartRow } from './chart-table.ts'

/** Number of latest observed days shown; the interface returns all. */
const DAYS_MAX = 366

export type ObservedDay = ItemTrend['days'][number]

/**
 * An item's daily rank among the observed items of its source.
 *
 * @param trend null if it cannot be read, which the first section of the page says
 * @param isDrawn false if another chart of the page shows how the item moved
 */
export function dailyRanksSection(
  view: View,
  trend: ItemTrend | null,
  isDrawn: boolean,
): Promise<Section | null> {
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
export function bestDayOf(days: readonly ObservedDay[]): (ObservedDay & { rank: number }) | undefined {
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
  return numbersTable<ObservedDay>({
    id: 'daily-ranks',
    caption,
    series: [
      { title: 'Rank', valueOf: ({ rank }) => rank },
      { title: 'of', valueOf: ({ of }) => of },
      { title: unit.charAt(0).toUpperCase() + unit.slice(1), valueOf: ({ points }) => points },
      { title: 'Comments', valueOf: ({ comments }) => comments },
    ],
    rows: days.flatMap((day, index) => [...unobservedDays(days[index - 1], day), { day: day.day, row: day }]),
  })
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

function unobservedDays(previous: ObservedDay | undefined, { day }: ObservedDay): ChartRow<ObservedDay>[] {
  if (!previous) return []
  const [first, last] = [addDays(previous.day, 1), addDays(day, -1)]
  if (first > last) return []
  return [{ days: first === last ? first : `${first} to ${last}`, reason: 'not observed' }]
}
