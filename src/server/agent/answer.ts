import { answerText } from '../../domain/agent/answer-text.ts'
import { MAX_CALLS, MAX_ROUNDS } from '../../domain/agent/bounds.ts'
import { turnCost } from '../../domain/agent/budget.ts'
import type { UntoldCalls } from '../../domain/agent/budget.ts'
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
import type { AgentTools } from './tools.ts'

/** A part of an answer as its readers get it; the last one ends it. */
export type AnswerPart =
  | { kind: 'tool'; name: ToolName; status: 'start' | 'done'; last: false }
  | { kind: 'delta'; text: string; last: false }
  | { kind: 'done'; usage: Usage; last: true }
  | { kind: 'failed'; failure: FailureCode; last: true }

export interface AnswerPorts {
  model: ChatModel
  tools: AgentTools
  maxOutputTokens: number
}

export interface Question {
  instructions: string
  /** Made anew for each call: what all turns share is kept once, and not once for each of them. */
  input: () => readonly InputMessage[]
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
  /** Calls whose usage it did not tell. */
  untold: UntoldCalls
  text: string
  /** True once the model has said all of it. */
  whole: boolean
  /** False once something is known by which the answer must not be given again. */
  keepable: boolean
}

export function emptyTally(): Tally {
  const usage = { in: 0, out: 0, cached: 0 }
  const untold = { count: 0, sentBytes: 0, maxOutputTokens: 0 }
  return { model: '', rounds: 0, calls: 0, usage, untold, text: '', whole: false, keepable: true }
}

/**
 * What an answer costs as it stands; what was sent is paid for, whether or not its usage was told.
 *
 * @param reserved of the turn that pays
 */
export function costOfAnswer({ usage, untold }: Tally, reserved: MicroUsd, prices: Prices): MicroUsd {
  return turnCost({ told: usage, untold, reserved, prices })
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
  const rounds: ToolRound[] = []
  for (;;) {
    const tools = question.withTools && tally.rounds < MAX_ROUNDS - 1 ? TOOL_DEFINITIONS : []
    const call = {
      instructions: question.instructions,
      get input() {
        return question.input()
      },
      rounds,
      tools,
      maxOutputTokens: ports.maxOutputTokens,
    }
    const ended = yield* listen(ports.model, call, tally, signal)
    if (ended.kind === 'failed') return yield failed(ended)
    const { calls, output, refused } = ended
    // Calls of a model that was given no tools lead nowhere.
    if (calls.length === 0 || tools.length === 0) {
      if (tally.text.trim() === '') return yield failed({ error: 'upstream_error', code: 'empty' })
      tally.keepable &&= calls.length === 0 && question.withTools && !refused
      tally.whole = true
      return yield { kind: 'done', usage: tally.usage, last: true }
    }
    rounds.push({ output, results: yield* runCalls(ports.tools, calls, tally, signal) })
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
      const text = filter.push(event.text)
      if (text !== '') yield say(text)
    }
    signal.throwIfAborted()
    const rest = filter.end()
    if (rest !== '') yield say(rest)
  } finally {
    count(tally, ended, call)
  }
  return (
    ended ?? { kind: 'failed', error: 'upstream_error', code: 'truncated', usage: null, dispatched: true }
  )
}

function count(tally: Tally, ended: Ended | null, call: ModelCall): void {
  if (ended?.kind === 'end') {
    // An answer of several models is none of theirs.
    tally.keepable &&= tally.model === '' || tally.model === ended.model
    tally.model = ended.model
  }
  if (ended?.usage) {
    const { in: read, out, cached } = ended.usage
    const before = tally.usage
    tally.usage = { in: before.in + read, out: before.out + out, cached: before.cached + cached }
  } else if (ended?.kind !== 'failed' || ended.dispatched) {
    const before = tally.untold
    tally.untold = {
      count: before.count + 1,
      sentBytes: before.sentBytes + Buffer.byteLength(JSON.stringify(call)),
      maxOutputTokens: before.maxOutputTokens + call.maxOutputTokens,
    }
  }
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
