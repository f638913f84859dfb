import { answerText } from '../../domain/agent/answer-text.ts'
import { MAX_CALLS, MAX_ROUNDS, RESULT_MAX_BYTES, TURN_RESULTS_MAX_BYTES } from '../../domain/agent/bounds.ts'
import type { MicroUsd } from '../../domain/agent/bounds.ts'
import {
  abortedUsage,
  addUsage,
  callCost,
  costOf,
  turnCost,
  unknownUsage,
} from '../../domain/agent/budget.ts'
import { TOOL_NAMES } from '../../domain/agent/model-call.ts'
import type {
  InputMessage,
  ModelCall,
  ModelEvent,
  Prices,
  ToolCall,
  ToolRound,
  Usage,
} from '../../domain/agent/model-call.ts'
import { TOOLS_BYTES } from '../../domain/agent/prompt.ts'
import type { AgentEvent } from '../../domain/agent/schema.ts'
import { TOOL_DEFINITIONS } from '../../domain/agent/tools.ts'
import { failure } from './tools.ts'
import type { ToolRun } from './tools.ts'

export interface AnswerPorts {
  ask: (call: ModelCall, signal: AbortSignal) => AsyncIterable<ModelEvent>
  prices: Prices
  /** Reserves more: what the answer may cost in all. False: there is no room. */
  reserveUpTo: (upTo: MicroUsd) => Promise<boolean>
  /** Sends every other reader away: they are not bound by what the turn that pays may spend. */
  stopSharing: () => void
  /** @param maxBytes largest output, in bytes of UTF-8 */
  runTool: (call: ToolCall, maxBytes: number, signal: AbortSignal) => Promise<ToolRun>
  maxOutputTokens: number
}

export interface Prompt {
  instructions: string
  /** Made anew for each call: what all turns share is kept once, and not once for each of them. */
  input: () => readonly InputMessage[]
  /** Most bytes of all that the first call says, beside its tools. */
  maxInputBytes: number
  /** False: the model is asked once, and without tools. */
  withTools: boolean
}

const NO_USAGE: Usage = { in: 0, out: 0, cached: 0 }

/** What an answer took so far; true at any time, however it ends. */
export class Tally {
  model = ''
  rounds = 0
  calls = 0
  /** Of all results of tools, in UTF-8. */
  resultBytes = 0
  text = ''
  /** What the provider told. */
  usage = NO_USAGE
  /** What the calls that ended without telling their usage, or were aborted, are taken to have used. */
  estimated = NO_USAGE
  /** The most that the calls so far can have cost: never more than was reserved for them, unless the provider told more. */
  paid: MicroUsd = 0
  /** Most tokens that the next call can send, by which it is reserved. */
  maxInputTokens = 0
  /** Most tokens that the next call repeats of the one before. */
  repeatedTokens = 0
  /** True when tools were withheld for want of money or requests. */
  degraded = false
  /** True once the model has said all of it. */
  isComplete = false
  /** False once something is known by which the answer must not be given again. */
  isCacheable = true

  /** What the turn that pays has reserved. */
  reserved: MicroUsd

  /** @param reserved for its first call */
  constructor(reserved: MicroUsd) {
    this.reserved = reserved
  }

  /** What the answer costs as it stands; what was sent is paid for, whether or not its usage was told. */
  cost(prices: Prices): MicroUsd {
    return turnCost(this.usage, this.estimated, this.reserved, prices)
  }
}

/**
 * Makes an answer: asks the model, runs the tools it calls, and asks again with their results, within the bounds of a
 * turn. The last event comes whatever the model does; only an aborted signal throws instead.
 *
 * @param tally kept true on every way out
 */
