import { expect, test } from 'vitest'
import { RESULT_MAX_BYTES, TURN_RESULTS_MAX_BYTES } from '../../../src/domain/agent/bounds.ts'
import type { ModelCall, ModelEvent } from '../../../src/domain/agent/model-call.ts'
import { Tally, generateAnswer } from '../../../src/server/agent/answer.ts'

const FREE = { input: 0, cached: 0, output: 0 }

/** The results for a model that makes `calls` calls in its first round, and the byte limits of those that ran. */
async function resultsOf(calls: number, outputOf: (maxBytes: number) => string, name = 'read_article') {
  const asked: ModelCall[] = []
  const run: number[] = []
  const end = { kind: 'end', model: 'model', refused: false, output: [], usage: null } as const
  const ask = async function* (call: ModelCall): AsyncGenerator<ModelEvent> {
    asked.push(call)
    if (asked.length > 1) yield { kind: 'text', text: 'Hello' }
    const made = Array.from({ length: asked.length > 1 ? 0 : calls }, (_, index) => `call_${index}`)
    yield { ...end, calls: made.map((callId) => ({ callId, name, arguments: '{}' })) }
  }
  const ports = {
    ask,
    prices: FREE,
    reserveUpTo: () => Promise.resolve(true),
    runTool: (_: object, maxBytes: number) => {
      run.push(maxBytes)
      return Promise.resolve({ output: outputOf(maxBytes), failed: false, cacheable: true })
    },
    maxOutputTokens: 1_000,
  }
  const prompt = { instructions: '', input: () => [], maxInputBytes: 0, withTools: true }
  const events = generateAnswer(ports, prompt, new Tally(0), new AbortController().signal)
  const tools: unknown[] = []
  for await (const { event, data } of events) if (event === 'tool') tools.push(data)
  return { results: asked[1]?.rounds[0]?.results.map(({ output }) => output) ?? [], run, tools }
}

test('the ninth call of an answer is not run, and its result says so', async () => {
  const { results, run } = await resultsOf(9, () => '{}')
  expect([results.length, run.length]).toEqual([9, 8])
  expect(results[8]).toContain('no more than 8 calls')
})

test('a tool that a model names with a prefix reaches the client under its own name', async () => {
  const { tools } = await resultsOf(1, () => '{}', 'functions.read_article')
  expect(tools).toEqual(['start', 'done'].map((status) => ({ name: 'read_article', status })))
})

test('the results of an answer have at most 32 KB in all, and a call with too little space left is not run', async () => {
  const { results, run } = await resultsOf(8, (maxBytes) => 'x'.repeat(Math.min(maxBytes, 7_000)))
  expect(run.slice(0, 4)).toEqual(Array.from({ length: 4 }, () => RESULT_MAX_BYTES))
  expect(run[4]).toBe(TURN_RESULTS_MAX_BYTES - 4 * 7_000)
  expect(results.join('').length).toBeLessThan(TURN_RESULTS_MAX_BYTES + 1_000)
  expect(results.at(-1)).toContain('as long as they may be')
})

test('an aborted answer pays for the thoughts and the arguments that it received, as well as for its text', async () => {
  const controller = new AbortController()
  const ask = async function* (_: ModelCall, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    yield { kind: 'text', text: '', received: '𒀭'.repeat(100) }
    yield { kind: 'text', text: 'Hello ', received: `${'x'.repeat(600)}Hello ` }
    yield { kind: 'text', text: 'you' }
    controller.abort()
    signal.throwIfAborted()
  }
  const tally = new Tally(1_000_000)
  const ports = { ask, prices: FREE, reserveUpTo: never, runTool: never, maxOutputTokens: 1_000 }
  const prompt = { instructions: '', input: () => [], maxInputBytes: 0, withTools: false }
  const shown: string[] = []
  const answer = async (): Promise<void> => {
    for await (const event of generateAnswer(ports, prompt, tally, controller.signal))
      if (event.event === 'delta') shown.push(event.data.text)
  }
  await expect(answer()).rejects.toThrow()
  expect(shown.join('')).toBe('Hello you')
  expect(tally.estimated.out).toBe(400 + 203)
})

const never = (): Promise<never> => Promise.reject(new Error('not expected'))
