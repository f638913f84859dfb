import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { TitleRefusal } from '../../domain/feed/live-source.ts'
import { TITLE_MAX_LENGTH, isNewsSource } from '../../domain/feed/source.ts'
import type { NewsSource } from '../../domain/feed/source.ts'
import { Refusal } from '../../domain/refusal.ts'
import { firstCodePoints } from '../../domain/text.ts'
import type { TitleSource } from '../../domain/year/ports.ts'
import { hackerNewsItems } from './hacker-news.ts'
import { lessWrongItems } from './lesswrong.ts'
import { lobstersItems } from './lobsters.ts'
import type { NewsItems } from './source-batch.ts'
import { UNEXPECTED_SHAPE } from './source-client.ts'
import type { SourceClient } from './source-client.ts'

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
      const item = await client.fetchJson({ ...request, absent: null, shape: items.shape }, signal)
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
