import { APIConnectionError, APIError } from 'openai'
import type { ModelCall, ModelEvent } from '../../domain/agent/model-call.ts'
import type { ChatModel } from '../../domain/ports.ts'
import { parseJsonObject } from '../../domain/json.ts'
import type { JsonObject } from '../../domain/json.ts'
import { errorIn } from '../completion-message.ts'
import { mediaTypeOf, isCompressed } from '../http.ts'
import type { StreamBounds } from '../sse-parser.ts'
import { CompletionParser } from './chat-completions.ts'
import { requestBody, sendRequest } from './model-request.ts'
import type { Target } from './model-request.ts'
import {
  AFTER_REASON_MS,
  EventReader,
  isEndMark,
  ProviderFailure,
  failedRound,
  failedUpstream,
  openUpstream,
  unnamedIds,
  upstreamError,
} from './upstream.ts'
import type { IdleTimeouts, FailedRound, Upstream, UpstreamOptions } from './upstream.ts'
import { isInvalidRequest, refusedPart } from './refusals.ts'
import type { RequestBody, RequestForm } from './refusals.ts'

export interface ProviderOptions extends UpstreamOptions, IdleTimeouts {}

export interface ChatModelOptions extends ProviderOptions {
  model: string
}

/** Opens a model behind a provider's API of chat completions (docs/agent-chat.md). */
export function openChatModel(options: ChatModelOptions): ChatModel {
  const provider = openProvider(options)
  return {
    name: () => Promise.resolve(options.model),
    ask: (call, signal) => provider.run({ ids: [options.model] }, call, signal),
    close: () => provider.close(),
  }
}

/** Permits a request; false if the account has no request left. */
type PermitRequest = () => Promise<boolean>

const ALWAYS: PermitRequest = () => Promise.resolve(true)

/** A provider of chat completions. */
export interface Provider {
  /**
   * Runs one round. It always ends with one `end` or `failed` event, even if the provider is silent, sends endless
   * bytes, sends no event stream or stops in the middle. The caller limits the time of the whole turn by the signal.
   *
   * @param permit called before each request; a round whose request it denies fails as `http_429`
   * @throws the signal's reason; failures of the provider become a `failed` event
   */
  run(
    target: Target,
    call: ModelCall,
    signal: AbortSignal,
    permit?: PermitRequest,
  ): AsyncGenerator<ModelEvent, void>
  close(): Promise<void>
}

export function openProvider(options: ProviderOptions): Provider {
  const upstream = openUpstream(options)
  /** Parts without which a refused request succeeded, by the models of the request. */
  const knownOf = new Map<string, Set<string>>()
  const thinkers = new Set<string>()
  return {
    async *run(target, call, signal, permit = ALWAYS) {
      let { ids } = target
      const models = ids.join()
      const known = knownOf.get(models) ?? new Set()
      knownOf.set(models, known)
      const form = { isOpenAi: isOpenAi(options.base), refused: new Set(known) }
      const lessons = { known, thinkers, unsure: new Set<string>() }
      for (;;) {
        const isPermitted = await permit()
        signal.throwIfAborted()
        if (!isPermitted) return yield withoutRefusal(failedUpstream('http_429', { dispatched: false }))
        const asked = { ...target, ids }
        const failed = yield* runRequest(upstream, options, form, lessons, asked, call, signal)
        if (failed === null) return
        const others = ids === target.ids && isInvalidRequest(failed) ? unnamedIds(failed.refusal, ids) : null
        const part = refusedPart(failed, form, requestBody(form, asked, call))
        if (others !== null) ids = others
        else if (part !== null && !form.refused.has(part)) {
          form.refused.add(part)
          if (!IS_DECLINED.test(failed.code)) lessons.unsure.add(part)
        } else return yield withoutRefusal(failed)
      }
    },
    close: () => upstream.close(),
  }
}

/** Removes the text of the provider from an event before it is passed on. */
function withoutRefusal({ refusal: _refusal, ...failed }: FailedRound): ModelEvent {
  return failed
}

/** True for an API base of OpenAI itself, whose requests differ from those for other engines. */
export function isOpenAi(base: string): boolean {
  return /(?:^|\.)openai\.com$/.test(new URL(base).hostname)
}

const KIB = 1024

/** Minimum size limits of a stream, and the bytes each allowed output token adds to them. */
const EVENT_MAX_BYTES = 256 * KIB
const EVENT_BYTES_PER_TOKEN = 32
const ROUND_MAX_BYTES = 1024 * KIB
const ROUND_BYTES_PER_TOKEN = KIB

/** Responses that decline a request. A fault may name a part of it by chance, so that nothing is remembered of it. */
const IS_DECLINED = /^http_(?:4\d\d|501)$/

/** What a provider has taught about a model. */
interface Lessons {
  /** Parts without which a refused request succeeded. */
  known: Set<string>
  /** Models whose answers begin with thoughts. */
  thinkers: Set<string>
  /** Parts to leave out of this round alone. */
  unsure: ReadonlySet<string>
}

