import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openObjects } from '../../src/adapters/objects/open.ts'
import { recommendationsContract } from '../adapters/objects/archive-contract.ts'
import { UNAVAILABLE } from '../support/refusals.ts'
import { s3Error, startS3Server } from '../support/s3-server.ts'
import type { S3Server } from '../support/s3-server.ts'

let server: S3Server
let prefixes = 0

beforeAll(async () => {
  server = await startS3Server()
})

afterAll(() => server.close())

beforeEach(() => {
  server.reset()
  prefixes += 1
})

const prefix = (): string => `of-recommendations-${prefixes}`

function open() {
  const objects = openObjects(server.location({ prefix: prefix() }))
  onTestFinished(() => objects.close())
  return objects.recommendations
}

recommendationsContract('an S3 server', () =>
  Promise.resolve({
    store: open(),
    plant: (path, bytes) => server.plant(`${prefix()}/${path}`, bytes),
  }),
)

describe('recommendations on an S3 server', () => {
  const bytes = new TextEncoder().encode('a run')

  test('are replaced by one request, even when its answer was lost on the way', async () => {
    const store = open()
    await store.put('2026-08-22.v1', bytes)
    server.reset()
    server.fail('PUT', /free-llm\/current/, 'lost-answer')
    await store.put('2026-08-23.v1', new TextEncoder().encode('the next'))
    expect(new TextDecoder().decode((await store.current()) ?? undefined)).toBe('the next')
    const writes = server.questions.filter(
      ({ method, target }) => method === 'PUT' && target.endsWith('/current'),
    )
    expect(writes.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, undefined])
  })

  test('stay what they were while the run cannot be kept', async () => {
    const store = open()
    await store.put('2026-08-22.v1', bytes)
    server.fail('PUT', /free-llm\/runs/, s3Error(403, 'AccessDenied'))
    await expect(store.put('2026-08-23.v1', new TextEncoder().encode('next'))).rejects.toMatchObject(
      UNAVAILABLE,
    )
    expect(new TextDecoder().decode((await store.current()) ?? undefined)).toBe('a run')
  })

  test('of a bucket that is not there are unavailable, not absent', async () => {
    const objects = openObjects(server.location({ bucket: 'nowhere' }))
    onTestFinished(() => objects.close())
    await expect(objects.recommendations.current()).rejects.toMatchObject(UNAVAILABLE)
  })
})
