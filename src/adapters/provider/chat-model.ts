import type { ModelCall, ModelEvent } from '../../domain/agent/model-call.ts'
import type { ChatModel } from '../../domain/ports.ts'
import type { StreamBounds } from '../sse-parser.ts'
import { CompletionParser, requestBody, sendRequest } from './chat-completions.ts'
import type { Target } from './chat-completions.ts'
import { ProviderStream } from './provider-stream.ts'
import type { IdleTimeouts } from './provider-stream.ts'
import { isInvalidRequest, refusedPart } from './refusals.ts'
import type { RequestForm } from './refusals.ts'
import { ProviderFailure, failedUpstream, openUpstream, unnamedIds } from './upstream.ts'
import type { FailedRound, Upstream, UpstreamOptions } from './upstream.ts'

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
      for (;;) {
        const isPermitted = await permit()
        signal.throwIfAborted()
        if (!isPermitted) return yield withoutRefusal(failedUpstream('http_429', { dispatched: false }))
        const asked = { ...target, ids }
        const failed = yield* runRequest(upstream, options, { form, known, thinkers }, asked, call, signal)
        if (failed === null) return
        const others = ids === target.ids && isInvalidRequest(failed) ? unnamedIds(failed.refusal, ids) : null
        const part = refusedPart(failed, form, requestBody(form, asked, call))
        if (others !== null) ids = others
        else if (part !== null && !form.refused.has(part)) form.refused.add(part)
        else return yield withoutRefusal(failed)
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

/** Sends one request and yields the events of its response; a failure is returned instead. */
async function* runRequest(
  upstream: Upstream,
  limits: IdleTimeouts,
  { form, known, thinkers }: { form: RequestForm; known: Set<string>; thinkers: Set<string> },
  target: Target,
  call: ModelCall,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, FailedRound | null> {
  const stream = new ProviderStream(upstream, limits, streamBounds(call), signal)
  let isComplete = false
  try {
    await stream.open((streamSignal) => sendRequest(upstream, requestBody(form, target, call), streamSignal))
    const parser = new CompletionParser(target, call, thinkers)
    for (;;) {
      const event = await stream.next(parser.hasReason)
      signal.throwIfAborted()
      const { text = '', received = '', end } = event === null ? parser.endOfStream() : parser.parse(event)
      if (text + received !== '') yield { kind: 'text', text, ...(received === text ? {} : { received }) }
      signal.throwIfAborted()
      if (end === undefined) continue
      isComplete = true
      if (end.kind === 'failed') return end
      // Before the last event: its reader may leave with it.
      for (const part of form.refused) known.add(part)
      yield end
      return null
    }
  } catch (error) {
    if (!(error instanceof ProviderFailure)) throw error
    return error.round
  } finally {
    stream.close(isComplete)
  }
}

function streamBounds({ maxOutputTokens }: ModelCall): StreamBounds {
  return {
    maxEventBytes: Math.max(EVENT_MAX_BYTES, maxOutputTokens * EVENT_BYTES_PER_TOKEN),
    maxBytes: Math.max(ROUND_MAX_BYTES, maxOutputTokens * ROUND_BYTES_PER_TOKEN),
  }
}
