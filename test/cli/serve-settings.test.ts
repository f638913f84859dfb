import { Server } from 'node:net'
import type { Server as HttpServer } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { readConfig } from '../../src/cli/settings/read-config.ts'
import { startServer } from '../../src/cli/running-server.ts'
import type { StartedServer } from '../../src/cli/running-server.ts'
import { ask, chat, question, SECRET, sessionOf, textOf } from '../support/agent.ts'
import { silentLog } from '../support/api-client.ts'
import type { Behaviour } from '../support/provider-modes.ts'
import { startProvider } from '../support/synthetic-provider.ts'

/** The server that `dash serve` starts with these variables, in a data folder of the test's own. */
async function served(env: Record<string, string>): Promise<StartedServer> {
  const folder = mkdtempSync(join(tmpdir(), 'dash-serve-'))
  const config = readConfig({ port: '0' }, { DASH_DATA_DIR: folder, ...env }, folder)
  const server = await startServer(config, {
    log: silentLog,
    version: '1.2.3',
    demo: false,
    isDraining: () => false,
  })
  onTestFinished(async () => {
    await server.close(0)
    rmSync(folder, { recursive: true, force: true })
  })
  return server
}

/** The variables of a chat whose model answers. */
async function chatVariables(mode: Behaviour | 'answer' = 'answer'): Promise<Record<string, string>> {
  const provider = await startProvider(mode)
  return {
    DASH_SESSION_SECRET: SECRET,
    OPENAI_BASE_URL: provider.url,
    DASH_CHAT_MODEL: 'test-model',
    DASH_CHAT_PRICE_INPUT: '0.5',
    DASH_CHAT_PRICE_OUTPUT: '1.5',
    DASH_CHAT_MIN_GAP_MS: '0',
  }
}

test('the server gives request headers 10 seconds and whole requests 15', async () => {
  const listening = vi.spyOn(Server.prototype, 'listen')
  onTestFinished(() => listening.mockRestore())
  const { url } = await served({})
  const server = listening.mock.contexts
    .map((context) => context as HttpServer)
    .find((context) => {
      const address = context.address()
      return typeof address === 'object' && `${address?.port}` === new URL(url).port
    })
  expect(server).toMatchObject({ headersTimeout: 10_000, requestTimeout: 15_000 })
})

test.each(['60', '7200'])('a session ends after the %s seconds of its setting', async (seconds) => {
  const { url } = await served({ ...(await chatVariables()), DASH_CHAT_SESSION_SECONDS: seconds })
  const response = await fetch(`${url}/api/agent/session`, { method: 'POST', headers: { origin: url } })
  const { sessionToken, expiresAt } = (await response.json()) as Record<string, string>
  const [, payload = ''] = sessionToken?.split('.') ?? []
  const { iat, exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, number>
  expect((exp ?? 0) - (iat ?? 0)).toBe(Number(seconds))
  expect(Date.parse(expiresAt ?? '')).toBe((exp ?? 0) * 1_000)
})

test.each([
  ['counts the forwarded address behind a trusted proxy', '127.0.0.1/32', [200, 429, 200]],
  ['counts the address of a peer that is no trusted proxy', '192.0.2.0/24', [200, 429, 429]],
])('the chat %s', async (_what, proxies, statuses) => {
  const { url } = await served({
    ...(await chatVariables()),
    DASH_TRUSTED_PROXIES: proxies,
    DASH_CHAT_BURST_PER_MINUTE: '1',
  })
  const given: number[] = []
  for (const address of ['198.51.100.1', '198.51.100.1', '198.51.100.2']) {
    const headers = { 'x-forwarded-for': address }
    const token = await sessionOf({ url }, headers)
    const response = await chat({ url }, question('Hello'), { token, headers })
    await response.text()
    given.push(response.status)
  }
  expect(given).toEqual(statuses)
})

test.each([
  ['counts the forwarded address behind a trusted proxy', '127.0.0.1/32', [200, 429, 200]],
  ['counts the address of a peer that is no trusted proxy', '192.0.2.0/24', [200, 429, 429]],
])('the tool server %s', async (_what, proxies, statuses) => {
  const { url } = await served({ DASH_TRUSTED_PROXIES: proxies, DASH_MCP_REQUESTS_PER_MINUTE: '1' })
  const given: number[] = []
  for (const address of ['198.51.100.1', '198.51.100.1', '198.51.100.2']) {
    const response = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'x-forwarded-for': address,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    })
    await response.text()
    given.push(response.status)
  }
  expect(given).toEqual(statuses)
})

test('an image with an alternative text of over 500 characters reaches no reader of the chat as an image', async () => {
  const alternative = 'a'.repeat(501)
  const text = `![${alternative}](https://example.org/pixel)`
  const rounds = [
    [...(text.match(/.{1,7}/gs) ?? []).map((part) => ({ text: part })), { end: 'completed' as const }],
  ]
  const server = await served(await chatVariables({ rounds }))
  expect(textOf(await ask(server, question('Hello')))).toBe(`[${alternative}](https://example.org/pixel)`)
})
