import { rmSync } from 'node:fs'
import { H3 } from 'h3'
import { expect, test } from 'vitest'
import { boundedChecks, mountHealth } from '../../src/server/app.ts'
import { openApp, silentLog } from '../support/api-client.ts'
import { openWorkspace } from '../support/workspace.ts'

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
