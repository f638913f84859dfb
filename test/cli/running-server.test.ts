import { Server } from 'node:net'
import type { Server as HttpServer } from 'node:http'
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, onTestFinished, vi } from 'vitest'
import { startServer } from '../../src/cli/running-server.ts'
import { chatSetup, largeCallOf, logChatStart } from '../../src/cli/settings/chat-checks.ts'
import { checkFeatures } from '../../src/cli/commands/doctor/doctor.ts'
import { readConfig } from '../../src/cli/settings/read-config.ts'
import { addDays } from '../../src/domain/time.ts'
import type { StartedServer } from '../../src/cli/running-server.ts'
import { chatEvents, chat, chatVariables, chatBody, sessionOf, textOf } from '../support/agent.ts'
import { silentLog } from '../support/api-client.ts'
import { temporaryFolder } from '../support/dash.ts'
import { startProvider } from '../support/provider.ts'
import type { Behaviour } from '../support/provider.ts'
import type { Log } from '../../src/server/route.ts'
import { AS_OF, publishedWorkspace } from '../support/workspace.ts'

const SECRET = { DASH_SESSION_SECRET: 'a secret of thirty-two bytes, or more' }
const MODEL = { DASH_CHAT_MODEL: 'model', OPENAI_API_KEY: 'key' }
const PRICES = { DASH_CHAT_PRICE_INPUT: '1', DASH_CHAT_PRICE_OUTPUT: '2' }

const configOf = (env: NodeJS.ProcessEnv) => readConfig({}, env, '/nowhere')

/** Log lines about the chat at the start of a server: level, fields and message. */
function chatLogLines(env: NodeJS.ProcessEnv): [level: string, fields: object, message: string][] {
  const lines: ReturnType<typeof chatLogLines> = []
  const at = (level: string) => (fields: object, message: string) => void lines.push([level, fields, message])
  logChatStart(configOf(env), { info: at('info'), warn: at('warn'), error: at('error') })
  return lines
}

const REST = { ...SECRET, ...MODEL }

