import { expect, test } from 'vitest'
import { openApp } from '../support/api-client.ts'
import { refusalMessage, invalidValues } from '../../src/server/route.ts'
import { requestRoute, PUBLIC_CONTRACTS } from './contract-client.ts'
import { keepSnapshot } from './feed/live-client.ts'
import { feedEvents } from '../support/signals.ts'
import { signedWorkspace } from '../support/exports.ts'
import { AS_OF, manifestsOf, openWorkspace } from '../support/workspace.ts'

const YEAR_DOCS = '/docs/api/top-year-history'
const LEDGER = { cache: 'public, max-age=60', exposed: 'ETag, Link', docs: YEAR_DOCS, query: '' }
const LOG = { ...LEDGER, docs: '/docs/api/top-year-log' }
const HISTORY = {
  cache: 'public, max-age=300, stale-while-revalidate=3600',
  exposed: 'ETag, Last-Modified, Link, X-Year-History-Requested-At',
  docs: YEAR_DOCS,
  query: '?sort=year',
}
const CHANGES = {
  ...LEDGER,
  cache: 'public, max-age=300, stale-while-revalidate=3600',
  exposed: 'ETag, Last-Modified, Link',
}
const LIVE = {
  cache: 'public, max-age=60, stale-while-revalidate=300',
  exposed: 'ETag, Last-Modified, Link',
  docs: '/docs/api/feed',
  query: '',
}
const SEARCH = { cache: 'public, max-age=60', exposed: 'ETag, Link', docs: '/docs/api/search' }
const MODELS = {
  cache: 'public, max-age=300, stale-while-revalidate=3600',
  exposed: 'ETag, Link, X-Free-LLM-Seed, Deprecation, Sunset',
  docs: '/docs/api/free-llm',
  query: '',
}

/** Every public route with a valid query for the sample, and its headers. */
const ROUTES: Readonly<Record<string, typeof LEDGER>> = {
  '/api/feed/history': HISTORY,
  '/api/feed/history.csv': HISTORY,
  '/api/feed/history/ledger': LEDGER,
  '/api/feed/history/ledger/legacy': LEDGER,
  '/api/feed/history/head': LEDGER,
  '/api/feed/history/index': LEDGER,
  '/objects/sha256/{object}': { ...LEDGER, cache: 'public, max-age=31536000, immutable' },
  '/api/feed/history/rss': CHANGES,
  '/api/feed/history/atom': CHANGES,
  '/api/feed/history/feed.json': CHANGES,
  '/api/feed/history/ranks': LEDGER,
  '/charts/year.svg': LEDGER,
  '/charts/item.svg': { ...LEDGER, query: '?key=hn-hn1' },
  '/tlog/year/checkpoint': { ...LOG, cache: 'public, max-age=5' },
  '/tlog/year/tile/{tile}': { ...LOG, cache: 'public, max-age=31536000, immutable' },
  '/tlog/year/policy': LOG,
  '/tlog/year/proof': LOG,
  '/api/feed': LIVE,
  '/api/feed.csv': LIVE,
  '/api/rss': LIVE,
  '/api/atom': LIVE,
  '/api/feed.json': LIVE,
  '/api/search': { ...SEARCH, query: '?q=title' },
  '/api/search.csv': { ...SEARCH, query: '?q=title' },
  '/api/similar': { ...SEARCH, query: '?key=hn-hn1' },
  '/api/trend': { ...SEARCH, query: '?key=hn-hn1' },
  '/api/free-llm/recommendation': MODELS,
  '/api/free-llm/top-models': MODELS,
  '/api/free-llm/health': MODELS,
  '/api/status/free-llm': MODELS,
  '/badge/free-model.json': MODELS,
  '/api/free-llm/top-models.csv': MODELS,
  '/api/free-llm/changes.json': MODELS,
}

test('every public route has a row in the table', () => {
  expect(Object.keys(ROUTES)).toEqual(PUBLIC_CONTRACTS.map(({ path }) => path))
})

