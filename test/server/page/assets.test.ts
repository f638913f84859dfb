import { gunzipSync } from 'node:zlib'
import type { H3 } from 'h3'
import { beforeEach, describe, expect, test } from 'vitest'
import { acceptsGzip } from '../../../src/server/respond.ts'
import { openApp } from '../../support/api-client.ts'
import { openWorkspace } from '../../support/workspace.ts'

let app: H3

beforeEach(async () => {
  app = openApp(await openWorkspace())
})

async function get(path: string, headers: Record<string, string> = {}) {
  const response = await app.request(`http://dash.test${path}`, { headers })
  return { response, body: Buffer.from(await response.arrayBuffer()) }
}

/** The address under which the page loads a file. */
async function addressOf(name: string): Promise<string> {
  const page = (await get('/')).body.toString()
  return new RegExp(`"(/assets/[0-9a-f]{16}/${name})"`).exec(page)?.[1] ?? ''
}

describe('assets', () => {
  test('assets have their type, are immutable under their release, and are never sniffed', async () => {
    for (const [name, type] of [
      ['page.css', 'text/css; charset=utf-8'],
      ['page.js', 'text/javascript; charset=utf-8'],
      ['icon.svg', 'image/svg+xml'],
    ] as const) {
      const { response, body } = await get(await addressOf(name))
      expect([name, response.status, response.headers.get('content-type')]).toEqual([name, 200, type])
      expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      expect(body.byteLength).toBeGreaterThan(0)
    }
  })

  test('an asset of another release is the current one, and is revalidated each time', async () => {
    const path = '/assets/0123456789abcdef/page.css'
    const { response } = await get(path)
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-cache'])
    const etag = response.headers.get('etag') ?? ''
    expect((await get(path, { 'if-none-match': etag })).response.status).toBe(304)
    expect((await get(path, { 'if-none-match': '"other"' })).response.status).toBe(200)
  })

  test('assets are compressed for clients that accept gzip, with another tag and the same content', async () => {
    const plain = await get(await addressOf('page.css'))
    const zipped = await get(await addressOf('page.css'), { 'accept-encoding': 'br, gzip;q=0.5' })
    expect(zipped.response.headers.get('content-encoding')).toBe('gzip')
    expect(zipped.response.headers.get('vary')).toBe('Accept-Encoding')
    const [etag, zippedTag] = [plain, zipped].map(({ response }) => response.headers.get('etag') ?? '')
    const statuses = [etag, zippedTag].map(async (tag = '') => {
      const headers = { 'accept-encoding': 'gzip', 'if-none-match': tag }
      return (await get(await addressOf('page.css'), headers)).response.status
    })
    expect(await Promise.all(statuses)).toEqual([200, 304])
    expect(gunzipSync(zipped.body)).toEqual(plain.body)
    expect(zipped.body.byteLength).toBeLessThan(plain.body.byteLength)
  })

  test.each(['/assets/missing.js', '/assets/0123456789abcdef/missing.js', '/assets/..%2Fdemo%2FSOURCES.md'])(
    '%s is not found',
    async (path) => {
      expect((await get(path)).response.status).toBe(404)
    },
  )
})

test.each([
  ['gzip', true],
  ['br, GZIP;q=0.1', true],
  ['*', true],
  ['gzip;q=0', false],
  ['gzip;q=0, *', false],
  ['identity', false],
  ['', false],
  [null, false],
] as const)('a client that sends Accept-Encoding %j accepts gzip: %s', (header, takes) => {
  expect(acceptsGzip(header)).toBe(takes)
})
