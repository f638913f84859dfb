import { rmSync } from 'node:fs'
import { H3 } from 'h3'
import { expect, test } from 'vitest'
import { boundedChecks, mountHealth } from '../../src/server/app.ts'
import { openApp, silentLog } from '../support/api-client.ts'
import { openWorkspace } from '../support/workspace.ts'
import { liveContract } from '../../src/server/feed/live-routes.ts'
import { searchContract } from '../../src/server/feed/search-routes.ts'
import { recommendationContract } from '../../src/server/models/routes.ts'
import { historyContract } from '../../src/server/year/history.ts'
import { ledgerContract } from '../../src/server/year/ledger-routes.ts'

test('is alive without any I/O', async () => {
  const workspace = await openWorkspace()
  rmSync(workspace.folder, { recursive: true })
  const response = await openApp(workspace).request('http://dash.test/healthz')
  expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }])
})

test('is ready when the stores are, migrations included', async () => {
  const response = await openApp(await openWorkspace()).request('http://dash.test/readyz')
  expect([response.status, await response.json()]).toEqual([
    200,
    { status: 'ready', checks: { ledger: 'ok', archive: 'ok' } },
  ])
})

test('is not ready without its stores, and says which is missing', async () => {
  const workspace = await openWorkspace()
  rmSync(workspace.objectsPath, { recursive: true })
  const response = await openApp(workspace).request('http://dash.test/readyz')
  expect([response.status, await response.json()]).toEqual([
    503,
    { status: 'unavailable', checks: { ledger: 'ok', archive: 'unavailable' } },
  ])
})

test('is not ready while a store does not answer, and says which', async () => {
  const checks = boundedChecks(
    { ledger: async () => undefined, state: () => new Promise(() => undefined) },
    20,
  )
  const app = new H3()
  mountHealth(app, checks, () => false, silentLog)
  const response = await app.request('http://dash.test/readyz')
  expect([response.status, await response.json()]).toEqual([
    503,
    { status: 'unavailable', checks: { ledger: 'ok', state: 'unavailable' } },
  ])
})

test('is not ready while it drains', async () => {
  const response = await openApp(await openWorkspace(), { isDraining: () => true }).request(
    'http://dash.test/readyz',
  )
  expect(response.status).toBe(503)
  expect(await response.json()).toMatchObject({ status: 'draining' })
})

test.each([
  [liveContract, '/docs/api/feed', 'ETag, Last-Modified, Link'],
  [searchContract, '/docs/api/search', 'ETag, Link'],
  [historyContract, '/docs/api/top-year-history', 'ETag, Last-Modified, Link, X-Year-History-Requested-At'],
  [ledgerContract, '/docs/api/top-year-history', 'ETag, Link'],
  [recommendationContract, '/docs/api/free-llm', 'ETag, Link, X-Free-LLM-Seed'],
])('$path is open to every origin and names $1', ({ headers, refusalHeaders, preflight }, docs, exposed) => {
  expect(headers).toEqual({
    'access-control-allow-origin': '*',
    'access-control-expose-headers': exposed,
    link: `<${docs}/openapi.json>; rel="service-desc"; type="application/json", <${docs}>; rel="service-doc"; type="text/html"`,
  })
  expect(refusalHeaders).toEqual({ 'cache-control': 'no-store' })
  expect(preflight).toEqual({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, OPTIONS',
    'access-control-allow-headers': 'If-None-Match',
    'cache-control': 'no-store',
  })
})
