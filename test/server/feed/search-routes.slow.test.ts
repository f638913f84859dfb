import { describe, expect, test } from 'vitest'
import type { SearchCaller, SearchPage } from '../../../src/domain/feed/search/search.ts'
import type { CallerSearch } from '../../../src/domain/ports.ts'
import { StorageFault, Refusal } from '../../../src/domain/refusal.ts'
import { openApp, listenLocally, silentLog } from '../../support/api-client.ts'
import { requestRoute as askPublic } from '../contract-client.ts'
import { signal } from '../../support/signals.ts'
import { openWorkspace } from '../../support/workspace.ts'

type App = ReturnType<typeof openApp>

/** Asks, and holds every answer to its contract. */
async function ask(app: App, path: string) {
  const { status, headers, text } = await askPublic(app, path)
  return { status, headers, body: JSON.parse(text) as unknown }
}

function searchThatFails(thrown: Error): { by: () => CallerSearch } {
  const fail = (): Promise<never> => Promise.reject(thrown)
  return { by: () => ({ search: fail, similar: fail, itemTrend: fail, termTrend: fail }) }
}

async function openSearchApp(): Promise<App> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals([
    signal({ sourceId: '1', title: 'Rust in the kernel' }),
    signal({ sourceId: '2', title: 'Rust in kernels', url: 'https://example.org/1?utm_source=x' }),
    signal({ sourceId: '3', title: 'Cooking', url: null, source: 'hype:github', titleProvenance: null }),
  ])
  return openApp(workspace)
}

