import { gunzipSync } from 'node:zlib'
import { H3 } from 'h3'
import { describe, expect, test } from 'vitest'
import { openComputedRequests } from '../../../src/server/computed-requests.ts'
import { servePages } from '../../../src/server/page/rendered-pages.ts'
import type { Page } from '../../../src/server/page/rendered-pages.ts'
import type { PageSources } from '../../../src/server/page/page-sources.ts'
import { listenLocally } from '../../support/api-client.ts'
import { LOOPBACK } from '../../support/pages.ts'

const NOON = Date.parse('2026-03-02T12:00:00.000Z')

/** The sources of a page, which a test can change; `null` fails. */
function changeable() {
  return {
    now: NOON,
    snapshot: 'snap-1' as string | null,
    lastLeaf: 'leaf-1' as string | null,
    object: 'digest-1' as string | null,
    /** The recommendation is known by its identity. */
    run: {} as object | null,
    model: 'model-1' as string | null,
    budget: 'ok' as string | null,
    audited: 1 as number | null,
    points: 1 as number | null,
  }
}

type Shown = ReturnType<typeof changeable>

/** @param began names each reading as it begins */
function sourcesOf(shown: Shown, began: string[] = []): PageSources {
  const read = async <T>(name: keyof Shown, make: (value: NonNullable<Shown[keyof Shown]>) => T) => {
    began.push(name)
    const value = shown[name]
    if (value === null) throw new Error(`${name} cannot be read`)
    return make(value)
  }
  const sources = {
    clock: () => shown.now,
    snapshots: {
      newest: () =>
        read('snapshot', (id) => ({
          snapshot: { id, generatedAt: NOON },
          published: { headers: { etag: id } },
        })),
    },
    publications: {
      entries: () =>
        read('lastLeaf', (lastLeaf) => ({
          lastLeaf,
          entries: [{}],
          timeline: [],
          head: { seq: 1, leaf: lastLeaf },
        })),
      publication: () => read('object', (sha256) => ({ manifest: { sha256 } })),
    },
    recommendation: () => read('run', (run) => ({ run, seed: false, storeAvailable: true })),
    agent: {
      config: () => read('model', (model) => ({ model })),
      status: () => read('budget', (budget) => ({ budget })),
    },
    audits: { newest: () => read('audited', (endedAt) => ({ endedAt })) },
    search: { itemTrend: () => read('points', (points) => ({ points })) },
  }
  return sources as unknown as PageSources
}

interface Scene {
  app: H3
  shown: Shown
  /** Number of renders of each page. */
  renders: Map<string, number>
  /** Reads of sources, in the order of their start. */
  began: string[]
  get(path: string, headers?: Record<string, string>): Promise<Response>
  read(path: string): Promise<string>
}