export async function* generateAnswer(
  ports: AnswerPorts,
  prompt: Prompt,
  tally: Tally,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void> {
  let rounds: ToolRound[] = []
  tally.degraded = !prompt.withTools
  tally.maxInputTokens = prompt.maxInputBytes + (prompt.withTools ? TOOLS_BYTES : 0)
  for (;;) {
    const tools = !tally.degraded && tally.rounds < MAX_ROUNDS - 1 ? TOOL_DEFINITIONS : []
    const call = {
      instructions: prompt.instructions,
      get input() {
        return prompt.input()
      },
      rounds,
      tools,
      maxOutputTokens: ports.maxOutputTokens,
    }
    const outcome = yield* callModel(ports, call, tally, signal)
    if (outcome.kind === 'failed') return yield failed(outcome.code, outcome.error)
    const { calls, output, refused } = outcome
    // Calls of a model that was given no tools lead nowhere.
    if (calls.length === 0 || tools.length === 0) {
      if (tally.text.trim() === '') return yield failed('empty')
      tally.isCacheable &&= calls.length === 0 && !tally.degraded && !refused
      tally.isComplete = true
      const degraded = tally.degraded ? { degraded: true } : {}
      return yield { event: 'done', data: { usage: tally.usage, ...degraded } }
    }
    const results = yield* runCalls(ports, calls, tally, signal)
    const next = await reserveNext(ports, prompt, [...rounds, { output, results }], tally)
    if (next === null) return yield failed('failed')
    rounds = next
  }
}

function failed(code: string, error: 'timeout' | 'upstream_error' = 'upstream_error'): AgentEvent {
  return { event: 'error', data: { error, code } }
}

type ModelOutcome = Exclude<ModelEvent, { kind: 'text' }>

/** One call of the model: its text as it comes, and how it ended; counted on every way out. */
async function* callModel(
  { ask, prices }: AnswerPorts,
  call: ModelCall,
  tally: Tally,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, ModelOutcome> {
  signal.throwIfAborted()
  tally.rounds += 1
  const filter = answerText()
  let outcome: ModelOutcome | null = null
  let receivedBytes = 0
  // What a model says after its calls is a paragraph of its own.
  let separator = tally.text === '' ? '' : '\n\n'
  const delta = (filtered: string): AgentEvent => {
    const text = separator + filtered
    separator = ''
    tally.text += text
    return { event: 'delta', data: { text } }
  }
  try {
    for await (const event of ask(call, signal)) {
      if (event.kind !== 'text') {
        outcome = event
        break
      }
      receivedBytes += Buffer.byteLength(event.text)
      const text = filter.push(event.text)
      if (text !== '') yield delta(text)
    }
    signal.throwIfAborted()
    const rest = filter.end()
    if (rest !== '') yield delta(rest)
  } finally {
    if (outcome === null && signal.aborted)
      tally.estimated = addUsage(tally.estimated, abortedUsage(bytesOf(call), receivedBytes))
    else recordUsage(tally, outcome, call, prices)
  }
  return (
    outcome ?? { kind: 'failed', error: 'upstream_error', code: 'truncated', usage: null, dispatched: true }
  )
}

function recordUsage(tally: Tally, outcome: ModelOutcome | null, call: ModelCall, prices: Prices): void {
  if (outcome?.kind === 'end') {
    // An answer of several models is none of theirs.
    tally.isCacheable &&= tally.model === '' || tally.model === outcome.model
    tally.model = outcome.model
  }
  if (outcome?.usage) {
    tally.usage = addUsage(tally.usage, outcome.usage)
    tally.repeatedTokens = outcome.usage.in + outcome.usage.out
    tally.paid += costOf(outcome.usage, prices)
  } else if (outcome?.kind !== 'failed' || outcome.dispatched) {
    const sentBytes = bytesOf(call)
    const { maxOutputTokens } = call
    tally.estimated = addUsage(tally.estimated, unknownUsage(sentBytes, maxOutputTokens))
    tally.repeatedTokens = sentBytes + maxOutputTokens
    const inputTokens = Math.min(sentBytes, tally.maxInputTokens)
    tally.paid += callCost({ inputTokens, maxOutputTokens, prices })
  }
}

function bytesOf(call: ModelCall): number {
  return Buffer.byteLength(JSON.stringify(call))
}

/** Less room than this is too little for any result. */
const MIN_RESULT_BYTES = 4_096

/**
 * Runs the calls of a round, one after the other, so that how the bytes of the turn are shared does not depend on which is
 * faster. Of each known tool a start and an end are told, and the model is answered every call.
 */
async function* runCalls(
  { runTool }: AnswerPorts,
  calls: readonly ToolCall[],
  tally: Tally,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, ToolRound['results']> {
  const results = []
  for (const call of calls) {
    tally.calls += 1
    const isRun = tally.calls <= MAX_CALLS
    const bytesLeft = TURN_RESULTS_MAX_BYTES - tally.resultBytes
    const name = isRun ? TOOL_NAMES.find((toolName) => toolName === call.name) : undefined
    if (name) yield { event: 'tool', data: { name, status: 'start' } }
    const { output, cacheable } = !isRun
      ? failure(`no more than ${MAX_CALLS} calls are run for one question: answer now`)
      : bytesLeft < MIN_RESULT_BYTES
        ? failure('the results for this question are as long as they may be: answer now')
        : await runTool(call, Math.min(RESULT_MAX_BYTES, bytesLeft), signal)
    tally.resultBytes += Buffer.byteLength(output)
    tally.isCacheable &&= cacheable
    if (name) yield { event: 'tool', data: { name, status: 'done' } }
    results.push({ call, output })
  }
  return results
}

/**
 * Reserves the next call, and the last one without tools where that is another. Where there is no room for it, the answer
 * gets no more tools, and its last call has to do with what is reserved already: results that do not fit are left out, and
 * then all that came of tools.
 *
 * @returns the rounds the next call carries; null where the provider counted more for a call than it can have taken
 */
async function reserveNext(
  { prices, maxOutputTokens, reserveUpTo, stopSharing }: AnswerPorts,
  { maxInputBytes }: Prompt,
  rounds: ToolRound[],
  tally: Tally,
): Promise<ToolRound[] | null> {
  const maxCallCost = (inputTokens: number): MicroUsd => callCost({ inputTokens, maxOutputTokens, prices })
  const isLast = tally.rounds === MAX_ROUNDS - 1
  const inputTokens = maxInputTokensWith(tally, rounds)
  const needed = tally.paid + maxCallCost(inputTokens) + (isLast ? 0 : maxCallCost(maxInputBytes))
  if (await reserveUpTo(needed)) {
    tally.reserved = Math.max(tally.reserved, needed)
    tally.maxInputTokens = inputTokens
    return rounds
  }
  tally.degraded = true
  stopSharing()
  for (const carried of shrinkingRounds(rounds)) {
    tally.maxInputTokens = carried.length === 0 ? maxInputBytes : maxInputTokensWith(tally, carried)
    if (tally.paid + maxCallCost(tally.maxInputTokens) <= tally.reserved) return carried
  }
  return null
}

/** Most tokens that a call with these rounds sends, of which the results of the last are new. */
function maxInputTokensWith({ repeatedTokens }: Tally, rounds: readonly ToolRound[]): number {
  const results = rounds.at(-1)?.results ?? []
  return results.reduce((sum, { output }) => sum + Buffer.byteLength(output), repeatedTokens)
}

/** Instead of the result of a tool that the model cannot be sent. */
const OMITTED_RESULT = JSON.stringify({ error: 'no_budget' })

/** The rounds, then with ever fewer results of the last, from its end, then none at all. */
function* shrinkingRounds(rounds: ToolRound[]): Generator<ToolRound[]> {
  const { output, results = [] } = rounds.at(-1) ?? {}
  for (let remaining = results.length; remaining >= 0; remaining -= 1) {
    const shortened = results.map((result, at) =>
      at < remaining ? result : { ...result, output: OMITTED_RESULT },
    )
    yield [...rounds.slice(0, -1), { output, results: shortened }]
  }
  yield []
}
