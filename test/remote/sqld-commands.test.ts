import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import type { PublishReport } from '../../src/jobs/publish-report.ts'
import type { SnapshotReport } from '../../src/jobs/snapshot.ts'
import { dash, run, serve, temporaryFolder } from '../support/dash.ts'
import { storiesOf } from '../support/signals.ts'
import { startSqld, startSqldWithTokens } from './sqld.ts'
import type { Sqld } from './sqld.ts'

/** The built program with a server that requires a token; only the objects are in files. */
let sqld: Sqld
let token: string

beforeAll(async () => {
  const server = await startSqldWithTokens()
  sqld = server.sqld
  token = server.tokenFor('rw')
})
afterAll(() => sqld.stop())

async function historyOf(url: string): Promise<{ status: number; etag: string | null; bytes: Buffer }> {
  const response = await fetch(`${url}/api/feed/history?sort=year`)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, etag: response.headers.get('etag'), bytes }
}

async function liveOf(url: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}/api/feed?sort=week`)
  return { status: response.status, body: await response.json() }
}

test('import, publication and several servers share one libSQL server', { timeout: 120_000 }, async () => {
  const folder = temporaryFolder()
  const objects = join(folder, 'objects')
  const env = {
    DASH_DATABASE_URL: sqld.url,
    DASH_DATABASE_AUTH_TOKEN: token,
    DASH_STORE_URL: `file:${objects}`,
  }
  const stdin = storiesOf(lastCompleteDay(Date.now()), 5)
  for (const counts of ['5 inserted, 0 replaced, 0 unchanged', '0 inserted, 0 replaced, 5 unchanged']) {
    const imported = await dash(['import', 'signals', '-'], { env, cwd: folder, stdin })
    expect(imported).toMatchObject({ code: 0, stderr: '' })
    expect(imported.stdout).toContain(counts)
  }

  const published = await dash(['publish-year', '--json', '--once'], { env, cwd: folder })
  expect(published).toMatchObject({ code: 0, stderr: '' })
  const { outcome, sha256 } = JSON.parse(published.stdout) as PublishReport
  expect(outcome).toBe('published')
  const again = await dash(['publish-year', '--json'], { env, cwd: folder })
  expect(JSON.parse(again.stdout)).toMatchObject({ outcome: 'already-published', sha256 })

  const taken = await dash(['snapshot', '--json'], { env, cwd: folder })
  expect(taken).toMatchObject({ code: 0, stderr: '' })
  const { snapshotId } = JSON.parse(taken.stdout) as SnapshotReport

  const servers = [await serve([], { env, cwd: folder }), await serve([], { env, cwd: folder })]
  const [one, two] = await Promise.all(servers.map(({ url }) => historyOf(url)))
  expect(one).toMatchObject({ status: 200, etag: `"${sha256}"` })
  expect(two).toEqual(one)
  const live = await Promise.all(servers.map(({ url }) => liveOf(url)))
  expect(live).toEqual(live.map(() => ({ status: 200, body: live[0]?.body })))
  expect(live[0]?.body).toMatchObject({ snapshotId, sortMode: 'week' })

  for (const { end, output } of servers) {
    expect(await end('SIGTERM')).toBe(0)
    expect(output.stderr).not.toContain(token)
  }
  expect(existsSync(join(folder, 'dash-data'))).toBe(false)
})

test.each([{ DASH_DATABASE_AUTH_TOKEN: 'wrong' }, {}])(
  'a command with the token of %j exits with 74',
  async (changes) => {
    const folder = temporaryFolder()
    const env = { DASH_DATABASE_URL: sqld.url, DASH_STORE_URL: `file:${join(folder, 'objects')}`, ...changes }
    const stdin = storiesOf(lastCompleteDay(Date.now()), 1)
    const { code, stderr } = await run(['import', 'signals', '-'], { env, cwd: folder, stdin })
    expect([code, stderr]).toEqual([
      74,
      expect.stringMatching(/^error: [^\n]*correct DASH_DATABASE_AUTH_TOKEN[^\n]*\n$/),
    ])
  },
)

test('the doctor inspects a database server without creating anything on it', async () => {
  const server = await startSqld()
  onTestFinished(() => server.stop())
  const options = { cwd: temporaryFolder(), env: { DASH_DATABASE_URL: server.url } }
  const inspect = async (): Promise<Record<string, unknown>> => {
    const { code, stdout } = await dash(['doctor', '--offline', '--json'], options)
    const { findings } = JSON.parse(stdout) as { findings: { check: string; verdict: string }[] }
    return { code, ...Object.fromEntries(findings.map(({ check, verdict }) => [check, verdict])) }
  }
  // Still a note in the second look: the first one has migrated nothing.
  for (const _time of [1, 2])
    expect(await inspect()).toMatchObject({ code: 0, 'feed.migrations': 'note', clock: 'ok' })
  await dash(['snapshot'], options)
  const taken = { 'feed.migrations': 'ok', snapshot: 'ok', 'ledger.migrations': 'note' }
  expect(await inspect()).toMatchObject({ code: 0, ...taken })
  await server.kill()
  expect(await inspect()).toMatchObject({ code: 74 })
})
