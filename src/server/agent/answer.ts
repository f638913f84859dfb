import { answerText } from '../../domain/agent/answer-text.ts'
import { CALL_TIMEOUT_MS, MAX_CALLS, MAX_ROUNDS, TURN_RESULTS_MAX_BYTES } from '../../domain/agent/bounds.ts'
import { abortCost } from '../../domain/agent/budget.ts'
import type { MicroUsd } from '../../domain/agent/money.ts'
import { TOOL_NAMES } from '../../domain/agent/ports.ts'
import type {
  ChatModel,
  FailureCode,
  InputMessage,
  ModelCall,
  ModelEvent,
  Prices,
  ToolCall,
  ToolName,
  ToolRound,
  Usage,
} from '../../domain/agent/ports.ts'
import { TOOL_DEFINITIONS } from '../../domain/agent/tools.ts'
import { orStopped, stopAfter } from './stop.ts'

/** A part of an answer as its readers get it; the last one ends it. */
export type AnswerPart =
  | { kind: 'tool'; name: ToolName; status: 'start' | 'done'; last: false }
  | { kind: 'delta'; text: string; last: false }
  | { kind: 'done'; usage: Usage; last: true }
  | { kind: 'failed'; failure: FailureCode; last: true }

/** Runs one tool call; whatever goes wrong in it is told to the model. */
export interface AgentTools {
  run(call: ToolCall, signal: AbortSignal): Promise<{ output: string; failed: boolean }>
}

export interface AnswerPorts {
  model: ChatModel
  tools: AgentTools
  maxOutputTokens: number
}

export interface Question {
  instructions: string
  input: readonly InputMessage[]
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
  /** UTF-8 bytes of calls whose usage it did not tell. */
  untold: { sentBytes: number; receivedBytes: number }
  text: string
  /** True once the answer is whole and may be given again. */
  keepable: boolean
}

export function emptyTally(): Tally {
  const usage = { in: 0, out: 0, cached: 0 }
  const untold = { sentBytes: 0, receivedBytes: 0 }
  return { model: '', rounds: 0, calls: 0, usage, untold, text: '', keepable: false }
}

/** What an answer costs as it stands; what was sent is paid for, whether or not its usage was told. */
export function costOfAnswer({ usage, untold }: Tally, prices: Prices): MicroUsd {
  return abortCost({ told: usage, ...untold, prices })
}

/** Tool calls that run at the same time. */
const CALLS_AT_ONCE = 4

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
  const rounds: ToolRound[] = []
  const results = { bytes: 0, failed: false }
  for (;;) {
    const tools = question.withTools && tally.rounds < MAX_ROUNDS - 1 ? TOOL_DEFINITIONS : []
    const { instructions, input } = question
    const call = { instructions, input, rounds, tools, maxOutputTokens: ports.maxOutputTokens }
    const ended = yield* listen(ports.model, call, tally, signal)
    if (ended.kind === 'failed') return yield failed(ended)
    const { calls, output, refused } = ended
    // Calls of a model that was given no tools lead nowhere.
    if (calls.length === 0 || tools.length === 0) {
      if (tally.text.trim() === '') return yield failed({ error: 'upstream_error', code: 'empty' })
      tally.keepable = calls.length === 0 && question.withTools && !refused && !results.failed
      return yield { kind: 'done', usage: tally.usage, last: true }
    }
    rounds.push({ output, results: yield* runCalls(ports.tools, calls, tally, results, signal) })
  }
}

function failed({ error, code }: FailureCode): AnswerPart {
  return { kind: 'failed', failure: { error, code } as FailureCode, last: true }
}

