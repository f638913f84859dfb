import { ServerResponse } from 'node:http'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { H3 } from 'h3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Refusal } from '../../../src/domain/refusal.ts'
import { openComputedRequests } from '../../../src/server/computed-requests.ts'
import type { ComputedRequests } from '../../../src/server/computed-requests.ts'
import { servePages } from '../../../src/server/page/rendered-pages.ts'
import type { Page, PageSources } from '../../../src/server/page/rendered-pages.ts'
import { listenLocally, silentLog } from '../../support/api-client.ts'
import { LOOPBACK } from '../../adapters/articles/pages.ts'

const NOON = Date.parse('2026-03-02T12:00:00.000Z')

/** What the sources of a page have, which a test can change; a snapshot that is null fails. */
interface Shown {
  now: number
  snapshot: string | null
}

function sourcesOf(shown: Shown): PageSources {
  const newest = async (): Promise<object> => {
    if (shown.snapshot === null) throw new Error('the snapshot cannot be read')
    return { snapshot: { id: shown.snapshot } }
  }
  return { clock: () => shown.now, snapshots: { newest } } as unknown as PageSources
}

interface Scene {
  app: H3
  shown: Shown
  /** Number of renders of each page. */
  renders: Map<string, number>
  get(path: string, headers?: Record<string, string>): Promise<Response>
  read(path: string): Promise<string>
}

/** A page at `/` that shows the newest snapshot and the time, and `/still`, which reads nothing. */
function openScene(changes: Partial<Page> = {}, computed = openComputedRequests()): Scene {
  const app = new H3()
  const shown: Shown = { now: NOON, snapshot: 'snap-1' }
  const renders = new Map<string, number>()
  const frame = {
    assets: { href: (name: string) => `/assets/${name}` },
    demo: false,
    baseUrl: () => 'https://dash.example',
    widgetUrl: null,
  }
  const mount = servePages(app, {
    frame,
    sources: sourcesOf(shown),
    trustedProxies: LOOPBACK,
    computed,
    log: silentLog,
  })
  const count = (path: string): void => void renders.set(path, (renders.get(path) ?? 0) + 1)
  mount({
    path: '/',
    query: { known: ['sort', 'model'], isDefault: (name, value) => name === 'sort' && value === 'trending' },
    async render({ sources, query }) {
      count('/')
      const read = [await sources.snapshots.newest('trending'), sources.clock()]
      return {
        status: 200,
        headers: { 'content-type': 'text/html' },
        text: `${String(query.params)} ${JSON.stringify(read)}`,
      }
    },
    ...changes,
  })
  mount({
    path: '/still',
    render() {
      count('/still')
      return { status: 200, headers: { 'content-type': 'text/html' }, text: 'still' }
    },
  })
  const get = async (path: string, headers: Record<string, string> = {}): Promise<Response> =>
    app.request(`http://dash.test${path}`, { headers })
  const read = async (path: string): Promise<string> => (await get(path)).text()
  return { app, shown, renders, get, read }
}

/** Stops the monotonic clock until the end of the test, and returns what advances it. */
function stopMonotonicClock(): (ms: number) => Promise<void> {
  let now = 1
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => clock.mockRestore())
  return async (ms) => {
    now += ms
    // A cache reads the clock at most once a millisecond.
    await sleep(5)
  }
}

