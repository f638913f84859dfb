import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { LiveSourceName, SourceBatch } from '../../../src/domain/feed/live-source.ts'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import { DAY, NOW, readWhole, replay, sourcesOf } from '../../support/replay/live-world.ts'
import {
  HN_IDS,
  TOKENS,
  hackerNewsItem,
  lessWrongPost,
  lobstersStory,
  model,
  redditPost,
  replicateModel,
  repository,
} from '../../support/replay/responses.ts'
import type { Replayed } from '../../support/replay/responses.ts'
import { USER_AGENT } from './client.ts'

function shape(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../fixtures/shapes/${name}.json`, import.meta.url), 'utf8'))
}

/** Reads a source with one of its responses changed. */
async function readChanged(
  name: LiveSourceName,
  server: Replayed,
  where: RegExp,
  change: (reply: unknown) => unknown,
): Promise<SourceBatch> {
  const world = await replay()
  world.change(server, where, change)
  return readWhole(world, name)
}

function itemOf({ signals, details }: SourceBatch, id: string) {
  const signal = signals.find(({ sourceId }) => sourceId === id)
  const known = details.find(({ sourceId }) => sourceId === id)
  return { signal, author: known?.author, tags: known?.tags, description: known?.description }
}

const ITEMS: [LiveSourceName, Partial<Signal> & { sourceId: string }, Record<string, unknown>][] = [
  [
    'lobsters',
    {
      sourceId: 'aaaaa4',
      url: 'https://example.org/lobsters/aaaaa4',
      titleProvenance: 'lobsters:newest-json',
    },
    { author: 'user3', tags: ['programming', 'meta'], description: null },
  ],
  [
    'lesswrong',
    {
      sourceId: 'post0000000000001',
      title: 'Post 0',
      url: null,
      points: -5,
      comments: 0,
      publishedAt: Date.UTC(2026, 10, 20, 16, 41, 42, 727),
      titleProvenance: 'lesswrong:graphql-posts',
    },
    { author: 'User 0', tags: [], description: null },
  ],
  [
    'lesswrong',
    { sourceId: 'post0000000000003', url: 'https://example.org/linked', points: 15 },
    { author: 'User 2', tags: [], description: null },
  ],
  [
    'hype:github',
    {
      sourceId: 'owner/first',
      title: 'owner/first',
      url: 'https://github.com/owner/first',
      points: 100,
      comments: null,
      publishedAt: Date.UTC(2026, 10, 18, 10),
      titleProvenance: 'hype:github:search',
    },
    { author: 'owner', tags: ['agents', 'llm'], description: 'Does a thing.' },
  ],
  [
    'hype:huggingface',
    {
      sourceId: 'org/model-a',
      title: 'org/model-a',
      url: 'https://huggingface.co/org/model-a',
      points: 50,
      comments: null,
      publishedAt: Date.UTC(2026, 10, 15, 9, 12, 25),
      titleProvenance: 'hype:huggingface:models',
    },
    { author: 'org', tags: ['transformers', 'text-generation', 'region:us'], description: 'text-generation' },
  ],
  ['hype:huggingface', { sourceId: 'solo', url: 'https://huggingface.co/solo' }, { author: null }],
  [
    'hype:replicate',
    {
      sourceId: 'maker/three',
      title: 'maker/three',
      url: 'https://replicate.com/maker/three',
      points: 1002,
      comments: null,
      publishedAt: Date.UTC(2026, 10, 19, 8, 30, 0, 123),
      titleProvenance: 'hype:replicate:models',
    },
    { author: 'maker', tags: [], description: 'What maker/three makes' },
  ],
  [
    'hype:reddit',
    {
      sourceId: '1bbbbb',
      title: 'A post & its title 1bbbbb',
      url: 'https://www.reddit.com/r/LocalLLaMA/comments/1bbbbb/a_post/',
      points: 77,
      comments: 5,
      publishedAt: 1_795_000_661_000,
      titleProvenance: 'hype:reddit:top',
    },
    { author: 'somebody', tags: ['LocalLLaMA', 'Discussion'], description: null },
  ],
]

test.each(ITEMS)(
  "an item of %s is observed today with its source's values: %j",
  async (source, signal, known) => {
    const collected = await readWhole(await replay(), source)
    const found = itemOf(collected, signal.sourceId)
    expect(found.signal).toMatchObject({ source, day: DAY, ...signal })
    expect(found).toMatchObject(known)
    expect([collected.badRows, collected.failures]).toEqual([[], []])
    expect(collected.details.every(({ collectedAt }) => collectedAt === NOW)).toBe(true)
  },
)

describe('the requests to sources', () => {
  test('the requests name the product, none is sent twice, and each token is sent to its own source only', async () => {
    const world = await replay()
    for (const { source } of sourcesOf(world)) await readWhole(world, source)
    expect(world.requests.length).toBeGreaterThan(60)
    for (const { headers } of world.requests) expect(headers['user-agent']).toBe(USER_AGENT)
    const sent = world.requests.map(({ source, target, body }) => `${source} ${target} ${body}`)
    expect(new Set(sent).size).toBe(sent.length)
    const carried = world.requests.flatMap(({ source, headers }) =>
      headers['authorization'] === undefined ? [] : [`${source} ${headers['authorization'] as string}`],
    )
    const basic = Buffer.from('reddit-id:reddit-secret').toString('base64')
    expect(new Set(carried)).toEqual(
      new Set([
        `github Bearer ${TOKENS.GITHUB_TOKEN}`,
        `huggingface Bearer ${TOKENS.HF_TOKEN}`,
        `replicate Bearer ${TOKENS.REPLICATE_API_TOKEN}`,
        `reddit Basic ${basic}`,
        'reddit Bearer granted-token',
      ]),
    )
  })

  test('the requests work without optional tokens', async () => {
    const world = await replay()
    for (const source of ['hype:github', 'hype:huggingface'] as const) {
      const collected = await readWhole(world, source, { gitHub: null, huggingFace: null })
      expect([collected.signals.length, collected.failures]).toEqual([3, []])
    }
  })

  test('the search requests are half days of today and yesterday, up to now', async () => {
    const world = await replay()
    await readWhole(world, 'hn')
    const windows = world.requests
      .filter(({ source }) => source === 'hn-search')
      .map(({ target }) => new URL(target, 'http://x').searchParams.get('numericFilters'))
    const starts = [0, 1, 2, 3].map((n) => Date.UTC(2026, 10, 20) / 1000 + n * 43_200)
    expect(windows).toEqual(starts.map((start) => `created_at_i>=${start},created_at_i<${start + 43_200}`))
  })

  test('the requests to GitHub are for public repositories of the last week and month', async () => {
    const world = await replay()
    await readWhole(world, 'hype:github')
    const queries = world.requests.map(({ target }) => new URL(target, 'http://x').searchParams.get('q'))
    expect(queries).toEqual(['is:public created:>=2026-11-14', 'is:public created:>=2026-10-22'])
  })

  test('the requests for further pages of Replicate stay at its base, for any address in the response', async () => {
    const world = await replay()
    const { signals, failures } = await readWhole(world, 'hype:replicate')
    expect([signals.length, failures]).toEqual([3, []])
    expect(world.requests.map(({ target }) => target)).toEqual(['/models', '/models?cursor=second%3D'])
  })

  test.each([
    ['REDDIT_CLIENT_ID and REDDIT_CLIENT_SECRET', 'hype:reddit', { redditClientSecret: 'wrong' }],
    ['REPLICATE_API_TOKEN', 'hype:replicate', { replicate: 'wrong' }],
    ['GITHUB_TOKEN', 'hype:github', { gitHub: 'wrong' }],
    ['HF_TOKEN', 'hype:huggingface', { huggingFace: 'wrong' }],
  ] as const)('the requests with a wrong token report the setting: %s', async (setting, source, tokens) => {
    const { signals, failures } = await readWhole(await replay(), source, tokens)
    expect(signals).toEqual([])
    expect(failures[0]?.reason).toMatch(new RegExp(`responded with 401; check ${setting}$`))
    expect(JSON.stringify(failures)).not.toContain('wrong')
  })
})

/** A list of each source: its path, a valid row, the key of its id, and a function that wraps rows. */
const LISTS: [LiveSourceName, Replayed, RegExp, object, string, (rows: unknown[]) => unknown][] = [
  ['lobsters', 'lobsters', /hottest|newest/, lobstersStory('aaaaa2'), 'short_id', (rows) => rows],
  [
    'lesswrong',
    'lesswrong',
    /./,
    lessWrongPost('post0000000000002'),
    '_id',
    (results) => ({ data: { posts: { results } } }),
  ],
  ['hype:github', 'github', /./, repository('owner/second'), 'full_name', (items) => ({ items })],
  ['hype:huggingface', 'huggingface', /./, model('org/model-b'), 'id', (rows) => rows],
  [
    'hype:replicate',
    'replicate',
    /./,
    replicateModel('maker/two'),
    'owner',
    (results) => ({ next: null, results }),
  ],
]

describe('an invalid row', () => {
  test.each(LISTS)(
    'an invalid row of %s affects only itself, and is reported; without another row the list fails',
    async (source, server, where, good, id, wrap) => {
      const read = (...rows: unknown[]) => readChanged(source, server, where, () => wrap(rows))
      const bad = [null, 'text', [], {}, { ...good, [id]: 5 }, { ...good, [id]: null }]
      const { signals, badRows, failures } = await read(...bad, good)
      expect([signals.length, failures]).toEqual([1, []])
      expect(badRows.length % 6).toBe(0)
      expect(badRows.some(({ reason }) => reason.includes(`${id}: `))).toBe(true)
      for (const none of [await read({}), await read()]) {
        expect(none.signals).toEqual([])
        expect(none.failures.length).toBeGreaterThan(0)
      }
    },
  )

  test('an invalid row of a Reddit listing affects only itself, and posts for adults are skipped', async () => {
    const post = redditPost('1aaaaa', 'MachineLearning')
    const data = post['data'] as Record<string, unknown>
    const changed = [
      { id: 7 },
      { id: 'adult', over_18: true },
      { id: 'pinned', stickied: true },
      { id: 'away', permalink: 'https://elsewhere.example/' },
    ].map((changes) => ({ kind: 't3', data: { ...data, ...changes } }))
    const children = [{ kind: 't1', data: { body: 'a comment' } }, ...changed, post]
    const listing = () => ({ data: { children } })
    const { signals, badRows } = await readChanged('hype:reddit', 'reddit', /top\.json/, listing)
    expect(signals.map(({ sourceId }) => sourceId)).toEqual(['1aaaaa'])
    expect(badRows).toHaveLength(9)
  })

  test('a row rejected by the rules of signals is reported', async () => {
    const { signals, badRows } = await readChanged('lobsters', 'lobsters', /hottest/, () => [
      { ...lobstersStory('aaaaa1'), created_at: 'yesterday' },
      lobstersStory('aaaaa2'),
    ])
    expect(signals.map(({ sourceId }) => sourceId)).toEqual(['aaaaa2', 'aaaaa3', 'aaaaa4'])
    const reason = expect.stringContaining('created_at: must be an ISO-8601 instant') as string
    expect(badRows).toMatchObject([{ reason }])
  })
})

/** When a busy source allows the next request. */
const AN_HOUR_LATER = NOW + 3_600_000

test.each([
  ['hn', 'hn-search', 60],
  ['lobsters', 'lobsters', 0],
  ['hype:reddit', 'reddit', 0],
] as const)('a busy part of %s fails with the time of its next request: %s', async (name, server, rest) => {
  const world = await replay()
  world.fault(server, 'limited')
  const { signals, failures } = await readWhole(world, name)
  expect([signals.length, failures[0]?.retryAt]).toEqual([rest, AN_HOUR_LATER])
})

/** The provenance of a title from the search of Hacker News. */
const SEARCHED = 'hn:algolia-search-by-date'

describe('an item of Hacker News', () => {
  const ID = HN_IDS[3] ?? 0
  const ITEM = hackerNewsItem(ID)
  const OTHER = HN_IDS[4] ?? 0

  test.each([
    ['is null', null, null],
    ['was deleted', { deleted: true, id: ID, time: 1, type: 'story' }, null],
    ['is dead', { ...ITEM, dead: true }, null],
    ['is a job', { ...ITEM, type: 'job' }, null],
    ['is a comment', { id: ID, type: 'comment', text: 'x' }, null],
    ['answers for another id', hackerNewsItem(OTHER), new RegExp(`the response is about the item ${OTHER}$`)],
    ['has no title', { ...ITEM, title: undefined }, /./],
    ['has its id as text', { ...ITEM, id: String(ID) }, /./],
  ])('an item that %s is skipped, and the others are kept', async (_what, item, bad) => {
    const collected = await readChanged('hn', 'hn', new RegExp(`item/${ID}`), () => item)
    expect(collected.signals.map(({ sourceId }) => sourceId)).not.toContain(String(ID))
    expect([collected.signals.length, collected.failures]).toEqual([61, []])
    const badRow = { sourceId: String(ID), reason: expect.stringMatching(bad ?? '') as string }
    expect(collected.badRows).toEqual(bad === null ? [] : [badRow])
  })

  test('an unreadable item affects only itself; after five the others are not requested', async () => {
    const some = await replay()
    some.fault('hn', 'failing', /item\/4100000[12]/)
    const partly = await readWhole(some, 'hn')
    expect(partly.signals).toHaveLength(60)
    expect(partly.failures[0]?.reason).toMatch(/^2 of 60 items could not be read; first problem: /)
    const none = await replay()
    none.fault('hn', 'limited', /item/)
    const { signals, failures, requests } = await readWhole(none, 'hn')
    expect(failures[0]).toMatchObject({
      retryAt: AN_HOUR_LATER,
      reason: expect.stringContaining('more were not requested') as string,
    })
    expect(signals.map(({ titleProvenance }) => titleProvenance)).toEqual(Array(3).fill(SEARCHED))
    // Five lists, four searches, and at most three further items that were on their way.
    expect(requests).toBeLessThanOrEqual(5 + 4 + 5 + 3)
  })

  test('the items are read although a list is missing, which is reported, and URLs no browser would open have none', async () => {
    const world = await replay()
    world.fault('hn', 'html', /topstories/)
    world.change('hn', /item\/41000041/, () => ({
      ...hackerNewsItem(41_000_041),
      url: 'javascript:alert(1)',
    }))
    const collected = await readWhole(world, 'hn')
    expect(collected.signals.length).toBeGreaterThan(35)
    expect(collected.failures).toHaveLength(1)
    expect(collected.failures[0]?.reason).toMatch(/topstories\.json: the response is a web page/)
    expect(itemOf(collected, '41000041').signal?.url).toBeNull()
  })

  test('an item is read as in the recorded responses', async () => {
    const world = await replay()
    world.change('hn', /stories\.json/, () => [8863, 121_003])
    world.change('hn', /item\/8863/, () => shape('hn-firebase-item-story'))
    world.change('hn', /item\/121003/, () => shape('hn-firebase-item-ask'))
    world.change('hn-search', /./, () => shape('hn-algolia-search_by_date-story'))
    const collected = await readWhole(world, 'hn')
    expect(collected.badRows).toEqual([])
    expect(collected.signals).toMatchObject([
      {
        sourceId: '8863',
        points: 111,
        comments: 71,
        publishedAt: 1_175_714_200_000,
        url: 'http://www.getdropbox.com/u/2/screencast.html',
        titleProvenance: 'hn:firebase-item',
      },
      { sourceId: '121003', title: 'Ask HN: The Arc Effect', url: null, points: 25, comments: 16 },
      {
        sourceId: '7919424',
        points: 1,
        publishedAt: Date.UTC(2014, 5, 20, 3, 35, 46),
        titleProvenance: SEARCHED,
      },
    ])
    expect(collected.details.map(({ author }) => author)).toEqual(['dhouston', 'tel', 'bradleyjg'])
  })
})

describe('the search of Hacker News', () => {
  const hit = (changes: Record<string, unknown>) => ({
    objectID: '5',
    title: 'Found',
    points: 30,
    num_comments: 1,
    created_at_i: 1_795_219_200,
    ...changes,
  })

  const AT = Date.UTC(2026, 10, 20, 1, 2, 3)

  test.each([
    ['without milliseconds', undefined, '2026-11-20T01:02:03Z'],
    ['with milliseconds', undefined, '2026-11-20T01:02:03.000Z'],
    ['with the seconds alone', AT / 1000, undefined],
    ['with both', AT / 1000, '2026-11-20T01:02:03Z'],
  ])('the search result has times %s', async (_form, created_at_i, created_at) => {
    const hits = [hit({ created_at_i, created_at })]
    const collected = await readChanged('hn', 'hn-search', /./, () => ({ hits }))
    expect(itemOf(collected, '5').signal?.publishedAt).toBe(AT)
  })

  test('the search skips stories of yesterday with few points, and keeps those of today', async () => {
    const world = await replay()
    const today = Date.UTC(2026, 10, 21) / 1000
    const found = (objectID: string, points: number) => hit({ objectID, points })
    world.change('hn-search', new RegExp(`%3E%3D${today}`), () => ({ hits: [found('6', 1)] }))
    world.change('hn-search', new RegExp(`%3C${today}`), () => ({ hits: [found('7', 9), found('8', 10)] }))
    const ids = (await readWhole(world, 'hn')).signals.map(({ sourceId }) => sourceId)
    expect(ids.filter((id) => ['6', '7', '8'].includes(id)).sort()).toEqual(['6', '8'])
  })

  test('the search may be empty for a half day that has just begun, but not for one that is over', async () => {
    const { failures } = await readChanged('hn', 'hn-search', /./, () => ({ hits: [] }))
    expect(failures).toHaveLength(3)
  })

  test('the search never replaces the values of an item itself', async () => {
    const collected = await readChanged('hn', 'hn-search', /./, () => ({
      hits: [hit({ objectID: '41000001', title: 'An older title', points: 1 })],
    }))
    expect(collected.signals.filter(({ sourceId }) => sourceId === '41000001')).toMatchObject([
      { title: 'Story 41000001: “quoted” & plain', titleProvenance: 'hn:firebase-item' },
    ])
  })
})

describe('details with another form', () => {
  test.each([
    ['name', 'name'],
    [{ username: 'name', karma: 3 }, 'name'],
    [{ login: 'name' }, null],
    [5, null],
    [undefined, null],
  ])('details of another form do not lose a story of Lobsters by %j', async (submitter_user, author) => {
    const story = { ...lobstersStory('aaaaa1'), submitter_user, tags: { programming: true }, new_key: 1 }
    const collected = await readChanged('lobsters', 'lobsters', /hottest/, () => [story])
    expect(itemOf(collected, 'aaaaa1')).toMatchObject({ author, tags: [] })
    expect(collected.badRows).toEqual([])
  })

  test('the details are read from a recorded story of Lobsters', async () => {
    const collected = await readChanged('lobsters', 'lobsters', /hottest/, () => [shape('lobsters-story')])
    const found = itemOf(collected, 'tdfoqh')
    expect(found).toMatchObject({
      signal: {
        title: "Ranking comments by sum of replies' scores",
        url: null,
        points: 18,
        comments: 10,
        publishedAt: Date.UTC(2022, 6, 22, 17, 6, 59),
        titleProvenance: 'lobsters:hottest-json',
      },
      author: 'gioele',
      tags: ['meta'],
    })
    expect(Array.from(found.description ?? '')).toHaveLength(500)
    expect(found.description).toMatch(/^There are often cases .*…$/)
  })

  test('the details are one clean line each', async () => {
    const item = {
      ...repository('owner/first'),
      description: ' a\u0000b\u001b[31m\r\n\u202Ec\u00AD d\uD83D ',
      topics: ['x', 'x', ' ', 'y'.repeat(200)],
      owner: null,
    }
    const collected = await readChanged('hype:github', 'github', /./, () => ({ items: [item] }))
    expect(itemOf(collected, 'owner/first')).toMatchObject({
      author: null,
      tags: ['x', `${'y'.repeat(99)}…`],
      description: 'a b [31m c d\uFFFD',
    })
  })
})

test('a private repository or model visible to a token is skipped', async () => {
  for (const [source, server, where, good, id, wrap] of LISTS.filter(([name]) => name.startsWith('hype:'))) {
    const hidden = { ...good, [id]: 'hidden/one', private: true, visibility: 'private' }
    const { signals, badRows } = await readChanged(source, server, where, () => wrap([hidden, good]))
    expect([signals.length, badRows], source).toEqual([1, []])
  }
})

test('a GitHub search that timed out keeps its results and is reported as incomplete', async () => {
  const { signals, failures } = await readChanged('hype:github', 'github', /./, (reply) => ({
    ...(reply as object),
    incomplete_results: true,
  }))
  expect([signals.length, failures.length]).toEqual([3, 2])
  expect(failures[0]?.reason).toMatch(/timed out/)
})

test.each([
  ['an error', { errors: [{ message: 'Cannot query field "x"' }] }, /the error "Cannot query field/],
  ['an error and no data', { errors: [{ message: 'internal' }], data: null }, /the error "internal"/],
  ['no list', { data: { posts: null } }, /no list of posts/],
  ['something else', [1], /no list of posts/],
])('a LessWrong response with %s is reported as a failure', async (_what, reply, badRow) => {
  const { signals, failures } = await readChanged('lesswrong', 'lesswrong', /./, () => reply)
  expect([signals, failures.length]).toEqual([[], 1])
  expect(failures[0]?.reason).toMatch(badRow)
})

test('a source that takes more than five minutes in total receives no further request', async () => {
  const world = await replay()
  let now = NOW
  const slowly = sourcesOf(world, { clock: () => (now += 60_000) }).find(({ source }) => source === 'hn')
  const failures: string[] = []
  for await (const batch of slowly?.read(DAY, new AbortController().signal) ?? []) {
    failures.push(...batch.failures.map(({ reason }) => reason))
  }
  expect(failures.at(-1)).toMatch(/not requested, the source took more than 300000 ms in total$/)
  expect(world.requests.length).toBeLessThan(10)
})
