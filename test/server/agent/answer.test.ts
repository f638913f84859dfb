import { expect, test } from 'vitest'
import { RESULT_MAX_BYTES, TURN_RESULTS_MAX_BYTES } from '../../../src/domain/agent/bounds.ts'
import { callCost, unknownUsage } from '../../../src/domain/agent/budget.ts'
import type { ModelCall, ModelEvent } from '../../../src/domain/agent/model-call.ts'
import { TOOLS_BYTES } from '../../../src/domain/agent/prompt.ts'
import type { AgentEvent } from '../../../src/domain/agent/schema.ts'
import { Tally, generateAnswer } from '../../../src/server/agent/answer.ts'
import type { AnswerPorts, Prompt } from '../../../src/server/agent/answer.ts'

type End = Extract<ModelEvent, { kind: 'end' }>

const USAGE = { in: 100, out: 20, cached: 40 }
const END: End = { kind: 'end', model: 'model', refused: false, output: [], usage: USAGE, calls: [] }

/** Micro-dollars per million tokens. */
const PRICES = { input: 1_000_000, cached: 100_000, output: 2_000_000 }
const BOUNDS = { maxOutputTokens: 1_000, prices: PRICES }
const PROMPT: Prompt = { instructions: '', input: () => [], maxInputBytes: 10_000, withTools: true }
const never = new AbortController().signal

/** The end of a round that makes so many calls. */
const calling = (count: number, name = 'read_article'): Partial<End> => ({
  calls: Array.from({ length: count }, (_, index) => ({ callId: `call_${index}`, name, arguments: '{}' })),
})

/** An answer of a model whose rounds end like these, the last one for all further rounds, each after a word. */
async function answerOf(rounds: Partial<End>[], changes: Partial<AnswerPorts> = {}, prompt = PROMPT) {
  const asked: ModelCall[] = []
  const ports: AnswerPorts = {
    async *ask(call) {
      asked.push(call)
      yield { kind: 'text', text: `Word ${asked.length}!` }
      yield { ...END, ...rounds[Math.min(asked.length, rounds.length) - 1] }
    },
    reserveUpTo: () => Promise.resolve(true),
    runTool: () => Promise.resolve({ output: '{}', failed: false, cacheable: true }),
    ...BOUNDS,
    ...changes,
  }
  const tally = new Tally(15_000)
  const events: AgentEvent[] = []
  for await (const event of generateAnswer(ports, prompt, tally, never)) events.push(event)
  const results = asked[1]?.rounds[0]?.results.map(({ output }) => output) ?? []
  return { asked, tally, events, results, last: events.at(-1)?.data }
}

test('an answer has at most four model calls, the last without tools, and paragraphs between them', async () => {
  const { asked, tally, last } = await answerOf([calling(1)])
  expect(asked.map(({ tools }) => tools.length)).toEqual([6, 6, 6, 0])
  expect(tally.text).toBe('Word 1!\n\nWord 2!\n\nWord 3!\n\nWord 4!')
  expect(last).toEqual({ usage: { in: 400, out: 80, cached: 160 } })
})

test('the ninth call of an answer is not run, and its result says so', async () => {
  let run = 0
  const runTool = () => Promise.resolve({ output: String((run += 1)), failed: false, cacheable: true })
  const { results } = await answerOf([calling(9), {}], { runTool })
  expect([results.length, run]).toEqual([9, 8])
  expect(results[8]).toContain('no more than 8 calls')
})

test('a tool that a model names with a prefix reaches the client under its own name, and an unknown one not at all', async () => {
  const { events } = await answerOf([
    calling(1, 'functions.read_article'),
    calling(1, 'delete everything'),
    {},
  ])
  expect(events.flatMap(({ event, data }) => (event === 'tool' ? [data] : []))).toEqual(
    ['start', 'done'].map((status) => ({ name: 'read_article', status })),
  )
})

test('the results of an answer have at most 32 KB in all, and a call with too little space left is not run', async () => {
  const run: number[] = []
  const runTool = (_: object, maxBytes: number) => {
    run.push(maxBytes)
    return Promise.resolve({ output: 'x'.repeat(Math.min(maxBytes, 7_000)), failed: false, cacheable: true })
  }
  const { results } = await answerOf([calling(8), {}], { runTool })
  expect(run.slice(0, 4)).toEqual(Array.from({ length: 4 }, () => RESULT_MAX_BYTES))
  expect(run[4]).toBe(TURN_RESULTS_MAX_BYTES - 4 * 7_000)
  expect(results.join('').length).toBeLessThan(TURN_RESULTS_MAX_BYTES + 1_000)
  expect(results.at(-1)).toContain('as long as they may be')
})

test('a call with results is reserved before it is sent, and a call without tools beside it', async () => {
  const reserved: number[] = []
  const reserveUpTo = (upTo: number) => (reserved.push(upTo), Promise.resolve(true))
  const { tally } = await answerOf([calling(1)], { reserveUpTo })
  const [paid, last] = [104, callCost({ ...BOUNDS, inputTokens: 10_000 })]
  // Each call repeats the tokens of the one before it, and has the two bytes of a result.
  const next = callCost({ ...BOUNDS, inputTokens: 120 + 2 })
  expect(reserved).toEqual([paid + next + last, 2 * paid + next + last, 3 * paid + next])
  expect([tally.cost(PRICES), tally.reserved]).toEqual([4 * paid, 2 * paid + next + last])
})

