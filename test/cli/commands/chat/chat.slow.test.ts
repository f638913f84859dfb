import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chatEvents, chatBody, textOf, SECRET } from '../../../support/agent.ts'
import { dash, startDash, serve, temporaryFolder } from '../../../support/dash.ts'
import { delta, META, startScripted, stream } from '../../../support/scripted-server.ts'
import type { Responder } from '../../../support/scripted-server.ts'
import { scriptedModels, startRouter } from '../../../jobs/models/router-simulator.ts'
import { startProvider } from '../../../support/provider.ts'
import type { ScriptedProvider } from '../../../support/provider.ts'

const chat = (args: readonly string[], options: Parameters<typeof dash>[1] = {}) =>
  dash(['chat', ...args], options)

test.each([[['--json']], [[]]])(
  'with the flags %j a turn ends when standard output is closed',
  async (flags) => {
    let left: () => void = () => undefined
    const gone = new Promise<void>((resolve) => (left = resolve))
    const endless: Responder = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(META)
      const words = setInterval(() => response.write(delta('word ')), 10)
      response.once('close', () => {
        clearInterval(words)
        left()
      })
    }
    const { url } = await startScripted({ chat: endless })
    const { child, until, end } = startDash(['chat', ...flags, '--url', url, 'x'])
    await until('stdout')
    child.stdout?.destroy()
    await gone
    expect(await end()).toBe(0)
  },
)

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('a command ended by %s has its exit code and prints the partial answer', async (signal, code) => {
  const { url } = await startScripted({ chat: stream([META, delta('Hel')], 'hold') })
  const { output, until, end } = startDash(['chat', '--url', url, 'x'])
  await until('stdout')
  expect([await end(signal), output.stdout]).toEqual([code, 'Hel\n'])
})

test('a question from a pipe that does not end is answered', async () => {
  const { url } = await startScripted()
  const { child, output, end } = startDash(['chat', '--url', url])
  child.stdin?.on('error', () => undefined)
  child.stdin?.write('What is new? '.repeat(1_000))
  expect([await end(), output.stdout]).toEqual([0, 'Hello\n'])
})

test('a private server serves the demo, and its folder is deleted afterwards', async () => {
  // DASH_CHAT_DISABLED applies to the operator's own server only.
  const finished = await chat(['--demo', 'what is trending?'], { env: { DASH_CHAT_DISABLED: '1' } })
  expect(finished).toMatchObject({ code: 0 })
  expect(finished.stdout).toMatch(/^_Demo: a script answers here/)
  const [, folder = ''] = /^DEMO: filling (\S+) with the bundled sample/.exec(finished.stderr) ?? []
  expect(folder).toContain('dash-demo-')
  expect(existsSync(folder)).toBe(false)
})

const MODELS = scriptedModels(4)
const SOLVER = MODELS[0]?.id ?? ''

/** Requests to the routing service, without the conversation. */
const routerRequests = ({ requests }: ScriptedProvider): unknown[] =>
  requests.map(({ path, headers, body }) => ({
    path,
    authorization: headers.authorization,
    models: body['models'],
    provider: body['provider'],
  }))

const modelOf = async (url: string): Promise<unknown> => (await fetch(`${url}/api/agent/config`)).json()

test('a server with the model `auto` chats with the recommended models, within the daily limit that it shares with the evaluation', async () => {
  const folder = join(temporaryFolder(), 'data')
  mkdirSync(folder)
  const service = await startRouter({ models: MODELS, clock: Date.now })
  const key = { DASH_DATA_DIR: folder, OPENROUTER_API_KEY: 'test-key' }
  const evaluated = await dash(['evaluate-models', '--json'], {
    env: { ...key, OPENROUTER_BASE_URL: service.url },
  })
  expect(JSON.parse(evaluated.stdout)).toMatchObject({ primary: SOLVER, requests: 8 })
  const provider = await startProvider()
  // Ten of these are reserved and the evaluation sent eight, so that two are left.
  provider.key = { data: { free_model_daily_requests: { limit: 20, used: 8 } } }
  const { url, end } = await serve([], {
    env: {
      ...key,
      OPENROUTER_BASE_URL: provider.url,
      DASH_CHAT_MODEL: 'auto',
      DASH_SESSION_SECRET: SECRET,
      DASH_CHAT_MIN_GAP_MS: '0',
    },
  })

  expect(await modelOf(url)).toMatchObject({ enabled: true, model: SOLVER })
  const first = await chatEvents({ url }, chatBody('What is new?'))
  expect(textOf(first)).not.toBe('')
  expect(first.at(-1)).toMatchObject({ event: 'done' })
  const second = await chatEvents({ url }, chatBody('And now?'))
  expect(second.at(-1)).toMatchObject({ event: 'done' })
  const request = {
    path: '/v1/chat/completions',
    authorization: 'Bearer test-key',
    models: [SOLVER, MODELS[1]?.id],
    provider: { max_price: { prompt: 0, completion: 0 }, data_collection: 'deny' },
  }
  expect(routerRequests(provider)).toEqual([request, request])

  const last = await chatEvents({ url }, chatBody('Anything else?'))
  expect(last.at(-1)).toEqual({ event: 'error', data: { error: 'upstream_error', code: 'http_429' } })
  expect(provider.requests).toHaveLength(2)
  expect(provider.breaches).toEqual([])
  expect(await end('SIGTERM')).toBe(0)
}, 60_000)
