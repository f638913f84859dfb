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
const SUBREDDITS = ['MachineLearning', 'LocalLLaMA', 'StableDiffusion']

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

type Row = Record<string, unknown>

/** The regular response of a source; null is a 404, a number a status. */
export function responseTo(source: Replayed, request: ReplayRequest): unknown {
  const url = new URL(request.target, 'http://source.invalid')
  return RESPONDERS[source](url, request)
}

const RESPONDERS: Record<Replayed, (url: URL, request: ReplayRequest) => unknown> = {
  hn: ({ pathname }) => {
    if (pathname === '/topstories.json') return HN_IDS.slice(0, 40)
    if (pathname === '/beststories.json') return HN_IDS.slice(20, 50)
    if (pathname === '/newstories.json') return HN_IDS.slice(50, 58).toReversed()
    if (pathname === '/askstories.json') return [HN_IDS[58]]
    if (pathname === '/showstories.json') return [HN_IDS[59]]
    const id = Number(/^\/item\/(\d+)\.json$/.exec(pathname)?.[1])
    // Hacker News responds null, not 404, for an unknown item.
    return HN_IDS.includes(id) ? hackerNewsItem(id) : null
  },
  'hn-search': ({ pathname, searchParams }) => {
    if (pathname !== '/search_by_date') return null
    const start = Number(/created_at_i>=(\d+)/.exec(searchParams.get('numericFilters') ?? '')?.[1])
    return { hits: SEARCHED_IDS.map((id, index) => searchHit(id, index, start + 5)) }
  },
  lobsters: ({ pathname }) => {
    if (pathname === '/hottest.json') return LOBSTERS_IDS.slice(0, 3).map(lobstersStory)
    return pathname === '/newest.json' ? LOBSTERS_IDS.slice(2).map(lobstersStory) : null
  },
  lesswrong: (_url, { method }) =>
    method === 'POST' ? { data: { posts: { results: LESSWRONG_IDS.map(lessWrongPost) } } } : 405,
  github: ({ pathname }, request) => {
    if (!isAuthorized(request, undefined, `Bearer ${TOKENS.GITHUB_TOKEN}`)) return 401
    const found = { total_count: 3, incomplete_results: false, items: GITHUB_IDS.map(repository) }
    return pathname === '/search/repositories' ? found : null
  },
  huggingface: ({ pathname }, request) => {
    if (!isAuthorized(request, undefined, `Bearer ${TOKENS.HF_TOKEN}`)) return 401
    return pathname === '/models' ? HUGGINGFACE_IDS.map(model) : null
  },
  /** Two pages; the URL of the second names a host that must never be requested. */
  replicate: ({ pathname, searchParams }, request) => {
    if (!isAuthorized(request, `Bearer ${TOKENS.REPLICATE_API_TOKEN}`)) return 401
    if (pathname !== '/models') return null
    const rows = REPLICATE_IDS.map(replicateModel)
    const next = 'https://elsewhere.invalid/v1/models?cursor=second%3D'
    return searchParams.get('cursor') === 'second='
      ? { previous: null, next: null, results: rows.slice(2) }
      : { previous: null, next, results: rows.slice(0, 2) }
  },
  reddit: ({ pathname }, request) => {
    if (pathname === '/api/v1/access_token') {
      const known = `${TOKENS.REDDIT_CLIENT_ID}:${TOKENS.REDDIT_CLIENT_SECRET}`
      if (request.method !== 'POST' || request.body !== 'grant_type=client_credentials') return 400
      if (!isAuthorized(request, `Basic ${Buffer.from(known).toString('base64')}`)) return 401
      return { access_token: 'granted-token', token_type: 'bearer', expires_in: 86_400, scope: '*' }
    }
    if (!isAuthorized(request, 'Bearer granted-token')) return 401
    const index = SUBREDDITS.findIndex((name) => pathname === `/r/${name}/top.json`)
    const [id, subreddit] = [REDDIT_IDS[index], SUBREDDITS[index] ?? '']
    return id === undefined ? null : { kind: 'Listing', data: { children: [redditPost(id, subreddit)] } }
  },
}

function isAuthorized({ headers }: ReplayRequest, ...allowed: (string | undefined)[]): boolean {
  return allowed.includes(headers['authorization'] as string | undefined)
}

export function hackerNewsItem(id: number): Row {
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

function searchHit(objectID: string, index: number, created_at_i: number): Row {
  return {
    objectID,
    title: `Found ${objectID}`,
    author: `finder${index}`,
    created_at: new Date(created_at_i * 1000).toISOString().replace('.000Z', index === 1 ? '.000Z' : 'Z'),
    created_at_i,
    points: 12 + index,
    num_comments: index,
    ...(index === 0 ? { url: `https://example.org/found/${objectID}` } : {}),
    ...(index === 1 ? { url: null, story_text: '', comment_text: null } : {}),
  }
}

export function lobstersStory(short_id: string): Row {
  const index = LOBSTERS_IDS.indexOf(short_id)
  const username = `user${index}`
  return {
    short_id,
    created_at: '2026-11-20T22:15:00.000-05:00',
    title: `Lobsters story ${short_id}`,
    url: index === 0 ? '' : `https://example.org/lobsters/${short_id}`,
    score: 5 * index,
    comment_count: index,
    description: '<p>A description</p>',
    description_plain: index === 0 ? 'A description\r\nof two lines' : '',
    submitter_user: index % 2 === 0 ? username : { username, karma: 3, is_admin: false },
    tags: ['programming', 'meta'],
  }
}

export function lessWrongPost(_id: string): Row {
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

export function repository(full_name: string): Row {
  return {
    full_name,
    owner: { login: full_name.split('/')[0], id: 1, type: 'User' },
    private: false,
    html_url: `https://github.com/${full_name}`,
    description: full_name === 'other/third' ? null : 'Does a thing.',
    created_at: '2026-11-18T10:00:00Z',
    stargazers_count: 100 + GITHUB_IDS.indexOf(full_name),
    topics: ['agents', 'llm'],
  }
}

export function model(id: string): Row {
  return {
    id,
    likes: 50 + HUGGINGFACE_IDS.indexOf(id),
    private: false,
    tags: ['transformers', 'text-generation', 'region:us'],
    pipeline_tag: 'text-generation',
    createdAt: '2026-11-15T09:12:25.000Z',
  }
}

export function replicateModel(id: string): Row {
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

export function redditPost(id: string, subreddit: string): Row {
  const data = {
    id,
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
  }
  return { kind: 't3', data }
}
