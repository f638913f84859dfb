import { writeFileSync } from 'node:fs'
import type { H3 } from 'h3'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { addDays, formatInstant } from '../../../src/domain/time.ts'
import type { TimelineItem } from '../../../src/domain/year/chain.ts'
import { staticObjectPath } from '../../../src/domain/year/log/static-layout.ts'
import { selectableItems } from '../../../src/domain/year/history/calendar.ts'
import { openApp } from '../../support/api-client.ts'
import { requestHistory, requestRoute } from '../contract-client.ts'
import { importSample } from '../../support/legacy-archive.ts'
import {
  AS_OF,
  objectFile,
  openWorkspace,
  publishDays,
  publishedWorkspace,
  sampleSignals,
} from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

const DAYS = [AS_OF, addDays(AS_OF, 1)]
const FOREVER = 'public, max-age=31536000'

interface Scene {
  workspace: Workspace
  app: H3
  timeline: TimelineItem[]
  /** Publications that their own time selects, in order. */
  publications: { at: string; publishedAt: number; sha256: string }[]
}

async function sceneOf(workspace: Workspace): Promise<Scene> {
  const { timeline } = (await workspace.year.read()).proved
  const publications = selectableItems(timeline).map(({ manifest: { publishedAt, sha256 } }) => ({
    at: formatInstant(publishedAt),
    publishedAt,
    sha256,
  }))
  return { workspace, app: openApp(workspace), timeline, publications }
}

const published = async (): Promise<Scene> => sceneOf(await publishedWorkspace(DAYS))

async function imported(): Promise<Scene> {
  const workspace = await openWorkspace()
  await importSample(workspace)
  return sceneOf(workspace)
}

/** Headers that say that a response never changes. */
async function finality(app: H3, query: string, headers = {}): Promise<unknown[]> {
  const response = await requestHistory(app, query, { headers })
  const link = response.headers.get('link') ?? ''
  return [
    response.status,
    response.headers.get('cdn-cache-control'),
    response.headers.get('memento-datetime'),
    link.includes('rel="original"'),
  ]
}

const pathOf = (sha256: string): string => `/${staticObjectPath(sha256)}`

