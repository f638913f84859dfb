import { answerText } from '../../domain/agent/answer-text.ts'
import { MAX_CALLS, MAX_ROUNDS } from '../../domain/agent/bounds.ts'
import { callCost, costOf, turnCost } from '../../domain/agent/budget.ts'
import type { AbortedCall, UntoldCalls } from '../../domain/agent/budget.ts'
import type { MicroUsd } from '../../domain/agent/bounds.ts'
import { TOOL_NAMES } from '../../domain/agent/model-call.ts'
import type { ChatModel } from '../../domain/ports.ts'
import type {
  FailureCode,
  InputMessage,
  ModelCall,
  ModelEvent,
  Prices,
  ToolCall,
  ToolName,
  ToolRound,
  Usage,
} from '../../domain/agent/model-call.ts'
import { TOOLS_BYTES } from '../../domain/agent/prompt.ts'
import { TOOL_DEFINITIONS } from '../../domain/agent/tools.ts'
import type { AgentTools } from './tools.ts'

/** A part of an answer as its readers get it; the last one ends it. */
export type AnswerPart =
  | { kind: 'tool'; name: ToolName; status: 'start' | 'done'; last: false }
  | { kind: 'delta'; text: string; last: false }
  | { kind: 'done'; usage: Usage; degraded: boolean; last: true }
  | { kind: 'failed'; failure: FailureCode; last: true }

export interface AnswerPorts {
  ask: (call: ModelCall, signal: AbortSignal) => ReturnType<ChatModel['ask']>
  prices: Prices
  /** Reserves more: what the answer may cost in all. False: there is no room. */
  extend: (upTo: MicroUsd) => Promise<boolean>
  /** Sends every other reader away, since what holds back the turn that pays is none of theirs. */
  withdraw: () => void
  tools: AgentTools
  maxOutputTokens: number
}

export interface Question {
  instructions: string
  /** Made anew for each call: what all turns share is kept once, and not once for each of them. */
  input: () => readonly InputMessage[]
  /** Most bytes of all that the first call says, beside its tools. */
  largestBytes: number
  /** False: the model is asked once, and without tools. */
  withTools: boolean
}

/** What an answer took so far; true at any time, however it ends. */
export interface Tally {
  model: string
  rounds: number
  calls: number
  /** What the provider told. */
  usage: Usage
  /** Calls that it ended without telling their usage. */
  untold: UntoldCalls
  /** The call that was aborted. */
  aborted: AbortedCall | null
  /** Most tokens that the next call can send, by which it is reserved. */
  mostSent: number
  /** The most that the calls so far can have cost: never more than was reserved for them, unless the provider told more. */
  paid: MicroUsd
  /** Most tokens that the next call repeats of the one before. */
  repeated: number
  /** What the turn that pays has reserved. */
  reserved: MicroUsd
  /** True when tools were withheld for want of money or requests. */
  degraded: boolean
  text: string
  /** True once the model has said all of it. */
  whole: boolean
  /** False once something is known by which the answer must not be given again. */
  keepable: boolean
}

/** @param reserved for its first call */
export function emptyTally(reserved: MicroUsd): Tally {
  return {
    model: '',
    rounds: 0,
    calls: 0,
    usage: { in: 0, out: 0, cached: 0 },
    untold: { count: 0, sentBytes: 0, maxOutputTokens: 0 },
    aborted: null,
    mostSent: 0,
    paid: 0,
    repeated: 0,
    reserved,
    degraded: false,
    text: '',
    whole: false,
    keepable: true,
  }
}

/** What an answer costs as it stands; what was sent is paid for, whether or not its usage was told. */
export function costOfAnswer({ usage, untold, aborted, reserved }: Tally, prices: Prices): MicroUsd {
  return turnCost({ told: usage, untold, aborted, reserved, prices })
}

type Ended = Exclude<ModelEvent, { kind: 'text' }>

/**
 * Makes an answer: asks the model, runs the tools it calls, and asks again with their results, within the bounds of a
 * turn. The last part comes whatever the model does; only an aborted signal throws instead.
 *
 * @param tally kept true on every way out
 */
export async function* makeAnswer(
  ports: AnswerPorts,
  question: Question,
  tally: Tally,
  signal: AbortSignal,
): AsyncGenerator<AnswerPart, void> {
  let rounds: ToolRound[] = []
  tally.degraded = !question.withTools
  tally.mostSent = question.largestBytes + (question.withTools ? TOOLS_BYTES : 0)
  for (;;) {
    const tools = !tally.degraded && tally.rounds < MAX_ROUNDS - 1 ? TOOL_DEFINITIONS : []
    const call = {
      instructions: question.instructions,
      get input() {
        return question.input()
      },
      rounds,
      tools,
      maxOutputTokens: ports.maxOutputTokens,
    }
    const ended = yield* listen(ports, call, tally, signal)
    if (ended.kind === 'failed') return yield failed(ended)
    const { calls, output, refused } = ended
    // Calls of a model that was given no tools lead nowhere.
    if (calls.length === 0 || tools.length === 0) {
      if (tally.text.trim() === '') return yield failed({ error: 'upstream_error', code: 'empty' })
      tally.keepable &&= calls.length === 0 && !tally.degraded && !refused
      tally.whole = true
      return yield { kind: 'done', usage: tally.usage, degraded: tally.degraded, last: true }
    }
    const results = yield* runCalls(ports.tools, calls, tally, signal)
    const next = await reserveNext(ports, question, [...rounds, { output, results }], tally)
    if (next === null) return yield failed({ error: 'upstream_error', code: 'failed' })
    rounds = next
  }
}

