import { z } from 'zod'
import type { LiveSource } from '../../domain/ports.ts'
import { liveSource, listOfRows, shapeReader, unixSeconds } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

const SUBREDDITS = ['MachineLearning', 'LocalLLaMA', 'StableDiffusion']

const POSTS_MAX = 100

const LIST_MAX_BYTES = 4 * 1024 * 1024

/** Reddit gives tokens at one host and takes them at another; any other base does both. */
const PUBLIC_BASE = 'https://www.reddit.com'
const TOKEN_HOLDERS_BASE = 'https://oauth.reddit.com'

const CREDENTIAL = 'REDDIT_CLIENT_ID and REDDIT_CLIENT_SECRET'

const grant = z.object({ access_token: z.string().regex(/^[\x21-\x7e]+$/, 'must be a token') })

const listing = z.object({ data: z.object({ children: listOfRows }) })

const child = z.object({
  kind: z.literal('t3'),
  data: z.object({
    id: z.string(),
    title: z.string(),
    permalink: z.string().startsWith('/'),
    subreddit: z.string().nullish(),
    score: z.int().nullish(),
    num_comments: z.int().nullish(),
    created_utc: unixSeconds.nullish(),
    link_flair_text: z.string().nullish(),
    over_18: z.boolean().nullish(),
    stickied: z.boolean().nullish(),
    author: z.string().nullish(),
  }),
})
type Child = z.infer<typeof child>

/** What an application is known by at Reddit. */
export interface RedditClient {
  id: string
  secret: string
}

/** Reddit: the week's top posts of the subreddits on machine learning, as an application without a user. */
export function reddit(
  client: SourceClient,
  base: string,
  application: RedditClient | null,
  lacks: readonly string[],
): LiveSource {
  return liveSource(client, 'hype:reddit', lacks, async function* (desk) {
    const known = Buffer.from(`${application?.id ?? ''}:${application?.secret ?? ''}`).toString('base64')
    const { access_token: token } = await desk.ask({
      url: `${base}/api/v1/access_token`,
      form: { grant_type: 'client_credentials' },
      headers: { authorization: `Basic ${known}` },
      credential: CREDENTIAL,
      read: shapeReader(grant),
    })
    const query = new URLSearchParams({ t: 'week', limit: String(POSTS_MAX), raw_json: '1' })
    for (const subreddit of SUBREDDITS) {
      await desk.attempt(async () => {
        const url = `${base === PUBLIC_BASE ? TOKEN_HOLDERS_BASE : base}/r/${subreddit}/top.json?${query.toString()}`
        const { data } = await desk.ask({
          url,
          headers: { authorization: `Bearer ${token}` },
          credential: CREDENTIAL,
          conditional: true,
          maxBytes: LIST_MAX_BYTES,
          read: shapeReader(listing),
        })
        desk.putRows(url, data.children, child, rowOf)
      })
      yield
    }
  })
}

/** Posts not for everybody, and those a moderator keeps on top, are left out. */
function rowOf({ data: post }: Child): SourceRow | null {
  if (post.over_18 === true || post.stickied === true) return null
  return {
    sourceId: post.id,
    title: post.title,
    // The post itself, which is where its votes and its discussion are; what it links to is often a picture.
    url: `${PUBLIC_BASE}${post.permalink}`,
    points: post.score ?? null,
    comments: post.num_comments ?? null,
    publishedAt: post.created_utc ? Math.floor(post.created_utc) * 1000 : null,
    channel: 'top',
    author: post.author ?? null,
    tags: [post.subreddit, post.link_flair_text].flatMap((tag) => tag ?? []),
    description: null,
  }
}
