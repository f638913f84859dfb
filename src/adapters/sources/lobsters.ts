import { z } from 'zod'
import type { LiveSource } from '../../domain/ports.ts'
import { instant, listOfRows, liveSource, looseNames } from './source-batch.ts'
import type { NewsItems, SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

const story = z.object({
  short_id: z.string(),
  title: z.string().optional(),
  /** The text of a story without a link, as HTML. */
  description: z.string().nullish().catch(null),
})

const listedStory = story.extend({
  title: z.string(),
  created_at: instant.nullish(),
  /** Empty for a text post. */
  url: z.string().nullish(),
  score: z.int().nullish(),
  comment_count: z.int().nullish(),
  description_plain: z.string().nullish(),
  /** An object until 2023, only the name since. */
  submitter_user: z
    .union([z.string(), z.object({ username: z.string() }).transform(({ username }) => username)])
    .nullish()
    .catch(null),
  tags: looseNames,
})

/** Lobsters: the front page and the newest stories. */
export function lobsters(client: SourceClient, base: string): LiveSource {
  return liveSource(client, 'lobsters', [], async function* (batch) {
    for (const list of ['hottest', 'newest']) {
      const url = `${base}/${list}.json`
      const row = listedStory.transform((listed) => toRow(listed, `${list}-json`))
      yield await batch.putList({ url, shape: listOfRows }, row)
    }
  })
}

function toRow(listed: z.infer<typeof listedStory>, channel: string): SourceRow {
  return {
    sourceId: listed.short_id,
    title: listed.title,
    channel,
    url: listed.url,
    points: listed.score,
    comments: listed.comment_count,
    publishedAt: listed.created_at,
    author: listed.submitter_user,
    tags: listed.tags,
    description: listed.description_plain,
  }
}

export const lobstersItems: NewsItems = {
  titleProvenance: 'lobsters:story-json',
  textProvenance: 'lobsters:story-description',
  request: (base, id) => ({ url: `${base}/s/${encodeURIComponent(id)}.json` }),
  shape: story
    .nullable()
    .transform((found) => found && { id: found.short_id, title: found.title, html: found.description }),
}