test('a call without reported usage counts its bytes towards the next reservation', async () => {
  const reserved: number[] = []
  const reserveUpTo = (upTo: number) => (reserved.push(upTo), Promise.resolve(true))
  const rounds = [{ ...calling(1), usage: null }]
  const { asked } = await answerOf(rounds, { reserveUpTo }, { ...PROMPT, maxInputBytes: 10 })
  const cost = (inputTokens: number): number => callCost({ ...BOUNDS, inputTokens })
  const [first = 0, second = 0] = asked.map((call) => Buffer.byteLength(JSON.stringify(call)))
  const paid = cost(10 + TOOLS_BYTES)
  expect(reserved.slice(0, 2)).toEqual([
    paid + cost(first + 1_000 + 2) + cost(10),
    paid + cost(second) + cost(second + 1_000 + 2) + cost(10),
  ])
})

test('an answer whose next call is not reserved ends with a call without tools and results, within what is', async () => {
  const reserveUpTo = () => Promise.resolve(false)
  const { asked, tally, last } = await answerOf([calling(1), {}], { reserveUpTo })
  expect(asked[1]).toMatchObject({ tools: [], rounds: [] })
  expect([last, tally.isCacheable]).toEqual([{ usage: expect.any(Object) as unknown, degraded: true }, false])
  const huge = { ...calling(1), usage: { in: 100_000, out: 0, cached: 0 } }
  expect((await answerOf([huge, {}], { reserveUpTo })).last).toEqual({
    error: 'upstream_error',
    code: 'failed',
  })
})

test.each<[string, Partial<End>[], boolean]>([
  ['a complete answer', [calling(1), {}], true],
  ['an answer by two models', [calling(1), { model: 'other' }], false],
  ['an answer by an unknown model', [{ model: null }], false],
  ['a refusal', [{ refused: true }], false],
  ['an answer that ends with a call', [calling(1)], false],
])('%s is cacheable: %s', async (_what, rounds, isCacheable) => {
  expect((await answerOf(rounds)).tally).toMatchObject({ isComplete: true, isCacheable })
})

test('an answer with a failed tool or without tools is not cacheable, and the latter says so', async () => {
  const runTool = () => Promise.resolve({ output: '{}', failed: true, cacheable: false })
  expect((await answerOf([calling(1), {}], { runTool })).tally.isCacheable).toBe(false)
  const { tally, last } = await answerOf([{}], {}, { ...PROMPT, withTools: false })
  expect([tally.isCacheable, last]).toEqual([false, { usage: USAGE, degraded: true }])
})

test('an answer without text fails as empty', async () => {
  const ask = async function* () {
    yield await Promise.resolve({ kind: 'text' as const, text: ' \n' })
    yield END
  }
  const { last, tally } = await answerOf([], { ask })
  expect([last, tally.isComplete]).toEqual([{ error: 'upstream_error', code: 'empty' }, false])
})

test('a call without reported usage is charged its bytes and its whole output limit, unless it was not sent', async () => {
  const failed = { kind: 'failed', error: 'timeout', code: 'idle', usage: null } as const
  for (const outcome of [
    { ...END, usage: null },
    { ...failed, dispatched: true },
    { ...failed, dispatched: false },
  ]) {
    let sent = 0
    const { tally, last } = await answerOf([], {
      async *ask(call) {
        sent = Buffer.byteLength(JSON.stringify(call))
        yield await Promise.resolve({ kind: 'text' as const, text: 'Hello' })
        yield outcome
      },
    })
    const isSent = outcome.kind === 'end' || outcome.dispatched
    if (outcome.kind === 'failed') expect(last).toEqual({ error: 'timeout', code: 'idle' })
    expect(tally.estimated).toEqual(isSent ? unknownUsage(sent, 1_000) : { in: 0, out: 0, cached: 0 })
  }
})

test('an aborted answer pays for what it sent, and for the thoughts, the arguments and the text that it received', async () => {
  const controller = new AbortController()
  let sent = ''
  const ask = async function* (call: ModelCall, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    sent = JSON.stringify(call)
    yield { kind: 'text', text: '', received: '𒀭'.repeat(100) }
    yield { kind: 'text', text: 'Hello ', received: `${'x'.repeat(600)}Hello ` }
    yield { kind: 'text', text: 'you' }
    controller.abort()
    signal.throwIfAborted()
  }
  const tally = new Tally(1_000_000)
  const ports = { ask, reserveUpTo: unexpected, runTool: unexpected, ...BOUNDS }
  const shown: string[] = []
  const answer = async (): Promise<void> => {
    for await (const event of generateAnswer(ports, PROMPT, tally, controller.signal))
      if (event.event === 'delta') shown.push(event.data.text)
  }
  await expect(answer()).rejects.toThrow()
  expect(shown.join('')).toBe('Hello you')
  expect(tally.estimated).toEqual({ in: Math.ceil(sent.length / 3), out: 400 + 203, cached: 0 })
})

const unexpected = (): Promise<never> => Promise.reject(new Error('not expected'))
