import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import { addDays } from '../../domain/time.ts'
import { instant, LIST_MAX_BYTES, listOfRows, liveSource, looseNames, unixSeconds } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

/** Sources of trending repositories, models and posts: GitHub, Hugging Face, Replicate and Reddit. */

/** Ages in days of the repositories searched: the last week, and the last month for those that keep growing. */
const CREATED_WITHIN_DAYS = [7, 30]

const REPOSITORIES_MAX = 100

const searchResult = z.object({ items: listOfRows, incomplete_results: z.boolean().nullish() })

const repository = z
  .object({
    full_name: z.string(),
    private: z.boolean().nullish(),
    html_url: z.string().nullish(),
    description: z.string().nullish(),
    stargazers_count: z.int().nullish(),
    created_at: instant.nullish(),
    owner: z.object({ login: z.string() }).nullish().catch(null),
    topics: looseNames,
  })
  .transform((item): SourceRow | null => {
    if (item.private === true) return null
    return {
      sourceId: item.full_name,
      title: item.full_name,
      channel: 'search',
      url: item.html_url,
      points: item.stargazers_count,
      publishedAt: item.created_at,
      author: item.owner?.login,
      tags: item.topics,
      description: item.description,
    }
  })

/** GitHub: the new public repositories with the most stars. Works without a token, at a third of the rate limit. */
export function gitHub(client: SourceClient, base: string, token: string | null): LiveSource {
  const headers = {
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  }
  return liveSource(client, 'hype:github', [], async function* (batch) {
    for (const days of CREATED_WITHIN_DAYS) {
      const query = new URLSearchParams({
        // A token may have access to private repositories.
        q: `is:public created:>=${addDays(batch.day, -days)}`,
        sort: 'stars',
        order: 'desc',
        per_page: String(REPOSITORIES_MAX),
      })
      const url = `${base}/search/repositories?${query.toString()}`
      const list = { url, headers, credential: 'GITHUB_TOKEN', conditional: true, maxBytes: LIST_MAX_BYTES }
      yield await batch.attempt(async () => {
        const { items, incomplete_results: incomplete } = await batch.fetchJson({
          ...list,
          shape: searchResult,
        })
        batch.putRows(url, items, repository)
        if (incomplete === true) throw new SourceUnavailable(`${url}: the search timed out and is incomplete`)
      })
    }
  })
}

const HUGGING_FACE_MODELS_MAX = 100

const huggingFaceModel = z
  .object({
    id: z.string().refine((id) => id.isWellFormed(), 'has half of a character'),
    private: z.boolean().nullish(),
    author: z.string().nullish(),
    likes: z.int().nullish(),
    createdAt: instant.nullish(),
    pipeline_tag: z.string().nullish(),
    tags: looseNames,
  })
  .transform((item): SourceRow | null => {
    if (item.private === true) return null
    const [owner, name] = item.id.split('/')
    return {
      sourceId: item.id,
      title: item.id,
      channel: 'models',
      url: `https://huggingface.co/${item.id.split('/').map(encodeURIComponent).join('/')}`,
      points: item.likes,
      publishedAt: item.createdAt,
      author: item.author ?? (name === undefined ? null : owner),
      tags: item.tags,
      description: item.pipeline_tag,
    }
  })

/** Hugging Face: the trending models. Works without a token. */
export function huggingFace(client: SourceClient, base: string, token: string | null): LiveSource {
  return liveSource(client, 'hype:huggingface', [], async function* (batch) {
    const query = new URLSearchParams({
      sort: 'trendingScore',
      direction: '-1',
      limit: String(HUGGING_FACE_MODELS_MAX),
    })
    const url = `${base}/models?${query.toString()}`
    const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
    const list = { url, headers, credential: 'HF_TOKEN', maxBytes: LIST_MAX_BYTES, shape: listOfRows }
    yield await batch.putList(list, huggingFaceModel)
  })
}

/** Pages of 25 models, newest version first. */
const REPLICATE_PAGES = 4

const replicatePage = z.object({ results: listOfRows, next: z.string().nullish() })

