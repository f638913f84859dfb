import { z } from 'zod'
import type { LiveSourceName } from '../../domain/feed/live-source.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveSource } from '../../domain/ports.ts'
import { hackerNews } from './hacker-news.ts'
import { gitHub, huggingFace, replicate, reddit } from './hype.ts'
import { lessWrong } from './lesswrong.ts'
import { lobsters } from './lobsters.ts'
import type { SourceClient } from './source-client.ts'

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
    client.fetchJson({ url: `${base}${path}`, absent: null, ...limit, shape: z.unknown() }, signal)
  const ofFeeds = { maxBytes: FEEDS_MAX_BYTES }
  return {
    topModels: (signal) => read('/api/free-llm/top-models', signal),
    index: (signal) => read('/api/feed/history/index', signal, ofFeeds),
    live: (sort, signal) => read(`/api/feed?sort=${sort}`, signal, ofFeeds),
  }
}
