/**
 * Responses of all live sources by path, in the real formats with made-up values. Ids agree between the lists and the
 * items of a source, so that a run can be checked item by item.
 */

/** A source's own server, by the variable that points to it. */
export const REPLAYED = {
  hn: 'DASH_HN_URL',
  'hn-search': 'DASH_HN_SEARCH_URL',
  lobsters: 'DASH_LOBSTERS_URL',
  lesswrong: 'DASH_LESSWRONG_URL',
  github: 'DASH_GITHUB_URL',
  huggingface: 'DASH_HUGGINGFACE_URL',
  replicate: 'DASH_REPLICATE_URL',
  reddit: 'DASH_REDDIT_URL',
} as const
export type Replayed = keyof typeof REPLAYED

/** Tokens the replayed sources take. */
export const TOKENS = {
  GITHUB_TOKEN: 'github-token',
  HF_TOKEN: 'hf-token',
  REPLICATE_API_TOKEN: 'replicate-token',
  REDDIT_CLIENT_ID: 'reddit-id',
  REDDIT_CLIENT_SECRET: 'reddit-secret',
}

export const HN_IDS = Array.from({ length: 60 }, (_, index) => 41_000_001 + index)
const SEARCHED_IDS = ['41000060', '41000061', '41000062']
const LOBSTERS_IDS = ['aaaaa1', 'aaaaa2', 'aaaaa3', 'aaaaa4']
const LESSWRONG_IDS = ['post0000000000001', 'post0000000000002', 'post0000000000003']
const GITHUB_IDS = ['owner/first', 'owner/second', 'other/third']
const HUGGINGFACE_IDS = ['org/model-a', 'org/model-b', 'solo']
const REPLICATE_IDS = ['maker/one', 'maker/two', 'maker/three']
const REDDIT_IDS = ['1aaaaa', '1bbbbb', '1ccccc']

/** The ids every source gives in a run that meets no fault, by the name of the source in a signal. */
export const IDS_OF: Record<string, string[]> = {
  hn: [...new Set([...HN_IDS.map(String), ...SEARCHED_IDS])],
  lobsters: LOBSTERS_IDS,
  lesswrong: LESSWRONG_IDS,
  'hype:github': GITHUB_IDS,
  'hype:huggingface': HUGGINGFACE_IDS,
  'hype:replicate': REPLICATE_IDS,
  'hype:reddit': REDDIT_IDS,
}

export interface ReplayRequest {
  method: string
  /** Path and query. */
  target: string
  headers: Record<string, string | string[] | undefined>
  body: string
}

/** The regular response of a source; null is a 404, a number a status. */
export function responseTo(source: Replayed, request: ReplayRequest): unknown {
  const url = new URL(request.target, 'http://source.invalid')
  return RESPONDERS[source](url, request)
}

const RESPONDERS: Record<Replayed, (url: URL, request: ReplayRequest) => unknown> = {
  hn: ({ pathname }) => hackerNewsContent(pathname),
  'hn-search': (url) => (url.pathname === '/search_by_date' ? searchContent(url) : null),
  lobsters: ({ pathname }) => lobstersContent(pathname),
  lesswrong: (_url, { method, body }) => (method === 'POST' ? lessWrongContent(body) : 405),
  github: ({ pathname }, { headers }) => {
    if (!isAuthorized(headers, [undefined, `Bearer ${TOKENS.GITHUB_TOKEN}`])) return 401
    return pathname === '/search/repositories'
      ? { total_count: 3, incomplete_results: false, items: GITHUB_IDS.map(repository) }
      : null
  },
  huggingface: ({ pathname }, { headers }) => {
    if (!isAuthorized(headers, [undefined, `Bearer ${TOKENS.HF_TOKEN}`])) return 401
    return pathname === '/models' ? HUGGINGFACE_IDS.map(model) : null
  },
  replicate: (url, { headers }) => {
    if (!isAuthorized(headers, [`Bearer ${TOKENS.REPLICATE_API_TOKEN}`])) return 401
    return url.pathname === '/models' ? replicateContent(url.searchParams.get('cursor')) : null
  },
  reddit: ({ pathname }, request) => redditContent(pathname, request),
}

