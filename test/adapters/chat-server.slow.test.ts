import type { ServerResponse } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { openChatApi } from '../../src/adapters/chat-server.ts'
import type { ChatApiOptions, ChatApi } from '../../src/adapters/chat-server.ts'
import type { ServedEvent } from '../../src/domain/agent/schema.ts'
import { Refusal } from '../../src/domain/refusal.ts'
import {
  CONFIG,
  delta,
  DONE,
  html,
  json,
  META,
  pings,
  record,
  startScripted,
  stream,
} from '../support/scripted-server.ts'

const never = new AbortController().signal

function apiOf(url: string, options: ChatApiOptions = {}): ChatApi {
  const api = openChatApi(url, options)
  onTestFinished(() => api.close())
  return api
}

const body = (content: string): string => JSON.stringify({ messages: [{ role: 'user', content }] })

async function readAnswer(api: ChatApi, content = 'Hello', signal = never): Promise<ServedEvent[]> {
  const { sessionToken } = await api.session(never)
  const events: ServedEvent[] = []
  for await (const event of api.ask(sessionToken, body(content), signal)) events.push(event)
  return events
}

/** Returns the events of an answer before it was refused, and the refusal's code. */
async function readCutAnswer(api: ChatApi): Promise<[events: string[], code: string]> {
  const events: string[] = []
  const answer = (async () => {
    for await (const { event } of api.ask('v1.token', body('x'), never)) events.push(event)
  })()
  const { code } = await refusalOf(answer)
  return [events, code]
}

async function refusalOf(work: Promise<unknown>): Promise<Refusal> {
  const error: unknown = await work.then(() => null).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(Refusal)
  return error as Refusal
}

const limited = (details: object) => ({
  chat: json({ error: 'rate_limited', ...details }, 429, { 'retry-after': '9' }),
})
const proxied = (headers = {}) => ({ chat: html(429, headers) })

test.each<[string, string, Parameters<typeof startScripted>[0], object]>([
  ['disabled', 'a session', { session: json({ error: 'disabled' }, 503) }, { status: 503 }],
  [
    'human_verification_failed',
    'a session',
    { session: json({ error: 'human_verification_failed' }, 403) },
    { status: 403 },
  ],
  [
    'rate_limited',
    'an address',
    limited({ scope: 'ip', retryAfterSeconds: 7 }),
    { status: 429, scope: 'ip', retryAfterSeconds: 7 },
  ],
  [
    'rate_limited',
    'an unknown scope, with the wait in the header alone',
    limited({ scope: 'ip\u001b[2J' }),
    { status: 429, retryAfterSeconds: 9 },
  ],
  ['rate_limited', 'a proxy', proxied({ 'retry-after': '12' }), { status: 429, retryAfterSeconds: 12 }],
  ['rate_limited', 'a proxy without a wait', proxied(), { status: 429 }],
])('the client reports %s of %s', async (code, _what, responders, members) => {
  const { url } = await startScripted(responders)
  const refusal = await refusalOf(readAnswer(apiOf(url, { clock: () => Date.UTC(2030, 0, 3) })))
  expect([refusal.code, refusal.members]).toEqual([code, members])
})

test.each([
  ['a page', html(), /text\/html/],
  ['another interface', json({ hello: 'you' }), /application\/json/],
  ['an error of another interface', json({ error: 'teapot' }, 418), /status 418/],
  [
    'another address',
    html(301, { location: 'https://dash.example/' }),
    /redirects to https:\/\/dash\.example\//,
  ],
  ['several addresses', html(300, { location: '/chat' }), /redirects to \/chat,/],
  ['a bad request with an address', html(400, { location: 'https://x.example/' }), /text\/html\)$/],
  [
    'a page without end',
    (response: Parameters<ReturnType<typeof html>>[0]) => void response.end('x'.repeat(200_000)),
    /is not the chat of a dash server/,
  ],
  ['a token no header can hold', null, /is not the chat of a dash server/],
])('the client refuses a response with %s', async (_what, reply, words) => {
  const { url } = await startScripted(
    reply ? { config: reply } : { session: json({ sessionToken: 'a\nb', quotas: CONFIG.quotas }) },
  )
  const api = apiOf(url)
  const refusal = await refusalOf(reply ? api.config(never) : api.session(never))
  expect(refusal.code).toBe('server_foreign')
  expect(refusal.detail).toMatch(words)
})

test.each([
  ['an answer that is no stream', json({ hello: 'you' })],
  ['a page', html()],
  ['a page without end', (response: ServerResponse) => void response.write('x'.repeat(200_000))],
])('the client refuses a chat response with %s, and can ask again', async (_what, reply) => {
  const { url } = await startScripted({ chat: [reply, stream([META, DONE])] })
  const api = apiOf(url)
  expect(await refusalOf(readAnswer(api))).toMatchObject({ code: 'server_foreign' })
  expect((await readAnswer(api)).map(({ event }) => event)).toEqual(['meta', 'done'])
})

test.each([
  ['the stream ended early', stream([META, delta('Hel')])],
  ['was reset', stream([META, delta('Hel')], 'reset')],
  ['ended within an event', stream([META, delta('Hel'), 'event: done\ndata: {"usa'])],
  ['ended without the blank line of its last part', stream([META, delta('Hello').trimEnd()])],
])('the client yields the events of an answer that %s before the refusal', async (_what, chat) => {
  const { url } = await startScripted({ chat })
  expect(await readCutAnswer(apiOf(url))).toEqual([['meta', 'delta'], 'answer_cut'])
})

test.each(['end', 'reset'] as const)(
  'the client counts a last event without its line ends before an %s',
  async (end) => {
    const { url } = await startScripted({ chat: stream([META, delta('Hello'), DONE.trimEnd()], end) })
    expect((await readAnswer(apiOf(url))).at(-1)?.event).toBe('done')
  },
)

test('the client ignores events and tools of a later version', async () => {
  const later = [record('thought', { a: 1 }), record('tool', { name: 'browse', status: 'start' })]
  const { url } = await startScripted({ chat: stream([META, ...later, delta('Hello'), DONE]) })
  expect((await readAnswer(apiOf(url))).map(({ event }) => event)).toEqual(['meta', 'delta', 'done'])
})

test.each([
  ['a payload of another kind', record('delta', { text: 7 })],
  ['an event without end', `event: delta\ndata: ${'x'.repeat(300_000)}`],
])('the client refuses a server that sends %s', async (_what, sent) => {
  const { url } = await startScripted({ chat: stream([META, sent], 'hold') })
  expect(await refusalOf(readAnswer(apiOf(url)))).toMatchObject({ code: 'server_foreign' })
})

test('the client gives up a server that sends only keep-alive comments', async () => {
  const { url } = await startScripted({ chat: pings([META, delta('Hel')]) })
  const refusal = await refusalOf(readAnswer(apiOf(url, { turnMs: 200 })))
  expect(refusal).toMatchObject({ code: 'answer_cut' })
  expect(refusal.detail).toMatch(/no complete response within 0\.2 s/)
})

test('the client gives up a body that drips', async () => {
  const { url } = await startScripted({ config: pings([]) })
  const refusal = await refusalOf(apiOf(url, { responseStartMs: 1_000 }).config(never))
  expect(refusal).toMatchObject({ code: 'server_unreachable' })
  expect(refusal.detail).toMatch(/broke the connection \(no complete response within 1 s\)/)
})
