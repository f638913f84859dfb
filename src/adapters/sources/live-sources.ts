import type { PublicHost, LiveSource } from '../../domain/ports.ts'
import { gitHub } from './github.ts'
import { hackerNews } from './hacker-news.ts'
import { huggingFace } from './hugging-face.ts'
import { lessWrong } from './lesswrong.ts'
import { lobsters } from './lobsters.ts'
import { reddit } from './reddit.ts'
import { replicate } from './replicate.ts'
import type { SourceClient } from './source-client.ts'

/** Base of each API, without a trailing slash. */
export interface LiveSourceUrls {
  hackerNews: string
  hackerNewsSearch: string
  lobsters: string
  lessWrong: string
  gitHub: string
  huggingFace: string
  replicate: string
  reddit: string
}

/** What each API wants to know its reader by; null where nothing is set. */
export interface SourceTokens {
  gitHub: string | null
  huggingFace: string | null
  replicate: string | null
  redditClientId: string | null
  redditClientSecret: string | null
}

/** Every source `dash collect` knows, in the order of `LIVE_SOURCES`. Tokens stay in the sources that use them. */
export function liveSources(client: SourceClient, urls: LiveSourceUrls, tokens: SourceTokens): LiveSource[] {
  const { redditClientId: id, redditClientSecret: secret } = tokens
  const redditLacks = [
    ...(id === null ? ['REDDIT_CLIENT_ID'] : []),
    ...(secret === null ? ['REDDIT_CLIENT_SECRET'] : []),
  ]
  return [
    hackerNews(client, urls.hackerNews, urls.hackerNewsSearch),
    lobsters(client, urls.lobsters),
    lessWrong(client, urls.lessWrong),
    gitHub(client, urls.gitHub, tokens.gitHub),
    huggingFace(client, urls.huggingFace, tokens.huggingFace),
    replicate(client, urls.replicate, tokens.replicate),
    reddit(client, urls.reddit, id !== null && secret !== null ? { id, secret } : null, redditLacks),
  ]
}

/**
 * The shortlist of free models that a host serves; null when the host has none.
 *
 * @param base absolute http(s) URL without a slash at its end; a path in it comes before those of the interface
 */
export function publishedShortlist(client: SourceClient, base: string): PublicHost['shortlist'] {
  return {
    topModels: (signal) =>
      client.ask<unknown>(
        { url: `${base}/api/free-llm/top-models`, absent: null, read: (answer) => answer },
        signal,
      ),
  }
}
