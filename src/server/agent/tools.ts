import { CALL_TIMEOUT_MS, RESULT_MAX_BYTES } from '../../domain/agent/bounds.ts'
import type { ToolCall, ToolName } from '../../domain/agent/model-call.ts'
import { withoutMarkers } from '../../domain/agent/prompt.ts'
import { readCall } from '../../domain/agent/tools.ts'
import type { FeedSearchRefusal, SearchCaller } from '../../domain/feed/search.ts'
import { Refusal } from '../../domain/refusal.ts'
import { withTimeout } from '../single-flight.ts'
import { ToolError, toolOutput, sourcesFor } from './tool-answers.ts'
import type { AgentSources } from './tool-answers.ts'

/** The result of a tool call. */
export interface ToolRun {
  /** JSON text. */
  output: string
  /** True if the output is an error instead of data. */
  failed: boolean
  /** False if no revision covers the data: an answer based on it must not be cached. */
  cacheable: boolean
}

export interface CallOptions {
  /** The caller on whose behalf the tool runs. */
  caller: Pick<SearchCaller, 'address' | 'isChat'>
  /** Called with an error of a store. */
  onFault: (tool: ToolName, error: unknown) => void
  /** Largest output, in bytes of UTF-8; at most the limit of one call. */
  maxBytes?: number
  timeoutMs?: number
}

/**
 * Runs one tool call (docs/agent-tools.md). Invalid arguments and errors become results.
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
  const parsed = readCall(call)
  if (!parsed.ok) return failure(parsed.problem)
  const finished = new AbortController()
  try {
    const result = toolOutput(
      parsed.call,
      sourcesFor({ ...caller, signal: finished.signal }, sources),
      maxBytes,
    )
    const output = withoutMarkers(await withTimeout(result, timeoutMs, signal))
    const isYear = parsed.call.name === 'get_period_top' && parsed.call.arguments.period === 'year'
    return { output, failed: false, cacheable: !isYear }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof ToolError) return failure(error.message)
    if (error instanceof Refusal && BUSY_CODES.some((code) => code === error.code)) {
      return failure('the search is busy')
    }
    onFault(parsed.call.name, error)
    return failure('the data could not be read')
  } finally {
    // Remove an abandoned call from the search queue.
    finished.abort()
  }
}

const BUSY_CODES: readonly FeedSearchRefusal[] = ['search_busy', 'search_limit']

/** Makes the result of a failed call. */
export function failure(error: string): ToolRun {
  return { output: JSON.stringify({ error }), failed: true, cacheable: false }
}
