import { z } from 'zod'
import type { LiveSource } from '../../domain/ports.ts'
import { addDays } from '../../domain/time.ts'
import { liveSource, instant, listOfRows } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import { AnswerProblem } from './source-client.ts'
import type { SourceClient } from './source-client.ts'

/** Posts of this many days are read, so that late votes are seen. */
const DAYS = 10

/** More than are written in {@link DAYS} days. */
const POSTS_MAX = 300

const LIST_MAX_BYTES = 2 * 1024 * 1024

const QUERY = `query RecentPosts($limit: Int, $after: String) {
  posts(input: { terms: { view: "new", limit: $limit, after: $after } }) {
    results { _id title url postedAt baseScore commentCount user { username displayName } }
  }
}`

const answer = z.object({
  errors: z
    .array(z.object({ message: z.string() }))
    .nullish()
    .catch(null),
  data: z.object({ posts: z.object({ results: listOfRows }).nullish() }).nullish(),
})

const post = z.object({
  _id: z.string(),
  title: z.string(),
  url: z.string().nullish(),
  postedAt: instant.nullish(),
  baseScore: z.int().nullish(),
  commentCount: z.int().nullish(),
  user: z.object({ username: z.string().nullish(), displayName: z.string().nullish() }).nullish().catch(null),
})
type Post = z.infer<typeof post>

/** LessWrong: the posts of the last days, by one GraphQL question. */
export function lessWrong(client: SourceClient, url: string): LiveSource {
  return liveSource(client, 'lesswrong', [], async function* (desk) {
    const body = { query: QUERY, variables: { limit: POSTS_MAX, after: addDays(desk.day, -DAYS) } }
    const rows = await desk.ask({ url, body, maxBytes: LIST_MAX_BYTES, read: readPosts })
    desk.putRows(url, rows, post, rowOf)
    yield
  })
}

/** GraphQL answers 200 to what it could not do, and says so inside. */
function readPosts(json: unknown): unknown[] {
  const parsed = answer.safeParse(json)
  const rows = parsed.data?.data?.posts?.results
  if (rows) return rows
  const [error] = parsed.data?.errors ?? []
  if (error)
    throw new AnswerProblem(`it answered with the error ${JSON.stringify(error.message.slice(0, 200))}`)
  throw new AnswerProblem('its answer has no list of posts')
}

function rowOf({ _id, title, url, postedAt, baseScore, commentCount, user }: Post): SourceRow {
  return {
    sourceId: _id,
    title,
    // Only a link post has one.
    url: url ?? null,
    points: baseScore ?? null,
    comments: commentCount ?? null,
    publishedAt: postedAt ?? null,
    channel: 'graphql-posts',
    author: user?.displayName ?? user?.username ?? null,
    tags: [],
    description: null,
  }
}
