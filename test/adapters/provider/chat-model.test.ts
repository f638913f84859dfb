import { expect, test } from 'vitest'
import { isOpenAi, mayHaveArrived } from '../../../src/adapters/provider/chat-model.ts'
import type { ModelEvent } from '../../../src/domain/agent/model-call.ts'
import { unreachableUrl } from '../../support/local-source.ts'
import { CALL, collectEvents, NEVER_ABORTED, modelAt, outcome, runTurn } from './model-turns.ts'
import { startProvider } from '../../support/provider.ts'
import type { ModeName } from '../../support/provider.ts'

test.each([
  [{ code: 'ETIMEDOUT', syscall: 'read' }, true],
  [{ code: 'ETIMEDOUT', syscall: 'connect' }, false],
  [{ code: 'ECONNRESET', syscall: 'read' }, true],
  [{ code: 'ECONNREFUSED', syscall: 'connect' }, false],
  [{ code: 'UND_ERR_CONNECT_TIMEOUT' }, false],
  [undefined, false],
])('a request that failed with %o may have arrived: %s', (cause, arrived) => {
  expect(mayHaveArrived(cause)).toBe(arrived)
})

const WHOLE = 'Hello Да 👩‍🚀 é'
const USAGE = { in: 100, out: 20, cached: 40 }

type Expected =
  Partial<Extract<ModelEvent, { kind: 'end' }>> | { error: string; code: string; dispatched?: boolean }

/** Every misbehaviour of one round: its text and its end. */
const TABLE: readonly (readonly [ModeName, string, Expected])[] = [
  ['answer', WHOLE, { refused: false, calls: [], usage: USAGE }],
  ['clean end without terminal', WHOLE, { error: 'upstream_error', code: 'truncated' }],
  ['reset', 'Hello ', { error: 'upstream_error', code: 'truncated', dispatched: true }],
  ['held open after its end', WHOLE, { refused: false, calls: [], usage: USAGE }],
  ['reset before headers', '', { error: 'upstream_error', code: 'connect', dispatched: true }],
  ['silence before headers', '', { error: 'timeout', code: 'first_event' }],
  ['silence after headers', '', { error: 'timeout', code: 'first_event' }],
  ['silence after first event', '', { error: 'timeout', code: 'idle' }],
  ['comments only', '', { error: 'timeout', code: 'first_event' }],
  ['HTML 200', '', { error: 'upstream_error', code: 'invalid_stream', dispatched: true }],
  ['JSON 200', '', { error: 'upstream_error', code: 'invalid_stream' }],
  ['content encoding', '', { error: 'upstream_error', code: 'invalid_stream' }],
  ['incomplete', 'Hello ', { error: 'upstream_error', code: 'incomplete' }],
  ['failed', 'Hello ', { error: 'upstream_error', code: 'failed' }],
  ['refusal', 'I cannot help.', { refused: true, calls: [], usage: USAGE }],
  ['empty answer', '', { error: 'upstream_error', code: 'empty' }],
  ['429 with retry-after 3600', '', { error: 'upstream_error', code: 'http_429', dispatched: false }],
  ['500 with HTML', '', { error: 'upstream_error', code: 'http_500', dispatched: true }],
  ['redirect', '', { error: 'upstream_error', code: 'http_307', dispatched: false }],
  ['one final line feed, then a reset', WHOLE, { refused: false, usage: USAGE }],
  ['200 MiB line', 'Hello ', { error: 'upstream_error', code: 'invalid_stream' }],
  ['usage null', 'Hello', { usage: null }],
  ['usage negative', 'Hello', { usage: null }],
  ['usage huge', 'Hello', { usage: null }],
  ['more cached than read', 'Hello', { usage: { in: 10, out: 20, cached: 0 } }],
]

