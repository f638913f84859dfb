import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openObjects, openStaticTree } from '../../src/adapters/objects/objects.ts'
import { FEED_CONTRACTS } from '../adapters/feed/feed-contracts.ts'
import { connectFeed } from '../adapters/feed/open-feed.ts'
import { LEDGER_CONTRACTS } from '../adapters/ledger/ledger-contract.ts'
import { connectLedger } from '../adapters/ledger/open-ledger.ts'
import { staticTreeContract } from '../adapters/objects/static-tree-contract.ts'
import { objectsContract } from '../adapters/objects/objects-contract.ts'
import { answerCacheContract } from '../adapters/state/answer-cache-contract.ts'
import { chatKeysContract } from '../adapters/state/chat-keys-contract.ts'
import { chatLedgerContract } from '../adapters/state/chat-ledger-contract.ts'
import { evaluationsContract } from '../adapters/state/evaluations-contract.ts'
import { connectChat, connectEvaluations } from '../adapters/state/open-chat.ts'
import { startS3Server } from './s3-server.ts'
import type { S3Server } from './s3-server.ts'
import { startSqld } from './sqld.ts'
import type { Sqld } from './sqld.ts'

/** The contract of each port, on servers instead of files. */
let sqld: Sqld
let s3: S3Server

beforeAll(async () => {
  ;[sqld, s3] = await Promise.all([startSqld(), startS3Server()])
})
afterAll(() => Promise.all([sqld.stop(), s3.close()]))

/** Opens something on a server that was emptied before. */
const onEmpty =
  <T>(open: (url: string) => T) =>
  async (): Promise<T> => {
    await sqld.empty()
    return open(sqld.url)
  }

const ON_SERVER = 'a libSQL server'

for (const contract of LEDGER_CONTRACTS) contract(ON_SERVER, onEmpty(connectLedger))
for (const contract of FEED_CONTRACTS)
  contract(
    ON_SERVER,
    onEmpty((url) => connectFeed(url)),
  )
chatLedgerContract(ON_SERVER, onEmpty(connectChat))
chatKeysContract(ON_SERVER, onEmpty(connectChat))
answerCacheContract(ON_SERVER, onEmpty(connectChat))
evaluationsContract(ON_SERVER, onEmpty(connectEvaluations))

let prefixes = 0

const nextPrefix = (): string => `of-test-${(prefixes += 1)}/archive`

objectsContract('an S3 server', () => {
  const prefix = nextPrefix()
  const objects = openObjects(s3.location({ prefix }))
  onTestFinished(() => objects.close())
  return Promise.resolve({ objects, plant: (path, bytes) => s3.plant(`${prefix}/${path}`, bytes) })
})

function openTree(prefix = nextPrefix()): ReturnType<typeof openStaticTree> {
  const tree = openStaticTree(s3.location({ prefix }))
  onTestFinished(() => tree.close())
  return tree
}

staticTreeContract('an S3 server', () => Promise.resolve(openTree()))

test('a replacement whose response is lost is not repeated and counts as done', async () => {
  const tree = openTree()
  await tree.replace('index.json', null, Uint8Array.of(1))
  s3.fail('PUT', /index\.json/, 'lost-answer')
  expect(await tree.replace('index.json', Uint8Array.of(1), Uint8Array.of(2))).toBe(true)
  expect([...((await tree.get('index.json')) ?? [])]).toEqual([2])
})

test('a server that ignores If-Match is refused before a file is replaced', async () => {
  const tree = openTree()
  await tree.put('tlog/year/tile/0/000.p/1', Uint8Array.of(1))
  s3.fail('PUT', /probe/, { status: 200 })
  await expect(tree.replace('index.json', null, Uint8Array.of(1))).rejects.toMatchObject({
    code: 'storage_unavailable',
    detail: expect.stringContaining('ignores If-Match, which protects') as unknown,
  })
  expect(await tree.get('index.json')).toBeNull()
})

test('a bucket stores each file of a static tree with its content type and cache time', async () => {
  const prefix = nextPrefix()
  const tree = openTree(prefix)
  s3.reset()
  await tree.put('tlog/year/tile/0/000.p/1', Uint8Array.of(1))
  await tree.replace('tlog/year/checkpoint', null, Uint8Array.of(2))
  const headersOf = (path: string) =>
    s3.requests.find(({ method, target }) => method === 'PUT' && target.endsWith(`${prefix}/${path}`))
      ?.headers
  expect(headersOf('tlog/year/tile/0/000.p/1')).toMatchObject({
    'content-type': 'application/octet-stream',
    'cache-control': 'public, max-age=31536000, immutable',
    'if-none-match': '*',
  })
  expect(headersOf('tlog/year/checkpoint')).toMatchObject({
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'public, max-age=5',
  })
})
