import { answerFilter } from '../../domain/answers/answer-text.ts'
import type { TextFilter } from '../../domain/answers/answer-text.ts'
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
import { toolNameOf } from '../../domain/agent/model-call.ts'
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
  /** Raises the reservation to the total cost given. Resolves to false if the budget does not allow it. */
  reserveUpTo: (upTo: MicroUsd) => Promise<boolean>
  /** @param maxBytes largest output, in bytes of UTF-8 */
  runTool: (call: ToolCall, maxBytes: number, signal: AbortSignal) => Promise<ToolRun>
  maxOutputTokens: number
}

export interface Prompt {
  instructions: string
  /** Built for each call, so that data shared by turns is held in memory once. */
  input: () => readonly InputMessage[]
  /** Most bytes of the first call's input, without its tools. */
  maxInputBytes: number
  /** If false, the model is called once and without tools. */
  withTools: boolean
}

export const NO_USAGE: Usage = { in: 0, out: 0, cached: 0 }

/** Consumption of an answer so far; valid at any time, however the answer ends. */
export class Tally {
  /** The model of the last call; null if it is unknown. */
  model: string | null = null
  rounds = 0
  calls = 0
  /** Total size of all tool results, in bytes of UTF-8. */
  resultBytes = 0
  text = ''
  /** Usage that the provider reported. */
  usage = NO_USAGE
  /** Estimated usage of calls that were aborted or reported none. */
  estimated = NO_USAGE
  /** Upper bound of the cost of the calls so far; it exceeds their reservation only if the provider reports more usage. */
  paid: MicroUsd = 0
  /** Most input tokens of the next call; its reservation is based on them. */
  maxInputTokens = 0
  /** Most tokens of the previous call that the next one repeats. */
  repeatedTokens = 0
  /** True if tools were withheld because the budget or the request quota is nearly used up. */
  degraded = false
  /** True when the model has completed the answer. */
  isComplete = false
  /** False if the answer must not be cached. */
  isCacheable = true

  reserved: MicroUsd

  /** @param reserved reservation for the first call */
  constructor(reserved: MicroUsd) {
    this.reserved = reserved
  }

  /** Cost of the answer so far, including calls whose usage was not reported. */
  cost(prices: Prices): MicroUsd {
    return turnCost(this.usage, this.estimated, this.reserved, prices)
  }
}

/**
 * Generates an answer: calls the model, runs the tools it requests and calls it again with their results, within the
 * bounds of a turn. Always ends with a terminal event unless the signal is aborted, which throws.
 *
 * @param tally is up to date however the generator ends
 */
export async function* generateAnswer(
  ports: AnswerPorts,
  prompt: Prompt,
  tally: Tally,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, void> {
  let rounds: ToolRound[] = []
  // Code that a round leaves open goes on in the next one.
  const filter = answerFilter()
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
    const outcome = yield* callModel(ports, call, filter, tally, signal)
    if (outcome.kind === 'failed') return yield failed(outcome.code, outcome.error)
    const { calls, output, refused } = outcome
    // Ignore tool calls of a model that was given no tools.
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

/** Calls the model once, yields its text as it arrives and returns how it ended. Usage is recorded in every case. */
async function* callModel(
  { ask, prices }: AnswerPorts,
  call: ModelCall,
  filter: TextFilter,
  tally: Tally,
  signal: AbortSignal,
): AsyncGenerator<AgentEvent, ModelOutcome> {
  signal.throwIfAborted()
  tally.rounds += 1
  let outcome: ModelOutcome | null = null
  let received = ''
  // Text after tool calls starts a new paragraph.
  let separator = tally.text === '' ? '' : '\n\n'
  const delta = (text: string): AgentEvent => {
    tally.text += text
    return { event: 'delta', data: { text } }
  }
  try {
    for await (const event of ask(call, signal)) {
      if (event.kind !== 'text') {
        outcome = event
        break
      }
      received += event.received ?? event.text
      if (event.text === '') continue
      const text = filter.push(separator + event.text)
      separator = ''
      if (text !== '') yield delta(text)
    }
    signal.throwIfAborted()
    const rest = filter.end()
    if (rest !== '') yield delta(rest)
  } finally {
    if (outcome === null && signal.aborted)
      tally.estimated = addUsage(tally.estimated, abortedUsage(JSON.stringify(call), received))
    else recordUsage(tally, outcome, call, prices)
  }
  return (
    outcome ?? { kind: 'failed', error: 'upstream_error', code: 'truncated', usage: null, dispatched: true }
  )
}

function recordUsage(tally: Tally, outcome: ModelOutcome | null, call: ModelCall, prices: Prices): void {
  if (outcome?.kind === 'end') {
    // An answer by several models, or an unknown one, must not be cached under one of them.
    tally.isCacheable &&= outcome.model !== null && outcome.model === (tally.model ?? outcome.model)
    tally.model = outcome.model
  }
  if (outcome?.usage) {
    tally.usage = addUsage(tally.usage, outcome.usage)
    tally.repeatedTokens = outcome.usage.in + outcome.usage.out
    tally.paid += costOf(outcome.usage, prices)
  } else if (outcome?.kind !== 'failed' || outcome.dispatched) {
    const sentBytes = Buffer.byteLength(JSON.stringify(call))
    const { maxOutputTokens } = call
    tally.estimated = addUsage(tally.estimated, unknownUsage(sentBytes, maxOutputTokens))
    tally.repeatedTokens = sentBytes + maxOutputTokens
    const inputTokens = Math.min(sentBytes, tally.maxInputTokens)
    tally.paid += callCost({ inputTokens, maxOutputTokens, prices })
  }
}

/** A smaller remainder cannot hold any result. */
const MIN_RESULT_BYTES = 4_096

/**
 * Runs the calls of a round one after another, so that the byte budget is split the same way every time. Yields a start
 * and an end for each known tool and returns a result for every call.
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
    const name = isRun ? toolNameOf(call.name) : null
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
 * Reserves the next call and, if it is a different one, the final call without tools. If the budget does not allow it,
 * that final call is next: the answer gets no more tools, and no results of those it used.
 *
 * @returns the rounds to send with the next call; null if the provider reported more usage than a call can have
 */
async function reserveNext(
  { prices, maxOutputTokens, reserveUpTo }: AnswerPorts,
  { maxInputBytes }: Prompt,
  rounds: ToolRound[],
  tally: Tally,
): Promise<ToolRound[] | null> {
  const maxCallCost = (inputTokens: number): MicroUsd => callCost({ inputTokens, maxOutputTokens, prices })
  const isLast = tally.rounds === MAX_ROUNDS - 1
  // Only the results of the last round are new.
  const results = rounds.at(-1)?.results ?? []
  const newBytes = results.reduce((sum, { output }) => sum + Buffer.byteLength(output), 0)
  const inputTokens = tally.repeatedTokens + newBytes
  const needed = tally.paid + maxCallCost(inputTokens) + (isLast ? 0 : maxCallCost(maxInputBytes))
  if (await reserveUpTo(needed)) {
    tally.reserved = Math.max(tally.reserved, needed)
    tally.maxInputTokens = inputTokens
    return rounds
  }
  tally.degraded = true
  tally.maxInputTokens = maxInputBytes
  return tally.paid + maxCallCost(maxInputBytes) <= tally.reserved ? [] : null
}
