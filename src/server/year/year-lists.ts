import { setImmediate as nextTurn } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import pLimit from 'p-limit'
import { COLUMN_NAMES } from '../../domain/feed/columns.ts'
import type { ColumnName } from '../../domain/feed/columns.ts'
import type { Clock } from '../../domain/ports.ts'
import type { ChangeToken, Objects } from '../../domain/year/ports.ts'
import { positionsOf, timelineStops } from '../../domain/year/history/calendar.ts'
import type { YearPosition, TimelineStop } from '../../domain/year/history/calendar.ts'
import { TOP_LENGTH } from '../../domain/year/history/changes.ts'
import type { YearTops } from '../../domain/year/history/changes.ts'
import type { Ranks } from '../../domain/year/history/rank-history.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import type { YearFeed, YearItem } from '../../domain/year/schema.ts'
import type { ProvedLedger } from '../../domain/year/chain.ts'
import { onceFor } from '../../domain/once.ts'
import type { Compute } from '../computed-requests.ts'
import type { FeedHost } from '../feed/feeds.ts'
import { envelopeOf } from './proved-publications.ts'
import type { ProvedPublications, ReadPublication } from './proved-publications.ts'

/** Most publications that a feed, a chart or a period of the timeline covers. */
export const PUBLICATIONS_MAX = 90

/** Most cached lists: two periods of the timeline. */
const LISTS_MAX = 2 * PUBLICATIONS_MAX + 30

/** An item of `popular`. */
export type ListedItem = Pick<
  YearItem,
  'key' | 'rank' | 'source' | 'title' | 'url' | 'discussionUrl' | 'points' | 'comments' | 'publishedAt'
>

/** The lists of a publication, without what charts and comparisons do not need. */
interface YearLists {
  popular: readonly ListedItem[]
  /** The first items of every list. */
  tops: YearTops<ListedItem>['tops']
  ranks: Readonly<Record<ColumnName, Ranks>>
  /** Ranks and points of every item by save key. */
  positions: ReadonlyMap<string, YearPosition>
}

/** Lists of publications by digest; null for an older layout. */
export type ListsByDigest = ReadonlyMap<string, YearLists | null>

/**
 * Reads the lists of publications from verified bytes.
 *
 * @param manifests manifests of the ledger that was verified for the same request
 */
export type ReadYearLists = (manifests: readonly Manifest[]) => Promise<ListsByDigest>

/** What the routes over many publications need. */
export interface YearListPorts {
  publications: Pick<ProvedPublications, 'entries'>
  lists: ReadYearLists
  clock: Clock
  host: () => FeedHost
  compute: Compute
}

/**
 * Lists are kept by digest and reused while the object's change token is the same. Others are read one after another, for
 * one request at a time, with a turn of the event loop after each (docs/decisions/0051-page-cache.md).
 */
export function yearListReader(
  publications: { publication(manifest: Manifest): Promise<ReadPublication> },
  objects: Pick<Objects, 'objectChangeToken'>,
): ReadYearLists {
  const cache = new LRUCache<string, { lists: YearLists | null; token: ChangeToken }>({ max: LISTS_MAX })
  const limit = pLimit(1)

  const readOne = async (manifest: Manifest, token: ChangeToken): Promise<YearLists | null> => {
    const { sha256 } = manifest
    const cached = cache.get(sha256)
    if (cached && token !== null && cached.token === token) return cached.lists
    const envelope = envelopeOf(await publications.publication(manifest))
    const lists = envelope && listsOf(envelope.feed)
    cache.set(sha256, { lists, token })
    await nextTurn()
    return lists
  }

  return async (manifests) => {
    const unique = [...new Map(manifests.map((manifest) => [manifest.sha256, manifest])).values()]
    const tokens = await Promise.all(unique.map(({ sha256 }) => objects.objectChangeToken(sha256)))
    const isCached = unique.every(({ sha256 }, index) => {
      const token = tokens[index] ?? null
      return token !== null && cache.get(sha256)?.token === token
    })
    const readAll = async (): Promise<ListsByDigest> => {
      const lists = new Map<string, YearLists | null>()
      for (const [index, manifest] of unique.entries())
        lists.set(manifest.sha256, await readOne(manifest, tokens[index] ?? null))
      return lists
    }
    if (isCached) return readAll()
    return limit(readAll)
  }
}

function listsOf(feed: YearFeed): YearLists {
  const ranks = COLUMN_NAMES.map((name) => [name, new Map(feed[name].map(({ key, rank }) => [key, rank]))])
  const tops = COLUMN_NAMES.map((name) => [name, feed[name].slice(0, TOP_LENGTH).map(listedItem)])
  return {
    popular: feed.popular.map(listedItem),
    tops: Object.fromEntries(tops) as YearLists['tops'],
    ranks: Object.fromEntries(ranks) as YearLists['ranks'],
    positions: positionsOf(feed),
  }
}

function listedItem(item: YearItem): ListedItem {
  const { key, rank, source, title, url, discussionUrl, points, comments, publishedAt } = item
  return { key, rank, source, title, url, discussionUrl, points, comments, publishedAt }
}

/** The stops of a verified ledger, computed once per ledger. */
export const stopsOnce = onceFor((proved: ProvedLedger): readonly TimelineStop[] => timelineStops(proved))

export function manifestsOf(stops: readonly TimelineStop[]): Manifest[] {
  return stops.flatMap((stop) => (stop.kind === 'publication' ? [stop.item.manifest] : []))
}
