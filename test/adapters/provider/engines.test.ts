import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { localSource } from '../../support/local-source.ts'
import { answerOf, chunk, collectEvents, DONE, modelAt, outcome, streamAt } from './model-turns.ts'

const fixture = (name: string): string =>
  readFileSync(new URL(`../../fixtures/engines/${name}.sse`, import.meta.url), 'utf8')

describe('a stream of an engine', () => {
  test.each([
    ['finishall-usage', 'One two three.'],
    ['finishreasoning-usage', 'The answer.'],
    ['emptydata', 'One two.'],
    ['contentarray', 'The answer.'],
    ['nodone', 'One two.'],
    ['usageall', 'One two.'],
  ])('the stream %s is read whole', async (name, text) => {
    expect(await answerOf(fixture(name))).toMatchObject({ text, end: { kind: 'end', calls: [] } })
  })

  test.each([
    [
      'a pause after a finish reason does not end the stream, however short the idle limit',
      300,
      { idleMs: 100 },
      'One two.',
    ],
    ['silence after a finish reason ends the stream as complete', null, { afterReasonMs: 100 }, 'One '],
  ])('%s', async (_what, pauseMs, limits, text) => {
    const { url } = await localSource(async (_request, response) => {
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(chunk({ content: 'One ' }, 'stop'))
      if (pauseMs === null) return
      await sleep(pauseMs)
      response.end(chunk({ content: 'two.' }, 'stop') + DONE)
    })
    const answer = outcome(await collectEvents(modelAt(url, limits)))
    expect(answer).toMatchObject({ text, end: { kind: 'end' } })
  })

  test('a stream reports thoughts and tool calls as received, and no text for them', async () => {
    const call = { index: 0, function: { name: 'tool', arguments: '{"a":1}' } }
    const deltas = [
      { reasoning_content: 'I think. ' },
      { content: '<think>Or not.</think>' },
      { content: 'Hi' },
      { tool_calls: [call] },
      { content: [{ type: 'thinking', thinking: 'At last.' }] },
    ]
    const stream = deltas.map((delta) => chunk(delta)).join('') + chunk({}, 'tool_calls') + DONE
    const events = await collectEvents(modelAt(await streamAt(stream)))
    expect(outcome(events).text).toBe('Hi')
    const received = events.flatMap((event) => (event.kind === 'text' ? [event.received ?? event.text] : []))
    expect(received.join('')).toBe(
      'I think. <think>Or not.</think>Hitool{"a":1}[{"type":"thinking","thinking":"At last."}]',
    )
  })

  test.each([
    ['half an event', 'data: {"choices":[{"del', 'truncated'],
    ['a cut by the token limit', chunk({ content: 'x' }, 'length'), 'incomplete'],
    ['an error', 'data: {"error":{"code":500}}\n\n', 'failed'],
  ])('%s after a finish reason fails the stream', async (_what, rest, code) => {
    const { end } = await answerOf(chunk({ content: 'One ' }, 'stop') + rest)
    expect(end).toMatchObject({ kind: 'failed', code })
  })
})

const FIRST = ['find_similar_items', '{"key":"hn-901","limit":null}']
const SECOND = ['find_similar_items', '{"key":"hn-902","limit":null}']
const OTHER = ['read_article', '{"key":"hn-902","offset":null}']

const calling = (name = '', text = ''): string =>
  chunk({ tool_calls: [{ function: { name, arguments: text } }] }, 'tool_calls') + DONE

test.each<[string, string, string[][]]>([
  ['whole, in parts', fixture('tools-ok.0'), [FIRST, SECOND]],
  ['after the first reason', fixture('tools-finish-first.0'), [FIRST, SECOND]],
  ['without indexes and ids', fixture('tools-noindex-noid.0'), [FIRST, OTHER]],
  ['with one index and an empty id', fixture('tools-sameindex-emptyid.0'), [FIRST, SECOND]],
  ['after a thought', fixture('engine-reason.0'), [FIRST]],
  ['without arguments', calling('find_similar_items', ''), [['find_similar_items', '']]],
  [
    'in the text',
    chunk({ content: `<tool_call>{"name":"${FIRST[0]}","arguments":${FIRST[1]}}` }) +
      chunk({ content: '</tool_call>' }, 'stop') +
      DONE,
    [FIRST],
  ],
  ...[
    '<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>ARGUMENTS<|call|>',
    '<|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>ARGUMENTS',
  ].map((form): [string, string, string[][]] => {
    const [name = '', written = ''] = FIRST
    const call = form.replace('NAME', name).replace('ARGUMENTS', written)
    const units = Array.from(`<|channel|>analysis<|message|>I look.<|end|>${call}`)
    return [
      `in ${form}`,
      units.map((content) => chunk({ content })).join('') + chunk({}, 'stop') + DONE,
      [FIRST],
    ]
  }),
])('the calls are told apart %s', async (_how, stream, expected) => {
  const { end: result, text } = await answerOf(stream)
  expect(text).toBe('')
  if (result.kind === 'failed') throw new Error(result.code)
  expect(result.calls.map((call) => [call.name, call.arguments])).toEqual(expected)
  expect(new Set(result.calls.map(({ callId }) => callId)).size).toBe(expected.length)
})

describe('the thoughts of a model', () => {
  const UNOPENED = ['I guess', '.\n</th', 'ink>\n\n', 'Answer.'].map((content, place) =>
    // Some engines name the model after the first event.
    chunk({ content }).replace('{', `{"model":"${place === 0 ? '' : 'm'}",`),
  )

  test.each([
    ['One.\n</th', { text: 'One.\n</th', end: { kind: 'end' } }],
    ['I guess.\n</think>', { text: 'I guess.\n', end: { code: 'invalid_stream' } }],
  ])('the last line of an answer is judged at its end: %j', async (content, expected) => {
    expect(await answerOf(chunk({ content }, 'stop') + DONE)).toMatchObject(expected)
  })

  test('a model that omits the opening tag fails one turn; from then on its text is held, also without an end before a tool call', async () => {
    let stream = UNOPENED.join('') + chunk({}, 'stop') + DONE
    const { url } = await localSource((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(stream)
    })
    const model = modelAt(url)
    const answer = async () => outcome(await collectEvents(model))
    expect(await answer()).toMatchObject({ text: 'I guess.\n', end: { code: 'invalid_stream' } })
    expect(await answer()).toMatchObject({ text: 'Answer.', end: { kind: 'end' } })
    stream = chunk({ content: 'I should look.' }) + calling(...FIRST)
    expect(await answer()).toMatchObject({ text: '', end: { kind: 'end', calls: [{ name: FIRST[0] }] } })
  })
})
