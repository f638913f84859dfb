import type { NamedItem } from '../../domain/agent/shown-data.ts'
import { COLUMNS, COLUMN_NAMES } from '../../domain/feed/columns.ts'
import type { ColumnName } from '../../domain/feed/columns.ts'
import { nameOfSource, unitOf } from '../../domain/feed/subscription.ts'
import { isHttpUrl } from '../../domain/address.ts'
import type { Instant } from '../../domain/time.ts'
import { onceFor } from '../../domain/once.ts'
import { NOTHING, ageAt, formatCount, html, isolated } from './html.ts'
import type { Html } from './html.ts'
import { CHAT_PATH } from './header.ts'
import { itemHref, pageQuery } from './layout.ts'
import type { PageQuery } from './layout.ts'

/** The displayed fields of an item of a live period or the Year. */
export interface PageItem extends NamedItem {
  /** Rank in its list. */
  rank?: number
  /** Midpoint percentile among the items of its source; undefined for a result of the search. */
  percentile?: number
  /** The trend in a list of Trending. */
  agg_score?: number
  /** Start of its stay in the lists of a live period; null if it is not known. */
  listedSince?: string | null
  /** The title with marked words, for a result of the search. */
  markedTitle?: Html
}

/** The lists of a live period or of a Year. */
export type PageLists = Readonly<Record<ColumnName, readonly PageItem[]>>

/** An item of a list, and the best item of each other source with the same URL. */
export interface Story {
  item: PageItem
  others: readonly PageItem[]
}

/** True if no list of a feed has an item. */
export function isEmptyFeed(lists: PageLists): boolean {
  return COLUMN_NAMES.every((name) => lists[name].length === 0)
}

/** What a list adds to the row of an item: a mark below its rank, and a note in its second line. */
interface RowNote {
  mark: Html
  note: Html
}

/** The additions to the rows of every list. */
export type RowNotes = (column: ColumnName, item: PageItem) => RowNote

const NO_NOTE: RowNote = { mark: NOTHING, note: NOTHING }

/** What the rows of all lists share. */
interface RowContext {
  now: Instant
  order: Order
  notes: RowNotes
  /** URL of the publication, on a page of an export: no pages of items and lists, and no chat, are there to link to. */
  exportedFrom?: string
}

/** What all lists of a feed share. */
interface ListContext extends RowContext {
  query: PageQuery
  /** Small print beside the first heading. */
  about: Html
}

