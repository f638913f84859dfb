import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { localSource } from '../../support/local-source.ts'
import { collectEvents, modelAt, outcome } from '../../support/model-turns.ts'

const fixture = (name: string): string =>
  readFileSync(new URL(`../../fixtures/engines/${name}.sse`, import.meta.url), 'utf8')

/** A mark in a stream: a pause of so many milliseconds. */
const pause = (ms: number): string => `<<SPLIT:${ms}>>`

/** Serves a stream, byte for byte but for its pauses. */
async function serveStream(stream: string, ending: 'end' | 'hold' = 'end'): Promise<string> {
  const { url } = await localSource(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const [index, part] of stream.split(/<<SPLIT:(\d+)>>/).entries())
      if (index % 2 === 0) response.write(part)
      else await sleep(Number(part))
    if (ending === 'end') response.end()
  })
  return url
}

async function answerOf(stream: string): ReturnType<typeof resultOf> {
  return resultOf(await serveStream(stream))
}

async function resultOf(url: string, changes = {}): Promise<ReturnType<typeof outcome>> {
  return outcome(await collectEvents(modelAt(url, changes)))
}

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const DONE = 'data: [DONE]\n\n'

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
    ['empty data with blanks', `data:   \n\n${chunk({ content: 'Hi' })}data:\n\n`, 'Hi'],
    ['one content object', chunk({ content: [{ text: 'Hi' }, { type: 'reference', text: 'x' }] }), 'Hi'],
    ['messages in place of deltas', chunk({ content: 'Hi' }).replace('delta', 'message'), 'Hi'],
  ])('a stream may have %s', async (_what, stream, text) => {
    expect(await answerOf(stream + chunk({}, 'stop') + DONE)).toMatchObject({ text, end: { kind: 'end' } })
  })

  test('a pause after a finish reason does not end the stream, however short the idle limit', async () => {
    const stream = `${chunk({ content: 'One ' }, 'stop')}${pause(300)}${chunk({ content: 'two.' }, 'stop')}${DONE}`
    const result = await resultOf(await serveStream(stream), { idleMs: 100 })
    expect(result).toMatchObject({ text: 'One two.', end: { kind: 'end' } })
  })

  test('silence after a finish reason ends the stream as complete', async () => {
    const stream = chunk({ content: 'One.' }, 'stop')
    const result = await resultOf(await serveStream(stream, 'hold'), { afterReasonMs: 100 })
    expect(result).toMatchObject({ text: 'One.', end: { kind: 'end' } })
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

const called = (name: string, text: string, more: object = {}): object => ({
  type: 'function',
  function: { name, arguments: text },
  ...more,
})
const rest = (text: string, more: object = {}): object => ({ function: { arguments: text }, ...more })
const calls = (...parts: object[]): string =>
  parts.map((part) => chunk({ tool_calls: [part] })).join('') + chunk({}, 'tool_calls') + DONE

const FIRST = ['find_similar_items', '{"key":"hn-901","limit":null}']
const SECOND = ['find_similar_items', '{"key":"hn-902","limit":null}']
const OTHER = ['read_article', '{"key":"hn-902","offset":null}']

describe('tool calls of an engine', () => {
  const [name, text] = FIRST as [string, string]
  const [other, otherText] = OTHER as [string, string]
  const [half, end] = [text.slice(0, 9), text.slice(9)]

  test.each<[string, string, string[][]]>([
    ['whole, in parts', fixture('tools-ok.0'), [FIRST, SECOND]],
    ['after the first reason', fixture('tools-finish-first.0'), [FIRST, SECOND]],
    ['without indexes and ids', fixture('tools-noindex-noid.0'), [FIRST, OTHER]],
    ['with one index and an empty id', fixture('tools-sameindex-emptyid.0'), [FIRST, SECOND]],
    [
      'without ids, in parts',
      calls(called(name, ''), rest(text), called(name, ''), rest(SECOND[1] ?? '')),
      [FIRST, SECOND],
    ],
    [
      'with a name in each part',
      calls(called(name, half), called(name, end), called(other, otherText)),
      [FIRST, OTHER],
    ],
    [
      'with another id in each part',
      calls(called(name, half, { index: 0, id: 'a' }), rest(end, { index: 0, id: 'b' })),
      [FIRST],
    ],
    [
      'with the id in each part',
      calls(called(name, half, { id: 'a' }), called(other, otherText, { id: 'b' }), rest(end, { id: 'a' })),
      [FIRST, OTHER],
    ],
    [
      'with one id for all',
      calls(called(name, text, { index: 0, id: 'a' }), called(other, otherText, { index: 0, id: 'a' })),
      [FIRST, OTHER],
    ],
    [
      'with an index in the first part only',
      calls(called(name, half, { index: 0, id: 'a' }), rest(end)),
      [FIRST],
    ],
    [
      'with an empty last part',
      calls(called(name, text, { index: 0, id: 'a' }), called(name, '', { index: 0, id: 'a' })),
      [FIRST],
    ],
    ['without arguments', calls(called(name, ''), called(other, otherText)), [[name, ''], OTHER]],
  ])('the calls are told apart %s', async (_how, stream, expected) => {
    const { end: result } = await answerOf(stream)
    if (result.kind === 'failed') throw new Error(result.code)
    expect(result.calls.map((call) => [call.name, call.arguments])).toEqual(expected)
    expect(new Set(result.calls.map(({ callId }) => callId)).size).toBe(expected.length)
  })
})
