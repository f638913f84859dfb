import type { Instant } from '../../domain/time.ts'
import { feedItem } from './feed-items.ts'
import type { ShownItem } from './feed-items.ts'
import { html } from './html.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './page-query.ts'

/** Items of a column before it is asked for alone. */
const SHOWN = 15

/** Lists of a feed, in the order they are shown in, under the names the interfaces give them. */
export const COLUMNS = {
  popular: 'Popular',
  hackerNews: 'Hacker News',
  lobsters: 'Lobsters',
  lessWrong: 'LessWrong',
  hypeReplicate: 'Hype',
  midjourney: 'Images',
} as const
export type ColumnName = keyof typeof COLUMNS

/** What is shown, for the title of the page: `Hacker News, Week`. */
export function titleOf(only: ColumnName | null, period: string): string {
  return only === null ? period : `${COLUMNS[only]}, ${period}`
}

/** The lists of a live period or of a Year. */
export type ShownLists = Readonly<Record<ColumnName, readonly ShownItem[]>>

const SEVERAL_SOURCES: ReadonlySet<ColumnName> = new Set(['popular', 'hypeReplicate'])

/** Every column with its first items, and how to get to the rest; or, of one column, everything. */
export function feedColumns(
  lists: ShownLists,
  only: ColumnName | null,
  now: Instant,
  query: PageQuery,
): Html {
  if (only !== null) return wholeColumn(only, lists[only], now, query)
  const names = Object.keys(COLUMNS) as ColumnName[]
  return html`<nav class="jump" aria-label="Columns">
      <ul>
        ${names.map((name) => html`<li><a href="#column-${name}">${COLUMNS[name]}</a></li>`)}
      </ul>
    </nav>
    <div class="columns">${names.map((name) => column(name, lists[name], now, query))} ${GITHUB}</div>`
}

function column(name: ColumnName, items: readonly ShownItem[], now: Instant, query: PageQuery): Html {
  const more =
    items.length > SHOWN
      ? html`<p class="more">
          <a href="${query.link({ column: name }, 'feed')}" data-room="feed"
            >All ${items.length} of ${COLUMNS[name]}</a
          >
        </p>`
      : html``
  return html`<section class="column" id="column-${name}" aria-labelledby="column-${name}-title">
    <h3 id="column-${name}-title">${COLUMNS[name]}</h3>
    ${list(name, items.slice(0, SHOWN), now)} ${more}
  </section>`
}

function wholeColumn(name: ColumnName, items: readonly ShownItem[], now: Instant, query: PageQuery): Html {
  return html`<section class="column alone" id="column-${name}" aria-labelledby="column-${name}-title">
    <h3 id="column-${name}-title">${COLUMNS[name]}</h3>
    <p><a href="${query.link({ column: null }, 'feed')}" data-room="feed">All columns</a></p>
    ${list(name, items, now)}
  </section>`
}

function list(name: ColumnName, items: readonly ShownItem[], now: Instant): Html {
  if (items.length === 0) return html`<p class="empty">Nothing in this period.</p>`
  const showsSource = SEVERAL_SOURCES.has(name)
  return html`<ol class="items">
    ${items.map((item) => feedItem(item, now, showsSource))}
  </ol>`
}

/** Always collecting, in every period (docs/ranking.md). */
const GITHUB = html`<section class="column" id="column-github" aria-labelledby="column-github-title">
  <h3 id="column-github-title">GitHub, by stars gained</h3>
  <p class="empty">Collecting: nothing is shown until a year of stars gained is known.</p>
</section>`