/** The part of a list that the overview shows. */
interface OverviewColumn {
  name: ColumnName
  stories: readonly Story[]
  /** Number of items of the whole list. */
  total: number
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
    for (const item of lists[name]) {
      if (stories.length === (name === 'popular' ? lengths.popular : lengths.others)) break
      const story = storyOf(item)
      if (shown.has(story)) continue
      shown.add(story)
      const others = [...(bySource.get(story)?.values() ?? [])].filter(({ source }) => source !== item.source)
      stories.push({ item, others })
    }
    return { name, stories, total: lists[name].length }
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

/**
 * Renders a story as two lines. Titles and URLs are untrusted: they are escaped, and only http(s) URLs become links.
 * `data-key` is the save key and `data-others` has those of the same story on other sources; scripts use them.
 *
 * @param showsSource whether the source is shown, for lists of several sources
 * @param standing why the item stands where it stands in a list of several sources; null if it is not shown
 * @param isExported true for a row without links to a server
 */
export function storyRow(
  { item, others }: Story,
  now: Instant,
  showsSource: boolean,
  { mark, note } = NO_NOTE,
  standing: string | null = null,
  isExported = false,
): Html {
  const { key, rank, title, url, publishedAt } = item
  const otherKeys = others.map((other) => other.key).join(' ')
  const also = otherKeys === '' ? NOTHING : html`data-others="${otherKeys}"`
  const isNoted = others.length > 0 || note !== NOTHING
  return html`<li class="item" data-key="${key}" ${also}>
    ${isExported ? html`<span class="rank">${rank ?? '#'}</span>` : rankLink(item)} ${mark}
    ${linkedTitle(item)}
    <p class="about${isNoted ? ' noted' : ''}">
      ${showsSource ? sourceName(item) : NOTHING}
      ${url !== null && isHttpUrl(url) ? html`<span class="host">${hostOf(url)}</span>` : NOTHING}
      ${pointsOf(item, standing)} ${discussion(item)}
      ${publishedAt === null ? NOTHING : html`<span class="age">${ageAt(Date.parse(publishedAt), now)}</span>`}
      ${others.map(alsoOn)} ${note} ${isExported ? NOTHING : historyLink(key)}
    </p>
    ${isExported ? NOTHING : rowMenu(key, title)}
  </li>`
}

function rankLink({ key, rank }: PageItem): Html {
  return html`<a class="rank" href="${itemHref(key)}"
    >${rank ?? '#'}<span class="unseen">: rank over time</span></a
  >`
}

/** Repeats the link of the rank as a word. The keyboard and screen readers have that of the rank. */
function historyLink(key: string): Html {
  return html`<a class="history" href="${itemHref(key)}" tabindex="-1" aria-hidden="true">history</a>`
}

function rowMenu(key: string, title: string): Html {
  return html`<details class="menu row-menu needs-script" name="menu">
    <summary><span class="unseen">Menu of ${isolated(title)}</span></summary>
    <div>${askLink(key, html`Ask`)} <button type="button" data-hide>Hide</button></div>
  </details>`
}

/** A link to the chat about an item, which the script opens on the same page where it can. @param key save key */
export function askLink(key: string, text: Html): Html {
  return html`<a
    class="discuss"
    href="${CHAT_PATH}?${String(new URLSearchParams({ key }))}"
    data-discuss="${key}"
    >${text}</a
  >`
}

type TitledItem = Pick<PageItem, 'title' | 'markedTitle' | 'url' | 'discussionUrl'>

/** A paragraph with the title of an item, see {@link titleLink}. */
export function linkedTitle(item: TitledItem): Html {
  return html`<p class="title">${titleLink(item)}</p>`
}

/** A title that links to its URL, else to its discussion. */
export function titleLink({ title, markedTitle, url, discussionUrl }: TitledItem): Html {
  const link = [url, discussionUrl].find((each) => each !== null && isHttpUrl(each)) ?? null
  const text = isolated(markedTitle ?? title)
  return link === null ? text : untrustedLink(link, text)
}

/** Names of sources that are usually abbreviated. */
const SHORT_NAMES: Readonly<Record<string, string>> = { hn: 'HN' }

function sourceName({ source }: PageItem): Html {
  return html`<span class="source">${SHORT_NAMES[source] ?? nameOfSource(source)}</span> `
}

/** The stylesheet shows symbols for the units of points and comments. */
function pointsOf({ source, points }: PageItem, standing: string | null = null): Html {
  if (points === null) return NOTHING
  const title = standing === null ? NOTHING : html`title="${standing}"`
  return html`<span class="points" ${title}>${counted(points, unitOf(source))}</span>`
}

function discussion({ discussionUrl: url, comments }: PageItem): Html {
  const text = comments === null ? html`discuss` : counted(comments, 'comments')
  const kind = comments === null ? 'comments uncounted' : 'comments'
  if (url !== null && isHttpUrl(url)) return untrustedLink(url, text, html`class="${kind}"`)
  return comments === null ? NOTHING : html`<span class="comments">${text}</span>`
}

/** The same story on another source: its points, which link to the discussion there. */
function alsoOn(other: PageItem): Html {
  const { discussionUrl: url } = other
  const text = html`<span class="unseen">also on </span>${sourceName(other)} ${pointsOf(other)}`
  return url !== null && isHttpUrl(url)
    ? untrustedLink(url, text, html`class="other"`)
    : html`<span class="other">${text}</span>`
}

/** A number with its unit for screen readers only. */
function counted(count: number, plural: string): Html {
  const unit = count === 1 ? plural.replace(/s$/, '') : plural
  return html`${formatCount(count)}<span class="unseen"> ${unit}</span>`
}

/** A link that passes no referrer, window handle or endorsement. */
export function untrustedLink(url: string, text: Html, attributes = NOTHING): Html {
  return html`<a href="${url}" rel="noopener noreferrer nofollow ugc" ${attributes}>${text}</a>`
}

export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^www\./, '')
}

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