/** One question to the model: its text as it comes, and how it ended; charged on every way out. */
async function* listen(
  model: ChatModel,
  call: ModelCall,
  tally: Tally,
  signal: AbortSignal,
): AsyncGenerator<AnswerPart, Ended> {
  signal.throwIfAborted()
  tally.rounds += 1
  const filter = answerText()
  let ended: Ended | null = null
  let receivedBytes = 0
  let begun = false
  const say = (text: string): AnswerPart => {
    // What a model says after its calls is a paragraph of its own.
    const gap = !begun && tally.text !== '' ? '\n\n' : ''
    begun = true
    tally.text += gap + text
    return { kind: 'delta', text: gap + text, last: false }
  }
  try {
    for await (const event of model.ask(call, signal)) {
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
    count(tally, ended, call, receivedBytes)
  }
  return ended ?? { kind: 'failed', error: 'upstream_error', code: 'truncated', usage: null, dispatched: true }
}

function count(tally: Tally, ended: Ended | null, call: ModelCall, receivedBytes: number): void {
  if (ended?.kind === 'end') tally.model = ended.model
  if (ended?.usage) {
    const { in: read, out, cached } = ended.usage
    const before = tally.usage
    tally.usage = { in: before.in + read, out: before.out + out, cached: before.cached + cached }
  } else if (ended?.kind !== 'failed' || ended.dispatched) {
    tally.untold.sentBytes += Buffer.byteLength(JSON.stringify(call))
    tally.untold.receivedBytes += receivedBytes
  }
}

/** Runs the calls of a round; of each known tool a start and an end are told, and the model is answered every call. */
async function* runCalls(
  tools: AgentTools,
  calls: readonly ToolCall[],
  tally: Tally,
  turn: { bytes: number; failed: boolean },
  signal: AbortSignal,
): AsyncGenerator<AnswerPart, ToolRound['results']> {
  const outputs: string[] = calls.map(() => '')
  const answer = (index: number, given: { output: string; failed: boolean }): void => {
    const { output, failed: wentWrong } = bounded(given, turn.bytes)
    outputs[index] = output
    turn.bytes += Buffer.byteLength(output)
    turn.failed ||= wentWrong
  }
  const running = new Map<number, Promise<number>>()
  for (const [index, call] of calls.entries()) {
    if (tally.calls >= MAX_CALLS) {
      answer(index, problem(`no more than ${MAX_CALLS} calls are run in one turn; answer from what you have`))
      continue
    }
    tally.calls += 1
    const name = TOOL_NAMES.find((known) => known === call.name)
    if (name) yield { kind: 'tool', name, status: 'start', last: false }
    const done = run(tools, call, signal).then((given) => {
      answer(index, given)
      return index
    })
    // Nobody may be waiting for it when it fails.
    done.catch(() => undefined)
    running.set(index, done)
    if (running.size === CALLS_AT_ONCE) yield* nextDone(running, calls)
  }
  while (running.size > 0) yield* nextDone(running, calls)
  return calls.map((call, index) => ({ call, output: outputs[index] ?? '' }))
}

async function* nextDone(
  running: Map<number, Promise<number>>,
  calls: readonly ToolCall[],
): AsyncGenerator<AnswerPart, void> {
  const index = await Promise.race(running.values())
  running.delete(index)
  const name = TOOL_NAMES.find((known) => known === calls[index]?.name)
  if (name) yield { kind: 'tool', name, status: 'done', last: false }
}

/** One call within its time; a tool that takes longer is told to stop and no longer waited for. */
async function run(
  tools: AgentTools,
  call: ToolCall,
  signal: AbortSignal,
): Promise<{ output: string; failed: boolean }> {
  const time = stopAfter(CALL_TIMEOUT_MS, signal)
  try {
    return await orStopped(tools.run(call, time.signal), time.signal)
  } catch (error) {
    signal.throwIfAborted()
    if (time.signal.aborted) return problem('the tool took too long')
    throw error
  } finally {
    time.cancel()
  }
}

function bounded(
  given: { output: string; failed: boolean },
  bytesBefore: number,
): { output: string; failed: boolean } {
  if (bytesBefore + Buffer.byteLength(given.output) <= TURN_RESULTS_MAX_BYTES) return given
  return problem('the results of this turn are as much as it may read; answer from what you have')
}

function problem(error: string): { output: string; failed: true } {
  return { output: JSON.stringify({ error }), failed: true }
}
