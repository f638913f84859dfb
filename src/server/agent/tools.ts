import {
  CALL_TIMEOUT_MS,
  MAX_CALLS,
  RESULT_MAX_BYTES,
  TURN_RESULTS_MAX_BYTES,
} from '../../domain/agent/bounds.ts'
import { byteLengthOf } from '../../domain/byte-length.ts'
import { withoutMarkers } from '../../domain/agent/prompt.ts'
import { readCall } from '../../domain/agent/tools.ts'
import type { ToolCall, ToolName } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { FeedSearchRefusal } from '../../domain/feed/search.ts'
import type { AgentSources } from './sources.ts'
import { answerCall, ToolProblem } from './tool-answers.ts'
import { withinTime } from '../within-time.ts'

/** What a call came to, as the model is told. */
export interface ToolRun {
  /** JSON text. */
  output: string
  /** True when the model got an error instead of data. */
  failed: boolean
  /** False when it holds data whose changes no revision tells of: an answer made of it must not be kept. */
  cacheable: boolean
}

/** The tools of one turn, which counts its calls and the bytes they gave. */
export interface AgentTools {
  /**
   * Runs one call, after those asked for before. Whatever a model writes and whatever fails, it becomes a result.
   *
   * @throws the signal's reason once it is aborted
   */
  run(call: ToolCall, signal: AbortSignal): Promise<ToolRun>
}

export interface ToolOptions {
  /** Told of what a store threw. */
  onFault: (tool: ToolName, error: unknown) => void
  timeoutMs?: number
}

/** Less room than this is too little for any answer. */
const LEAST_BYTES = 4_096

/**
 * The six tools for one turn (docs/agent-tools.md). Calls are run one after the other, so that how the bytes of the turn
 * are shared does not depend on which is faster.
 */
export function createAgentTools(sources: AgentSources, options: ToolOptions): AgentTools {
  const { onFault, timeoutMs = CALL_TIMEOUT_MS } = options
  let calls = 0
  let bytesLeft = TURN_RESULTS_MAX_BYTES
  let last: Promise<unknown> = Promise.resolve()

  const runNext = async (call: ToolCall, signal: AbortSignal): Promise<ToolRun> => {
    signal.throwIfAborted()
    calls += 1
    if (calls > MAX_CALLS)
      return failure(`no more than ${MAX_CALLS} calls are run for one question: answer now`)
    const read = readCall(call)
    if (!read.ok) return failure(read.problem)
    if (bytesLeft < LEAST_BYTES)
      return failure('the results for this question are as long as they may be: answer now')
    try {
      const answer = answerCall(read.call, sources, Math.min(RESULT_MAX_BYTES, bytesLeft))
      const output = withoutMarkers(await withinTime(answer, timeoutMs, signal))
      const isYear = read.call.name === 'get_period_top' && read.call.arguments.period === 'year'
      return { output, failed: false, cacheable: !isYear }
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ToolProblem) return failure(error.message)
      const busy: FeedSearchRefusal = 'search_busy'
      if (error instanceof Refusal && error.code === busy) return failure('the search is busy')
      onFault(read.call.name, error)
      return failure('the data could not be read')
    }
  }

  return {
    run(call, signal) {
      const running = last.then(() => runNext(call, signal))
      last = running.then(
        ({ output }) => (bytesLeft -= byteLengthOf(output)),
        () => undefined,
      )
      return running
    },
  }
}

function failure(error: string): ToolRun {
  return { output: JSON.stringify({ error }), failed: true, cacheable: false }
}
