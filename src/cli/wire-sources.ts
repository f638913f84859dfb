import { openArticleTexts as openTexts } from '../adapters/articles/open.ts'
import { liveSources, publishedShortlist } from '../adapters/sources/live-sources.ts'
import { openSourceClient } from '../adapters/sources/source-client.ts'
import type { SourceClient, SourceMemory } from '../adapters/sources/source-client.ts'
import { sourceTitles } from '../adapters/sources/titles.ts'
import type { ArticleTexts, Clock, PublicHost, LiveSource } from '../domain/ports.ts'
import type { PublishPorts } from '../jobs/publish-year.ts'
import { listeningUrl } from './settings/config.ts'
import type { Config } from './settings/config.ts'
import { pause, isDeadProcess, thisProcess } from './process-identity.ts'
import type { Stores } from './wire.ts'

/** What commands that ask the sources get; apart from wire.ts, since the HTTP client takes long to load. */

/** Questions open at one source at a time. */
const SOURCE_AT_ONCE = 4

/** How long a source may take for an answer, and be waited for in all when it asks to be left alone. */
interface Patience {
  answerMs: number
  longestWaitMs: number
}

const COLLECT_PATIENCE: Patience = { answerMs: 20_000, longestWaitMs: 120_000 }

/** A publication asks for single items, and has attempts of its own. */
const PUBLISH_PATIENCE: Patience = { answerMs: 10_000, longestWaitMs: 10_000 }

/** How sources are asked, whoever asks them. */
function sourceClient(
  config: Config,
  version: string,
  memory: SourceMemory | null,
  { answerMs, longestWaitMs }: Patience,
): SourceClient {
  return openSourceClient({
    userAgent: userAgentOf(config, version),
    clock: Date.now,
    sleep: pause,
    memory,
    limits: { atOnce: SOURCE_AT_ONCE, longestWaitMs },
    answerMs,
  })
}

/** `dash/<version> (+<URL>)`: who asks, and where to learn more. */
function userAgentOf({ baseUrl, host, port }: Config, version: string): string {
  // A header is plain ASCII.
  const url = (baseUrl ?? listeningUrl(host, port)).replaceAll(/[^\x21-\x7e]+/gu, encodeURIComponent)
  return `dash/${version} (+${url})`
}

/** Where the texts of items are read, for one run; `close` ends the connections and the thread that reads pages. */
export function openArticleTexts(
  config: Config,
  version: string,
): ArticleTexts & { close: () => Promise<void> } {
  const client = sourceClient(config, version, null, COLLECT_PATIENCE)
  const texts = openTexts({
    urls: { hn: config.hackerNewsUrl, lobsters: config.lobstersUrl, lesswrong: config.lessWrongUrl },
    askJson: (request, signal) =>
      client.ask<unknown>({ ...request, absent: null, read: (answer) => answer }, signal),
    userAgent: userAgentOf(config, version),
    clock: Date.now,
    allowed: config.articles.allowed,
  })
  return {
    read: (item, signal) => texts.read(item, signal),
    async close() {
      await texts.close()
      await client.close()
    },
  }
}

/** The sources a collection reads; `close` ends the connections to them. */
export function openLiveSources(
  { feed }: Pick<Stores, 'feed'>,
  config: Config,
  version: string,
): { sources: LiveSource[]; close: () => Promise<void> } {
  const client = sourceClient(config, version, feed, COLLECT_PATIENCE)
  const urls = {
    hackerNews: config.hackerNewsUrl,
    hackerNewsSearch: config.hackerNewsSearchUrl,
    lobsters: config.lobstersUrl,
    lessWrong: config.lessWrongUrl,
    gitHub: config.gitHubUrl,
    huggingFace: config.huggingFaceUrl,
    replicate: config.replicateUrl,
    reddit: config.redditUrl,
  }
  return { sources: liveSources(client, urls, config.sourceTokens), close: client.close }
}

/** The shortlist of free models that another host serves; `close` ends the connections to it. */
export function openPublishedShortlist(
  base: string,
  config: Config,
  version: string,
): PublicHost['shortlist'] & { close: () => Promise<void> } {
  const client = sourceClient(config, version, null, PUBLISH_PATIENCE)
  return { ...publishedShortlist(client, base), close: client.close }
}

/** What publishing needs besides the stores; `close` ends the connections to the sources. */
export function publishPorts(
  stores: Stores,
  config: Config,
  version: string,
  clock: Clock,
  onProgress: (message: string) => void,
): { ports: PublishPorts; close: () => Promise<void> } {
  const client = sourceClient(config, version, null, PUBLISH_PATIENCE)
  const urls = { hn: config.hackerNewsUrl, lobsters: config.lobstersUrl, lesswrong: config.lessWrongUrl }
  return {
    ports: {
      ...stores,
      titles: sourceTitles(client, urls),
      clock,
      sleep: pause,
      holder: thisProcess(),
      isDead: isDeadProcess,
      onProgress,
    },
    close: client.close,
  }
}