/**
 * Reserves the next call, and the last one without tools where that is another. Where there is no room for it, the answer
 * gets no more tools, and its last call has to do with what is reserved already: results that do not fit are left out, and
 * then all that came of tools.
 *
 * @returns the rounds the next call carries; null where the provider counted more for a call than it can have taken
 */
async function reserveNext(
  { prices, maxOutputTokens, extend, withdraw }: AnswerPorts,
  { largestBytes }: Question,
  rounds: readonly ToolRound[],
  tally: Tally,
): Promise<ToolRound[] | null> {
  const { paid } = tally
  const most = (inputTokens: number): MicroUsd => callCost({ inputTokens, maxOutputTokens, prices })
  const isLast = tally.rounds === MAX_ROUNDS - 1
  const sent = sentWith(tally, rounds)
  const needed = paid + most(sent) + (isLast ? 0 : most(largestBytes))
  if (await extend(needed)) {
    tally.reserved = Math.max(tally.reserved, needed)
    tally.mostSent = sent
    return [...rounds]
  }
  tally.degraded = true
  withdraw()
  for (const carried of lessAndLess(rounds)) {
    tally.mostSent = carried.length === 0 ? largestBytes : sentWith(tally, carried)
    if (paid + most(tally.mostSent) <= tally.reserved) return carried
  }
  return null
}

/** Most tokens that a call with these rounds sends, of which the results of the last are new. */
function sentWith({ repeated }: Tally, rounds: readonly ToolRound[]): number {
  const results = rounds.at(-1)?.results ?? []
  return results.reduce((sum, { output }) => sum + Buffer.byteLength(output), repeated)
}

/** Rounds with the results of the last, with ever fewer of them, and no rounds at all. */
function* lessAndLess(rounds: readonly ToolRound[]): Generator<ToolRound[]> {
  const [last] = rounds.slice(-1)
  if (last) {
    const results = [...last.results]
    yield [...rounds]
    for (const [place, result] of [...results.entries()].toReversed()) {
      results[place] = { ...result, output: LEFT_OUT }
      yield [...rounds.slice(0, -1), { ...last, results }]
    }
  }
  yield []
}

/** Instead of the result of a tool that the model cannot be sent. */
const LEFT_OUT = JSON.stringify({ error: 'no_budget' })

function failed({ error, code }: FailureCode): AnswerPart {
  return { kind: 'failed', failure: { error, code } as FailureCode, last: true }
}

/** One question to the model: its text as it comes, and how it ended; charged on every way out. */
async function* listen(
  { ask, prices }: AnswerPorts,
  call: ModelCall,
  tally: Tally,
  signal: AbortSignal,
): AsyncGenerator<AnswerPart, Ended> {
  signal.throwIfAborted()
  tally.rounds += 1
  const filter = answerText()
  let ended: Ended | null = null
  let begun = false
  let receivedBytes = 0
  const say = (text: string): AnswerPart => {
    // What a model says after its calls is a paragraph of its own.
    const gap = !begun && tally.text !== '' ? '\n\n' : ''
    begun = true
    tally.text += gap + text
    return { kind: 'delta', text: gap + text, last: false }
  }
  try {
    for await (const event of ask(call, signal)) {
      if (event.kind !== 'text') {
        ended = event
        break
      }
      receivedBytes += Buffer.byteLength(event.text)
      const text = filter.push(event.text)
      if (text !== '') yield say(text)
    }
    signal.throwIfAborted()
    const rest = filter.end()
    if (rest !== '') yield say(rest)
  } finally {
    if (ended === null && signal.aborted) tally.aborted = { sentBytes: sentBytesOf(call), receivedBytes }
    else count(tally, ended, call, prices)
  }
  return (
    ended ?? { kind: 'failed', error: 'upstream_error', code: 'truncated', usage: null, dispatched: true }
  )
}

function count(tally: Tally, ended: Ended | null, call: ModelCall, prices: Prices): void {
  if (ended?.kind === 'end') {
    // An answer of several models is none of theirs.
    tally.keepable &&= tally.model === '' || tally.model === ended.model
    tally.model = ended.model
  }
  if (ended?.usage) {
    const { in: read, out, cached } = ended.usage
    const before = tally.usage
    tally.usage = { in: before.in + read, out: before.out + out, cached: before.cached + cached }
    tally.repeated = read + out
    tally.paid += costOf(ended.usage, prices)
  } else if (ended?.kind !== 'failed' || ended.dispatched) {
    const before = tally.untold
    const sentBytes = sentBytesOf(call)
    tally.untold = {
      count: before.count + 1,
      sentBytes: before.sentBytes + sentBytes,
      maxOutputTokens: before.maxOutputTokens + call.maxOutputTokens,
    }
    tally.repeated = sentBytes + call.maxOutputTokens
    const inputTokens = Math.min(sentBytes, tally.mostSent)
    tally.paid += callCost({ inputTokens, maxOutputTokens: call.maxOutputTokens, prices })
  }
}

function sentBytesOf(call: ModelCall): number {
  return Buffer.byteLength(JSON.stringify(call))
}

/** Runs the calls of a round; of each known tool a start and an end are told, and the model is answered every call. */
async function* runCalls(
  tools: AgentTools,
  calls: readonly ToolCall[],
  tally: Tally,
  signal: AbortSignal,
): AsyncGenerator<AnswerPart, ToolRound['results']> {
  const results = []
  for (const call of calls) {
    tally.calls += 1
    const name = tally.calls > MAX_CALLS ? undefined : TOOL_NAMES.find((known) => known === call.name)
    if (name) yield { kind: 'tool', name, status: 'start', last: false }
    const { output, cacheable } = await tools.run(call, signal)
    tally.keepable &&= cacheable
    if (name) yield { kind: 'tool', name, status: 'done', last: false }
    results.push({ call, output })
  }
  return results
}
