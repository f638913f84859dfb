import { expect, onTestFinished, test } from 'vitest'
import { openPassThrough } from '../../../src/adapters/provider/pass-through.ts'
import { classifyResponse } from '../../../src/adapters/router/classify.ts'
import { answerOf, DONE, NEVER_ABORTED, streamAt } from './model-turns.ts'
import { LONG_MS } from '../../support/workspace.ts'

const event = (fields: unknown): string => `data: ${JSON.stringify(fields)}\n\n`
const choices = (...list: unknown[]): string => event({ choices: list })
const said = (content: unknown, more: object = {}): string =>
  choices({ index: 0, delta: { content }, ...more })
const STOP = { finish_reason: 'stop' }
const END = choices({ index: 0, delta: {}, ...STOP }) + DONE
/** A stream with these contents. */
const answered = (...contents: unknown[]): string => contents.map((each) => said(each)).join('') + END

/** The text of a stream that is passed on, or the class of its failure. */
async function passedOn(stream: string, headers?: Record<string, string>): Promise<string> {
  const passThrough = openPassThrough({
    base: await streamAt(stream, headers),
    referer: 'http://dash.test',
    userAgent: 'dash/test',
    firstEventMs: LONG_MS,
    idleMs: LONG_MS,
    clock: Date.now,
  })
  onTestFinished(() => passThrough.close())
  const call = { key: 'key', ids: ['maker/first:free'], bodyFor: () => '{}', stream: true }
  const result = await passThrough.send(call, NEVER_ABORTED)
  if (!('chunks' in result)) return result.class
  const parts: Uint8Array[] = []
  for await (const part of result.chunks) parts.push(part)
  return Buffer.concat(parts).toString()
}

const evaluated = (stream: string): ReturnType<typeof classifyResponse> =>
  classifyResponse({ status: 200, headers: {}, body: stream, ending: 'whole', endedAt: 0 })

const second = (content: string): object => ({ index: 1, delta: { content }, finish_reason: 'length' })
const first = (content: string): object => ({ index: 0, delta: { content } })
const whole = (content: unknown, more: object = {}): object => ({
  index: 0,
  message: { role: 'assistant', content },
  finish_reason: 'stop',
  ...more,
})

const NULL_REASON = { finish_reason: 'null' }
const NESTED = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
const NESTED_DELTAS = {
  content: `{"content":${NESTED}}`,
  details: `{"reasoning_details":[${NESTED}]}`,
  arguments: `{"tool_calls":[{"function":{"name":"a","arguments":{"a":${NESTED}}}}]}`,
}

/** Streams of one answer, "One two." */
const FORMS: [string, string][] = [
  ['another choice beside the first', choices(first('One '), second('x')) + said('two.') + END],
  ['another choice before the first', choices(second('x'), first('One ')) + said('two.') + END],
  [
    'events of another choice',
    choices(second('x')) + said('One ') + choices(second('y')) + said('two.') + END,
  ],
  ['another choice after the end', said('One two.', STOP) + choices(second('x')) + DONE],
  ['an index as a text', choices({ ...first('One two.'), index: '0' }) + END],
  ['no index', choices({ delta: { content: 'One two.' } }, { delta: { content: 'x' } }) + END],
  ['an index of null', choices({ index: null, delta: { content: 'One two.' } }) + END],
  ['no object for a choice', choices(null) + choices('x') + said('One two.') + END],
  ['texts in a list', answered(['One ', 'two.'])],
  ['texts and parts in a list', answered(['One ', { type: 'text', text: 'two.' }, null, 3])],
  ['one part', answered({ type: 'text', text: 'One ' }, { text: 'two.' })],
  ['parts with values', answered({ text: { value: 'One ' } }, [{ text: { value: 'two.' } }])],
  ['a type of null', answered([{ type: null, text: 'One two.' }])],
  ['a part of a thought', answered({ type: 'thinking', text: 'x' }, 'One two.')],
  ['content of null', answered(null, 'One two.')],
  ['a message beside a delta of null', choices(whole('One two.', { delta: null })) + DONE],
  ['a message beside an empty delta', choices(whole('One two.', { delta: {} })) + DONE],
  [
    'a message beside a delta with empty fields',
    choices(whole('One two.', { delta: { role: 'assistant', content: '' } })) + DONE,
  ],
  ['a message without a delta', choices(whole([{ type: 'text', text: 'One two.' }])) + DONE],
  [
    'a message that repeats the deltas',
    said('One ') + said('two.') + choices(whole('One two.', { delta: {} })) + DONE,
  ],
  ['a message that completes the deltas', said('One ') + choices(whole('One two.')) + DONE],
  [
    'data of null',
    `data: null\n\n${said('One ')}data: null\n\ndata:null\n\n${said('two.')}${END}data: null\n\n`,
  ],
  ['empty data in JSON', `data: ""\n\n${said('One two.')}data: {}\n\ndata: []\n\n${END}`],
  ['an end mark in small letters', said('One two.', STOP) + 'data: [done]\n\n'],
  ['an end mark in quotes', said('One two.', STOP) + 'data: "[DONE]"\n\n'],
  ['an end mark with blanks', said('One two.', STOP) + 'data:[DONE] \n\n'],
  ['an end mark without line ends', said('One two.', STOP) + 'data: [Done]'],
  ...[{}, null, '', false, 0, [], { code: null, message: '' }].map((error): [string, string] => [
    `an error of ${JSON.stringify(error)}`,
    event({ error, choices: [{ ...first('One '), error }] }) +
      event({ error, choices: [first('two.')] }) +
      END,
  ]),
  ['a finish reason of null as a text', said('One ', NULL_REASON) + said('two.', NULL_REASON) + END],
  ...Object.entries(NESTED_DELTAS).map(([what, delta]): [string, string] => [
    `${what} of 100,000 levels`,
    `data: {"choices":[{"delta":${delta}}]}\n\n${answered('One two.')}`,
  ]),
  [
    'a state of MiniMax',
    said('One two.') +
      event({ choices: [whole('One two.')], base_resp: { status_code: 0, status_msg: 'success' } }) +
      DONE,
  ],
  ['no blank lines', answered('One ', 'two.').replaceAll('\n\n', '\n')],
]

