import type { LiveSourceName, TitleRefusal } from '../../domain/feed/live-source.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveSource } from '../../domain/ports.ts'
import type { TitleSource } from '../../domain/year/ports.ts'
import { hackerNews, hackerNewsItems } from './hacker-news.ts'
import { gitHub, huggingFace, replicate, reddit } from './hype.ts'
import { lessWrong, lessWrongItems } from './lesswrong.ts'
import { lobsters, lobstersItems } from './lobsters.ts'
import type { SourceClient } from './source-client.ts'
import { firstCodePoints } from '../../domain/text.ts'
import { TITLE_MAX_LENGTH, isNewsSource } from '../../domain/feed/source.ts'
import type { NewsSource } from '../../domain/feed/source.ts'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { NewsItem, NewsItems } from './source-batch.ts'
import { UNEXPECTED_SHAPE } from './source-client.ts'

/** Address of each API, without a trailing slash, and its credentials; null if not set. */
export interface LiveSourceSettings {
  sourceUrls: Record<LiveSourceName, string>
  hackerNewsSearchUrl: string
  sourceTokens: {
    gitHub: string | null
    huggingFace: string | null
    replicate: string | null
    redditClientId: string | null
    redditClientSecret: string | null
  }
}

/** Creates every source of `dash collect`, in the order of `LIVE_SOURCES`. Each token is passed only to its source. */
export function liveSources(client: SourceClient, settings: LiveSourceSettings): LiveSource[] {
  const { redditClientId: id, redditClientSecret: secret, ...tokens } = settings.sourceTokens
  const { sourceUrls: urls } = settings
  return [
    hackerNews(client, urls.hn, settings.hackerNewsSearchUrl),
    lobsters(client, urls.lobsters),
    lessWrong(client, urls.lesswrong),
    gitHub(client, urls['hype:github'], tokens.gitHub),
    huggingFace(client, urls['hype:huggingface'], tokens.huggingFace),
    replicate(client, urls['hype:replicate'], tokens.replicate),
    reddit(client, urls['hype:reddit'], { id, secret }),
  ]
}

/** Largest index or feed of another host, in bytes: an index has about 400 bytes a day. */
const FEEDS_MAX_BYTES = 16 * 1024 * 1024

/**
 * Bodies that a host serves, as parsed JSON; null if the host has none. Every call refuses with `source_unavailable`
 * without a usable response: not reachable, too slow, too large, not JSON.
 */
export interface PublishedFeeds {
  /** The shortlist of free models. */
  topModels(signal: AbortSignal): Promise<unknown>
  /** The history index. */
  index(signal: AbortSignal): Promise<unknown>
  /** The live feed. */
  live(sort: LiveSort, signal: AbortSignal): Promise<unknown>
}

/** @param base absolute http(s) URL without a trailing slash; its path is prepended to the paths of the API */
export function publishedFeeds(client: SourceClient, base: string): PublishedFeeds {
  const read = (path: string, signal: AbortSignal, limit: { maxBytes?: number } = {}): Promise<unknown> =>
    client.fetchJson<unknown>({ url: `${base}${path}`, absent: null, ...limit, read: (json) => json }, signal)
  const ofFeeds = { maxBytes: FEEDS_MAX_BYTES }
  return {
    topModels: (signal) => read('/api/free-llm/top-models', signal),
    index: (signal) => read('/api/feed/history/index', signal, ofFeeds),
    live: (sort, signal) => read(`/api/feed?sort=${sort}`, signal, ofFeeds),
  }
}

/** Access to single items of each news source. */
export const NEWS_ITEMS: Record<NewsSource, NewsItems> = {
  hn: hackerNewsItems,
  lobsters: lobstersItems,
  lesswrong: lessWrongItems,
}

/** Base URL of each news source's API, without a trailing slash. */
export type NewsUrls = Record<NewsSource, string>

/** Reads an item's title by its id from the API of the source that owns it (docs/ranking.md, rule 7). */
export function sourceTitles(client: SourceClient, urls: NewsUrls): TitleSource {
  return {
    async title({ source, sourceId }, signal) {
      const refuse = (reason: string): never => {
        throw new Refusal<TitleRefusal>('title_not_vouched', `${source} ${sourceId}: ${reason}`)
      }
      if (!isNewsSource(source)) return refuse('no source confirms titles of this kind')
      const { titleProvenance: provenance, ...items } = NEWS_ITEMS[source]
      const request = items.request(urls[source], sourceId, 'title')
      const item = await client.fetchJson<NewsItem | null>(
        { ...request, absent: null, read: items.read },
        signal,
      )
      if (item === null) return refuse('the source has deleted it or does not know it')
      if (item.title === undefined) throw new SourceUnavailable(`${request.url}: ${UNEXPECTED_SHAPE}`)
      if (item.id !== sourceId)
        return refuse(`the response of the source is about ${JSON.stringify(item.id)}`)
      const title = item.title ?? ''
      if (title.trim() === '' || title.includes('\0') || !title.isWellFormed())
        return refuse('the source has no usable title')
      // One character over the limit is enough to show that the title is too long.
      return { title: firstCodePoints(title, TITLE_MAX_LENGTH + 1), provenance }
    },
  }
}