/** A page at `/` that reads every source and shows what it read, and `/still`, which reads nothing. */
function openScene(changes: Partial<Page> = {}): Scene {
  const app = new H3()
  const shown = changeable()
  const renders = new Map<string, number>()
  const began: string[] = []
  const frame = {
    assets: { href: (name: string) => `/assets/${name}` },
    demo: false,
    baseUrl: () => 'https://dash.example',
  }
  const mount = servePages(app, {
    frame,
    sources: sourcesOf(shown, began),
    trustedProxies: LOOPBACK,
    computed: openComputedRequests(),
  })
  const count = (path: string): void => void renders.set(path, (renders.get(path) ?? 0) + 1)
  mount({
    path: '/',
    query: { known: ['sort', 'model'], isDefault: (name, value) => name === 'sort' && value === 'trending' },
    async render(sources, query) {
      count('/')
      const { snapshots, publications, recommendation, agent, audits, clock } = sources
      const readings: (() => unknown)[] = [
        () => snapshots.newest('trending'),
        () => publications.entries(),
        () => publications.publication({ publicationId: 'year' } as never),
        async () => (await recommendation()) && shown.run,
        () => agent.config(),
        () => agent.status(),
        () => audits.newest(),
        () => clock(),
      ]
      const read = await Promise.all(
        readings.map(async (reading) => {
          try {
            return JSON.stringify(await reading())
          } catch (error) {
            return String(error)
          }
        }),
      )
      return {
        status: 200,
        headers: { 'content-type': 'text/html' },
        text: `${String(query.params)} ${read.join(' ')}`,
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
  return { app, shown, renders, began, get, read }
}

/** A scene behind a socket, with clients of a trusted proxy. */
async function openServed(changes: Partial<Page> = {}) {
  const scene = openScene(changes)
  const { url } = await listenLocally(scene.app, { trustedProxies: LOOPBACK })
  const ask = (query: string, address: string): Promise<Response> =>
    fetch(`${url}/${query}`, { headers: { 'x-forwarded-for': `198.51.100.7, ${address}` } })
  return { ...scene, ask }
}

describe('a rendered page', () => {
  test('a rendered page is served from the cache while all of its reads are unchanged', async () => {
    const { renders, read } = openScene()
    const first = await read('/')
    for (let time = 0; time < 5; time += 1) expect(await read('/')).toBe(first)
    expect(renders.get('/')).toBe(1)
  })

  const changes: Readonly<Record<string, Partial<Shown>>> = {
    'a new snapshot': { snapshot: 'snap-2' },
    'a new entry of the ledger': { lastLeaf: 'leaf-2' },
    'another object': { object: 'digest-2' },
    'a new recommendation': { run: { id: 2 } },
    'another model of the chat': { model: 'model-2' },
    'a spent budget of the chat': { budget: 'exhausted' },
    'a new audit': { audited: 2 },
    'ten seconds': { now: NOON + 10_000 },
  }
  test.each(Object.keys(changes))(
    'a rendered page is rendered again by the first request after %s',
    async (name) => {
      const { renders, shown, read } = openScene()
      const before = await read('/')
      Object.assign(shown, changes[name])
      const after = await read('/')
      expect(after).not.toBe(before)
      expect(renders.get('/')).toBe(2)
      expect(await read('/')).toBe(after)
      expect(renders.get('/')).toBe(2)
    },
  )

  const failures = ['snapshot', 'lastLeaf', 'object', 'run', 'model', 'budget', 'audited'] as const
  test.each(failures)(
    'a rendered page is not served while its %s cannot be read, and the failure is not cached',
    async (name) => {
      const { get, shown, renders, read } = openScene()
      const sound = await read('/')
      const { [name]: value } = shown
      Object.assign(shown, { [name]: null })
      const damaged = await get('/')
      expect(damaged.headers.get('etag')).toBeNull()
      expect(await damaged.text()).toContain(`${name} cannot be read`)
      Object.assign(shown, { [name]: value })
      expect(await read('/')).toBe(sound)
      expect(renders.get('/')).toBe(3)
    },
  )

  test('a page that queries the search is rendered for each request, because the query costs as much', async () => {
    const { get, shown, renders } = openScene({
      async render({ search }) {
        renders.set('/', (renders.get('/') ?? 0) + 1)
        return { status: 200, headers: {}, text: JSON.stringify(await search.itemTrend('hn-1')) }
      },
    })
    const first = await get('/')
    expect([await first.text(), first.headers.get('etag')]).toEqual(['{"points":1}', null])
    shown.points = 2
    expect(await (await get('/')).text()).toBe('{"points":2}')
    expect(renders.get('/')).toBe(2)
  })

  test('the reads of a rendered page are repeated up to the first change only', async () => {
    const { get, shown, began } = openScene({
      async render({ snapshots, publications, audits }) {
        const read = [await snapshots.newest('trending'), await publications.entries(), await audits.newest()]
        return { status: 200, headers: {}, text: JSON.stringify(read) }
      },
    })
    const order = ['snapshot', 'lastLeaf', 'audited']
    await get('/')
    await get('/')
    expect(began.splice(0)).toEqual([...order, ...order])
    shown.lastLeaf = 'leaf-2'
    await get('/')
    expect(began).toEqual(['snapshot', 'lastLeaf', ...order])
  })

  test('a page without reads is rendered only once', async () => {
    const { get, shown, renders, read } = openScene()
    await get('/still')
    shown.now += 86_400_000
    expect(await read('/still?unknown=1')).toBe('still')
    expect(renders.get('/still')).toBe(1)
  })

  test('a rendered page has an entity tag per encoding, and is a 304 for a client that holds it', async () => {
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
    const pages = await Promise.all(Array.from({ length: 50 }, () => read('/')))
    expect(new Set(pages).size).toBe(1)
    expect(renders.get('/')).toBe(1)
  })

  test('a render started before a change is not served to a later request', async () => {
    let release = (): void => undefined
    let begin = (): void => undefined
    const released = new Promise<void>((resolve) => (release = resolve))
    const begun = new Promise<void>((resolve) => (begin = resolve))
    const { get, shown } = openScene({
      async render({ snapshots }) {
        const text = JSON.stringify(await snapshots.newest('trending'))
        begin()
        await released
        return { status: 200, headers: {}, text }
      },
    })
    const early = get('/')
    await begun
    shown.snapshot = 'snap-2'
    const late = get('/')
    release()
    expect(await (await early).text()).toContain('snap-1')
    expect(await (await late).text()).toContain('snap-2')
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
  const render: Page['render'] = async (_, { params }) => {
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

  test('a render displaced for one address starts for another that waits too', async () => {
    const { page, release } = heldPage()
    const { ask } = await openServed(page)
    const open = (from: number, address: string, count = 32): Promise<number>[] =>
      Array.from({ length: count }, async (_, at) => (await ask(`?model=m${from + at}`, address)).status)
    const floods = open(100, '203.0.113.1')
    // The newest pages of an address are the first to lose their turn.
    const honest = open(128, '198.51.100.9', 4)
    for (const at of [2, 3, 4, 5, 6, 7, 8, 9, 10]) floods.push(...open(at * 100, `203.0.113.${at}`))
    expect(await Promise.race(floods)).toBe(429)
    release()
    expect(new Set(await Promise.all(honest))).toEqual(new Set([200]))
    expect(new Set(await Promise.all(floods))).toEqual(new Set([200, 429]))
  })
})
