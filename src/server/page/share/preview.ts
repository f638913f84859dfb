import { isHttpUrl } from '../../../domain/address.ts'
import type { ItemTrend } from '../../../domain/feed/search.ts'
import { nameOfSource, unitOf } from '../../../domain/feed/subscription.ts'
import { NOTHING, formatCount, formatCounted, html } from '../html.ts'
import type { Html } from '../html.ts'
import { CARD_SIZE } from './card-svg.ts'

/** What previews of a link show of a page: those of search engines, chats and social networks. */
export interface Preview {
  /** One or two sentences of plain text. */
  description: string
  /** Path and query of the page. A view of the Year names its moment. */
  path: string
  /** Path and query of its card; null for none. */
  card: string | null
}

/** Description of a page that has no own one. */
const ABOUT =
  'Trends of Hacker News, Lobsters and LessWrong, the Top Year as it was on any day with its proof, and the free language model to use today.'

/** The elements of the head that describe a page to previews (Open Graph). URLs are absolute, as previews need them. */
export function previewTags(baseUrl: string, title: string, preview: Preview | null): Html {
  const { description, path, card } = preview ?? { description: ABOUT, path: null, card: null }
  const tag = (name: string, value: string): Html => html`<meta property="og:${name}" content="${value}" />`
  const image =
    card === null
      ? NOTHING
      : html`${tag('image', baseUrl + card)} ${tag('image:width', String(CARD_SIZE.width))}
          ${tag('image:height', String(CARD_SIZE.height))} ${tag('image:alt', title)}
          <meta name="twitter:card" content="summary_large_image" />`
  return html`<meta name="description" content="${description}" /> ${tag('type', 'website')}
    ${tag('site_name', 'dash')} ${tag('title', title)} ${tag('description', description)}
    ${path === null ? NOTHING : tag('url', baseUrl + path)} ${image}`
}

/** Paths of the cards. */
export const CARD_PATHS = {
  feed: '/cards/feed.png',
  year: '/cards/year.png',
  item: '/cards/item.png',
} as const

/** A path with a query. */
export function withQuery(path: string, params: Readonly<Record<string, string>>): string {
  return `${path}?${String(new URLSearchParams(params))}`
}

/** Items named in a description. */
const DESCRIBED = 3

/** Names the first items of a list. */
export function firstTitles(items: readonly { title: string }[]): string {
  return items
    .slice(0, DESCRIBED)
    .map(({ title }, index) => `${index + 1}. ${title}`)
    .join(' · ')
}

/** Points and comments, in the units of a source. */
export function numbersOf(
  { points, comments }: { points: number | null; comments: number | null },
  source: string,
): string {
  const numbers = [
    ...(points === null ? [] : [`${formatCount(points)} ${unitOf(source)}`]),
    ...(comments === null ? [] : [formatCounted(comments, 'comments')]),
  ]
  return numbers.join(' · ')
}

type ObservedDay = ItemTrend['days'][number]

/** The day with the best rank, the first of equals; undefined if no day has a rank. */
export function bestDayOf(days: readonly ObservedDay[]): (ObservedDay & { rank: number }) | undefined {
  const ranked = days.filter((day): day is ObservedDay & { rank: number } => day.rank !== null)
  return ranked.toSorted((a, b) => a.rank - b.rank)[0]
}

/** The facts of an item: where it links to, its latest numbers, its best rank of a day. */
export function itemFacts({ url, days }: Pick<ItemTrend, 'url' | 'days'>, source: string): string[] {
  const [last, best] = [days.at(-1), bestDayOf(days)]
  return [
    ...(url !== null && isHttpUrl(url) ? [new URL(url).hostname.replace(/^www\./, '')] : []),
    ...(last ? [numbersOf(last, source)] : []),
    ...(best ? [`Highest #${best.rank} of ${nameOfSource(source)} on ${best.day}`] : []),
  ]
}
