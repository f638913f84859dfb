import { hash } from 'node:crypto'
import { z } from 'zod'
import { html } from '../page/html.ts'
import type { Html } from '../page/html.ts'

/**
 * A feed, independent of its format. `Facts` and `EntryFacts` are the product's own members of the JSON document and of
 * its items.
 */
export interface FeedDocument<Facts extends object = object, EntryFacts extends object = object> {
  title: string
  description: string
  homeUrl: string
  selfUrl: string
  /** Permanent id of the feed. Default: its URL. */
  id?: string
  /** Page that describes the interface and its own elements; null in an export. */
  docsUrl: string | null
  generatedAt: string
  /** The product's own elements in RSS and Atom. */
  elements: readonly Xml[]
  facts: Facts
  items: readonly FeedEntry<EntryFacts>[]
}

interface FeedEntry<Facts extends object> {
  /** A permanent URN; the same in every format. */
  id: string
  title: string
  /** A URI; null without any. */
  link: string | null
  publishedAt: string
  author: string | null
  discussionUrl: string | null
  /** Shown to readers: the source first, then tags. */
  categories: readonly string[]
  content: { text: string } | { html: Html }
  elements: readonly Xml[]
  facts: Facts
}

/** Writes Atom 1.0 (RFC 4287). `updated` of an entry is its publication time: a new rank is not a new version. */
export function writeAtom(feed: FeedDocument): string {
  return xml`<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:dash="${DASH_NAMESPACE}">
<id>${feed.id ?? feed.selfUrl}</id>
<title type="text">${feed.title}</title>
<subtitle type="text">${feed.description}</subtitle>
<updated>${feed.generatedAt}</updated>
<author><name>dash</name><uri>${feed.homeUrl}</uri></author>
<generator>dash</generator>
<link rel="alternate" type="text/html" href="${feed.homeUrl}"/>
<link rel="self" type="application/atom+xml" href="${feed.selfUrl}"/>
${feed.elements}${feed.items.map(entryElement)}</feed>
`.xml
}

function entryElement(item: FeedEntry<object>): Xml {
  const replies = item.discussionUrl === item.link ? null : item.discussionUrl
  return xml`<entry>
<id>${item.id}</id>
<title type="text">${item.title}</title>
<updated>${item.publishedAt}</updated>
<published>${item.publishedAt}</published>
${xml`<author><name>${item.author}</name></author>\n`}${xml`<link rel="alternate" href="${item.link}"/>\n`}${xml`<link rel="replies" type="text/html" href="${replies}"/>\n`}${item.categories.map((category) => xml`<category term="${category}"/>\n`)}${atomContent(item.content)}
${item.elements}</entry>
`
}

function atomContent(content: FeedEntry<object>['content']): Xml {
  return 'text' in content
    ? xml`<content type="text">${content.text}</content>`
    : xml`<content type="html">${content.html.html}</content>`
}

/** Writes RSS 2.0 with plain items; the product's own elements are in {@link DASH_NAMESPACE} (docs/api.md). */
export function writeRss(feed: FeedDocument): string {
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
${feed.elements}${feed.items.map(itemElement)}</channel>
</rss>
`.xml
}

function itemElement(item: FeedEntry<object>): Xml {
  const content = 'text' in item.content ? html`${item.content.text}` : item.content.html
  return xml`<item>
<title>${item.title}</title>
${xml`<link>${item.link}</link>\n`}<guid isPermaLink="false">${item.id}</guid>
<pubDate>${dateOf(item.publishedAt)}</pubDate>
${xml`<comments>${item.discussionUrl}</comments>\n`}${item.categories.map((category) => xml`<category>${category}</category>\n`)}<description>${content.html}</description>
${item.elements}</item>
`
}

/** Formats an instant as RSS requires (RFC 822). */
function dateOf(instant: string): string {
  return new Date(instant).toUTCString()
}

export const JSON_FEED_TYPE = 'application/feed+json'

const JSON_FEED_VERSION = 'https://jsonfeed.org/version/1.1'

const author = z.object({ name: z.string() })

/** The top level of a JSON Feed 1.1 without its items; the product's own members are under `_dash` (docs/api.md). */
export const jsonFeedDocument = z.object({
  version: z.literal(JSON_FEED_VERSION),
  title: z.string(),
  home_page_url: z.string(),
  feed_url: z.string(),
  description: z.string(),
  authors: z.array(author.extend({ url: z.string() })),
})

/** An item of a JSON Feed without its content. */
export const jsonFeedItem = z.object({
  id: z.string().describe('permanent; an item has the same id in every feed'),
  url: z.string().optional(),
  title: z.string(),
  date_published: z.string(),
  authors: z.array(author).optional(),
  tags: z.array(z.string()).optional(),
})

/** Members of `_dash` at the top level of every JSON Feed. */
export const jsonFeedAbout = z.object({ about: z.string().describe('page that describes these members') })

export function writeJsonFeed(feed: FeedDocument): string {
  return JSON.stringify({
    version: JSON_FEED_VERSION,
    title: feed.title,
    home_page_url: feed.homeUrl,
    feed_url: feed.selfUrl,
    description: feed.description,
    authors: [{ name: 'dash', url: feed.homeUrl }],
    _dash: { ...(feed.docsUrl === null ? {} : { about: feed.docsUrl }), ...feed.facts },
    items: feed.items.map((item) => ({
      id: item.id,
      ...(item.link === null ? {} : { url: item.link }),
      title: item.title,
      ...('text' in item.content
        ? { content_text: item.content.text }
        : { content_html: item.content.html.html }),
      date_published: item.publishedAt,
      ...(item.author === null ? {} : { authors: [{ name: item.author }] }),
      ...(item.categories.length === 0 ? {} : { tags: [...item.categories] }),
      _dash: item.facts,
    })),
  })
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

/** A permanent id in every feed of every host: the UUID, version 5, of a name, as the save key of an item. */
export function permanentId(name: string): string {
  return `urn:uuid:${uuidV5(NAMESPACE_UUID, name)}`
}

/** A UUID version 5 (RFC 9562, 5.5): SHA-1 of the namespace and the name. */
export function uuidV5(namespace: string, name: string): string {
  const space = Buffer.from(namespace.replaceAll('-', ''), 'hex')
  const bytes = hash('sha1', Buffer.concat([space, Buffer.from(name)]), 'buffer').subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
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
