import { z } from 'zod'
import type { LiveSource } from '../../domain/ports.ts'
import { LIST_MAX_BYTES, listOfRows, liveSource, unixSeconds } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

const SUBREDDITS = ['MachineLearning', 'LocalLLaMA', 'StableDiffusion']

const POSTS_MAX = 100

/** Reddit gives tokens at one host and takes them at another; any other base does both. */
const PUBLIC_BASE = 'https://www.reddit.com'
const TOKEN_HOLDERS_BASE = 'https://oauth.reddit.com'

const CREDENTIAL = 'REDDIT_CLIENT_ID and REDDIT_CLIENT_SECRET'

const grant = z.object({ access_token: z.string().regex(/^[\x21-\x7e]+$/, 'must be a token') })

const listing = z.object({ data: z.object({ children: listOfRows }) }).transform(({ data }) => data.children)

/** Posts not for everybody, and those a moderator keeps on top, are left out. */
const child = z
  .object({
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
  .transform(({ data: post }): SourceRow | null => {
    if (post.over_18 === true || post.stickied === true) return null
    return {
      sourceId: post.id,
      title: post.title,
      channel: 'top',
      // The post itself, which is where its votes and its discussion are; what it links to is often a picture.
      url: `${PUBLIC_BASE}${post.permalink}`,
      points: post.score,
      comments: post.num_comments,
      publishedAt: post.created_utc,
      author: post.author,
      tags: [post.subreddit, post.link_flair_text],
    }
  })

/** How an application is known at Reddit; null where a setting is missing. */
export interface RedditClient {
  id: string | null
  secret: string | null
}

/** Reddit: the week's top posts of the subreddits on machine learning, as an application without a user. */
export function reddit(client: SourceClient, base: string, { id, secret }: RedditClient): LiveSource {
  const missing = [
    ...(id === null ? ['REDDIT_CLIENT_ID'] : []),
    ...(secret === null ? ['REDDIT_CLIENT_SECRET'] : []),
  ]
  return liveSource(client, 'hype:reddit', missing, async function* (batch) {
    const application = Buffer.from(`${id ?? ''}:${secret ?? ''}`).toString('base64')
    const { access_token: token } = await batch.ask({
      url: `${base}/api/v1/access_token`,
      form: { grant_type: 'client_credentials' },
      headers: { authorization: `Basic ${application}` },
      credential: CREDENTIAL,
      shape: grant,
    })
    const listBase = base === PUBLIC_BASE ? TOKEN_HOLDERS_BASE : base
    const query = new URLSearchParams({ t: 'week', limit: String(POSTS_MAX), raw_json: '1' })
    for (const subreddit of SUBREDDITS) {
      const url = `${listBase}/r/${subreddit}/top.json?${query.toString()}`
      const headers = { authorization: `Bearer ${token}` }
      const list = { url, headers, credential: CREDENTIAL, maxBytes: LIST_MAX_BYTES, shape: listing }
      yield await batch.putList(list, child)
    }
  })
}
