import { nameOfSource, unitOf } from '../../domain/feed/labels.ts'
import { isHttpUrl } from '../../domain/http-url.ts'
import type { Instant } from '../../domain/time.ts'
import { counted } from './counts.ts'
import { html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import { itemHref } from './item-address.ts'
import { ageOf } from './times.ts'

/** What the page shows of an item, of a live period and of the Year alike. */
export interface ShownItem {
  key: string
  source: string
  title: string
  url: string | null
  discussionUrl: string | null
  points: number
  comments: number | null
  publishedAt: string
  tags?: readonly string[]
}

const TAGS_SHOWN = 4

/**
 * One item of a list. Titles, tags and addresses are a stranger's: escaped, and linked only where they lead to http(s).
 * `data-key` is the save key, by which scripts know the item.
 *
 * @param showsSource for lists that hold several sources
 */
export function feedItem(item: ShownItem, now: Instant, showsSource: boolean): Html {
  const { key, source, title, url, points, comments, discussionUrl, publishedAt, tags = [] } = item
  return html`<li class="item" data-key="${key}">
    ${titleOf(item)}
    <p class="about">
      ${showsSource ? html`<span class="source">${nameOfSource(source)}</span> ` : NOTHING}${
        url !== null && isHttpUrl(url) ? html`<span class="host">${hostOf(url)}</span> ` : NOTHING
      }<span>${counted(points, unitOf(source))}</span>
      ${discussion(discussionUrl, comments)} ${ageOf(Date.parse(publishedAt), now)}
      <a href="${itemHref(key)}">rank over time</a>
      ${tags.slice(0, TAGS_SHOWN).map((tag) => html`<span class="tag" dir="auto">${tag}</span> `)}
      <button type="button" class="discuss" data-discuss="${key}">
        discuss<span class="unseen"> ${title}</span>
      </button>
    </p>
  </li>`
}

/** A title, linked to where it leads: its own address, else its discussion. */
export function titleOf({
  title,
  url,
  discussionUrl,
}: Pick<ShownItem, 'title' | 'url' | 'discussionUrl'>): Html {
  const link = [url, discussionUrl].find((each) => each !== null && isHttpUrl(each)) ?? null
  const text = html`<bdi>${title}</bdi>`
  return html`<p class="title">${link === null ? text : strangersLink(link, text)}</p>`
}

function discussion(url: string | null, comments: number | null): Html {
  const text = comments === null ? 'discussion' : counted(comments, 'comments')
  if (url !== null && isHttpUrl(url)) return strangersLink(url, html`${text}`)
  return comments === null ? NOTHING : html`<span>${text}</span>`
}

/** The address reaches the other side with nothing of ours: no referrer, no window, no endorsement. */
function strangersLink(url: string, text: Html): Html {
  return html`<a href="${url}" rel="noopener noreferrer nofollow ugc">${text}</a>`
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^www\./, '')
}
