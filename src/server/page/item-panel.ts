import { nameOfSource, unitOf } from '../../domain/feed/labels.ts'
import { parseKey } from '../../domain/feed/search-request.ts'
import type { ItemTrend } from '../../domain/feed/search.ts'
import { discussionUrl, itemsOfKey } from '../../domain/feed/source.ts'
import type { FeedSearch } from '../../domain/ports.ts'
import { addDays } from '../../domain/time.ts'
import { trendContract } from '../feed/search-contracts.ts'
import { chartTable } from './chart-table.ts'
import type { ChartRow } from './chart-table.ts'
import { counted } from './counts.ts'
import { titleOf } from './feed-items.ts'
import { html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import { refusalsOf } from './panel.ts'
import type { Panel } from './panel.ts'

/** Days of observation that are shown, the latest; the interface gives all. */
const DAYS_SHOWN = 366

type Day = ItemTrend['days'][number]

/** An item, and its rank among what its source was observed with, day by day. */
export function itemPanel(search: Pick<FeedSearch, 'itemTrend'>): Panel {
  return {
    id: 'item',
    title: 'The item, day by day',
    params: ['key'],
    async render({ query }) {
      const trend = await search.itemTrend(parseKey(query.params))
      const [{ source, sourceId } = { source: '', sourceId: '' }] = itemsOfKey(trend.key)
      const shown = trend.days.slice(-DAYS_SHOWN)
      const json = `/api/trend?${String(new URLSearchParams({ key: trend.key }))}`
      return html`<div class="item-title">
          ${titleOf({ title: trend.title, url: null, discussionUrl: discussionUrl(source, sourceId) })}
        </div>
        <p class="as-of">${nameOfSource(source)} · <code>${trend.key}</code> · <a href="${json}">JSON</a></p>
        <p>
          The place by ${unitOf(source)} among all that ${nameOfSource(source)} was observed with on a day,
          from the daily signals: what is current, and may still change with a later import.
        </p>
        ${shown.length === 0 ? NOTHING : table(shown, source)} ${cut(trend.days.length, shown.length)}`
    },
    refusalOf: refusalsOf(trendContract),
  }
}

function table(days: readonly Day[], source: string): Html {
  const unit = unitOf(source)
  return chartTable<Day>({
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

function unobserved(before: Day | undefined, { day }: Day): ChartRow<Day>[] {
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
