import { nameOfSource, unitOf } from '../../domain/feed/subscription.ts'
import { isHttpUrl } from '../../domain/address.ts'
import type { Instant } from '../../domain/time.ts'
import { NOTHING, ageOf, formatCounted, html } from './html.ts'
import type { Html } from './html.ts'
import { itemHref } from './layout.ts'
import type { PageQuery } from './layout.ts'

/** The displayed fields of an item of a live period or the Year. */
export interface PageItem {
  key: string
  source: string
  title: string
  url: string | null
  discussionUrl: string | null
  points: number | null
  comments: number | null
  publishedAt: string | null
  tags?: readonly string[]
}

const TAGS_SHOWN = 4

/**
 * Renders an item of a list. Titles, tags and URLs are untrusted: they are escaped, and only http(s) URLs become links.
 * `data-key` is the save key, which scripts use.
 *
 * @param showsSource whether the source is shown, for lists of several sources
 */
export function feedItem(item: PageItem, now: Instant, showsSource: boolean): Html {
  const { key, source, title, url, points, comments, discussionUrl, publishedAt, tags = [] } = item
  return html`<li class="item" data-key="${key}">
    ${linkedTitle(item)}
    <p class="about">
      ${showsSource ? html`<span class="source">${nameOfSource(source)}</span> ` : NOTHING}${
        url !== null && isHttpUrl(url) ? html`<span class="host">${hostOf(url)}</span> ` : NOTHING
      }${points === null ? NOTHING : html`<span>${formatCounted(points, unitOf(source))}</span>`}
      ${discussion(discussionUrl, comments)}
      ${publishedAt === null ? NOTHING : ageOf(Date.parse(publishedAt), now)}
      <a href="${itemHref(key)}">rank over time</a>
      ${tags.slice(0, TAGS_SHOWN).map((tag) => html`<span class="tag" dir="auto">${tag}</span> `)}
      <button type="button" class="discuss" data-discuss="${key}">
        discuss<span class="unseen"> ${title}</span>
      </button>
    </p>
  </li>`
}

type TitledItem = Pick<PageItem, 'title' | 'url' | 'discussionUrl'>

/** A paragraph with the title of an item, see {@link titleLink}. */
export function linkedTitle(item: TitledItem): Html {
  return html`<p class="title">${titleLink(item)}</p>`
}

/** A title that links to its URL, else to its discussion. */
export function titleLink({ title, url, discussionUrl }: TitledItem): Html {
  const link = [url, discussionUrl].find((each) => each !== null && isHttpUrl(each)) ?? null
  const text = html`<bdi>${title}</bdi>`
  return link === null ? text : untrustedLink(link, text)
}

function discussion(url: string | null, comments: number | null): Html {
  const text = comments === null ? 'discussion' : formatCounted(comments, 'comments')
  if (url !== null && isHttpUrl(url)) return untrustedLink(url, html`${text}`)
  return comments === null ? NOTHING : html`<span>${text}</span>`
}

/** A link that passes no referrer, window handle or endorsement. */
function untrustedLink(url: string, text: Html): Html {
  return html`<a href="${url}" rel="noopener noreferrer nofollow ugc">${text}</a>`
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^www\./, '')
}

/** Items of a column when all columns are shown. */
const COLUMN_LENGTH = 15

/** Titles of the lists of a feed, in display order, by their names in the interfaces. */
export const COLUMNS = {
  popular: 'Popular',
  hackerNews: 'Hacker News',
  lobsters: 'Lobsters',
  lessWrong: 'LessWrong',
  hypeReplicate: 'Hype',
  midjourney: 'Images',
} as const
export type ColumnName = keyof typeof COLUMNS
export const COLUMN_NAMES = Object.keys(COLUMNS) as ColumnName[]

/** The part of the page's title that names the content: `Hacker News, Week`. */
export function titleOf(only: ColumnName | null, period: string): string {
  return only === null ? period : `${COLUMNS[only]}, ${period}`
}

/** The lists of a live period or of a Year. */
export type PageLists = Readonly<Record<ColumnName, readonly PageItem[]>>

const MIXED_COLUMNS: ReadonlySet<ColumnName> = new Set(['popular', 'hypeReplicate'])

/** Renders the first items of every column with links to the rest, or all items of one column. */
export function feedColumns(lists: PageLists, only: ColumnName | null, now: Instant, query: PageQuery): Html {
  if (only !== null) return column(only, lists[only], true, now, query)
  return html`<nav class="jump" aria-label="Columns">
      <ul>
        ${COLUMN_NAMES.map((name) => html`<li><a href="#column-${name}">${COLUMNS[name]}</a></li>`)}
      </ul>
    </nav>
    <div class="columns">
      ${COLUMN_NAMES.map((name) => column(name, lists[name], false, now, query))} ${GITHUB}
    </div>`
}

/** @param isAlone whether this is the only column, with all of its items */
function column(
  name: ColumnName,
  items: readonly PageItem[],
  isAlone: boolean,
  now: Instant,
  query: PageQuery,
): Html {
  const title = COLUMNS[name]
  const isTruncated = !isAlone && items.length > COLUMN_LENGTH
  return html`<section
    class="column${isAlone ? ' alone' : ''}"
    id="column-${name}"
    aria-labelledby="column-${name}-title"
  >
    <h3 id="column-${name}-title">${title}</h3>
    ${isAlone ? html`<p>${query.sectionLink('feed', { column: null }, 'All columns')}</p>` : NOTHING}
    ${list(name, isTruncated ? items.slice(0, COLUMN_LENGTH) : items, now)}
    ${
      isTruncated
        ? html`<p class="more">
            ${query.sectionLink('feed', { column: name }, `All ${items.length} of ${title}`)}
          </p>`
        : NOTHING
    }
  </section>`
}

function list(name: ColumnName, items: readonly PageItem[], now: Instant): Html {
  if (items.length === 0) return html`<p class="empty">Nothing in this period.</p>`
  const showsSource = MIXED_COLUMNS.has(name)
  return html`<ol class="items">
    ${items.map((item) => feedItem(item, now, showsSource))}
  </ol>`
}

/** The GitHub column, which is still collecting in every period (docs/ranking.md). */
const GITHUB = html`<section class="column" id="column-github" aria-labelledby="column-github-title">
  <h3 id="column-github-title">GitHub, by stars gained</h3>
  <p class="empty">Collecting data: this list appears once a full year of stars gained is stored.</p>
</section>`
