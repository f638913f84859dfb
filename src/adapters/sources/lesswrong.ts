import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import { addDays } from '../../domain/time.ts'
import { instant, LIST_MAX_BYTES, listOfRows, liveSource } from './source-batch.ts'
import type { NewsItems, SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

/** Number of days whose posts are read, so that late votes count. */
const DAYS = 10

/** More posts than are written in {@link DAYS} days. */
const POSTS_MAX = 300

const RECENT_POSTS = `query RecentPosts($limit: Int, $after: String) {
  posts(input: { terms: { view: "new", limit: $limit, after: $after } }) {
    results { _id title url postedAt baseScore commentCount user { username displayName } }
  }
}`

/** GraphQL responds 200 to a failed query and lists the errors in the body. */
const response = z
  .object({
    errors: z
      .array(z.object({ message: z.string() }))
      .nullish()
      .catch(null),
    data: z.object({ posts: z.object({ results: listOfRows }).nullish() }).nullish(),
  })
  .catch({})

const listedPost = z
  .object({
    _id: z.string(),
    title: z.string(),
    /** Only on a link post. */
    url: z.string().nullish(),
    postedAt: instant.nullish(),
    baseScore: z.int().nullish(),
    commentCount: z.int().nullish(),
    user: z
      .object({ username: z.string().nullish(), displayName: z.string().nullish() })
      .nullish()
      .catch(null),
  })
  .transform((post): SourceRow => ({
    sourceId: post._id,
    title: post.title,
    channel: 'graphql-posts',
    url: post.url,
    points: post.baseScore,
    comments: post.commentCount,
    publishedAt: post.postedAt,
    author: post.user?.displayName ?? post.user?.username,
  }))

/** LessWrong: the posts of the last days, by one GraphQL query. */
export function lessWrong(client: SourceClient, url: string): LiveSource {
  return liveSource(client, 'lesswrong', [], async function* (batch) {
    const variables = { limit: POSTS_MAX, after: addDays(batch.day, -DAYS) }
    const body = { query: RECENT_POSTS, variables }
    const { data, errors } = await batch.fetchJson({
      url,
      body,
      maxBytes: LIST_MAX_BYTES / 2,
      shape: response,
    })
    const rows = data?.posts?.results
    const [error] = errors ?? []
    if (!rows && error) {
      const message = JSON.stringify(error.message.slice(0, 200))
      throw new SourceUnavailable(`${url}: responded with the error ${message}`)
    }
    if (!rows) throw new SourceUnavailable(`${url}: the response has no list of posts`)
    yield batch.putRows(url, rows, listedPost)
  })
}

const singlePost = z.object({
  data: z.object({
    post: z
      .object({
        result: z
          .object({
            _id: z.string(),
            title: z.string().nullish(),
            contents: z.object({ html: z.string().nullish() }).nullish().catch(null),
          })
          .nullable(),
      })
      .nullable(),
  }),
})

const FIELDS = { title: 'title', text: 'contents { html }' }
const QUERY_NAMES = { title: 'Title', text: 'Body' }

export const lessWrongItems: NewsItems = {
  titleProvenance: 'lesswrong:graphql-post',
  textProvenance: 'lesswrong:post-body',
  request(base, id, part) {
    const post = `post(input: { selector: { _id: $id } }) { result { _id ${FIELDS[part]} } }`
    const query = `query ${QUERY_NAMES[part]}($id: String) { ${post} }`
    return { url: base, body: { query, variables: { id } } }
  },
  shape: singlePost.nullable().transform((found) => {
    const post = found?.data.post?.result
    return post ? { id: post._id, title: post.title, html: post.contents?.html } : null
  }),
}
