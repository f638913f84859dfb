import type { LiveSourceName } from '../../domain/feed/live-source.ts'
import type { PublicHost, LiveSource } from '../../domain/ports.ts'
import { hackerNews } from './hacker-news.ts'
import { gitHub, huggingFace, replicate } from './hype.ts'
import { lessWrong } from './lesswrong.ts'
import { lobsters } from './lobsters.ts'
import { reddit } from './reddit.ts'
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

/**
 * Reads the shortlist of free models that a host serves; null if the host has none.
 *
 * @param base absolute http(s) URL without a trailing slash; its path is prepended to the paths of the API
 */
export function publishedShortlist(client: SourceClient, base: string): PublicHost['shortlist'] {
  return {
    topModels: (signal) =>
      client.fetchJson<unknown>(
        { url: `${base}/api/free-llm/top-models`, absent: null, read: (json) => json },
        signal,
      ),
  }
}

/** Largest index or feed of another host, in bytes: an index has about 400 bytes a day. */
const FEEDS_MAX_BYTES = 16 * 1024 * 1024

/**
 * Reads the history index and the live feed that a host serves.
 *
 * @param base absolute http(s) URL without a trailing slash; its path is prepended to the paths of the API
 */
export function publishedFeeds(client: SourceClient, base: string): PublicHost['feeds'] {
  const read = (path: string, signal: AbortSignal): Promise<unknown> =>
    client.fetchJson<unknown>(
      { url: `${base}${path}`, absent: null, maxBytes: FEEDS_MAX_BYTES, read: (json) => json },
      signal,
    )
  return {
    index: (signal) => read('/api/feed/history/index', signal),
    live: (sort, signal) => read(`/api/feed?sort=${sort}`, signal),
  }
}