test('every public route has its media type, schema, caching, validators and digests, and is open to all origins', async () => {
  const workspace = await signedWorkspace([AS_OF])
  await keepSnapshot(workspace.feed, feedEvents('hn', 3))
  const app = openApp(workspace)
  const sha256 = (await manifestsOf(workspace))[0]?.sha256 ?? ''
  const rests: Readonly<Record<string, string>> = {
    '{tile}': '0/000.p/1',
    '{object}': `${sha256.slice(0, 2)}/${sha256}.json`,
    '{original}': 'http://dash.test/api/feed/history',
  }
  for (const { path, contentType = 'application/json', success } of PUBLIC_CONTRACTS) {
    const { cache, exposed, docs, query } = ROUTES[path] ?? LEDGER
    const target = path.replace(/\{\w+\}/, (rest) => rests[rest] ?? rest) + query
    const { status, headers, text } = await requestRoute(app, target)
    expect([target, status]).toEqual([target, 200])
    expect(Object.fromEntries(headers)).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-expose-headers': exposed,
      'cache-control': cache,
      link: expect.stringContaining(
        `<${docs}/openapi.json>; rel="service-desc"; type="application/json", <${docs}>; rel="service-doc"; type="text/html"`,
      ),
    })
    if (/\bjson$/.test(contentType)) expect(success.parse(JSON.parse(text)), path).toEqual(JSON.parse(text))
    const etag = headers.get('etag') ?? ''
    const held = await requestRoute(app, target, { headers: { 'if-none-match': etag } })
    expect([target, held.status, held.headers.get('etag')]).toEqual([target, 304, etag])
    for (const ignored of [
      { 'if-none-match': '"other"' },
      { 'if-modified-since': new Date().toUTCString() },
      { range: 'bytes=0-9' },
      { 'accept-encoding': 'gzip, br' },
    ]) {
      const whole = await requestRoute(app, target, { headers: ignored })
      expect([target, ignored, whole.status, whole.text]).toEqual([target, ignored, 200, text])
    }
  }
})

test('every public route answers a preflight without any store, and refuses each other method with Allow', async () => {
  const workspace = await openWorkspace()
  const fail = (): never => {
    throw new Error('the storage is down')
  }
  const down = <Port extends object>(port: Port): Port => new Proxy(port, { get: () => fail })
  const { year, ledger, objects, feed, search, recommendations } = workspace
  const app = openApp({
    ...workspace,
    year: down(year),
    ledger: down(ledger),
    objects: down(objects),
    feed: down(feed),
    search: { ...search, by: (caller) => down(search.by(caller)) },
    recommendations: down(recommendations),
  })
  for (const { path, methodNotAllowed, headRefused = false } of PUBLIC_CONTRACTS) {
    const { headers } = await requestRoute(app, path, { method: 'OPTIONS' })
    expect(Object.fromEntries(headers)).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, OPTIONS',
      'access-control-allow-headers': 'If-None-Match',
      'cache-control': 'no-store',
    })
    const allow = headRefused ? 'GET' : 'GET, HEAD'
    const refusedMethods = ['POST', 'PUT', 'PATCH', 'DELETE', 'QUERY', 'PURGE']
    for (const method of headRefused ? ['HEAD', ...refusedMethods] : refusedMethods) {
      const refused = await app.request(`http://dash.test${path}`, { method })
      expect([path, method, refused.status, refused.headers.get('allow')]).toEqual([path, method, 405, allow])
    }
    expect((await requestRoute(app, path, { method: 'POST' })).error).toBe(methodNotAllowed)
  }
  expect(PUBLIC_CONTRACTS.filter(({ headRefused }) => headRefused).map(({ path }) => path)).toEqual([
    '/api/feed/history',
    '/api/feed/history.csv',
  ])
})

test.each([
  [{ parameter: 'top', value: '0' }, '`top` is "0": it must be an integer from 1 to 9, given once'],
  [{ parameter: 'key' }, '`key` is missing: it must be a `save key`, given once'],
  [{}, '`top` is not an integer from 1 to 9; `key` is not a `save key`; or it is given twice'],
])('the message of a refusal with the members %j names the value and what is allowed', (members, message) => {
  const refusal = invalidValues({ top: 'an integer from 1 to 9', key: 'a `save key`' })
  expect(refusalMessage(refusal, members)).toBe(message)
})

test.each([
  ['/api/trend?q=x', 'term is missing'],
  ['/api/trend?key=hn-1&term=a', 'term is "a"'],
  ['/api/trend?key=hn-1&to=2026-01-01', 'to is "2026-01-01": it must be absent if key is given'],
  ['/api/search', 'q is missing: it must be text'],
  ['/api/search?q=a&from=2026-02-02&to=2026-02-01', 'from is "2026-02-02"'],
  ['/api/feed?source=digg', 'source is "digg": it must be a comma-separated list'],
  ['/api/feed?sort=hour', 'sort is "hour": it must be one of trending, day'],
  ['/api/feed/history', 'sort is missing: it must be year'],
  ['/api/free-llm/top-models?needs=x', 'needs is "x": it must be a comma-separated list'],
])('the message of %s tells the wrong parameter alone: %s', async (path, message) => {
  const response = await openApp(await openWorkspace()).request(path)
  const body = (await response.json()) as { message: string }
  expect(body.message.startsWith(message), body.message).toBe(true)
})
