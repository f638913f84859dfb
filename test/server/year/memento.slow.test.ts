import { writeFileSync } from 'node:fs'
import type { H3 } from 'h3'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { addDays, formatInstant } from '../../../src/domain/time.ts'
import { staticObjectPath } from '../../../src/domain/year/log/static-layout.ts'
import { openApp } from '../../support/api-client.ts'
import { requestHistory, requestRoute } from '../contract-client.ts'
import { importSample } from '../../support/legacy-archive.ts'
import { AS_OF, manifestsOf, objectFile, openWorkspace, publishedWorkspace } from '../../support/workspace.ts'

const DAYS = [AS_OF, addDays(AS_OF, 1)]
const FOREVER = 'public, max-age=31536000'

async function published() {
  const workspace = await publishedWorkspace(DAYS)
  return { workspace, app: openApp(workspace), publications: await manifestsOf(workspace) }
}

/** Headers that say that a response never changes. */
async function finality(app: H3, query: string, init = {}): Promise<unknown[]> {
  const { status, headers } = await requestHistory(app, query, { headers: init })
  const isMemento = headers.get('link')?.includes('rel="original"')
  return [status, headers.get('cdn-cache-control'), headers.get('memento-datetime'), isMemento]
}

const pathOf = (sha256: string): string => `/${staticObjectPath(sha256)}`

describe('a response of the history', () => {
  test('a response is the newest publication at or before `at`, to the millisecond; it may stay in a CDN and is a memento of its publication time', async () => {
    const { app, publications } = await published()
    const [first, last] = publications
    if (!first || !last) throw new Error('there are no two publications')
    for (const [at, { sha256, publishedAt }] of [
      [first.publishedAt, first],
      [last.publishedAt - 1, first],
      [last.publishedAt, last],
    ] as const) {
      const query = `?sort=year&at=${formatInstant(at)}`
      const { headers } = await requestHistory(app, query)
      expect(headers.get('etag')).toBe(`"${sha256}"`)
      expect(headers.get('link')).toContain(`, <${pathOf(sha256)}>; rel="alternate"; `)
      const dated = [FOREVER, new Date(publishedAt).toUTCString(), true]
      expect(await finality(app, query)).toEqual([200, ...dated])
      expect(await finality(app, query, { 'if-none-match': '*' })).toEqual([304, ...dated])
    }
    const before = `?sort=year&at=${formatInstant(first.publishedAt - 1)}`
    expect((await requestHistory(app, before)).error).toBe('year_history_not_found')
  })

  test('a response without a time, or after the newest publication, is neither, also by a clock behind it or in a demo', async () => {
    const { app, workspace, publications } = await published()
    const { publishedAt = 0 } = publications.at(-1) ?? {}
    const behind = openApp(workspace, { clock: () => publishedAt - 1 })
    const demo = openApp(workspace, { demo: true })
    for (const [at, query] of [
      [behind, '?sort=year'],
      [app, '?sort=year'],
      [app, `?sort=year&at=${formatInstant(publishedAt + 1)}`],
      [demo, `?sort=year&at=${formatInstant(publications[0]?.publishedAt ?? 0)}`],
    ] as const)
      expect(await finality(at, query), query).toEqual([200, null, null, false])
  })

  test('a refusal has no header that lets a CDN keep it', async () => {
    const { app } = await published()
    for (const query of ['?sort=year&at=2001-01-01T00:00:00Z', '?sort=year&at=x']) {
      const { status, headers } = await requestHistory(app, query)
      expect(status).toBeGreaterThanOrEqual(400)
      expect([headers.get('cdn-cache-control'), headers.get('memento-datetime')]).toEqual([null, null])
    }
  })
})

describe('an object by its digest', () => {
  test('the object of every publication has the stored bytes, also of a legacy one and of one that no time selects', async () => {
    const imported = await openWorkspace()
    await importSample(imported)
    for (const workspace of [await publishedWorkspace(DAYS), imported])
      for (const { sha256 } of await manifestsOf(workspace)) {
        const encoded = `/objects/sha256/${sha256.slice(0, 2)}%2F${sha256}.json`
        for (const path of [pathOf(sha256), encoded]) {
          const { status, bytes } = await requestRoute(openApp(workspace), path)
          expect([status, bytes]).toEqual([200, await workspace.objects.get(sha256)])
        }
      }
  })

  test('an object that the ledger does not name is 404, although the store has it, and so is any other path', async () => {
    const { workspace, app, publications } = await published()
    const missing = { status: 404, error: 'year_history_not_found' }
    const bytes = Buffer.from('{"left by":"a failed attempt"}')
    await workspace.objects.put(sha256Hex(bytes), bytes)
    expect(await requestRoute(app, pathOf(sha256Hex(bytes)))).toMatchObject(missing)
    const sha256 = publications[0]?.sha256 ?? ''
    const folder = sha256.slice(0, 2)
    const traversal = `${folder}/..%2f${folder}%2f${sha256}.json`
    for (const path of [`${folder}/${sha256}`, `${folder}/${sha256.toUpperCase()}.json`, traversal, ''])
      expect(await requestRoute(app, `/objects/sha256/${path}`), path).toMatchObject(missing)
  })

  test('a damaged object is 503 and may not stay in a CDN', async () => {
    const { workspace, app, publications } = await published()
    const sha256 = publications[0]?.sha256 ?? ''
    expect((await requestRoute(app, pathOf(sha256))).status).toBe(200)
    writeFileSync(objectFile(workspace, sha256), '{}')
    const refused = await requestRoute(app, pathOf(sha256))
    expect(refused).toMatchObject({ status: 503, error: 'year_history_archive_corrupt' })
    expect(refused.headers.get('cdn-cache-control')).toBeNull()
  })
})
