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

/** A scene behind a socket, with clients of a trusted proxy. */
async function openServed(changes: Partial<Page> = {}, computed?: ComputedRequests) {
  const scene = openScene(changes, computed)
  const { url } = await listenLocally(scene.app, { trustedProxies: LOOPBACK })
  const ask = (query: string, address: string): Promise<Response> =>
    fetch(`${url}/${query}`, { headers: { 'x-forwarded-for': `198.51.100.7, ${address}` } })
  return { ...scene, ask }
}

describe('a rendered page', () => {
  test('a rendered page is served for ten seconds, whatever changes meanwhile', async () => {
    const advance = stopMonotonicClock()
    const { renders, read, shown } = openScene()
    const first = await read('/')
    // A wall clock that is set back does not extend its life.
    Object.assign(shown, { now: NOON - 86_400_000, snapshot: 'snap-2' })
    await advance(9_999)
    expect(await read('/')).toBe(first)
    expect(renders.get('/')).toBe(1)
    await advance(2)
    expect(await read('/')).toContain('snap-2')
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

  test('a rendered page has an entity tag per encoding, and is a 304 for a client that holds it', async () => {
    const advance = stopMonotonicClock()
    const { get, shown } = openScene()
    const plain = await get('/')
    const zipped = await get('/', { 'accept-encoding': 'gzip' })
    const [etag = '', zippedTag = ''] = [plain, zipped].map(({ headers }) => headers.get('etag') ?? '')
    expect(zippedTag).not.toBe(etag)
    expect(gunzipSync(Buffer.from(await zipped.arrayBuffer())).toString()).toBe(await plain.text())
    expect(plain.headers.get('vary')).toBe('Accept-Encoding')
    const held = await get('/', { 'if-none-match': etag })
    expect([held.status, await held.text(), held.headers.get('etag')]).toEqual([304, '', etag])
    expect((await get('/', { 'if-none-match': zippedTag, 'accept-encoding': 'gzip' })).status).toBe(304)
    expect((await get('/', { 'if-none-match': etag, 'accept-encoding': 'gzip' })).status).toBe(200)
    shown.snapshot = 'snap-2'
    await advance(10_001)
    expect((await get('/', { 'if-none-match': etag })).status).toBe(200)
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

/** A page that is rendered at once for `seen` and `new`, and for other models after `release`. */
function heldPage() {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  const render: Page['render'] = async ({ query: { params } }) => {
    if (!['seen', 'new'].includes(params.get('model') ?? '')) await released
    return { status: 200, headers: {}, text: String(params) }
  }
  return { page: { render }, release }
}

describe('renders', () => {
  test('renders of an address over its slots are refused; cached pages and other addresses are served', async () => {
    const { page, release } = heldPage()
    const { ask } = await openServed(page)
    expect((await ask('?model=seen', '203.0.113.1')).status).toBe(200)
    const flood = Array.from({ length: 50 }, (_, at) => ask(`?model=m${at}`, '203.0.113.1'))
    const refused = await Promise.race(flood)
    expect([refused.status, refused.headers.get('content-type')]).toEqual([429, 'text/html; charset=utf-8'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused.text()).toContain('<code>busy</code>')
    expect((await ask('?model=seen', '203.0.113.1')).status).toBe(200)
    expect((await ask('?model=new', '203.0.113.2')).status).toBe(200)
    release()
    expect(new Set((await Promise.all(flood)).map(({ status }) => status))).toEqual(new Set([200, 429]))
    expect((await ask('?model=later', '203.0.113.1')).status).toBe(200)
  })

  test('renders beyond the queue are refused, but never the page without a query', async () => {
    const { page, release } = heldPage()
    const { get } = openScene(page)
    const flood = Array.from({ length: 100 }, (_, index) => get(`/?model=m${index}`))
    expect((await Promise.race(flood)).status).toBe(429)
    const plain = get('/')
    release()
    expect((await plain).status).toBe(200)
    expect(new Set((await Promise.all(flood)).map(({ status }) => status))).toEqual(new Set([200, 429]))
  })

  test('a render ends with the connection that asked first, and other clients of its page get theirs', async () => {
    const responses: unknown[] = []
    const computed: ComputedRequests = {
      async run(_address, compute, response) {
        responses.push(response)
        if (responses.length !== 2) return compute()
        await nextTurn()
        throw new Refusal('busy')
      },
    }
    const { ask, get, renders } = await openServed({}, computed)
    expect((await ask('?model=a', '203.0.113.1')).status).toBe(200)
    expect(responses).toEqual([expect.any(ServerResponse)])
    const shared = await Promise.all([get('/?model=c'), get('/?model=c')])
    expect(shared.map(({ status }) => status)).toEqual([429, 200])
    expect([responses.length, renders.get('/')]).toEqual([3, 2])
  })
})
