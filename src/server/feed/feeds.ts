import { hash } from 'node:crypto'
import { z } from 'zod'
import { LIVE_SORTS } from '../../domain/feed/live-sort.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveFeed } from '../../domain/feed/live-items.ts'
import { subscriptionItems } from '../../domain/feed/subscription.ts'
import type { SubscriptionItem } from '../../domain/feed/subscription.ts'
import { html } from '../page/html.ts'

/** Writes Atom 1.0 (RFC 4287). `updated` of an entry is its publication time: a new rank is not a new version. */
export function writeAtom(feed: SubscriptionFeed): string {
  return xml`<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:dash="${DASH_NAMESPACE}">
<id>${feed.selfUrl}</id>
<title type="text">${feed.title}</title>
<subtitle type="text">${feed.description}</subtitle>
<updated>${feed.generatedAt}</updated>
<author><name>dash</name><uri>${feed.homeUrl}</uri></author>
<generator>dash</generator>
<link rel="self" type="application/atom+xml" href="${feed.selfUrl}"/>
<link rel="alternate" type="text/html" href="${feed.homeUrl}"/>
<dash:sort>${feed.sort}</dash:sort>
<dash:snapshot>${feed.snapshotId}</dash:snapshot>
${feed.items.map(entryElement)}</feed>
`.xml
}

function entryElement(item: FeedItem): Xml {
  const replies = item.discussionUrl === item.link ? null : item.discussionUrl
  return xml`<entry>
<id>${item.id}</id>
<title type="text">${item.title}</title>
<updated>${item.publishedAt}</updated>
<published>${item.publishedAt}</published>
${xml`<author><name>${item.author}</name></author>\n`}${xml`<link rel="alternate" href="${item.link}"/>\n`}${xml`<link rel="replies" type="text/html" href="${replies}"/>\n`}${item.tags.map((tag) => xml`<category term="${tag}"/>\n`)}<content type="text">${item.summary}</content>
${dashElements(item)}</entry>
`
}

/** Writes RSS 2.0 with plain items; the product's own elements are in {@link DASH_NAMESPACE} (docs/api.md). */
export function writeRss(feed: SubscriptionFeed): string {
  return xml`<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dash="${DASH_NAMESPACE}">
<channel>
<title>${feed.title}</title>
<link>${feed.homeUrl}</link>
<description>${feed.description}</description>
<lastBuildDate>${dateOf(feed.generatedAt)}</lastBuildDate>
<generator>dash</generator>
<docs>https://www.rssboard.org/rss-specification</docs>
<atom:link href="${feed.selfUrl}" rel="self" type="application/rss+xml"/>
<dash:sort>${feed.sort}</dash:sort>
<dash:snapshot>${feed.snapshotId}</dash:snapshot>
${feed.items.map(itemElement)}</channel>
</rss>
`.xml
}

function itemElement(item: FeedItem): Xml {
  return xml`<item>
<title>${item.title}</title>
${xml`<link>${item.link}</link>\n`}<guid isPermaLink="false">${item.id}</guid>
<pubDate>${dateOf(item.publishedAt)}</pubDate>
${xml`<comments>${item.discussionUrl}</comments>\n`}${item.tags.map((tag) => xml`<category>${tag}</category>\n`)}<description>${html`${item.summary}`.html}</description>
${dashElements(item)}</item>
`
}

/** The product's own elements of an item, in RSS and Atom. */
function dashElements(item: FeedItem): Xml {
  return xml`<dash:key>${item.key}</dash:key>
<dash:source>${item.source}</dash:source>
<dash:rank>${item.rank}</dash:rank>
<dash:score unit="${item.unit}">${item.points}</dash:score>
<dash:aggScore>${item.agg_score}</dash:aggScore>
${xml`<dash:comments>${item.comments}</dash:comments>\n`}${xml`<dash:author>${item.author}</dash:author>\n`}<dash:titleVerified>${String(item.event_title_verified)}</dash:titleVerified>
`
}

/** Formats an instant as RSS requires (RFC 822). */
function dateOf(instant: string): string {
  return new Date(instant).toUTCString()
}

/** A piece of XML that needs no further escaping. */
export interface Xml {
  readonly xml: string
}

type Value = string | number | Xml | readonly Xml[]

/**
 * Template tag that escapes every interpolated text, but not pieces of XML. A piece with an interpolated null becomes
 * empty.
 */
export function xml(parts: TemplateStringsArray, ...values: (Value | null)[]): Xml {
  if (values.includes(null)) return { xml: '' }
  return { xml: parts.reduce((text, part, index) => text + render(values[index - 1] ?? '') + part) }
}

function render(value: Value): string {
  if (typeof value === 'string') return escapeXml(value)
  if (typeof value === 'number') return String(value)
  return 'xml' in value ? value.xml : value.map((piece) => piece.xml).join('')
}

/** Characters that XML 1.0 forbids (production 2, Char). */
const FORBIDDEN = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  // Prevents ]]> in a text.
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  // A parser would normalise these to other white space.
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
}