test.each(FORMS)(
  'a stream with %s is read by the chat and the evaluation, and passed on whole',
  async (_form, stream) => {
    expect(await answerOf(stream)).toMatchObject({ text: 'One two.', end: { kind: 'end' } })
    expect(evaluated(stream).response).toMatchObject({ text: 'One two.', finishReason: 'stop' })
    const passed = await passedOn(stream)
    expect([passed.includes('One '), passed.includes('two.')]).toEqual([true, true])
    // Nothing is added after the stream's own end.
    expect(stream.endsWith(passed)).toBe(true)
  },
)

test.each([
  ...'length model_length MAX_TOKENS max_tokens max_new_tokens model_context_window_exceeded'
    .split(' ')
    .map((reason) => [reason, 'incomplete', 'length']),
  ...['content_filter', 'content_filter: RECITATION', 'SAFETY', 'sensitive', 'refusal', 'moderation'].map(
    (reason) => [reason, 'incomplete', 'content_filter'],
  ),
  ...'error abort network_error insufficient_system_resource MALFORMED_FUNCTION_CALL timeout'
    .split(' ')
    .map((reason) => [reason, 'failed', undefined]),
  ...['stop', 'STOP', 'eos_token', 'end_turn', 'COMPLETE'].map((reason) => [reason, 'end', reason]),
])('the finish reason %s is read as engines mean it', async (reason, code, finishReason) => {
  const stream = said('One two.') + choices({ index: 0, delta: {}, finish_reason: reason }) + DONE
  const { end } = await answerOf(stream)
  expect(end.kind === 'failed' ? end.code : end.kind).toBe(code)
  expect(evaluated(stream).response?.finishReason).toBe(finishReason)
})

test.each(['none', 'utf-8', 'Identity', ''])(
  'a stream with the content coding %j is not compressed',
  async (coding) => {
    const stream = answered('One two.')
    const headers = { 'content-encoding': coding }
    expect(await answerOf(stream, headers)).toMatchObject({ text: 'One two.', end: { kind: 'end' } })
    expect(await passedOn(stream, headers)).toBe(stream)
  },
)

const WHOLE_JSON = JSON.stringify({ choices: [whole('One two.')] }, null, 2)

const PROGRESS =
  'event: tool.progress\ndata: {"tool":"a","message":"searching"}\n\nevent: ping\ndata: now\n\n'

test.each<[string, string, string]>([
  ['events of other names', PROGRESS + said('One two.') + PROGRESS + END, 'text/event-stream'],
  ['events of another type', answered('One two.'), 'application/json'],
  ['events after a comment, of another type', `: hi\n\n${answered('One two.')}`, 'text/plain'],
  ['a whole completion as a stream', WHOLE_JSON, 'text/event-stream'],
])('a response with %s is read by the chat', async (_what, stream, type) => {
  const result = await answerOf(stream, { 'content-type': type })
  expect(result).toMatchObject({ text: 'One two.', end: { kind: 'end' } })
})

