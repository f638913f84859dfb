import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { expect, test } from 'vitest'
import { chat, question } from '../support/agent.ts'
import { exitOf, serve, temporaryFolder } from '../support/dash.ts'
import type { Serving } from '../support/dash.ts'
import { startProvider } from '../support/synthetic-provider.ts'
import type { SyntheticProvider } from '../support/synthetic-provider.ts'

type ChatServing = Serving & { provider: SyntheticProvider }

/** A server whose model begins to answer and then says nothing. */
async function serveChat(dataDir: string, more: Record<string, string> = {}): Promise<ChatServing> {
  const provider = await startProvider('silence after first event')
  const env = {
    DASH_SESSION_SECRET: 'a secret of thirty-two bytes, or more',
    OPENAI_BASE_URL: provider.url,
    DASH_CHAT_MODEL: 'test-model',
    DASH_CHAT_PRICE_INPUT: '0.5',
    DASH_CHAT_PRICE_OUTPUT: '1.5',
    ...more,
  }
  return { ...(await serve(['--data-dir', dataDir], { env })), provider }
}

/** An answer whose model has been asked, read in the background to wherever it ends. */
async function openTurn(serving: ChatServing): Promise<void> {
  const response = await chat(serving, question('Hello'))
  expect(response.status).toBe(200)
  response.text().catch(() => undefined)
  await serving.provider.arrived(1)
}

async function money(dataDir: string): Promise<unknown> {
  const client = createClient({ url: pathToFileURL(join(dataDir, 'state.db')).href })
  const { rows } = await client.execute('SELECT settled, reserved FROM chat_days')
  client.close()
  return rows.map((row) => ({ settled: Number(row['settled']), reserved: Number(row['reserved']) }))
}

test('a server killed in the middle of a turn leaves a reservation, which the next one settles at its start', async () => {
  const dataDir = temporaryFolder()
  const first = await serveChat(dataDir)
  await openTurn(first)
  const gone = once(first.child, 'exit')
  first.child.kill('SIGKILL')
  await gone
  const left = await money(dataDir)
  expect(left).toEqual([{ settled: 0, reserved: expect.any(Number) as number }])
  const [{ reserved } = { reserved: 0 }] = left as { reserved: number }[]
  expect(reserved).toBeGreaterThan(0)
  // The time of its lease goes by.
  const client = createClient({ url: pathToFileURL(join(dataDir, 'state.db')).href })
  await client.execute('UPDATE chat_turns SET lease_until = 1')
  client.close()
  const next = await serveChat(dataDir)
  while (!next.output.stderr.includes('chat turns were settled'))
    await once(next.child.stderr ?? next.child, 'data')
  expect(await money(dataDir)).toEqual([{ settled: reserved, reserved: 0 }])
}, 30_000)

test('a server that is stopped cuts and settles what is open', async () => {
  const dataDir = temporaryFolder()
  const serving = await serveChat(dataDir, { DASH_DRAIN_SECONDS: '0' })
  await openTurn(serving)
  serving.child.kill('SIGTERM')
  expect(await exitOf(serving.child)).toBe(0)
  expect(serving.output.stderr).toContain('"terminal":"gone"')
  const [{ settled, reserved } = { settled: 0, reserved: 1 }] = (await money(dataDir)) as {
    settled: number
    reserved: number
  }[]
  expect([settled > 0, reserved]).toEqual([true, 0])
}, 30_000)

test('without a secret the server runs, and the chat says that it is misconfigured', async () => {
  const { url } = await serveChat(temporaryFolder(), { DASH_SESSION_SECRET: '' })
  expect(await (await fetch(`${url}/api/agent/config`)).json()).toMatchObject({
    enabled: false,
    model: 'test-model',
  })
  const refused = await fetch(`${url}/api/agent/session`, { method: 'POST', headers: { origin: url } })
  expect([refused.status, await refused.json()]).toEqual([503, { error: 'misconfigured' }])
}, 30_000)
