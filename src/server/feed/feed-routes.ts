import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { publishedBody } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import { publishedRoute } from '../route.ts'
import type { Contract, Route } from '../route.ts'
import { writeAtom, writeJsonFeed, writeRss } from './formats.ts'
import type { FeedDocument } from './formats.ts'

/** The formats of every feed. */
const FORMATS = [
  { name: 'RSS 2.0', document: 'An RSS 2.0 document', contentType: 'application/rss+xml', write: writeRss },
  { name: 'Atom', document: 'An Atom 1.0 document', contentType: 'application/atom+xml', write: writeAtom },
  {
    name: 'JSON Feed',
    document: 'A JSON Feed 1.1 document',
    contentType: 'application/feed+json',
    write: writeJsonFeed,
  },
] as const

/** The contracts of a feed: RSS, Atom, JSON Feed. */
export type FeedContracts<Code extends string> = readonly [Contract<Code>, Contract<Code>, Contract<Code>]

/** Path and operation id of a feed in one format. */
type Address = readonly [path: string, operationId: string]

/** What a feed has in every format. */
interface FeedContract<Code extends string> extends Omit<
  Contract<Code>,
  'path' | 'operationId' | 'summary' | 'contentType' | 'success' | 'successDescription'
> {
  /** Names the content, as in "the live feed". */
  content: string
  addresses: readonly [rss: Address, atom: Address, json: Address]
  /** Schema of the JSON Feed. */
  jsonFeed: z.ZodType
}

export function feedContracts<Code extends string>(feed: FeedContract<Code>): FeedContracts<Code> {
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
      success: contentType === 'application/feed+json' ? jsonFeed : z.string(),
      successDescription: document,
    }
  }
  return [contractOf(0), contractOf(1), contractOf(2)]
}

/** Makes the routes of a feed, one for each format. */
export function feedRoutes<Code extends string>(
  [rss, atom, json]: FeedContracts<Code>,
  make: (contract: Contract<Code>, write: (feed: FeedDocument) => string) => Route,
): Route[] {
  return [make(rss, writeRss), make(atom, writeAtom), make(json, writeJsonFeed)]
}

/** A state of a feed of changes. */
interface Changes {
  /** Identifies the state: its documents are written once. */
  name: string
  /** Query of the rule that selects a part of the feed; empty for the whole. */
  rule?: string
  cacheControl: string
  headers?: Readonly<Record<string, string>>
  documentFor: (path: string) => FeedDocument
}

/** Size of the cache of documents of a feed of changes, in bytes. */
const CHANGES_CACHE_MAX_BYTES = 8 * 1024 * 1024

/** Makes the routes of a feed of changes, which keep the newest document of each format and rule. */
export function changesFeedRoutes<Code extends string>(
  contracts: FeedContracts<Code>,
  read: (params: URLSearchParams) => Promise<Changes>,
): Route[] {
  const cache = new LRUCache<string, { name: string; body: PublishedBody }>({
    maxSize: CHANGES_CACHE_MAX_BYTES,
    sizeCalculation: ({ body: { body } }) => body.byteLength,
  })
  return feedRoutes(contracts, (contract, write) => {
    return publishedRoute(contract, async (params) => {
      const { name, rule = '', cacheControl, headers = {}, documentFor } = await read(params)
      const key = `${contract.path} ${rule}`
      const cached = cache.get(key)
      if (cached?.name === name) return cached.body
      const contentType = `${contract.contentType}; charset=utf-8`
      const body = publishedBody(write(documentFor(contract.path)), { contentType, cacheControl, headers })
      cache.set(key, { name, body })
      return body
    })
  })
}
