import { COLUMNS, COLUMN_NAMES } from '../../domain/feed/columns.ts'
import type { ColumnName } from '../../domain/feed/columns.ts'
import { isHttpUrl } from '../../domain/text.ts'
import type { Instant } from '../../domain/time.ts'
import { onceFor } from '../../domain/once.ts'
import { NOTHING, formatCounted, html } from './html.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './layout.ts'
import { NO_NOTE, storyRow } from './story-row.ts'
import type { PageItem, RowNote, Story } from './story-row.ts'

/** The lists of a live period or of a Year. */
export type PageLists = Readonly<Record<ColumnName, readonly PageItem[]>>

export function isEmptyFeed(lists: PageLists): boolean {
  return COLUMN_NAMES.every((name) => lists[name].length === 0)
}

export type RowNotes = (column: ColumnName, item: PageItem) => RowNote

interface ListContext {
  /** Time from which ages count. */
  now: Instant
  order: Order
  query: PageQuery
  notes?: RowNotes
  /** Small print beside the first heading. */
  about?: Html
  /** URL of the publication, on a page of an export: no pages of items and lists, and no chat, are there to link to. */
  exportedFrom?: string
}

interface OverviewColumn {
  name: ColumnName
  stories: readonly Story[]
  /** Number of items of the whole list. */
  total: number
  /** True if stories of earlier lists are left out. */
  isReduced: boolean
}

/** Stories of the overview, by list. */
const LENGTHS = { popular: 20, others: 10 }

/** The same on a page of an export, which has no page of a whole list. */
const EXPORTED_LENGTHS = { popular: 100, others: 50 }

/** The stories of a list, each once: its first item, with the best item of each other source that has it. */
export function storiesOf(items: readonly PageItem[]): Story[] {
  return [...itemsByStory(items).values()].flatMap((bySource) => {
    const [item, ...others] = bySource.values()
    return item ? [{ item, others }] : []
  })
}

/** The first stories of each list, each story once: in the first list that has it. */
function overviewOf(lists: PageLists, lengths = LENGTHS): OverviewColumn[] {
  const bySource = itemsByStory(COLUMN_NAMES.flatMap((name) => lists[name]))
  const shown = new Set<string>()
  return COLUMN_NAMES.map((name) => {
    const stories: Story[] = []
    let isReduced = false
    for (const item of lists[name]) {
      if (stories.length === (name === 'popular' ? lengths.popular : lengths.others)) break
      const story = storyOf(item)
      if (shown.has(story)) {
        isReduced = true
        continue
      }
      shown.add(story)
      const others = [...(bySource.get(story)?.values() ?? [])].filter(({ source }) => source !== item.source)
      stories.push({ item, others })
    }
    return { name, stories, total: lists[name].length, isReduced }
  })
}

/** The best item of each source by story. The lists of one source come in the order of their ranks. */
function itemsByStory(items: readonly PageItem[]): ReadonlyMap<string, ReadonlyMap<string, PageItem>> {
  const byStory = new Map<string, Map<string, PageItem>>()
  for (const item of items) {
    const story = storyOf(item)
    const bySource = byStory.get(story) ?? new Map<string, PageItem>()
    if (!bySource.has(item.source)) bySource.set(item.source, item)
    byStory.set(story, bySource)
  }
  return byStory
}

/** Items with equal results link to the same page: scheme, `www.`, a trailing slash and the fragment do not matter. */
const storyOf = onceFor(({ key, url }: PageItem): string => {
  if (url === null || !isHttpUrl(url)) return `key ${key}`
  const { host, pathname, search } = new URL(url)
  return host.replace(/^www\./, '') + pathname.replace(/\/$/, '') + search
})

/** The part of the page's title that names the content: `Hacker News, Week`. */
export function titleOf(only: ColumnName | null, period: string): string {
  return only === null ? period : `${COLUMNS[only]}, ${period}`
}

/** How a feed orders Popular: what the titles of its points say of it, and what stands below the list. */
export interface Order {
  /** Null if it would say nothing. */
  standingOf: (item: PageItem) => string | null
  note: Html
}

/** Smallest share that is shown, in percent. */
const SHARE_MIN = 0.1

/** The share of its source's items that an item is at the top of, in percent. */
function shareOf({ percentile = 0 }: PageItem): number {
  return Math.max(SHARE_MIN, (1 - percentile) * 100)
}

/** Null below the middle. */
function shareText(item: PageItem): string | null {
  const percent = shareOf(item)
  return percent > 50 ? null : `top ${percent.toFixed(percent < 10 ? 1 : 0)} %`
}

const SHARE_NOTE = html`Popular compares sources by the share of its source that a story is at the top of, so
that a story with few points of a small source can stand above one with many points of a large source.`

const TREND_FORMAT = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })

/** The orders of Trending, of the other live periods, and of the Year, where nearly every item is among the top 0.1 %. */
export const ORDERS = {
  trend: {
    standingOf: ({ agg_score: trend }) =>
      trend === undefined ? null : `trend ${TREND_FORMAT.format(trend)}`,
    note: html`the trend is 50 for a story with more points than all but one in 50 of its source, and halves
    every six hours after its publication.`,
  },
  share: { standingOf: shareText, note: SHARE_NOTE },
  year: {
    standingOf: (item) => (shareOf(item) === SHARE_MIN ? null : shareText(item)),
    note: SHARE_NOTE,
  },
} as const satisfies Record<string, Order>

