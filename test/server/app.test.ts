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

test('/healthz does no I/O', async () => {
  const workspace = await openWorkspace()
  rmSync(workspace.folder, { recursive: true })
  expect(await ask(openApp(workspace), '/healthz')).toEqual([200, { status: 'ok' }])
})

test('/readyz is 200 when all stores are migrated, else it names the missing one, and is 503 while the server drains', async () => {
  const workspace = await openWorkspace()
  const app = openApp(workspace)
  const sound = { status: 'ready', checks: { ledger: 'ok', archive: 'ok' } }
  expect(await ask(app, '/readyz')).toEqual([200, sound])
  const draining = openApp(workspace, { isDraining: () => true })
  expect(await ask(draining, '/readyz')).toMatchObject([503, { status: 'draining' }])
  rmSync(workspace.objectsPath, { recursive: true })
  const missing = { status: 'unavailable', checks: { ledger: 'ok', archive: 'unavailable' } }
  expect(await ask(app, '/readyz')).toEqual([503, missing])
})

test('/readyz is 503 while a store does not respond, and names it', async () => {
  const checks = checksWithTimeout(
    { ledger: async () => undefined, state: () => new Promise(() => undefined) },
    20,
  )
  const app = new H3()
  mountHealth(app, checks, () => false, silentLog)
  const silent = { status: 'unavailable', checks: { ledger: 'ok', state: 'unavailable' } }
  expect(await ask(app, '/readyz')).toEqual([503, silent])
})

test('an unknown address is a page for a browser and JSON for other clients, both 404', async () => {
  const app = openApp(await openWorkspace())
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
  const page = await app.request('http://dash.test/missing', { headers: { accept } })
  expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
  const head = await app.request('http://dash.test/missing', { method: 'HEAD', headers: { accept } })
  expect([head.status, head.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  const text = await page.text()
  expect(text).toContain('This page does not exist')
  expect(/<main.*<\/main>/s.exec(text)?.[0]).toMatch(/^(?!.*<code>).*type="search"/s)
  const [status, body] = await ask(app, '/missing?token=1')
  expect([status, body]).toEqual([
    404,
    { error: 'not_found', message: expect.stringContaining('/docs') as unknown },
  ])
  expect(JSON.stringify(body)).not.toMatch(/missing|token/)
  // OpenAI's libraries show the message of an error of their shape alone.
  const off = { code: 'not_found', message: expect.stringContaining('DASH_V1=1') as unknown }
  expect(await ask(app, '/v1/models')).toMatchObject([404, { error: off }])
  const encode = expect.stringContaining('percent-encode') as unknown
  expect(await ask(app, '/%ZZ')).toEqual([400, { error: 'bad_request', message: encode }])
})
