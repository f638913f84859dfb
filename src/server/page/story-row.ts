import type { NamedItem } from '../../domain/agent/shown-data.ts'
import { nameOfSource, unitOf } from '../../domain/feed/subscription.ts'
import { isHttpUrl } from '../../domain/text.ts'
import type { Instant } from '../../domain/time.ts'
import { NOTHING, ageAt, formatCount, formatDay, html, isolated } from './html.ts'
import type { Html } from './html.ts'
import { CHAT_PATH, itemHref } from './layout.ts'

/** The displayed fields of an item of a live period or the Year. */
export interface PageItem extends NamedItem {
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

/** An item of a list, and the best item of each other source with the same URL. */
export interface Story {
  item: PageItem
  others: readonly PageItem[]
}

/** What a list adds to the row of an item: a mark below its rank, and a note in its second line. */
export interface RowNote {
  mark: Html
  note: Html
}

export const NO_NOTE: RowNote = { mark: NOTHING, note: NOTHING }

/**
 * Renders a story as two lines. Titles and URLs are untrusted: they are escaped, and only http(s) URLs become links.
 * `data-key` is the save key and `data-others` has those of the same story on other sources; scripts use them.
 *
 * @param showsSource whether the source is shown, for lists of several sources
 * @param standing why the item stands where it stands in a list of several sources; null if it is not shown
 * @param isExported true for a row of a page that is never rendered again: without links to a server, with a day for an age
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
      ${publishedAt === null ? NOTHING : html`<span class="age">${isExported ? formatDay(publishedAt.slice(0, 10)) : ageAt(Date.parse(publishedAt), now)}</span>`}
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

export function linkedTitle(item: TitledItem): Html {
  return html`<p class="title">${titleLink(item)}</p>`
}

/** A title that links to its URL, else to its discussion. */
export function titleLink({ title, markedTitle, url, discussionUrl }: TitledItem): Html {
  const link = [url, discussionUrl].find((each) => each !== null && isHttpUrl(each)) ?? null
  const text = isolated(markedTitle ?? title)
  return link === null ? text : untrustedLink(link, text)
}

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