describe('a rendered page', () => {
  test('a rendered page is served for ten seconds, whatever changes meanwhile, and is a 304 for a client that holds it', async () => {
    const advance = stopMonotonicClock()
    const { get, renders, read, shown } = openScene()
    const first = await get('/')
    const held = { 'if-none-match': first.headers.get('etag') ?? '' }
    const text = await first.text()
    // A wall clock that is set back does not extend its life.
    Object.assign(shown, { now: NOON - 86_400_000, snapshot: 'snap-2' })
    await advance(9_999)
    expect([await read('/'), (await get('/', held)).status]).toEqual([text, 304])
    const zipped = await get('/', { 'accept-encoding': 'gzip' })
    expect(gunzipSync(Buffer.from(await zipped.arrayBuffer())).toString()).toBe(text)
    expect(renders.get('/')).toBe(1)
    await advance(2)
    expect(await (await get('/', held)).text()).toContain('snap-2')
    expect(renders.get('/')).toBe(2)
  })

  test('a page of which a part cannot be shown is rendered again by the next request', async () => {
    const { get, shown, renders } = openScene({
      async render({ sources: { snapshots } }) {
        renders.set('/', (renders.get('/') ?? 0) + 1)
        const snapshot = await snapshots.newest('trending').catch(() => null)
        const text = JSON.stringify(snapshot)
        return { status: 200, headers: {}, text, isPartial: snapshot === null }
      },
    })
    shown.snapshot = null
    const partial = await get('/')
    expect([await partial.text(), partial.headers.get('etag')]).toEqual(['null', null])
    shown.snapshot = 'snap-2'
    expect(await (await get('/')).text()).toContain('snap-2')
    await get('/')
    expect(renders.get('/')).toBe(2)
  })

  test('a rendered page is shared by equivalent queries', async () => {
    const { get, renders } = openScene()
    await get('/?model=a&sort=week')
    for (const query of ['sort=week&model=a', 'x=1&sort=week&y=2&model=a', 'sort=week&model=a&sort='])
      expect((await get(`/?${query}`)).status).toBe(200)
    expect(renders.get('/')).toBe(1)
    await get('/')
    await get('/?sort=trending')
    expect(renders.get('/')).toBe(2)
    await get('/?sort=day')
    expect(renders.get('/')).toBe(3)
  })

  test('a page is rendered once for concurrent requests', async () => {
    const { renders, read } = openScene()
    expect(new Set(await Promise.all(Array.from({ length: 50 }, () => read('/')))).size).toBe(1)
    expect(renders.get('/')).toBe(1)
  })
})

test('a query of 1,024 bytes is accepted, and a longer one is refused with a page', async () => {
  const { get, renders } = openScene()
  const padded = `/?x=${'a'.repeat(1_022)}`
  expect((await get(padded)).status).toBe(200)
  const longer = await get(`${padded}a`)
  expect(longer.status).toBe(400)
  expect(longer.headers.get('content-type')).toContain('text/html')
  expect(longer.headers.get('cache-control')).toBe('no-store')
  expect(await longer.text()).toContain('<code>query_too_long</code>')
  expect((await get(`/still?x=${'a'.repeat(1_023)}`)).status).toBe(400)
  expect(renders.get('/')).toBe(1)
})

test('a render is a computed request of its address, or of a page without a query, and ends with its connection; its refusal is not shared', async () => {
  const runs: [address: string | null, response: unknown][] = []
  const computed: ComputedRequests = {
    async run(address, compute, response) {
      runs.push([address, response])
      if (runs.length !== 3) return compute()
      await nextTurn()
      throw new Refusal('busy', undefined, { members: { retryAfterSeconds: 7 } })
    },
  }
  const { app, get, renders } = openScene({}, computed)
  const { url } = await listenLocally(app, { trustedProxies: LOOPBACK })
  const headers = { 'x-forwarded-for': '198.51.100.7, 203.0.113.1' }
  for (const query of ['?model=a', '']) expect((await fetch(`${url}/${query}`, { headers })).status).toBe(200)
  const response: unknown = expect.any(ServerResponse)
  expect(runs).toEqual([
    ['203.0.113.1', response],
    ['/', response],
  ])
  const [refused, served] = await Promise.all([get('/?model=c'), get('/?model=c')])
  expect([refused.status, served.status]).toEqual([429, 200])
  expect(refused.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(refused.headers.get('retry-after')).toBe('7')
  expect(await refused.text()).toContain('<code>busy</code>')
  expect([runs.length, renders.get('/')]).toEqual([4, 3])
})
