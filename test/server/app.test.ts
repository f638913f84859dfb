import { rmSync } from 'node:fs'
import { H3 } from 'h3'
import { expect, test } from 'vitest'
import { checksWithTimeout, mountHealth } from '../../src/server/app.ts'
import { openApp, silentLog } from '../support/api-client.ts'
import { openWorkspace } from '../support/workspace.ts'

/** Status and body of a question about how the server is. */
async function ask(app: H3, path: string): Promise<[number, unknown]> {
  const response = await app.request(`http://dash.test${path}`)
  return [response.status, await response.json()]
}

test('is alive without any I/O', async () => {
  const workspace = await openWorkspace()
  rmSync(workspace.folder, { recursive: true })
  expect(await ask(openApp(workspace), '/healthz')).toEqual([200, { status: 'ok' }])
})

test('is ready when the stores are, migrations included, and says which is missing', async () => {
  const workspace = await openWorkspace()
  const app = openApp(workspace)
  const sound = { status: 'ready', checks: { ledger: 'ok', archive: 'ok' } }
  expect(await ask(app, '/readyz')).toEqual([200, sound])
  rmSync(workspace.objectsPath, { recursive: true })
  const missing = { status: 'unavailable', checks: { ledger: 'ok', archive: 'unavailable' } }
  expect(await ask(app, '/readyz')).toEqual([503, missing])
})

test('is not ready while a store does not answer, and says which', async () => {
  const checks = checksWithTimeout(
    { ledger: async () => undefined, state: () => new Promise(() => undefined) },
    20,
  )
  const app = new H3()
  mountHealth(app, checks, () => false, silentLog)
  const silent = { status: 'unavailable', checks: { ledger: 'ok', state: 'unavailable' } }
  expect(await ask(app, '/readyz')).toEqual([503, silent])
})

test('is not ready while it drains', async () => {
  const app = openApp(await openWorkspace(), { isDraining: () => true })
  expect(await ask(app, '/readyz')).toMatchObject([503, { status: 'draining' }])
})