test.each(TABLE)('the round ends as expected for the provider mode: %s', async (mode, text, expected) => {
  const provider = await startProvider(mode)
  const idleLimit = 'error' in expected && expected.error === 'timeout' ? expected.code : null
  const quick = {
    ...(idleLimit === 'first_event' ? { firstEventMs: 200 } : {}),
    ...(idleLimit === 'idle' ? { idleMs: 100 } : {}),
  }
  const events = await collectEvents(modelAt(provider.url, quick))
  const result = outcome(events)
  expect(result.text).toBe(text)
  expect(result.end).toMatchObject('code' in expected ? { kind: 'failed', ...expected } : expected)
  expect(JSON.stringify(events)).not.toContain('SECRET')
  // On a busy machine the time to the first event may be over before the request has arrived.
  if (idleLimit === 'first_event') expect(provider.requests.length).toBeLessThanOrEqual(1)
  else expect(provider.requests.length).toBe(1)
  expect(provider.breaches).toEqual([])
  await provider.requests[0]?.closed
  // Of a line without an end no more is read than its limit.
  for (const { written } of provider.requests) expect(written).toBeLessThan(16 * 1024 * 1024)
})

test('the round fails without a request if nothing listens', async () => {
  const failure = { error: 'upstream_error', code: 'connect', usage: null, dispatched: false }
  const events = await collectEvents(modelAt(`${await unreachableUrl()}/v1`))
  expect(events).toEqual([{ kind: 'failed', ...failure }])
})

test('the key is sent to the configured base only, and nothing about this machine is sent', async () => {
  const provider = await startProvider('redirect')
  await collectEvents(modelAt(provider.url))
  expect(provider.requests.map(({ path }) => path)).toEqual(['/v1/chat/completions'])
  expect(
    Object.keys(provider.requests[0]?.headers ?? {})
      .toSorted()
      .join(' '),
  ).toBe('accept accept-encoding authorization connection content-length content-type host user-agent')
  expect(provider.requests[0]?.headers).toMatchObject({
    authorization: 'Bearer test-key',
    accept: 'text/event-stream',
    'accept-encoding': 'identity',
  })
})

test.each([
  'silence before headers',
  'silence after headers',
  'silence after first event',
  'comments only',
] as const)('the round ends at once when it is aborted in %s', async (mode) => {
  const provider = await startProvider(mode)
  const abort = new AbortController()
  const events = collectEvents(modelAt(provider.url), CALL, abort.signal)
  await provider.arrived(1)
  const reason = new Error('the client left')
  const at = performance.now()
  abort.abort(reason)
  await expect(events).rejects.toBe(reason)
  expect((await provider.requests[0]?.closed) ?? Infinity).toBeGreaterThanOrEqual(at)
})

test('the connection is closed when the answer is abandoned', async () => {
  const provider = await startProvider('answer')
  for await (const event of modelAt(provider.url).ask(CALL, NEVER_ABORTED)) {
    expect(event).toEqual({ kind: 'text', text: 'Hello ' })
    break
  }
  await provider.requests[0]?.closed
})

test('the connection of a complete response is reused', async () => {
  const provider = await startProvider('three rounds of tools')
  await runTurn(modelAt(provider.url))
  expect(provider.requests.length).toBe(3)
  expect(new Set(provider.requests.map(({ port }) => port)).size).toBeLessThan(3)
})

test.each([
  ['https://api.openai.com/v1', true],
  ['https://eu.api.openai.com/v1', true],
  ['https://openai.com.example.org/v1', false],
  ['https://notopenai.com/v1', false],
  ['https://resource.openai.azure.com/v1', false],
  ['http://127.0.0.1:11434/v1?host=api.openai.com', false],
])('the API base %s is one of OpenAI itself: %s', (base, expected) => {
  expect(isOpenAi(base)).toBe(expected)
})

test("the end of an error's body is not waited for", async () => {
  const response = { status: 503, type: 'application/json', body: '{"error":{"message":"SECRET"' }
  const provider = await startProvider({ response, ending: 'hold' })
  const { end } = outcome(await collectEvents(modelAt(provider.url)))
  expect(end).toMatchObject({ code: 'http_503', dispatched: true })
  await provider.requests[0]?.closed
})
