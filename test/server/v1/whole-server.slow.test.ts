import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startServer } from '../../../src/cli/running-server.ts'
import { readConfig } from '../../../src/cli/settings/read-config.ts'
import { chatBody, chatEvents, SECRET } from '../../support/agent.ts'
import { startProvider } from '../../support/provider.ts'
import type { ScriptedProvider } from '../../support/provider.ts'
import { CALLER_KEY, errorBody, folderWithRanking, json } from './v1.ts'

/** The server of `dash serve` with a stored ranking of these models. */
async function serve(models: readonly string[], env: Record<string, string>) {
  const folder = await folderWithRanking(models)
  const settings = { DASH_DATA_DIR: folder, DASH_METRICS_ADDRESS: '127.0.0.1:0', ...env }
  const config = readConfig({ port: '0' }, settings, folder)
  const lines: string[] = []
  const write = (fields: object, message: string): void =>
    void lines.push(JSON.stringify({ fields, message }))
  const log = { info: write, warn: write, error: write }
  const started = await startServer(config, { log, version: '1.2.3', demo: false, isDraining: () => false })
  onTestFinished(() => started.close(0))
  return { ...started, folder, lines }
}

const post = (url: string, key: string, query = ''): Promise<Response> =>
  fetch(`${url}/v1/chat/completions${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'auto', stream: true, messages: [{ role: 'user', content: 'Hello?' }] }),
  })

/** Sends requests with every kind of end. @returns all bodies and headers of the responses */
async function sendAll(url: string, upstream: ScriptedProvider): Promise<string> {
  const modes = [
    'answer',
    'reset',
    'reset before headers',
    'redirect',
    'HTML 200',
    json(errorBody(401, `no user for ${CALLER_KEY}`), 401, { 'x-key': CALLER_KEY }),
    json(errorBody(400, `Bearer ${CALLER_KEY}`), 400),
    json(errorBody(429, CALLER_KEY), 429, { 'x-ratelimit-reset': CALLER_KEY, 'retry-after': CALLER_KEY }),
  ] as const
  const texts: string[] = []
  for (const mode of modes) {
    upstream.behave(mode)
    const response = await post(url, CALLER_KEY, `?key=${CALLER_KEY}`)
    texts.push(await response.text(), JSON.stringify([...response.headers]))
  }
  return texts.join('\n')
}

test('a key is in no response, log line, metric or file', async () => {
  const upstream = await startProvider()
  const env = { DASH_V1: '1', OPENROUTER_BASE_URL: upstream.url, OPENROUTER_API_KEY: 'sk-of-the-server' }
  const { url, metricsUrl, folder, lines } = await serve(['maker/first:free', 'maker/second:free'], env)
  const responses = await sendAll(url, upstream)
  const metrics = await (await fetch(metricsUrl ?? '')).text()
  expect(metrics).toContain('/v1/chat/completions')
  expect(lines.join('\n')).toContain('/v1/chat/completions')
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  expect(files.map(({ name }) => name)).toContain('state.db')
  const stored = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
  for (const text of [responses, metrics, ...lines, ...stored]) expect(text).not.toContain(CALLER_KEY)
  const keys = new Set(upstream.requests.map(({ headers }) => headers.authorization))
  expect([...keys]).toEqual([`Bearer ${CALLER_KEY}`])
})

test('the routing service learns the version and the address of this installation, and an allowed origin reads nothing', async () => {
  const upstream = await startProvider()
  const origin = 'https://allowed.example'
  const env = { DASH_V1: '1', OPENROUTER_BASE_URL: upstream.url, DASH_ALLOWED_ORIGINS: origin }
  const { url } = await serve(['maker/first:free'], env)
  await (await post(url, CALLER_KEY)).text()
  for (const [path, method, status] of [
    ['models', 'GET', 200],
    ['chat/completions', 'OPTIONS', 405],
  ] as const) {
    const response = await fetch(`${url}/v1/${path}`, { method, headers: { origin } })
    expect([path, response.status]).toEqual([path, status])
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  }
  const { 'user-agent': agent, 'http-referer': referer } = upstream.requests[0]?.headers ?? {}
  expect(agent).toBe(`dash/1.2.3 (+${String(referer)})`)
})

test('/v1 does not exist unless it is set', async () => {
  const { url } = await serve(['maker/first:free'], {})
  for (const path of ['/v1/models', '/v1/chat/completions'])
    expect([path, (await fetch(`${url}${path}`, { method: 'POST' })).status]).toEqual([path, 404])
})

test('a server with the model `auto` chats with the recommended models, within the daily limit of its account', async () => {
  const upstream = await startProvider()
  // Ten of these are reserved for the evaluation.
  upstream.key = { data: { free_model_daily_requests: { limit: 11, used: 0 } } }
  const models = ['maker/first:free', 'maker/second:free']
  const { url } = await serve(models, {
    OPENROUTER_BASE_URL: upstream.url,
    OPENROUTER_API_KEY: 'sk-of-the-server',
    DASH_CHAT_MODEL: 'auto',
    DASH_CHAT_MIN_GAP_MS: '0',
    DASH_SESSION_SECRET: SECRET,
  })
  expect(await (await fetch(`${url}/api/agent/config`)).json()).toMatchObject({
    enabled: true,
    model: models[0],
  })
  expect((await chatEvents({ url }, chatBody('What is new?'))).at(-1)).toMatchObject({ event: 'done' })
  const refused = { error: 'upstream_error', code: 'http_429' }
  expect((await chatEvents({ url }, chatBody('And now?'))).at(-1)?.data).toEqual(refused)
  expect(upstream.requests.map(({ headers, body }) => [headers.authorization, body['models']])).toEqual([
    ['Bearer sk-of-the-server', models],
  ])
})