/** The share of its source's items that an item is at the top of, in percent; null below the middle. */
function shareOf({ percentile = 0 }: PageItem): number | null {
  const percent = Math.max(SHARE_MIN, (1 - percentile) * 100)
  return percent <= 50 ? percent : null
}

/** Smallest share that is shown, in percent. */
const SHARE_MIN = 0.1

function shareText(percent: number | null): string | null {
  return percent === null ? null : `top ${percent.toFixed(percent < 10 ? 1 : 0)} %`
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
  share: { standingOf: (item) => shareText(shareOf(item)), note: SHARE_NOTE },
  year: {
    standingOf(item) {
      const share = shareOf(item)
      return share === SHARE_MIN ? null : shareText(share)
    },
    note: SHARE_NOTE,
  },
} as const satisfies Record<string, Order>

const MIXED_COLUMNS: ReadonlySet<ColumnName> = new Set(['popular', 'hypeReplicate'])

/**
 * Renders the overview, in which each story stands once, or all items of one column.
 */
export function feedColumns(
  lists: PageLists,
  only: ColumnName | null,
  now: Instant,
  order: Order,
  query: PageQuery,
  notes: RowNotes = () => NO_NOTE,
  about = NOTHING,
): Html {
  const context = { now, order, query, notes, about }
  return only === null ? overview(overviewOf(lists), context) : wholeColumn(only, lists[only], context)
}

/** The items that {@link feedColumns} shows, in its order. */
export function shownItems(lists: PageLists, only: ColumnName | null): readonly PageItem[] {
  if (only !== null) return lists[only]
  return overviewOf(lists).flatMap(({ stories }) => stories.map(({ item }) => item))
}

/**
 * Renders the lists of a publication for a page of an export, each story once.
 *
 * @param now time from which ages count: the page never changes
 * @param exportedFrom URL of the publication
 */
export function exportedColumns(
  lists: PageLists,
  now: Instant,
  order: Order,
  notes: RowNotes,
  exportedFrom: string,
): Html {
  const query = pageQuery(new URLSearchParams())
  const context = { now, order, notes, query, about: NOTHING, exportedFrom }
  return overview(overviewOf(lists, EXPORTED_LENGTHS), context)
}

function wholeColumn(name: ColumnName, items: readonly PageItem[], context: ListContext): Html {
  const stories = items.map((item) => ({ item, others: [] }))
  const all = html`<small>${context.query.sectionLink('feed', { column: null }, 'All columns')}</small>`
  const content =
    items.length > 0
      ? storyList(name, stories, context)
      : html`<p class="empty">${COLUMNS[name]} is empty.</p>`
  return column(name, 'alone', html`${context.about} ${all}`, content)
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

function overviewColumn({ name, stories, total }: OverviewColumn, context: ListContext): Html {
  const all = linkToAll(name, total, context)
  const above = stories.length === 0 ? html`<p class="empty">All of them stand above.</p>` : NOTHING
  const foot = stories.length < total ? html`<p class="more">${all}</p>` : NOTHING
  const isLead = name === 'popular'
  return column(
    name,
    isLead ? 'lead' : 'beyond',
    isLead ? context.about : html`<small>besides Popular</small>`,
    html`${above} ${storyList(name, stories, context)} ${foot} ${isLead ? whyThisOrder(context) : NOTHING}`,
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

/** Renders the rows of Popular as the overview shows them. */
export function popularRows(lists: PageLists, context: RowContext): Html {
  const stories = overviewOf(lists).find(({ name }) => name === 'popular')?.stories ?? []
  return storyList('popular', stories, context)
}

function storyList(
  name: ColumnName,
  stories: readonly Story[],
  { now, order, notes, exportedFrom }: RowContext,
): Html {
  return html`<ol class="items">
    ${stories.map((story) => {
      const showsSource = MIXED_COLUMNS.has(name) || story.others.length > 0
      const standing = name === 'popular' ? order.standingOf(story.item) : null
      return storyRow(story, now, showsSource, notes(name, story.item), standing, exportedFrom !== undefined)
    })}
  </ol>`
}
