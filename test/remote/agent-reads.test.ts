import { createClient } from '@libsql/client'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { prepareFolders } from '../../src/cli/data-folder.ts'
import { Container } from '../../src/cli/container.ts'
import { readConfig } from '../../src/cli/settings/read-config.ts'
import { rankPeriods } from '../../src/jobs/snapshot.ts'
import { agentSources, runCall } from '../../src/server/agent/tools.ts'
import { startSqldWithTokens } from './sqld.ts'
import { temporaryFolder } from '../support/dash.ts'
import { AS_OF, RUN_AT, sampleSignals } from '../support/workspace.ts'

/** The agent's reads on a server that distinguishes read-only tokens. */
let server: Awaited<ReturnType<typeof startSqldWithTokens>>

beforeAll(async () => {
  server = await startSqldWithTokens()
})
afterAll(() => server.sqld.stop())

const NOW = RUN_AT + 3_600_000

test('every tool works with a read-only token, and the server refuses it a write', async () => {
  const folder = temporaryFolder()
  const { sqld, tokenFor } = server
  const readToken = tokenFor('ro')
  const env = {
    DASH_DATABASE_URL: sqld.url,
    DASH_DATABASE_AUTH_TOKEN: tokenFor('rw'),
    DASH_DATABASE_READ_TOKEN: readToken,
  }
  const config = readConfig({ dataDir: folder }, env, folder)
  prepareFolders(config, true)
  const container = new Container({ config, version: '0', kind: 'server' })
  onTestFinished(() => container.close())
  const signal = new AbortController().signal
  const feed = await container.feed()
  await feed.importSignals(sampleSignals())
  await rankPeriods({ feed, clock: () => NOW }, { signal, discardLater: false })

  const sources = agentSources({ ...(await container.agentReads()), clock: () => NOW })
  const options = {
    group: 'chat' as const,
    onFault(_: string, error: unknown) {
      throw error
    },
  }
  for (const [name, given, expected] of [
    ['search_items', { query: 'title', sources: null, from: null, to: null, limit: 1 }, { more: true }],
    ['get_period_top', { period: 'year', list: null, limit: 1, at: null }, { publication: null }],
    ['get_feed_snapshot', { sort: 'month', limit: 1 }, { hackerNews: [{ key: 'hn-hn3' }] }],
    ['read_article', { key: 'hn-hn1', offset: null }, { found: true }],
    ['find_similar_items', { key: 'hn-hn1', limit: 1 }, { found: true }],
    ['get_trend_history', { key: 'hn-hn2', term: null, from: null, to: null }, { days: [{ day: AS_OF }] }],
  ] as const) {
    const call = { name, arguments: JSON.stringify(given) }
    const { output } = await runCall(call, sources, options, signal)
    expect(JSON.parse(output), name).toMatchObject(expected)
  }

  const client = createClient({ url: sqld.url, authToken: readToken })
  onTestFinished(() => client.close())
  for (const sql of ['UPDATE revision SET number = 7', 'CREATE TABLE t (x)'])
    await expect(client.execute(sql), sql).rejects.toThrow('HTTP status 403')
})