/**
 * Escapes a text for elements and attributes. Forbidden characters and lone surrogates become U+FFFD.
 */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(FORBIDDEN, '\uFFFD')
    .replaceAll(/[&<>"'\t\n\r]/g, (character) => ESCAPES[character] ?? '')
}

/** Namespace of the product's item ids and of its elements in feeds; it must never change (docs/api.md). */
const NAMESPACE_UUID = 'e71b1b8e-93ca-4fd6-9c6c-1a3a6cbbb5a2'

/** URI of the product's own elements in RSS and Atom. */
const DASH_NAMESPACE = `urn:uuid:${NAMESPACE_UUID}`

/** The permanent id of an item in every feed of every host: the UUID, version 5, of its save key. */
export function itemId(key: string): string {
  return `urn:uuid:${uuidV5(NAMESPACE_UUID, key)}`
}

/** A UUID version 5 (RFC 9562, 5.5): SHA-1 of the namespace and the name. */
export function uuidV5(namespace: string, name: string): string {
  const space = Buffer.from(namespace.replaceAll('-', ''), 'hex')
  const bytes = hash('sha1', Buffer.concat([space, Buffer.from(name)]), 'buffer').subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

const VERSION = 'https://jsonfeed.org/version/1.1'

const author = z.object({ name: z.string() })

/** JSON Feed 1.1, with the product's own members under `_dash` (docs/api.md). */
export const jsonFeedSchema = z
  .object({
    version: z.literal(VERSION),
    title: z.string(),
    home_page_url: z.string(),
    feed_url: z.string(),
    description: z.string(),
    authors: z.array(author.extend({ url: z.string() })),
    _dash: z.object({
      about: z.string().describe('page that describes these members'),
      sort: z.enum(LIVE_SORTS),
      snapshot: z.string(),
      generatedAt: z.string(),
    }),
    items: z.array(
      z.object({
        id: z.string().describe('permanent; an item has the same id in every feed'),
        url: z.string().optional(),
        title: z.string(),
        content_text: z.string(),
        date_published: z.string(),
        authors: z.array(author).optional(),
        tags: z.array(z.string()).optional(),
        _dash: z.object({
          key: z.string(),
          source: z.string(),
          rank: z.int(),
          score: z.object({ value: z.int(), unit: z.string() }),
          aggScore: z.number(),
          comments: z.int().nullable(),
          discussionUrl: z.string().nullable(),
          titleVerified: z.boolean(),
        }),
      }),
    ),
  })
  .meta({ id: 'JsonFeed' })

type JsonFeed = z.infer<typeof jsonFeedSchema>

export function writeJsonFeed(feed: SubscriptionFeed): string {
  const document: JsonFeed = {
    version: VERSION,
    title: feed.title,
    home_page_url: feed.homeUrl,
    feed_url: feed.selfUrl,
    description: feed.description,
    authors: [{ name: 'dash', url: feed.homeUrl }],
    _dash: {
      about: feed.docsUrl,
      sort: feed.sort,
      snapshot: feed.snapshotId,
      generatedAt: feed.generatedAt,
    },
    items: feed.items.map((item) => ({
      id: item.id,
      ...(item.link === null ? {} : { url: item.link }),
      title: item.title,
      content_text: item.summary,
      date_published: item.publishedAt,
      ...(item.author === null ? {} : { authors: [{ name: item.author }] }),
      ...(item.tags.length === 0 ? {} : { tags: [...item.tags] }),
      _dash: {
        key: item.key,
        source: item.source,
        rank: item.rank,
        score: { value: item.points, unit: item.unit },
        aggScore: item.agg_score,
        comments: item.comments,
        discussionUrl: item.discussionUrl,
        titleVerified: item.event_title_verified,
      },
    })),
  }
  return JSON.stringify(document)
}

/** Settings that differ between hosts. */
export interface FeedHost {
  /** Public URL of the server, without a trailing slash. */
  baseUrl: string
  demo: boolean
}

const SORT_TITLES: Readonly<Record<LiveSort, string>> = {
  trending: 'trending now',
  day: 'the last 24 hours',
  week: 'the last 7 days',
  month: 'the last 30 days',
}

/** A subscription feed, independent of its format. */
export interface SubscriptionFeed {
  sort: LiveSort
  title: string
  description: string
  homeUrl: string
  /** URL of this document. */
  selfUrl: string
  /** Page that describes the interface and its own elements. */
  docsUrl: string
  generatedAt: string
  snapshotId: string
  items: readonly FeedItem[]
}

type FeedItem = SubscriptionItem & { id: string }

/**
 * Builds a subscription feed from a live feed.

@param path path of the document, such as `/api/rss`
 * @param docsPath path of the page that documents it
 */
export function subscriptionFeed(
  feed: LiveFeed,
  { baseUrl, demo }: FeedHost,
  path: string,
  docsPath: string,
): SubscriptionFeed {
  const period = SORT_TITLES[feed.sortMode]
  return {
    sort: feed.sortMode,
    title: `${demo ? 'DEMO: ' : ''}dash: ${period}`,
    description: `Hacker News, Lobsters, LessWrong and the hype providers: ${period}, ranked across sources.`,
    homeUrl: `${baseUrl}/`,
    selfUrl: `${baseUrl}${path}?sort=${feed.sortMode}`,
    docsUrl: `${baseUrl}${docsPath}`,
    generatedAt: feed.generatedAt,
    snapshotId: feed.snapshotId,
    items: subscriptionItems(feed).map((item) => ({
      ...item,
      id: itemId(item.key),
      link: item.link === null ? null : uriOf(item.link),
      discussionUrl: item.discussionUrl === null ? null : uriOf(item.discussionUrl),
    })),
  }
}

/** Characters that a URL parser accepts after the host although RFC 3986 forbids them, except a second `#`. */
const FORBIDDEN_IN_URI = /[[\]\\^`{|}]|%(?![\dA-Fa-f]{2})/g

/**
 * Converts a stored http(s) URL to a valid URI: stored links are verbatim, but every feed reader must accept those of
 * feeds.
 */
export function uriOf(url: string): string {
  const { href } = new URL(url)
  const path = href.indexOf('/', href.indexOf('//') + 2)
  const [beforeFragment = '', ...fragment] = href
    .slice(path)
    .replaceAll(FORBIDDEN_IN_URI, percentEncode)
    .split('#')
  const anchor = fragment.length > 0 ? `#${fragment.join('%23')}` : ''
  return href.slice(0, path) + beforeFragment + anchor
}

function percentEncode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
