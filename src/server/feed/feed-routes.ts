import { z } from 'zod'
import type { Contract, Route } from '../route.ts'
import { JSON_FEED_TYPE, writeAtom, writeJsonFeed, writeRss } from './formats.ts'
import type { FeedDocument } from './formats.ts'

/** The formats of the feeds of stories. */
const FORMATS = [
  { name: 'RSS 2.0', document: 'An RSS 2.0 document', contentType: 'application/rss+xml', write: writeRss },
  { name: 'Atom', document: 'An Atom 1.0 document', contentType: 'application/atom+xml', write: writeAtom },
  {
    name: 'JSON Feed',
    document: 'A JSON Feed 1.1 document',
    contentType: JSON_FEED_TYPE,
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
      success: contentType === JSON_FEED_TYPE ? jsonFeed : z.string(),
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