describe('a response of the history', () => {
  test('a response at or before the newest publication may stay in a CDN and is a memento of its publication time', async () => {
    const { app, publications } = await published()
    const [first, last] = publications
    const dated = (publishedAt = 0): unknown[] => [200, FOREVER, new Date(publishedAt).toUTCString(), true]
    expect(await finality(app, `?sort=year&at=${first?.at}`)).toEqual(dated(first?.publishedAt))
    const between = formatInstant((last?.publishedAt ?? 0) - 1)
    expect(await finality(app, `?sort=year&at=${between}`)).toEqual(dated(first?.publishedAt))
    expect(await finality(app, `?sort=year&at=${last?.at}`)).toEqual(dated(last?.publishedAt))
    const held = { 'if-none-match': '*' }
    expect(await finality(app, `?sort=year&at=${last?.at}`, held)).toEqual([
      304,
      ...dated(last?.publishedAt).slice(1),
    ])
  })

  test('a response without a time, or after the newest publication, is neither, also by a clock behind it', async () => {
    const { app, workspace, publications } = await published()
    const behind = openApp(workspace, { clock: () => (publications.at(-1)?.publishedAt ?? 0) - 1 })
    expect(await finality(behind, '?sort=year')).toEqual([200, null, null, false])
    const later = formatInstant((publications.at(-1)?.publishedAt ?? 0) + 1)
    for (const query of ['?sort=year', `?sort=year&at=${later}`])
      expect(await finality(app, query)).toEqual([200, null, null, false])
  })

  test('a response of the demo, whose history ends with the server, is neither', async () => {
    const { workspace, publications } = await published()
    const app = openApp(workspace, { demo: true })
    expect(await finality(app, `?sort=year&at=${publications[0]?.at}`)).toEqual([200, null, null, false])
  })

  test('the next publication changes no response that may stay in a CDN, also after an import', async () => {
    const workspace = await openWorkspace()
    await importSample(workspace)
    const { publications } = await sceneOf(workspace)
    const times = publications.flatMap(({ publishedAt }) => [publishedAt, publishedAt - 1])
    const responses = async (): Promise<Map<number, string | null>> => {
      const app = openApp(workspace)
      const final = new Map<number, string | null>()
      for (const time of times) {
        const { status, headers } = await requestHistory(app, `?sort=year&at=${formatInstant(time)}`)
        if (status === 200) {
          expect(headers.get('cdn-cache-control')).toBe(FOREVER)
          final.set(time, headers.get('etag'))
        }
      }
      return final
    }
    const before = await responses()
    expect(before.size).toBeGreaterThan(publications.length)
    await workspace.feed.importSignals(sampleSignals(DAYS[0]))
    await publishDays(workspace, DAYS.slice(0, 1))
    expect((await sceneOf(workspace)).publications.length).toBe(publications.length + 1)
    expect(await responses()).toEqual(before)
  })

  test('a refusal has no header that lets a CDN keep it', async () => {
    const { app } = await published()
    for (const query of ['?sort=year&at=2001-01-01T00:00:00Z', '?sort=year&at=x']) {
      const { status, headers } = await requestHistory(app, query)
      expect(status).toBeGreaterThanOrEqual(400)
      expect([headers.get('cdn-cache-control'), headers.get('memento-datetime')]).toEqual([null, null])
    }
  })

  test('a response links to its object', async () => {
    const { app, publications } = await published()
    const { headers } = await requestHistory(app, '?sort=year')
    const link = headers.get('link')
    expect(link).toContain(`, <${pathOf(publications.at(-1)?.sha256 ?? '')}>; rel="alternate"; `)
  })
})

describe('an object by its digest', () => {
  test('the object of every publication has the stored bytes, also of a legacy one and of one that no time selects', async () => {
    for (const { workspace, app, timeline } of [await published(), await imported()]) {
      expect(timeline.length).toBeGreaterThan(1)
      for (const { manifest: named } of timeline) {
        const { status, bytes } = await requestRoute(app, pathOf(named.sha256))
        expect([status, bytes]).toEqual([200, await workspace.objects.get(named.sha256)])
      }
    }
  })

  test('an object that the ledger does not name is 404, although the store has it', async () => {
    const { workspace, app } = await published()
    const bytes = Buffer.from('{"left by":"a failed attempt"}')
    await workspace.objects.put(sha256Hex(bytes), bytes)
    const { status, error, headers } = await requestRoute(app, pathOf(sha256Hex(bytes)))
    expect([status, error]).toEqual([404, 'year_history_not_found'])
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('any other path is 404 and is not cached', async () => {
    const { app, publications } = await published()
    const sha256 = publications[0]?.sha256 ?? ''
    const folder = sha256.slice(0, 2)
    const traversal = `${folder}/..%2f${folder}%2f${sha256}.json`
    for (const path of [`${folder}/${sha256}`, `${folder}/${sha256.toUpperCase()}.json`, traversal, '']) {
      const { status, error, headers } = await requestRoute(app, `/objects/sha256/${path}`)
      expect([path, status, error]).toEqual([path, 404, 'year_history_not_found'])
      expect(headers.get('cache-control')).toBe('no-store')
    }
  })

  test('a damaged object is 503 and is not cached', async () => {
    const { workspace, app, publications } = await published()
    const sha256 = publications[0]?.sha256 ?? ''
    expect((await requestRoute(app, pathOf(sha256))).status).toBe(200)
    writeFileSync(objectFile(workspace, sha256), '{}')
    const { status, error, headers } = await requestRoute(app, pathOf(sha256))
    expect([status, error]).toEqual([503, 'year_history_archive_corrupt'])
    expect([headers.get('cache-control'), headers.get('cdn-cache-control')]).toEqual(['no-store', null])
  })
})