function isAuthorized(headers: ReplayRequest['headers'], allowed: (string | undefined)[]): boolean {
  return allowed.includes(headers['authorization'] as string | undefined)
}

function hackerNewsContent(pathname: string): unknown {
  if (pathname === '/topstories.json') return HN_IDS.slice(0, 40)
  if (pathname === '/beststories.json') return HN_IDS.slice(20, 50)
  if (pathname === '/newstories.json') return HN_IDS.slice(50, 58).toReversed()
  if (pathname === '/askstories.json') return [HN_IDS[58]]
  if (pathname === '/showstories.json') return [HN_IDS[59]]
  const id = Number(/^\/item\/(\d+)\.json$/.exec(pathname)?.[1])
  // Hacker News responds null, not 404, for an unknown item.
  return HN_IDS.includes(id) ? hackerNewsItem(id) : null
}

export function hackerNewsItem(id: number): Record<string, unknown> {
  return {
    by: `author${id % 7}`,
    descendants: id % 100,
    id,
    score: 10 + (id % 300),
    time: 1_795_219_200,
    title: `Story ${id}: “quoted” & plain`,
    type: 'story',
    ...(id % 5 === 0 ? {} : { url: `https://example.org/story/${id}` }),
  }
}

function searchContent(url: URL): unknown {
  const start = Number(/created_at_i>=(\d+)/.exec(url.searchParams.get('numericFilters') ?? '')?.[1])
  const hits = SEARCHED_IDS.map((objectID, index) => ({
    objectID,
    title: `Found ${objectID}`,
    author: 'finder',
    // Replies of different years: with milliseconds or without, with null or without the key.
    created_at: new Date((start + 5) * 1000).toISOString().replace('.000Z', index === 1 ? '.000Z' : 'Z'),
    created_at_i: start + 5,
    points: 12 + index,
    num_comments: index,
    ...(index === 0 ? { url: `https://example.org/found/${objectID}` } : {}),
    ...(index === 1 ? { url: null, story_text: '', comment_text: null } : {}),
  }))
  return { hits }
}

export function lobstersStory(short_id: string): Record<string, unknown> {
  const index = LOBSTERS_IDS.indexOf(short_id)
  return {
    short_id,
    created_at: '2026-11-20T22:15:00.000-05:00',
    title: `Lobsters story ${short_id}`,
    url: index === 0 ? '' : `https://example.org/lobsters/${short_id}`,
    score: 5 * index,
    comment_count: index,
    description: '<p>A description</p>',
    description_plain: index === 0 ? 'A description\r\nof two lines' : '',
    submitter_user:
      index % 2 === 0 ? `user${index}` : { username: `user${index}`, karma: 3, is_admin: false },
    tags: ['programming', 'meta'],
  }
}

function lobstersContent(pathname: string): unknown {
  if (pathname === '/hottest.json') return LOBSTERS_IDS.slice(0, 3).map(lobstersStory)
  if (pathname === '/newest.json') return LOBSTERS_IDS.slice(2).map(lobstersStory)
  const id = /^\/s\/(\w+)\.json$/.exec(pathname)?.[1] ?? ''
  return LOBSTERS_IDS.includes(id) ? lobstersStory(id) : null
}

export function lessWrongPost(_id: string): Record<string, unknown> {
  const index = LESSWRONG_IDS.indexOf(_id)
  return {
    _id,
    title: `Post ${index}`,
    postedAt: '2026-11-20T16:41:42.727Z',
    baseScore: 10 * index - 5,
    commentCount: index,
    url: index === 2 ? 'https://example.org/linked' : null,
    user: index === 1 ? null : { username: `u${index}`, slug: `u${index}`, displayName: `User ${index}` },
  }
}

