import { MAX_CALLS, RESULT_MAX_BYTES, TURN_RESULTS_MAX_BYTES } from '../../domain/agent/bounds.ts'
import { byteLengthOf } from '../../domain/byte-length.ts'
import type { ToolCall } from '../../domain/agent/model-call.ts'
import { failure, runCall } from './run-call.ts'
import type { CallOptions, ToolRun } from './run-call.ts'
import type { AgentSources } from './sources.ts'

/** The tools of one turn, which counts its calls and the bytes they gave. */
export interface AgentTools {
  /**
   * Runs one call, after those asked for before. Whatever a model writes and whatever fails, it becomes a result.
   *
   * @throws the signal's reason once it is aborted
   */
  run(call: ToolCall, signal: AbortSignal): Promise<ToolRun>
}

/** Less room than this is too little for any answer. */
const LEAST_BYTES = 4_096

/**
 * The six tools for one turn (docs/agent-tools.md). Calls are run one after the other, so that how the bytes of the turn
 * are shared does not depend on which is faster.
 */
export function createAgentTools(sources: AgentSources, options: Omit<CallOptions, 'maxBytes'>): AgentTools {
  let calls = 0
  let bytesLeft = TURN_RESULTS_MAX_BYTES
  let last: Promise<unknown> = Promise.resolve()

  const runNext = async (call: ToolCall, signal: AbortSignal): Promise<ToolRun> => {
    signal.throwIfAborted()
    calls += 1
    if (calls > MAX_CALLS)
      return failure(`no more than ${MAX_CALLS} calls are run for one question: answer now`)
    if (bytesLeft < LEAST_BYTES)
      return failure('the results for this question are as long as they may be: answer now')
    const maxBytes = Math.min(RESULT_MAX_BYTES, bytesLeft)
    return runCall(call, sources, { ...options, maxBytes }, signal)
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