const replicateModel = z
  .object({
    owner: z.string().min(1),
    name: z.string().min(1),
    url: z.string().nullish(),
    visibility: z.string().nullish(),
    description: z.string().nullish(),
    run_count: z.int().nullish(),
    latest_version: z.object({ created_at: instant.nullish() }).nullish(),
  })
  .transform((item): SourceRow | null => {
    if (item.visibility === 'private') return null
    const id = `${item.owner}/${item.name}`
    return {
      sourceId: id,
      title: id,
      channel: 'models',
      url: item.url,
      points: item.run_count,
      publishedAt: item.latest_version?.created_at,
      author: item.owner,
      description: item.description,
    }
  })

/** Replicate: the public models with the newest versions. Needs a token. */
export function replicate(client: SourceClient, base: string, token: string | null): LiveSource {
  const missing = token === null ? ['REPLICATE_API_TOKEN'] : []
  return liveSource(client, 'hype:replicate', missing, async function* (batch) {
    let cursor: string | null = ''
    for (let number = 1; number <= REPLICATE_PAGES && cursor !== null; number += 1) {
      const url: string = `${base}/models${cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`}`
      const { results, next } = await batch.fetchJson({
        url,
        headers: { authorization: `Bearer ${token ?? ''}` },
        credential: 'REPLICATE_API_TOKEN',
        conditional: true,
        // Each model includes the description of its interface.
        maxBytes: 2 * LIST_MAX_BYTES,
        shape: replicatePage,
      })
      yield batch.putRows(url, results, replicateModel)
      cursor = cursorOf(next)
    }
  })
}

/** Returns only the cursor of the next page's URL, so that the token is sent to the base only. */
function cursorOf(next: string | null | undefined): string | null {
  const query = next?.split('?')[1]
  return query === undefined ? null : new URLSearchParams(query).get('cursor') || null
}

const SUBREDDITS = ['MachineLearning', 'LocalLLaMA', 'StableDiffusion']

const REDDIT_POSTS_MAX = 100

/** Reddit issues tokens at one host and accepts them at another; any other base does both. */
const REDDIT_BASE = 'https://www.reddit.com'
const REDDIT_OAUTH_BASE = 'https://oauth.reddit.com'

const REDDIT_CREDENTIAL = 'REDDIT_CLIENT_ID and REDDIT_CLIENT_SECRET'

const redditGrant = z.object({ access_token: z.string().regex(/^[\x21-\x7e]+$/, 'must be a token') })

const redditListing = z
  .object({ data: z.object({ children: listOfRows }) })
  .transform(({ data }) => data.children)

/** Skips posts for adults, and those pinned by a moderator. */
const redditPost = z
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
      // The post itself, where its votes and its discussion are; its link is often a picture.
      url: `${REDDIT_BASE}${post.permalink}`,
      points: post.score,
      comments: post.num_comments,
      publishedAt: post.created_utc,
      author: post.author,
      tags: [post.subreddit, post.link_flair_text],
    }
  })

/** Credentials of the application at Reddit; null if a setting is missing. */
export interface RedditCredentials {
  id: string | null
  secret: string | null
}

/** Reddit: the week's top posts of the subreddits on machine learning, as an application without a user. */
export function reddit(client: SourceClient, base: string, { id, secret }: RedditCredentials): LiveSource {
  const missing = [
    ...(id === null ? ['REDDIT_CLIENT_ID'] : []),
    ...(secret === null ? ['REDDIT_CLIENT_SECRET'] : []),
  ]
  return liveSource(client, 'hype:reddit', missing, async function* (batch) {
    const application = Buffer.from(`${id ?? ''}:${secret ?? ''}`).toString('base64')
    const { access_token: token } = await batch.fetchJson({
      url: `${base}/api/v1/access_token`,
      form: { grant_type: 'client_credentials' },
      headers: { authorization: `Basic ${application}` },
      credential: REDDIT_CREDENTIAL,
      shape: redditGrant,
    })
    const listBase = base === REDDIT_BASE ? REDDIT_OAUTH_BASE : base
    const query = new URLSearchParams({ t: 'week', limit: String(REDDIT_POSTS_MAX), raw_json: '1' })
    for (const subreddit of SUBREDDITS) {
      const url = `${listBase}/r/${subreddit}/top.json?${query.toString()}`
      const headers = { authorization: `Bearer ${token}` }
      const list = {
        url,
        headers,
        credential: REDDIT_CREDENTIAL,
        maxBytes: LIST_MAX_BYTES,
        shape: redditListing,
      }
      yield await batch.putList(list, redditPost)
    }
  })
}
