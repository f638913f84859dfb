import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ask, question, startAgent, textOf, SECRET } from '../../../support/agent.ts'
import { dash, exitOf, startDash, serve, temporaryFolder } from '../../../support/dash.ts'
import { unreachableUrl } from '../../../support/local-source.ts'
import {
  delta,
  DONE,
  html,
  json,
  META,
  record,
  startScripted,
  stream,
  CONFIG,
} from '../../../support/scripted-server.ts'
import type { Reply } from '../../../support/scripted-server.ts'
import type { Behaviour } from '../../../support/provider-wire.ts'
import { scriptedModels, startRouter } from '../../../support/router-simulator.ts'
import { startProvider } from '../../../support/synthetic-provider.ts'
import type { SyntheticProvider } from '../../../support/synthetic-provider.ts'

const chat = (args: readonly string[], options: Parameters<typeof dash>[1] = {}) =>
  dash(['chat', ...args], options)

describe('dash chat with a question', () => {
  test('prints the answer as plain text and nothing else', async () => {
    const server = await startAgent({
      provider: { rounds: [[{ text: 'Hello **you**' }, { end: 'completed' }]] },
    })
    expect(await chat(['--url', server.url, 'How', 'are', 'you?'])).toEqual({
      code: 0,
      stdout: 'Hello **you**\n',
      stderr: '',
    })
    expect(server.provider.requests).toHaveLength(1)
    expect(JSON.stringify(server.provider.requests[0]?.body)).toContain('How are you?')
  })

  test('takes it from a pipe too, and says so when there is none', async () => {
    const { url, requests } = await startScripted()
    expect(await chat(['--url', url], { stdin: 'What is\nnew?\n' })).toMatchObject({
      code: 0,
      stdout: 'Hello\n',
    })
    expect(JSON.parse(requests.at(-1)?.body ?? '')).toEqual({
      messages: [{ role: 'user', content: 'What is\nnew?' }],
      sort: 'trending',
      settings: { preferredLanguage: 'auto', tone: 'neutral' },
    })
    const { code, stderr } = await chat(['--url', url], { stdin: ' \n' })
    expect([code, stderr]).toEqual([
      64,
      'error: the question is empty: dash chat "QUESTION", or echo QUESTION | dash chat\n',
    ])
  })

  test('prints one line an event under --json, as the server sent it', async () => {
    const sent = [
      META,
      record('tool', { name: 'search_items', status: 'start' }),
      delta('Hel\u001b[2Jlo\u202e'),
      DONE,
    ]
    const { url } = await startScripted({ chat: stream(sent) })
    const { code, stdout } = await chat(['--json', '--url', url, 'x'])
    const lines = stdout.trimEnd().split('\n')
    expect(code).toBe(0)
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { event: 'meta', data: { remaining: { session: 19, day: 59 }, tier: 'free' } },
      { event: 'tool', data: { name: 'search_items', status: 'start' } },
      { event: 'delta', data: { text: 'Hel\u001b[2Jlo\u202e' } },
      { event: 'done', data: { usage: { in: 1, out: 1, cached: 0 } } },
    ])
    expect(stdout).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u)
  })

  test.each([[['--json']], [[]]])('%j: ends the turn when its reader has left', async (flags) => {
    let left: () => void = () => undefined
    const gone = new Promise<void>((resolve) => (left = resolve))
    const endless: Reply = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(META)
      const words = setInterval(() => response.write(delta('word ')), 10)
      response.once('close', () => {
        clearInterval(words)
        left()
      })
    }
    const { url } = await startScripted({ chat: endless })
    const child = startDash(['chat', ...flags, '--url', url, 'x'])
    await once(child.stdout ?? child, 'data')
    child.stdout?.destroy()
    await gone
    expect(await exitOf(child)).toBe(0)
  })

  test('passes item and sort on', async () => {
    const { url, requests } = await startScripted()
    await chat(['--url', url, '--item', 'hn-29387264', '--sort', 'week', 'x'])
    expect(JSON.parse(requests.at(-1)?.body ?? '')).toMatchObject({
      scope: { type: 'item', key: 'hn-29387264' },
      sort: 'week',
    })
    const { origin } = new URL(url)
    expect(requests.map(({ what, headers }) => [what, headers.origin])).toEqual([
      ['GET /api/agent/config', origin],
      ['POST /api/agent/session', origin],
      ['POST /api/agent/chat', origin],
    ])
  })

  test('strips what a terminal would obey, labels what is not ordinary, and says what is cut', async () => {
    const done = record('done', { usage: { in: 0, out: 0, cached: 0 }, degraded: true, cached: true })
    const { url } = await startScripted({ chat: stream([META, delta('a\u001b]0;x\u0007b\u009b2J'), done]) })
    const { stdout, stderr } = await chat(['--url', url, 'x'.repeat(2_001)])
    expect(stdout).toBe('a]0;xb2J\n')
    expect(stderr.split('\n')).toEqual([
      'the question is cut: only its first 2,000 characters are read',
      expect.stringMatching(/^degraded: /),
      expect.stringMatching(/^cached: /),
      '',
    ])
    expect(await chat(['--quiet', '--url', url, 'x'])).toMatchObject({ stderr: '' })
  })
})

