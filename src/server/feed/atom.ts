import { DASH_NAMESPACE } from './item-id.ts'
import { dashElements } from './rss.ts'
import type { SubscriptionFeed } from './subscription-feed.ts'
import { NOTHING, xml } from './xml.ts'
import type { Xml } from './xml.ts'

type Item = SubscriptionFeed['items'][number]

/** Atom 1.0 (RFC 4287). An entry is updated when it was published: a new rank is no new version of it. */
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

function entryElement(item: Item): Xml {
  const replies = item.discussionUrl === item.link ? null : item.discussionUrl
  return xml`<entry>
<id>${item.id}</id>
<title type="text">${item.title}</title>
<updated>${item.publishedAt}</updated>
<published>${item.publishedAt}</published>
${item.author === null ? NOTHING : xml`<author><name>${item.author}</name></author>\n`}${item.link === null ? NOTHING : xml`<link rel="alternate" href="${item.link}"/>\n`}${replies === null ? NOTHING : xml`<link rel="replies" type="text/html" href="${replies}"/>\n`}${item.tags.map((tag) => xml`<category term="${tag}"/>\n`)}<content type="text">${item.summary}</content>
${dashElements(item)}</entry>
`
}
