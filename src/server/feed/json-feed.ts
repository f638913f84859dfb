import { z } from 'zod'
import { LIVE_SORTS } from '../../domain/feed/live-sort.ts'
import type { SubscriptionFeed } from './subscription-feed.ts'

const VERSION = 'https://jsonfeed.org/version/1.1'

const author = z.object({ name: z.string() })

/** JSON Feed 1.1, with what only this product knows under `_dash` (docs/feed-api.md). */
export const jsonFeedSchema = z
  .object({
    version: z.literal(VERSION),
    title: z.string(),
    home_page_url: z.string(),
    feed_url: z.string(),
    description: z.string(),
    authors: z.array(author.extend({ url: z.string() })),
    _dash: z.object({
      about: z.string().describe('page that describes these members'),
      sort: z.enum(LIVE_SORTS),
      snapshot: z.string(),
      generatedAt: z.string(),
    }),
    items: z.array(
      z.object({
        id: z.string().describe('permanent: the same item has it in every feed'),
        url: z.string().optional(),
        title: z.string(),
        content_text: z.string(),
        date_published: z.string(),
        authors: z.array(author).optional(),
        tags: z.array(z.string()).optional(),
        _dash: z.object({
          key: z.string(),
          source: z.string(),
          rank: z.int(),
          score: z.object({ value: z.int(), unit: z.string() }),
          aggScore: z.number(),
          comments: z.int().nullable(),
          discussionUrl: z.string().nullable(),
          titleVerified: z.boolean(),
        }),
      }),
    ),
  })
  .meta({ id: 'JsonFeed' })

type JsonFeed = z.infer<typeof jsonFeedSchema>

export function writeJsonFeed(feed: SubscriptionFeed): string {
  const document: JsonFeed = {
    version: VERSION,
    title: feed.title,
    home_page_url: feed.homeUrl,
    feed_url: feed.selfUrl,
    description: feed.description,
    authors: [{ name: 'dash', url: feed.homeUrl }],
    _dash: {
      about: feed.docsUrl,
      sort: feed.sort,
      snapshot: feed.snapshotId,
      generatedAt: feed.generatedAt,
    },
    items: feed.items.map((item) => ({
      id: item.id,
      ...(item.link === null ? {} : { url: item.link }),
      title: item.title,
      content_text: item.summary,
      date_published: item.publishedAt,
      ...(item.author === null ? {} : { authors: [{ name: item.author }] }),
      ...(item.tags.length === 0 ? {} : { tags: [...item.tags] }),
      _dash: {
        key: item.key,
        source: item.source,
        rank: item.rank,
        score: { value: item.points, unit: item.unit },
        aggScore: item.aggScore,
        comments: item.comments,
        discussionUrl: item.discussionUrl,
        titleVerified: item.titleVerified,
      },
    })),
  }
  return JSON.stringify(document)
}
