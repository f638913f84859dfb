import { CALL_TIMEOUT_MS, RESULT_MAX_BYTES } from '../../domain/agent/bounds.ts'
import type { ToolCall, ToolName } from '../../domain/agent/model-call.ts'
import { withoutMarkers } from '../../domain/agent/prompt.ts'
import { readCall } from '../../domain/agent/tools.ts'
import type { FeedSearchRefusal, SearchCaller } from '../../domain/feed/search.ts'
import { Refusal } from '../../domain/refusal.ts'
import { withTimeout } from '../single-flight.ts'
import { ToolProblem, answerCall, sourcesFor } from './tool-answers.ts'
import type { AgentSources } from './tool-answers.ts'

/** What a call came to, as whoever made it is told. */
export interface ToolRun {
  /** JSON text. */
  output: string
  /** True when it is an error instead of data. */
  failed: boolean
  /** False when it holds data whose changes no revision tells of: an answer made of it must not be kept. */
  cacheable: boolean
}

export interface CallOptions {
  /** Who the call is run for. */
  caller: Pick<SearchCaller, 'address' | 'isChat'>
  /** Told of what a store threw. */
  onFault: (tool: ToolName, error: unknown) => void
  /** Largest output, in bytes of UTF-8; no larger than one call may have. */
  maxBytes?: number
  timeoutMs?: number
}

/**
 * Runs one call of a tool (docs/agent-tools.md). Whatever was written and whatever fails, it becomes a result.
 *
 * @throws the signal's reason once it is aborted
 */
export async function runCall(
  call: Pick<ToolCall, 'name' | 'arguments'>,
  sources: AgentSources,
  { caller, onFault, maxBytes = RESULT_MAX_BYTES, timeoutMs = CALL_TIMEOUT_MS }: CallOptions,
  signal: AbortSignal,
): Promise<ToolRun> {
  signal.throwIfAborted()
  const read = readCall(call)
  if (!read.ok) return failure(read.problem)
  const over = new AbortController()
  try {
    const answer = answerCall(read.call, sourcesFor({ ...caller, signal: over.signal }, sources), maxBytes)
    const output = withoutMarkers(await withTimeout(answer, timeoutMs, signal))
    const isYear = read.call.name === 'get_period_top' && read.call.arguments.period === 'year'
    return { output, failed: false, cacheable: !isYear }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof ToolProblem) return failure(error.message)
    if (error instanceof Refusal && BUSY.some((code) => code === error.code)) {
      return failure('the search is busy')
    }
    onFault(read.call.name, error)
    return failure('the data could not be read')
  } finally {
    // A call that was given up must not wait for its turn any longer.
    over.abort()
  }
}

const BUSY: readonly FeedSearchRefusal[] = ['search_busy', 'search_limit']

/** An error as the result of a call. */
export function failure(error: string): ToolRun {
  return { output: JSON.stringify({ error }), failed: true, cacheable: false }
}