describe('the search over HTTP', () => {
  test('the search interfaces respond to requests', async () => {
    const app = await openSearchApp()
    const path = '/api/search?q=rust&source=hn,lobsters&from=2026-02-01&to=2026-03-31&limit=1'
    const found = await ask(app, path)
    expect(found).toMatchObject({
      status: 200,
      body: { items: [{ match: 'all' }], cursor: expect.any(String) },
    })
    const { cursor } = found.body as { cursor: string }
    const second = await ask(app, `${path}&cursor=${cursor}`)
    expect(second.body).toMatchObject({ items: [{}], cursor: null })
    const similar = await ask(app, '/api/similar?key=hn-1')
    expect(similar.body).toMatchObject({ key: 'hn-1', items: [{ key: 'hn-2' }] })
    const hype = await ask(app, '/api/trend?key=hype-github-3')
    expect(hype.body).toMatchObject({ key: 'hype-github-3', days: [{ day: '2026-03-01', rank: 1 }] })
    const term = await ask(app, '/api/trend?term=rust&from=2026-01-01')
    expect(term.body).toEqual({ term: 'rust', mentions: 2, days: [{ day: '2026-02-28', mentions: 2 }] })
  })

  test('a page of results as CSV has the items of the same page as JSON, and links to the next one', async () => {
    const app = await openSearchApp()
    const query = '?q=Rust+=kernel&source=hn&limit=1'
    const { items, cursor } = (await ask(app, `/api/search${query}`)).body as SearchPage
    const csv = await askPublic(app, `/api/search.csv${query}`)
    const [names = '', row = ''] = csv.text.split('\r\n')
    expect(names).toMatch(/^key,source,sourceId,title,.*,match$/)
    expect(row.split(',')[0]).toBe(items[0]?.key)
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="dash-search-rust-kernel.csv"')
    const next = /<([^>]*)>; rel="next"/.exec(csv.headers.get('link') ?? '')?.[1] ?? ''
    expect(new URLSearchParams(next.split('?')[1]).get('cursor')).toBe(cursor)
    const last = await askPublic(app, next)
    expect(last.text.split('\r\n')).toHaveLength(3)
    expect(last.headers.get('link')).not.toContain('rel="next"')
    expect((await askPublic(app, '/api/search.csv?q=')).error).toBe('invalid_query')
  })

  test.each([
    ['/api/search?q=', 'invalid_query'],
    ['/api/search?q=%20%0A', 'invalid_query'],
    [`/api/search?q=${'a'.repeat(1_001)}`, 'invalid_query'],
    ['/api/search?q=a&source=hn,nowhere', 'invalid_source'],
    ['/api/search?q=a&source=', 'invalid_source'],
    [`/api/search?q=a&source=${'hn,'.repeat(20)}hn`, 'invalid_source'],
    ['/api/search?q=a&minPoints=-1', 'invalid_minimum'],
    ['/api/search?q=a&minComments=1.5', 'invalid_minimum'],
    ['/api/search?q=a&from=2026-02-30', 'invalid_time'],
    ['/api/search?q=a&from=2026-02-02&to=2026-02-01', 'invalid_time'],
    ['/api/search?q=a&sort=oldest', 'invalid_sort'],
    ['/api/search?q=a&limit=101', 'invalid_limit'],
    ['/api/search?q=a&limit=1e1', 'invalid_limit'],
    ['/api/search?q=a&cursor=x', 'invalid_cursor'],
    ['/api/similar', 'invalid_key'],
    ['/api/similar?key=nowhere-1', 'invalid_key'],
    [`/api/similar?key=hn-${'1'.repeat(130)}`, 'invalid_key'],
    ['/api/similar?key=hn-1&limit=-1', 'invalid_limit'],
    ['/api/trend?key=hn-1&from=2026-01-01', 'invalid_trend'],
    ['/api/trend?key=hn-1&term=a', 'invalid_trend'],
    ['/api/trend?term=%20', 'invalid_trend'],
    ['/api/trend?term=a&to=x', 'invalid_time'],
  ])('the search interfaces refuse %s with %s', async (path, error) => {
    const app = await openSearchApp()
    expect(await ask(app, path)).toMatchObject({ status: 400, body: { error } })
  })

  test('the search interfaces report items that are not stored', async () => {
    const app = await openSearchApp()
    const missing = { status: 404, body: { error: 'item_not_found' } }
    for (const path of ['/api/similar?key=hn-99', '/api/trend?key=hn-99'])
      expect(await ask(app, path)).toMatchObject(missing)
  })

  const PATHS = ['/api/search?q=a', '/api/similar?key=hn-1', '/api/trend?key=hn-1', '/api/trend?term=a']

  test('the item page shows that the search fails, and logs it', async () => {
    const errors: string[] = []
    const log = { ...silentLog, error: (_: object, message: string) => void errors.push(message) }
    const app = openApp(await openWorkspace(), {
      search: searchThatFails(new Refusal('storage_damaged')),
      log,
    })
    expect((await app.request('http://dash.test/item?key=hn-1')).status).toBe(503)
    expect(errors).toEqual(['panel refused', 'panel refused'])
  })

  test('queries of every route and page run after those of the chat and of MCP clients', async () => {
    const callers: SearchCaller[] = []
    const by = (caller: SearchCaller): CallerSearch => {
      callers.push(caller)
      return searchThatFails(new Refusal('item_not_found')).by()
    }
    const app = openApp(await openWorkspace(), { search: { by } })
    const server = await listenLocally(app)
    for (const path of [...PATHS, '/item?key=hn-1']) await (await fetch(`${server.url}${path}`)).text()
    expect(callers.map(({ group }) => group)).toEqual(Array(5).fill('others'))
  })

  test.each([
    [new Refusal('storage_unavailable'), 'search_unavailable'],
    [new Refusal('storage_damaged'), 'search_damaged'],
    [new StorageFault('the thread ended'), 'search_failed'],
    [new TypeError('unexpected'), 'search_failed'],
  ])('the search responds 503 to %s', async (thrown, error) => {
    const app = openApp(await openWorkspace(), { search: searchThatFails(thrown) })
    for (const path of PATHS) expect(await ask(app, path)).toMatchObject({ status: 503, body: { error } })
  })
})
