import { expect, test } from 'vitest'
import { sourceTitles } from '../../../src/adapters/sources/news-items.ts'
import type { VerifiedTitle } from '../../../src/domain/year/rank.ts'
import { jsonSource, localSource } from '../../support/local-source.ts'
import { sourceClient } from './client.ts'
import { NEVER_ABORTED } from '../provider/model-turns.ts'
import { NOT_VOUCHED, SOURCE_UNAVAILABLE } from '../../support/refusals.ts'

/** Requests the title of an item from a source at `url`. */
function fetchTitle(
  url: string,
  source: string,
  sourceId: string,
  signal = NEVER_ABORTED,
): Promise<VerifiedTitle> {
  const titles = sourceTitles(sourceClient(), { hn: url, lobsters: url, lesswrong: url })
  return titles.title({ source, sourceId }, signal)
}

type Changes = Record<string, unknown>

const HN_TITLE = 'My YC app: Dropbox - Throw away your USB drive'
const hnItem = (changes: Changes = {}): Changes => ({
  by: 'dhouston',
  id: 8863,
  title: HN_TITLE,
  type: 'story',
  ...changes,
})

const LOBSTERS_TITLE = "Ranking comments by sum of replies' scores"
const lobstersStory = (changes: Changes = {}): Changes => ({
  short_id: 'tdfoqh',
  title: LOBSTERS_TITLE,
  url: '',
  ...changes,
})

const POST = 'BtEfvGgjTSszkG5fy'
const POST_TITLE = 'When does external behaviour imply interal structure?'
const lessWrongPost = (changes: Changes = {}): Changes => ({
  data: { post: { result: { _id: POST, title: POST_TITLE, ...changes } } },
})

/** One item of each source with the expected request. */
const ITEMS = [
  ['hn', '8863', '/item/8863.json', hnItem(), HN_TITLE, 'hn:firebase-item'],
  ['lobsters', 'tdfoqh', '/s/tdfoqh.json', lobstersStory(), LOBSTERS_TITLE, 'lobsters:story-json'],
  ['lesswrong', POST, '/', lessWrongPost(), POST_TITLE, 'lesswrong:graphql-post'],
] as const

/** Responses that do not vouch for the requested item, and JSON of an unexpected form. */
const RESPONSES: [string, string, string, object, unknown][] = [
  ['an item it does not know', 'hn', '8863', NOT_VOUCHED, null],
  ['a dead item', 'hn', '8863', NOT_VOUCHED, hnItem({ dead: true })],
  ['another item', 'hn', '8863', NOT_VOUCHED, hnItem({ id: 8864 })],
  ['an item whose number is written differently', 'hn', '08863', NOT_VOUCHED, hnItem()],
  ['an item without a title', 'hn', '8863', NOT_VOUCHED, hnItem({ title: undefined })],
  ['a title with half of a surrogate pair', 'hn', '8863', NOT_VOUCHED, hnItem({ title: 'a\uD83D' })],
  ['a title of white space', 'hn', '8863', NOT_VOUCHED, hnItem({ title: ' \t\u3000\n' })],
  ['an id in another case', 'lobsters', 'tdfoqh', NOT_VOUCHED, lobstersStory({ short_id: 'TDFOQH' })],
  ['no title', 'lesswrong', POST, NOT_VOUCHED, lessWrongPost({ title: null })],
  ['a post without a result', 'lesswrong', POST, NOT_VOUCHED, { data: { post: { result: null } } }],
  ['errors and no data', 'lesswrong', POST, SOURCE_UNAVAILABLE, { errors: [{ message: 'x' }], data: null }],
  ['an error', 'hn', '8863', SOURCE_UNAVAILABLE, { error: 'Permission denied' }],
  ['a story without a title', 'lobsters', 'tdfoqh', SOURCE_UNAVAILABLE, lobstersStory({ title: undefined })],
]

test.each(ITEMS)(
  'the title is requested from its own source, %s, with its channel',
  async (source, id, target, answer, title, provenance) => {
    const { url, requests } = await jsonSource(answer)
    expect(await fetchTitle(url, source, id)).toEqual({ title, provenance })
    expect(requests.map((question) => question.target)).toEqual([target])
  },
)

test('the title is requested from LessWrong by the id only, in a GraphQL variable', async () => {
  const { url, requests } = await jsonSource(lessWrongPost())
  await fetchTitle(`${url}/graphql`, 'lesswrong', POST)
  expect(requests[0]).toMatchObject({ method: 'POST', target: '/graphql' })
  const body: unknown = JSON.parse(requests[0]?.body ?? '')
  expect(body).toEqual({
    query: expect.stringMatching(/post\(.*\$id.*_id title/s) as string,
    variables: { id: POST },
  })
})

// A thousand characters fit into a publication: one more shows that a title is too long.
test.each([
  ['kept verbatim', '  Größe “quoted” <b>&amp;</b> 😀\nbreak  ', undefined],
  ['cut after 1,001 characters', '😀'.repeat(100_000), '😀'.repeat(1_001)],
])('the title is %s', async (_how, title, kept = title) => {
  const { url } = await jsonSource(hnItem({ title }))
  expect((await fetchTitle(url, 'hn', '8863')).title).toBe(kept)
})

test.each([
  ['../../admin', '..%2F..%2Fadmin'],
  ['a?b=c#d', 'a%3Fb%3Dc%23d'],
  ['é😀 100%', '%C3%A9%F0%9F%98%80%20100%25'],
  ['..', '..'],
])('the title is requested with the id %j encoded as one segment of the path', async (id, encoded) => {
  const { url, requests } = await jsonSource(null)
  await expect(fetchTitle(`${url}/v0`, 'hn', id)).rejects.toMatchObject(NOT_VOUCHED)
  await expect(fetchTitle(`${url}/v0`, 'lobsters', id)).rejects.toMatchObject(NOT_VOUCHED)
  expect(requests.map(({ target }) => target)).toEqual([`/v0/item/${encoded}.json`, `/v0/s/${encoded}.json`])
})

test('the title is not vouched for by a 404', async () => {
  const { url } = await localSource((_question, response) => response.writeHead(404).end('Not Found'))
  await expect(fetchTitle(url, 'hn', '8863')).rejects.toMatchObject(NOT_VOUCHED)
})

test.each(['hype:github', ''])('the title of the source %j has no API to vouch for it', async (source) => {
  const { url, requests } = await jsonSource(hnItem())
  await expect(fetchTitle(url, source, '8863')).rejects.toMatchObject(NOT_VOUCHED)
  expect(requests).toEqual([])
})

test.each(RESPONSES)('the title is not given by %s (%s)', async (_what, source, id, refusal, json) => {
  const { url } = await jsonSource(json)
  await expect(fetchTitle(url, source, id)).rejects.toMatchObject(refusal)
})

test('the request of a title is aborted at once when the run ends', async () => {
  const controller = new AbortController()
  const { url } = await localSource(() => controller.abort(new Error('the run was ended')))
  await expect(fetchTitle(url, 'hn', '8863', controller.signal)).rejects.toThrow('the run was ended')
})
