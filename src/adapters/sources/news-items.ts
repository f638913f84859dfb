import { firstCodePoints } from '../../domain/text.ts'
import { TITLE_MAX_LENGTH, isNewsSource } from '../../domain/feed/source.ts'
import type { NewsSource } from '../../domain/feed/source.ts'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { TitleRefusal } from '../../domain/feed/live-source.ts'
import type { TitleSource } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import { hackerNewsItems } from './hacker-news.ts'
import { lessWrongItems } from './lesswrong.ts'
import { lobstersItems } from './lobsters.ts'
import type { NewsItem, NewsItems } from './source-batch.ts'
import { UNEXPECTED_SHAPE } from './source-client.ts'
import type { SourceClient } from './source-client.ts'

/** How each news source shows single items. */
export const NEWS_ITEMS: Record<NewsSource, NewsItems> = {
  hn: hackerNewsItems,
  lobsters: lobstersItems,
  lesswrong: lessWrongItems,
}

/** Base of each news source's API, without a trailing slash. */
export type NewsUrls = Record<NewsSource, string>

/** The owning sources' own APIs, asked for one item's title by its own id (docs/ranking.md, rule 7). */
export function sourceTitles(client: SourceClient, urls: NewsUrls): TitleSource {
  return {
    async title({ source, sourceId }, signal) {
      const refuse = (reason: string): never => {
        throw new Refusal<TitleRefusal>('title_not_vouched', `${source} ${sourceId}: ${reason}`)
      }
      if (!isNewsSource(source)) return refuse('no source vouches for titles of this kind')
      const { titleProvenance: provenance, ...items } = NEWS_ITEMS[source]
      const request = items.request(urls[source], sourceId, 'title')
      const item = await client.fetchJson<NewsItem | null>(
        { ...request, absent: null, read: items.read },
        signal,
      )
      if (item === null) return refuse('the source has deleted it or does not know it')
      if (item.title === undefined) throw new SourceUnavailable(`${request.url}: ${UNEXPECTED_SHAPE}`)
      if (item.id !== sourceId) return refuse(`the source answered for ${JSON.stringify(item.id)}`)
      const title = item.title ?? ''
      if (title.trim() === '' || title.includes('\0') || !title.isWellFormed())
        return refuse('the source gives no usable title')
      // One character more than an event may have shows that the title is too long; no more of it needs to be kept.
      return { title: firstCodePoints(title, TITLE_MAX_LENGTH + 1), provenance }
    },
  }
}