function lessWrongContent(body: string): unknown {
  const { query, variables } = JSON.parse(body) as { query: string; variables: { id?: string } }
  if (query.includes('posts(')) return { data: { posts: { results: LESSWRONG_IDS.map(lessWrongPost) } } }
  const { id = '' } = variables
  return { data: { post: { result: LESSWRONG_IDS.includes(id) ? lessWrongPost(id) : null } } }
}

export function repository(full_name: string): Record<string, unknown> {
  const [login, name] = full_name.split('/')
  return {
    id: 900_000 + GITHUB_IDS.indexOf(full_name),
    name,
    full_name,
    owner: { login, id: 1, type: 'User' },
    private: false,
    html_url: `https://github.com/${full_name}`,
    description: full_name === 'other/third' ? null : 'Does a thing.',
    created_at: '2026-11-18T10:00:00Z',
    stargazers_count: 100 + GITHUB_IDS.indexOf(full_name),
    topics: ['agents', 'llm'],
    score: 1,
  }
}

export function model(id: string): Record<string, unknown> {
  return {
    _id: `6a1563f96ea5882878c82e${HUGGINGFACE_IDS.indexOf(id)}`,
    id,
    likes: 50 + HUGGINGFACE_IDS.indexOf(id),
    trendingScore: 30,
    private: false,
    tags: ['transformers', 'text-generation', 'region:us'],
    pipeline_tag: 'text-generation',
    createdAt: '2026-11-15T09:12:25.000Z',
  }
}

export function replicateModel(id: string): Record<string, unknown> {
  const [owner, name] = id.split('/')
  return {
    url: `https://replicate.com/${id}`,
    owner,
    name,
    description: `What ${id} makes`,
    visibility: 'public',
    run_count: 1000 + REPLICATE_IDS.indexOf(id),
    latest_version: { id: 'abc', created_at: '2026-11-19T08:30:00.123456Z', openapi_schema: {} },
  }
}

/** Two pages; the URL of the second names a host that must never be requested. */
function replicateContent(cursor: string | null): unknown {
  if (cursor === null) {
    const next = 'https://elsewhere.invalid/v1/models?cursor=second%3D'
    return { previous: null, next, results: REPLICATE_IDS.slice(0, 2).map(replicateModel) }
  }
  return cursor === 'second='
    ? { previous: null, next: null, results: REPLICATE_IDS.slice(2).map(replicateModel) }
    : null
}

export function redditPost(id: string, subreddit: string): Record<string, unknown> {
  return {
    kind: 't3',
    data: {
      id,
      name: `t3_${id}`,
      title: `A post & its title ${id}`,
      subreddit,
      score: 77,
      num_comments: 5,
      created_utc: 1_795_000_661.0,
      permalink: `/r/${subreddit}/comments/${id}/a_post/`,
      url: 'https://i.redd.it/picture.jpeg',
      link_flair_text: 'Discussion',
      over_18: false,
      stickied: false,
      author: 'somebody',
    },
  }
}

const REDDIT_TOKEN = 'granted-token'

function redditContent(pathname: string, { method, headers, body }: ReplayRequest): unknown {
  if (pathname === '/api/v1/access_token') {
    const known = Buffer.from(`${TOKENS.REDDIT_CLIENT_ID}:${TOKENS.REDDIT_CLIENT_SECRET}`).toString('base64')
    if (method !== 'POST' || body !== 'grant_type=client_credentials') return 400
    if (headers['authorization'] !== `Basic ${known}`) return 401
    return { access_token: REDDIT_TOKEN, token_type: 'bearer', expires_in: 86_400, scope: '*' }
  }
  if (headers['authorization'] !== `Bearer ${REDDIT_TOKEN}`) return 401
  const subreddits = ['MachineLearning', 'LocalLLaMA', 'StableDiffusion']
  const index = subreddits.findIndex((name) => pathname === `/r/${name}/top.json`)
  const id = REDDIT_IDS[index]
  if (id === undefined) return null
  return {
    kind: 'Listing',
    data: { after: null, dist: 1, children: [redditPost(id, subreddits[index] ?? '')] },
  }
}