/** Renders the overview, in which each story stands once, or all items of one column. */
export function feedColumns(lists: PageLists, only: ColumnName | null, context: ListContext): Html {
  if (only !== null) return wholeColumn(only, lists[only], context)
  return overview(overviewOf(lists, context.exportedFrom === undefined ? LENGTHS : EXPORTED_LENGTHS), context)
}

/** The items that {@link feedColumns} shows, in its order. */
export function shownItems(lists: PageLists, only: ColumnName | null): readonly PageItem[] {
  if (only !== null) return lists[only]
  return overviewOf(lists).flatMap(({ stories }) => stories.map(({ item }) => item))
}

function wholeColumn(name: ColumnName, items: readonly PageItem[], context: ListContext): Html {
  const stories = items.map((item) => ({ item, others: [] }))
  const { query, about = NOTHING } = context
  const all = html`<small>${query.sectionLink('feed', { column: null }, 'All columns')}</small>`
  const content =
    items.length > 0
      ? storyList(name, stories, context)
      : html`<p class="empty">${COLUMNS[name]} is empty.</p>`
  return column(name, 'alone', html`${about} ${all}`, content)
}

/** Most stories of a column that shares its cell of the overview. */
const SHORT_LENGTH = 4

function overview(columns: readonly OverviewColumn[], context: ListContext): Html {
  const render = (each: OverviewColumn): Html => overviewColumn(each, context)
  const [popular, ...others] = columns.filter(({ total }) => total > 0)
  const long = others.filter(({ stories }) => stories.length > SHORT_LENGTH)
  const short = others.filter(({ stories }) => stories.length <= SHORT_LENGTH)
  return html`<div class="columns-frame">
    <div class="columns ${long.length + Math.sign(short.length) > 3 ? 'four' : ''}">
      ${popular ? html`${render(popular)} ${jumpLinks(others)}` : NOTHING} ${long.map(render)}
      ${short.length > 0 ? html`<div class="cell">${short.map(render)}</div>` : NOTHING}
    </div>
  </div>`
}

function overviewColumn({ name, stories, total, isReduced }: OverviewColumn, context: ListContext): Html {
  const all = linkToAll(name, total, context)
  const above = stories.length === 0 ? html`<p class="empty">All of them stand above.</p>` : NOTHING
  const foot = stories.length < total ? html`<p class="more">${all}</p>` : NOTHING
  const isLead = name === 'popular'
  const list = html`${above} ${storyList(name, stories, context)} ${foot}`
  // A page of an export holds whole lists: all but Popular are folded.
  const isFolded = !isLead && context.exportedFrom !== undefined && stories.length > 0
  const content = isFolded
    ? html`<details>
        <summary>${formatCounted(stories.length, 'stories')}</summary>
        ${list}
      </details>`
    : list
  return column(
    name,
    isLead ? 'lead' : 'beyond',
    isLead ? (context.about ?? NOTHING) : isReduced ? html`<small>besides Popular</small>` : NOTHING,
    html`${content} ${isLead ? whyThisOrder(context) : NOTHING}`,
  )
}

function linkToAll(name: ColumnName, total: number, { query, exportedFrom }: ListContext): Html {
  const text = `All ${total} of ${COLUMNS[name]}`
  if (exportedFrom !== undefined) return html`<a href="${exportedFrom}">${text} as JSON</a>`
  return query.sectionLink('feed', { column: name }, text)
}

function whyThisOrder({ order: { note }, exportedFrom }: ListContext): Html {
  const reason =
    exportedFrom !== undefined ? html`Why this order` : html`<a href="/docs/ranking">Why this order</a>`
  return html`<p class="as-of">${reason}: ${note}</p>`
}

/** Links to the other columns, for narrow screens. */
function jumpLinks(columns: readonly OverviewColumn[]): Html {
  return html`<nav class="jump" aria-label="Columns">
    <ul>
      ${columns.map(({ name }) => html`<li><a href="#column-${name}">${COLUMNS[name]}</a></li>`)}
    </ul>
  </nav>`
}

/** @param kind class of the column: `beyond` shows only what no column before it has */
function column(name: ColumnName, kind: 'lead' | 'beyond' | 'alone', about: Html, content: Html): Html {
  return html`<section class="column ${kind}" id="column-${name}" aria-labelledby="column-${name}-title">
    <h3 id="column-${name}-title">${COLUMNS[name]} ${about}</h3>
    ${content}
  </section>`
}

export function popularRows(lists: PageLists, context: ListContext): Html {
  const stories = overviewOf(lists).find(({ name }) => name === 'popular')?.stories ?? []
  return storyList('popular', stories, context)
}

function storyList(
  name: ColumnName,
  stories: readonly Story[],
  { now, order, notes = () => NO_NOTE, exportedFrom }: ListContext,
): Html {
  const isMixed = name === 'popular' || name === 'hypeReplicate'
  return html`<ol class="items">
    ${stories.map((story) => {
      const showsSource = isMixed || story.others.length > 0
      const standing = name === 'popular' ? order.standingOf(story.item) : null
      return storyRow(story, now, showsSource, notes(name, story.item), standing, exportedFrom !== undefined)
    })}
  </ol>`
}