describe('the exit code', () => {
  const limited = (scope: string): Reply => json({ error: 'rate_limited', scope, retryAfterSeconds: 60 }, 429)
  test.each<[string, Parameters<typeof startScripted>[0], number, RegExp]>([
    [
      'of a model that failed',
      { chat: stream([META, delta('Hel'), record('error', { error: 'timeout', code: 'idle' })]) },
      69,
      /the model took too long \(timeout, idle\)/,
    ],
    ['of an answer that broke off', { chat: stream([META, delta('Hel')], 'reset') }, 69, /broke off/],
    ['of the address limit', { chat: limited('ip') }, 69, /\(ip\); it opens again at .*\d\d:\d\d:\d\d/],
    ['of the session limit', { chat: limited('session') }, 69, /\(session\); it opens again at/],
    ['of the budget', { chat: limited('global-budget') }, 69, /budget .* \(global-budget\); it opens/],
    [
      'of a limit of what stands before the server',
      { chat: html(429, { 'retry-after': '60' }) },
      69,
      /a limit is reached \(rate_limited\); it opens again at .*\d\d:\d\d:\d\d/,
    ],
    [
      'of a chat that is off',
      { config: json({ ...CONFIG, enabled: false }) },
      69,
      /the chat of http\S+ is off/,
    ],
    ['of the kill switch', { session: json({ error: 'disabled' }, 503) }, 69, /switched off/],
    ['of a server without settings', { session: json({ error: 'misconfigured' }, 503) }, 69, /misconfigured/],
    ['of another server', { config: html() }, 69, /does not answer as the chat of dash does \(text\/html\)/],
    [
      'of an answer that is no stream',
      { chat: json({ hello: 'you' }) },
      69,
      /does not answer as the chat of dash does \(application\/json\)/,
    ],
    [
      'of verification',
      { config: json({ ...CONFIG, requireVerification: true }) },
      1,
      /proof that a human is asking, which a terminal cannot give; open http\S+\/ in a browser/,
    ],
    [
      'of verification asked for later',
      { session: json({ error: 'human_verification_failed' }, 403) },
      1,
      /open http\S+\/ in a browser/,
    ],
    [
      'of an origin that is not allowed',
      { session: json({ error: 'forbidden_origin' }, 403) },
      1,
      /DASH_ALLOWED_ORIGINS/,
    ],
    [
      'of sessions that do not hold',
      { chat: json({ error: 'invalid_session', reason: 'ip_mismatch' }, 401) },
      1,
      /invalid_session, ip_mismatch/,
    ],
    [
      'of a question it does not take',
      { chat: json({ error: 'payload_too_large' }, 413) },
      1,
      /payload_too_large/,
    ],
  ])('%s', async (_what, replies, code, words) => {
    const { url } = await startScripted(replies)
    const finished = await chat(['--url', url, 'x'])
    expect(finished.stderr).toMatch(words)
    expect(finished.stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(finished.code).toBe(code)
  })

  test('of an item where no items are talked about', async () => {
    const { url } = await startScripted({ config: json({ ...CONFIG, itemChat: false }) })
    expect(await chat(['--url', url, '--item', 'hn-1', 'x'])).toMatchObject({ code: 1 })
  })

  test('of no server, which says how to start one; under --json as a document', async () => {
    const port = new URL(await unreachableUrl()).port
    const finished = await chat(['x'], { env: { PORT: port } })
    expect(finished).toMatchObject({ code: 69, stdout: '' })
    expect(finished.stderr).toMatch(
      /cannot be reached .*; start a server with dash serve, name another with --url, or try/,
    )
    const named = await chat(['--url', `http://127.0.0.1:${port}`, 'x'])
    expect(named.code).toBe(69)
    expect(named.stderr).toMatch(/cannot be reached .*; check the address and the network, and try again\n$/)
    const { stdout } = await chat(['--json', 'x'], { env: { PORT: port } })
    expect(JSON.parse(stdout)).toMatchObject({ exitCode: 69 })
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('of %s, with what came of the answer', async (signal, code) => {
    const { url } = await startScripted({ chat: stream([META, delta('Hel')], 'hold') })
    const child = startDash(['chat', '--url', url, 'x'])
    let stdout = ''
    child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    await once(child.stdout ?? child, 'data')
    child.kill(signal)
    expect(await exitOf(child)).toBe(code)
    expect(stdout).toBe('Hel\n')
  })
})

test('a server that listens where the settings say is asked without --url, by its base address first', async () => {
  const server = await startAgent({ provider: { rounds: [[{ text: 'Here' }, { end: 'completed' }]] } })
  const expected = textOf(await ask(server, question('x')))
  expect(await chat(['x'], { env: { PORT: String(server.port) } })).toMatchObject({
    code: 0,
    stdout: `${expected}\n`,
  })
  const { url, requests } = await startScripted()
  expect(await chat(['x'], { env: { PORT: String(server.port), DASH_BASE_URL: url } })).toMatchObject({
    code: 0,
  })
  expect(requests).not.toEqual([])
})

test('a private server answers from the demo, and is gone afterwards', async () => {
  // The switch is for the operator's own server.
  const finished = await chat(['--demo', 'what is trending?'], { env: { DASH_CHAT_DISABLED: '1' } })
  expect(finished).toMatchObject({ code: 0 })
  expect(finished.stdout).toMatch(/^_Demo: a script answers here/)
  const [, folder = ''] = /^DEMO: filling (\S+) with the bundled sample/.exec(finished.stderr) ?? []
  expect(folder).toContain('dash-demo-')
  expect(existsSync(folder)).toBe(false)
})

const MODELS = scriptedModels(4)
const SOLVER = MODELS[0]?.id ?? ''

const OWN_LIMIT: Behaviour = {
  answer: {
    status: 429,
    type: 'application/json',
    body: '{"error":{"code":429,"message":"busy","metadata":{"limit_source":"upstream_provider_shared_pool"}}}',
  },
}

/** What the routing service was asked, beside the conversation. */
const asked = ({ requests }: SyntheticProvider): unknown[] =>
  requests.map(({ path, headers, body }) => ({
    path,
    authorization: headers.authorization,
    model: body['model'],
    provider: body['provider'],
    fallbacks: body['models'],
  }))

const request = (model: string): object => ({
  path: '/v1/chat/completions',
  authorization: 'Bearer test-key',
  model,
  provider: { max_price: { prompt: 0, completion: 0 }, data_collection: 'deny' },
  fallbacks: undefined,
})

const modelOf = async (url: string): Promise<unknown> => (await fetch(`${url}/api/agent/config`)).json()

test('a server whose model is `auto` chats on the recommended one, then on the next, within the day of both', async () => {
  const folder = join(temporaryFolder(), 'data')
  mkdirSync(folder)
  const service = await startRouter({ models: MODELS, clock: Date.now })
  const key = { DASH_DATA_DIR: folder, OPENROUTER_API_KEY: 'test-key' }
  const evaluated = await dash(['evaluate-models', '--json'], {
    env: { ...key, OPENROUTER_BASE_URL: service.url },
  })
  expect(JSON.parse(evaluated.stdout)).toMatchObject({ primary: SOLVER, requests: 8 })
  const provider = await startProvider()
  // Ten of these are nobody's, and the evaluation sent eight, so that three are left.
  provider.key = { data: { free_model_daily_requests: { limit: 21, used: 8 } } }
  const { url, child } = await serve([], {
    env: {
      ...key,
      OPENROUTER_BASE_URL: provider.url,
      DASH_CHAT_MODEL: 'auto',
      DASH_SESSION_SECRET: SECRET,
      DASH_CHAT_MIN_GAP_MS: '0',
    },
  })

  expect(await modelOf(url)).toMatchObject({ enabled: true, model: SOLVER })
  const first = await ask({ url }, question('What is new?'))
  expect(textOf(first)).not.toBe('')
  expect(first.at(-1)).toMatchObject({ event: 'done' })
  expect(asked(provider)).toEqual([request(SOLVER)])

  provider.behave(OWN_LIMIT, SOLVER)
  const second = await ask({ url }, question('And now?'))
  expect(second.at(-1)).toMatchObject({ event: 'done' })
  const other = provider.requests.at(-1)?.body['model'] as string
  expect(MODELS.map(({ id }) => id)).toContain(other)
  expect(other).not.toBe(SOLVER)
  expect(asked(provider).slice(1)).toEqual([request(SOLVER), request(other)])
  expect(await modelOf(url)).toMatchObject({ enabled: true, model: other })

  const last = await ask({ url }, question('Anything else?'))
  expect(last.at(-1)).toEqual({ event: 'error', data: { error: 'upstream_error', code: 'http_429' } })
  expect(provider.requests).toHaveLength(3)
  expect(provider.breaches).toEqual([])
  child.kill('SIGTERM')
  expect(await exitOf(child)).toBe(0)
}, 60_000)