test.each(['{"status_code":500}', 'Internal Server Error'])(
  'an event named error fails the turn, whatever its data: %s',
  async (data) => {
    const { end } = await answerOf(`${said('One two.')}event: error\ndata: ${data}\n\n${END}`)
    expect(end).toMatchObject({ kind: 'failed', code: 'failed' })
  },
)

test.each([WHOLE_JSON, '{"error":{"message":"x"}}'])('the JSON %j is no event stream', async (json) => {
  const result = await answerOf(json, { 'content-type': 'application/json' })
  expect(result).toMatchObject({ text: '', end: { kind: 'failed', code: 'invalid_stream' } })
})

const used = (prompt_tokens: number, completion_tokens: number): object => ({
  usage: { prompt_tokens, completion_tokens },
})

test.each<[string, number[], string, object]>([
  [
    'with the reasoning in the total alone',
    [20, 105],
    '',
    { usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 125 } },
  ],
  ['in the choice', [20, 105], '', { choices: [{ index: 0, delta: {}, ...used(20, 105) }] }],
  ['in a member of an engine', [20, 105], '', { x_groq: used(20, 105), choices: [] }],
  ['although smaller ones stand around it', [5, 3], event(used(5, 0)), { ...used(5, 3), choices: [] }],
])('usage is read %s', async (_where, [read, written], before, chunk) => {
  const stream = before + said('One two.', STOP) + event(chunk) + event(used(0, 0)) + DONE
  expect((await answerOf(stream)).end).toMatchObject({ usage: { in: read, out: written, cached: 0 } })
})

test.each([
  { prompt_tokens_details: { cached_tokens: 8 } },
  { cached_tokens: 8, prompt_tokens_details: null },
])('cached tokens are read from %j', async (details) => {
  const usage = { prompt_tokens: 20, completion_tokens: 5, ...details }
  const { end } = await answerOf(said('One two.', STOP) + event({ usage, choices: [] }) + DONE)
  expect(end).toMatchObject({ usage: { in: 20, out: 5, cached: 8 } })
})

test('the name of the first event is passed on with it', async () => {
  const stream = `event: message\nid: 1\n${said('One two.')}${END}`
  expect(await passedOn(`: hi\n\n${stream}`)).toBe(stream)
})

/** Errors, and the way the chat ends. */
const ERRORS: [string, string, string][] = [
  ['an error', event({ error: { message: 'overloaded' } }), 'failed'],
  ['an error with a code alone', event({ error: { code: 500, message: null } }), 'failed'],
  ['an error as text', event({ error: 'overloaded' }), 'failed'],
  ['an event that is an error', event({ object: 'error', message: 'x', code: 500 }), 'failed'],
  ['an event of type error', event({ type: 'error', message: 'x' }), 'failed'],
  ['an event named error', `event: error\n${event({ message: 'x', code: 500 })}`, 'failed'],
  ['an error of 100,000 levels', `data: {"error":{"message":${NESTED}}}\n\n`, 'failed'],
  ['a detail alone', event({ detail: 'x' }), 'failed'],
  ['an error beside content', event({ error: { message: 'x' }, choices: [first('x')] }), 'failed'],
  ['an error in the choice', choices({ ...first('x'), error: { code: 500 } }), 'failed'],
  ['an error in a member of an engine', event({ x_groq: { error: 'x' }, choices: [first('x')] }), 'failed'],
  [
    'an error of MiniMax',
    event({ choices: null, base_resp: { status_code: 1008, status_msg: 'insufficient balance' } }),
    'failed',
  ],
  ['an empty error alone', event({ error: {} }), 'failed'],
  ['an error of null alone', event({ error: null }), 'truncated'],
  ['a finish reason of null as a text', said('two.', NULL_REASON), 'truncated'],
  ['the end of another choice alone', choices(second('x')), 'truncated'],
  ['other JSON', 'data: 5\n\n', 'invalid_stream'],
  ['other text', 'data: done and dusted\n\n', 'invalid_stream'],
]

test.each(ERRORS)(
  'a stream that breaks off by %s fails the turn, is not evaluated, and is not passed on',
  async (_what, broken, code) => {
    const stream = said('One ') + broken + DONE
    expect((await answerOf(stream)).end).toMatchObject({ kind: 'failed', code })
    if (code === 'failed') expect(evaluated(stream)).toMatchObject({ class: 'provider_down', response: null })
    if (code !== 'truncated')
      expect(await passedOn(broken + DONE)).toMatch(/^(?:provider_down|invalid_answer)$/)
  },
)