test.each([
  [{}, 'info', ['DASH_SESSION_SECRET', 'DASH_CHAT_MODEL']],
  [SECRET, 'warn', ['DASH_CHAT_MODEL']],
  [MODEL, 'warn', ['DASH_SESSION_SECRET', 'DASH_CHAT_PRICE_INPUT', 'DASH_CHAT_PRICE_OUTPUT']],
  [{ DASH_CHAT_MODEL: 'auto' }, 'warn', ['DASH_SESSION_SECRET', 'OPENROUTER_API_KEY']],
  [{ ...SECRET, ...PRICES, DASH_CHAT_MODEL: 'model' }, 'warn', ['OPENAI_API_KEY']],
  [{ ...REST, ...PRICES, DASH_CHAT_DISABLED: '1' }, 'info', ['DASH_CHAT_DISABLED']],
  [{ ...REST, ...PRICES }, null, []],
  [{ ...SECRET, DASH_CHAT_MODEL: 'model', OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' }, null, []],
])(
  'the chat with %o logs its missing settings as %s, and nothing if it is complete',
  (env, level, missing) => {
    expect(chatSetup(configOf(env)).gaps).toEqual(missing)
    expect(chatLogLines(env)).toEqual(level === null ? [] : [[level, { missing }, 'the chat is off']])
    const mentionsEngine = JSON.stringify(checkFeatures(configOf(env))).includes(
      'OPENAI_BASE_URL to an engine',
    )
    expect(mentionsEngine).toBe(missing.join().includes('OPENAI_API_KEY'))
  },
)

test.each([
  ['3', '15', {}, '2.2'],
  ['6', '30', { DASH_CHAT_BUDGET_SHARE: '1' }, '2.5'],
  ['0', '0', { DASH_CHAT_BUDGET_USD_PER_DAY: '0' }, '0.1'],
])(
  'a turn that reserves a large part at the prices %s and %s with %j is logged, with its values and a remedy',
  (input, output, share, budget) => {
    const prices = { DASH_CHAT_PRICE_INPUT: input, DASH_CHAT_PRICE_OUTPUT: output }
    const given = { ...SECRET, ...MODEL, ...prices, ...share }
    const config = configOf(given)
    const large = largeCallOf(config)
    expect(large?.problem).toMatch(/one turn with tools reserves up to \$0(\.\d+)? of the day's \$\d/)
    expect(chatLogLines(given)).toEqual([['warn', {}, `${large?.problem}; ${large?.mend}`]])
    expect(checkFeatures(config)).toContainEqual(
      expect.objectContaining({ verdict: 'warning', check: 'chat.budget', mend: large?.mend }),
    )
    expect(largeCallOf(configOf({ ...given, DASH_CHAT_BUDGET_USD_PER_DAY: budget }))).toBeNull()
  },
)

test.each([
  ['0.2', 10],
  ['0.01', 1],
])(
  'an address has, with a share of %s, %d requests of `auto` a day, and a warning says so',
  (share, requests) => {
    const auto = { DASH_CHAT_MODEL: 'auto', OPENROUTER_API_KEY: 'key', DASH_CHAT_BUDGET_SHARE: share }
    const [[, fields, line] = []] = chatLogLines({ ...SECRET, ...auto })
    expect(fields).toEqual({})
    expect(line).toContain(`one address may use ${requests} of the 50 daily requests`)
    expect(line).toContain('DASH_CHAT_BUDGET_SHARE')
    expect(checkFeatures(configOf({ ...SECRET, ...auto }))).toContainEqual(
      expect.objectContaining({ verdict: 'warning', check: 'chat.requests' }),
    )
  },
)

test('the share of a budget is a decimal fraction of at most six digits', () => {
  const shareOf = (text: string) => configOf({ DASH_CHAT_BUDGET_SHARE: text }).chat.limits.budgetShare
  expect(['0.2', '1', '0.000001'].map(shareOf)).toEqual([200_000, 1_000_000, 1])
  for (const bad of ['0', '1.1', '-0.2', '0.1234567'])
    expect(() => shareOf(bad), bad).toThrow('DASH_CHAT_BUDGET_SHARE')
})

test('the budget of a day is exact to a millionth of a dollar', () => {
  const budgetOf = (text: string) => configOf({ DASH_CHAT_BUDGET_USD_PER_DAY: text }).chat.limits.budgetPerDay
  expect(['2', '0.1', '3.000001'].map(budgetOf)).toEqual([2_000_000, 100_000, 3_000_001])
  expect(() => budgetOf('1000000')).toThrow('"1000000" must be US dollars below 1000000')
})

/** Starts the server of `dash serve` with these variables, in a temporary data folder. */
async function served(env: Record<string, string>, log: Log = silentLog): Promise<StartedServer> {
  const folder = temporaryFolder()
  const config = readConfig({ port: '0' }, { DASH_DATA_DIR: folder, ...env }, folder)
  const server = await startServer(config, {
    log,
    version: '1.2.3',
    demo: false,
    isDraining: () => false,
  })
  onTestFinished(() => server.close(0))
  return server
}

test('a server whose chat has no recommended model yet logs so, and no other server does', async () => {
  const warned = vi.fn<(fields: object, message: string) => void>()
  const log = { ...silentLog, warn: warned }
  await served({ ...SECRET, DASH_CHAT_MODEL: 'auto', OPENROUTER_API_KEY: 'key' }, log)
  const message = 'the chat is off: it has no recommended model; run dash evaluate-models'
  await vi.waitFor(() => expect(warned).toHaveBeenCalledWith({}, message))
  warned.mockClear()
  await served(await withModel(), log)
  expect(warned).not.toHaveBeenCalledWith({}, message)
})

/** Variables of a chat whose model works. */
const withModel = async (mode: Behaviour | 'answer' = 'answer') =>
  chatVariables((await startProvider(mode)).url)

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
  const { url } = await served({ ...(await withModel()), DASH_CHAT_SESSION_SECONDS: seconds })
  const response = await fetch(`${url}/api/agent/session`, { method: 'POST', headers: { origin: url } })
  const { sessionToken, expiresAt } = (await response.json()) as Record<string, string>
  const [, payload = ''] = sessionToken?.split('.') ?? []
  const { iat, exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, number>
  expect((exp ?? 0) - (iat ?? 0)).toBe(Number(seconds))
  expect(Date.parse(expiresAt ?? '')).toBe((exp ?? 0) * 1_000)
})

/** Stops the clock of a server that starts after this call, so that its requests belong to one minute. */
function stopClock(): void {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
}

/** Sends three requests, the first two forwarded from one address, and returns their statuses. */
async function statusesOf(send: (forwarded: Record<string, string>) => Promise<Response>): Promise<number[]> {
  const statuses: number[] = []
  for (const address of ['198.51.100.1', '198.51.100.1', '198.51.100.2']) {
    const response = await send({ 'x-forwarded-for': address })
    await response.text()
    statuses.push(response.status)
  }
  return statuses
}

describe('behind a trusted proxy', () => {
  const PROXY = { DASH_TRUSTED_PROXIES: '127.0.0.1/32' }

  test('requests to the chat are limited by the forwarded address', async () => {
    stopClock()
    const server = await served({ ...(await withModel()), ...PROXY, DASH_CHAT_BURST_PER_MINUTE: '1' })
    const received = await statusesOf(async (headers) =>
      chat(server, chatBody('Hello'), { token: await sessionOf(server, headers), headers }),
    )
    expect(received).toEqual([200, 429, 200])
  })

  test('requests to the tool server are limited by the forwarded address', async () => {
    stopClock()
    const { url } = await served({ ...PROXY, DASH_MCP_REQUESTS_PER_MINUTE: '1' })
    const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const received = await statusesOf((headers) =>
      fetch(`${url}/mcp`, { method: 'POST', headers: { ...json, ...headers }, body }),
    )
    expect(received).toEqual([200, 429, 200])
  })
})

describe('the readiness of an archive', () => {
  const stateOf = async (url: string): Promise<unknown[]> => {
    const ready = await fetch(`${url}/readyz`)
    const { checks } = (await ready.json()) as { checks: Record<string, string> }
    return [ready.status, checks['archive'], (await fetch(`${url}/api/feed/history?sort=year`)).status]
  }
  const SOUND = [200, 'ok', 200]

  test('an archive without any publication is ready', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'objects'))
    expect(await stateOf((await served({ DASH_DATA_DIR: folder })).url)).toEqual([200, 'ok', 404])
  })

  test.each([
    ['its heads are missing', 'heads', 'empty'],
    ['its newest publication is missing', 'sha256', 'empty'],
    ['its folder is missing', '', 'absent'],
  ])('an archive is not ready, as the history is not, while %s', async (_what, part, form) => {
    const { folder } = await publishedWorkspace([AS_OF, addDays(AS_OF, 1)])
    const { url } = await served({ DASH_DATA_DIR: folder })
    expect(await stateOf(url)).toEqual(SOUND)
    const path = join(folder, 'objects', part)
    renameSync(path, `${folder}/aside`)
    if (form === 'empty') mkdirSync(path)
    expect(await stateOf(url)).toEqual([503, 'unavailable', 503])
    if (form !== 'absent') rmSync(path, { recursive: true })
    renameSync(`${folder}/aside`, path)
    expect(await stateOf(url)).toEqual(SOUND)
  })
})

test('an image with an alternative text of over 500 characters reaches no reader of the chat as an image', async () => {
  const alternative = 'a'.repeat(501)
  const link = `[${alternative}](https://example.org/pixel)`
  const parts = `!${link}`.match(/.{1,7}/gs) ?? []
  const rounds = [[...parts.map((text) => ({ text })), { end: 'completed' as const }]]
  const server = await served(await withModel({ rounds }))
  expect(textOf(await chatEvents(server, chatBody('Hello')))).toBe(link)
})
