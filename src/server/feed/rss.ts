import { html } from '../page/html.ts'
import { DASH_NAMESPACE } from './item-id.ts'
import type { SubscriptionFeed } from './subscription-feed.ts'
import { NOTHING, xml } from './xml.ts'
import type { Xml } from './xml.ts'

type Item = SubscriptionFeed['items'][number]

/** RSS 2.0 with plain items; the product's own elements are in {@link DASH_NAMESPACE} (docs/feed-api.md). */
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

function itemElement(item: Item): Xml {
  return xml`<item>
<title>${item.title}</title>
${item.link === null ? NOTHING : xml`<link>${item.link}</link>\n`}<guid isPermaLink="false">${item.id}</guid>
<pubDate>${dateOf(item.publishedAt)}</pubDate>
${item.discussionUrl === null ? NOTHING : xml`<comments>${item.discussionUrl}</comments>\n`}${item.tags.map((tag) => xml`<category>${tag}</category>\n`)}<description>${html`${item.summary}`.html}</description>
${dashElements(item)}</item>
`
}

/** What only this product knows of an item, for RSS and Atom alike. */
export function dashElements(item: Item): Xml {
  return xml`<dash:key>${item.key}</dash:key>
<dash:source>${item.source}</dash:source>
<dash:rank>${item.rank}</dash:rank>
<dash:score unit="${item.unit}">${item.points}</dash:score>
<dash:aggScore>${item.aggScore}</dash:aggScore>
${item.comments === null ? NOTHING : xml`<dash:comments>${item.comments}</dash:comments>\n`}${item.author === null ? NOTHING : xml`<dash:author>${item.author}</dash:author>\n`}<dash:titleVerified>${String(item.titleVerified)}</dash:titleVerified>
`
}

/** RFC 822, as RSS wants it. */
function dateOf(instant: string): string {
  return new Date(instant).toUTCString()
}
