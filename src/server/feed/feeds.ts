import { z } from 'zod'
import { LIVE_SORTS } from '../../domain/feed/live-sort.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveFeed } from '../../domain/feed/live-items.ts'
import {
  paramsOfRule,
  describeRule,
  nameOfSource,
  subscriptionItems,
} from '../../domain/feed/subscription.ts'
import type { FeedRule, SubscriptionItem } from '../../domain/feed/subscription.ts'
import type { Contract, Route } from '../route.ts'
import {
  jsonFeedAbout,
  jsonFeedDocument,
  jsonFeedItem,
  permanentId,
  uriOf,
  xml,
  JSON_FEED_TYPE,
  writeAtom,
  writeJsonFeed,
  writeRss,
} from './formats.ts'
import type { FeedDocument, Xml } from './formats.ts'

const FACTS = z.object({
  sort: z.enum(LIVE_SORTS),
  snapshot: z.string(),
  generatedAt: z.string(),
})

const ITEM_FACTS = z.object({
  key: z.string(),
  source: z.string(),
  rank: z.int(),
  score: z.object({ value: z.int(), unit: z.string() }),
  aggScore: z.number(),
  comments: z.int().nullable(),
  discussionUrl: z.string().nullable(),
  titleVerified: z.boolean(),
})

export const jsonFeedSchema = jsonFeedDocument
  .extend({
    _dash: jsonFeedAbout.extend(FACTS.shape),
    items: z.array(jsonFeedItem.extend({ content_text: z.string(), _dash: ITEM_FACTS })),
  })
  .meta({ id: 'JsonFeed' })

type Subscription = FeedDocument<z.infer<typeof FACTS>, z.infer<typeof ITEM_FACTS>>

/** Settings that differ between hosts. */
export interface FeedHost {
  /** Public URL of the server, without a trailing slash. */
  baseUrl: string
  demo: boolean
}

export const SORT_TITLES: Readonly<Record<LiveSort, string>> = {
  trending: 'trending now',
  day: 'the last 24 hours',
  week: 'the last 7 days',
  month: 'the last 30 days',
}

/** Path of the page that documents the interface of the live feed. */
export const FEED_DOCS = '/docs/api/feed'

/** @param path of the document, such as `/api/rss` @param rule null for the whole feed */
export function subscriptionFeed(
  feed: LiveFeed,
  { baseUrl, demo }: FeedHost,
  path: string,
  rule: FeedRule | null = null,
): Subscription {
  const { sortMode: sort, snapshotId: snapshot, generatedAt } = feed
  const query = String(new URLSearchParams([['sort', sort], ...paramsOfRule(rule)]))
  const period = SORT_TITLES[sort] + (rule === null ? '' : `: ${describeRule(rule)}`)
  return {
    title: `${demo ? 'DEMO: ' : ''}dash: ${period}`,
    description: `Hacker News, Lobsters, LessWrong and the hype providers: ${period}, ranked across sources.`,
    homeUrl: `${baseUrl}/?${query}`,
    selfUrl: `${baseUrl}${path}?${query}`,
    docsUrl: `${baseUrl}${FEED_DOCS}`,
    generatedAt,
    elements: [xml`<dash:sort>${sort}</dash:sort>\n`, xml`<dash:snapshot>${snapshot}</dash:snapshot>\n`],
    facts: { sort, snapshot, generatedAt },
    items: subscriptionItems(feed, rule).map(entryOf),
  }
}

function entryOf(item: SubscriptionItem): Subscription['items'][number] {
  const discussionUrl = item.discussionUrl === null ? null : uriOf(item.discussionUrl)
  return {
    id: permanentId(item.key),
    title: item.title,
    link: item.link === null ? null : uriOf(item.link),
    publishedAt: item.publishedAt,
    author: item.author,
    discussionUrl,
    categories: [nameOfSource(item.source), ...item.tags],
    content: { text: item.summary },
    elements: elementsOf(item),
    facts: {
      key: item.key,
      source: item.source,
      rank: item.rank,
      score: { value: item.points, unit: item.unit },
      aggScore: item.agg_score,
      comments: item.comments,
      discussionUrl,
      titleVerified: item.event_title_verified,
    },
  }
}

/** The product's own elements of an item, in RSS and Atom. */
function elementsOf(item: SubscriptionItem): Xml[] {
  return [
    xml`<dash:key>${item.key}</dash:key>\n`,
    xml`<dash:source>${item.source}</dash:source>\n`,
    xml`<dash:rank>${item.rank}</dash:rank>\n`,
    xml`<dash:score unit="${item.unit}">${item.points}</dash:score>\n`,
    xml`<dash:aggScore>${item.agg_score}</dash:aggScore>\n`,
    xml`<dash:comments>${item.comments}</dash:comments>\n`,
    xml`<dash:author>${item.author}</dash:author>\n`,
    xml`<dash:titleVerified>${String(item.event_title_verified)}</dash:titleVerified>\n`,
  ]
}

const FORMATS = [
  { name: 'RSS 2.0', document: 'An RSS 2.0 document', contentType: 'application/rss+xml' },
  { name: 'Atom', document: 'An Atom 1.0 document', contentType: 'application/atom+xml' },
  { name: 'JSON Feed', document: 'A JSON Feed 1.1 document', contentType: JSON_FEED_TYPE },
] as const

type InEachFormat<Value> = readonly [rss: Value, atom: Value, json: Value]

/** What a feed has in every format. */
interface FeedContract<Code extends string> extends Omit<
  Contract<Code>,
  'path' | 'operationId' | 'summary' | 'contentType' | 'success' | 'successDescription'
> {
  /** Names the content, as in "the live feed". */
  content: string
  addresses: InEachFormat<readonly [path: string, operationId: string]>
  jsonFeed: z.ZodType
}

export function feedContracts<Code extends string>(feed: FeedContract<Code>): InEachFormat<Contract<Code>> {
  const { content, addresses, jsonFeed, ...common } = feed
  const contractOf = (format: 0 | 1 | 2): Contract<Code> => {
    const { name, document, contentType } = FORMATS[format]
    const [path, operationId] = addresses[format]
    return {
      ...common,
      path,
      operationId,
      summary: `Get ${content} as ${name}`,
      contentType,
      success: contentType === JSON_FEED_TYPE ? jsonFeed : z.string(),
      successDescription: document,
    }
  }
  return [contractOf(0), contractOf(1), contractOf(2)]
}

export function feedRoutes<Code extends string>(
  [rss, atom, json]: InEachFormat<Contract<Code>>,
  make: (contract: Contract<Code>, write: (feed: FeedDocument) => string) => Route,
): Route[] {
  return [make(rss, writeRss), make(atom, writeAtom), make(json, writeJsonFeed)]
}
