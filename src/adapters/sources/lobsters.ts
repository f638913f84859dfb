import { z } from 'zod'
import type { LiveSource } from '../../domain/ports.ts'
import { instant, listOfRows, liveSource, lobstersStory, shapeReader } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

const listedStory = lobstersStory.extend({
  created_at: instant.nullish(),
  url: z.string().nullish(),
  score: z.int().nullish(),
  comment_count: z.int().nullish(),
  description_plain: z.string().nullish(),
  /** An object until 2023, the name alone since. */
  submitter_user: z
    .union([z.string(), z.object({ username: z.string() })])
    .nullish()
    .catch(null),
  tags: z.array(z.string()).nullish().catch(null),
})
type ListedStory = z.infer<typeof listedStory>

/** Lobsters: the front page and the newest stories. */
export function lobsters(client: SourceClient, base: string): LiveSource {
  return liveSource(client, 'lobsters', [], async function* (desk) {
    for (const list of ['hottest', 'newest']) {
      await desk.attempt(async () => {
        const url = `${base}/${list}.json`
        const rows = await desk.ask({ url, conditional: true, read: shapeReader(listOfRows) })
        desk.putRows(url, rows, listedStory, (story) => rowOf(story, `${list}-json`))
      })
      yield
    }
  })
}

function rowOf(story: ListedStory, channel: string): SourceRow {
  const { submitter_user: submitter } = story
  return {
    sourceId: story.short_id,
    title: story.title,
    // A text post has an empty one.
    url: story.url ?? null,
    points: story.score ?? null,
    comments: story.comment_count ?? null,
    publishedAt: story.created_at ?? null,
    channel,
    author: typeof submitter === 'string' ? submitter : (submitter?.username ?? null),
    tags: story.tags ?? [],
    description: story.description_plain ?? null,
  }
}