/** Sends one request and yields the events of its response; a failure is returned instead. */
async function* runRequest(
  upstream: Upstream,
  limits: IdleTimeouts,
  form: RequestForm,
  { known, thinkers, unsure }: Lessons,
  target: Target,
  call: ModelCall,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, FailedRound | null> {
  const reader = new EventReader(limits, streamBounds(call), signal)
  let isComplete = false
  try {
    const parser = new CompletionParser(target, call, thinkers)
    const isCompletion = await openStream(upstream, reader, requestBody(form, target, call), signal)
    const chunks = completionChunks(reader, limits, isCompletion, () => parser.hasReason, signal)
    for (;;) {
      const chunk = await chunks.next()
      signal.throwIfAborted()
      const { text = '', received = '', end } = chunk.done ? parser.endOfStream() : parser.parse(chunk.value)
      if (text + received !== '') yield { kind: 'text', text, ...(received === text ? {} : { received }) }
      signal.throwIfAborted()
      if (end === undefined) continue
      isComplete = true
      if (end.kind === 'failed') return end
      // Before the last event: its reader may leave with it.
      for (const part of form.refused) if (!unsure.has(part)) known.add(part)
      yield end
      return null
    }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    return error.round
  } finally {
    // The connection is reused if the response is complete.
    reader.close(isComplete)
  }
}

function streamBounds({ maxOutputTokens }: ModelCall): StreamBounds {
  return {
    maxEventBytes: Math.max(EVENT_MAX_BYTES, maxOutputTokens * EVENT_BYTES_PER_TOKEN),
    maxBytes: Math.max(ROUND_MAX_BYTES, maxOutputTokens * ROUND_BYTES_PER_TOKEN),
  }
}

/**
 * Sends a request and begins to read its response.
 *
 * @returns true if the response is a completion by its type. Some engines name another one; the first chunk tells it then
 * @throws ProviderFailure; the signal's reason
 */
async function openStream(
  upstream: Upstream,
  reader: EventReader,
  body: RequestBody,
  signal: AbortSignal,
): Promise<boolean> {
  signal.throwIfAborted()
  try {
    const { headers, stream } = await sendRequest(upstream, body, reader.signal)
    const isStream = mediaTypeOf(headers.get('content-type')) === 'text/event-stream'
    reader.begin(stream, isStream || !('stream' in body))
    if (isCompressed(Object.fromEntries(headers))) throw upstreamError('invalid_stream')
    return isStream
  } catch (error) {
    signal.throwIfAborted()
    throw reader.expired === null ? toRequestFailure(error) : timedOut(reader, error)
  }
}

/**
 * Yields the chunks of a completion until the stream has ended, complete or not.
 *
 * @param hasReason true after a finish reason: silence then ends the stream
 * @throws ProviderFailure; the signal's reason
 */
async function* completionChunks(
  reader: EventReader,
  { idleMs, afterReasonMs = AFTER_REASON_MS }: IdleTimeouts,
  isCompletion: boolean,
  hasReason: () => boolean,
  signal: AbortSignal,
): AsyncGenerator<JsonObject, void> {
  for (let hasEnded = false; !hasEnded;) {
    const { events, ending } = await reader.read(hasReason() ? afterReasonMs : idleMs)
    if (ending === 'too-large') throw upstreamError('invalid_stream')
    if (ending === 'silent' && !hasReason()) throw timedOut(reader)
    hasEnded = ending !== null
    for (const data of ending === 'silent' ? [] : events) {
      signal.throwIfAborted()
      hasEnded ||= isEndMark(data)
      if (isEndMark(data)) break
      const chunk = parseJsonObject(data)
      // A cut stream can end with half an event.
      if (chunk === null) throw upstreamError(ending === null ? 'invalid_stream' : 'truncated')
      isCompletion ||= 'choices' in chunk || errorIn(chunk) !== null
      if (!isCompletion) throw upstreamError('invalid_stream')
      yield chunk
    }
  }
  if (!isCompletion) throw upstreamError('invalid_stream')
}

function timedOut({ expired }: EventReader, cause?: unknown): ProviderFailure {
  return new ProviderFailure(failedRound({ error: 'timeout', code: expired ?? 'idle' }), cause)
}

/** Error codes of established connections that broke: the request may have arrived. */
const BROKEN_CONNECTION = /^(?:UND_ERR_SOCKET|ECONNRESET|ETIMEDOUT|EPIPE|HPE_\w+)$/

/** Returns whether a request may have reached the provider although its connection failed. */
export function mayHaveArrived(cause: unknown): boolean {
  const { code, syscall } = (cause ?? {}) as { code?: unknown; syscall?: unknown }
  // ETIMEDOUT occurs both while connecting and on an established connection.
  return typeof code === 'string' && BROKEN_CONNECTION.test(code) && syscall !== 'connect'
}

/** Statuses of errors that may name a part of the request. Engines that render templates report theirs as 500. */
const REFUSAL_STATUSES = new Set([400, 404, 422, 500, 501])

/** Converts an error of the SDK's client to a ProviderFailure; returns any other error unchanged. */
function toRequestFailure(error: unknown): unknown {
  if (error instanceof APIConnectionError) {
    return upstreamError('connect', { dispatched: mayHaveArrived(error.cause) }, error)
  }
  if (!(error instanceof APIError) || error.status === undefined) return error
  const status = error.status as number
  const refusal = REFUSAL_STATUSES.has(status) ? String(error.error) : null
  return upstreamError(`http_${status}`, { dispatched: status >= 500, refusal }, error)
}
