import { asJsonObject, jsonText, parseJsonObject } from '../../domain/json.ts'
import type { JsonObject } from '../../domain/json.ts'
import { ARGUMENTS_MAX_LENGTH } from '../../domain/agent/bounds.ts'
import { toolNameOf } from '../../domain/agent/model-call.ts'
import type { ModelCall, ModelEvent, ToolRound, Usage } from '../../domain/agent/model-call.ts'
import { callFilter, callsInChannels } from '../../domain/answers/calls-in-text.ts'
import { decodeJson } from '../../domain/answers/written-json.ts'
import { thoughtFilter } from '../../domain/answers/thoughts.ts'
import type { ThoughtFilter } from '../../domain/answers/thoughts.ts'
import { CompletionMessage, errorIn, firstChoice } from '../completion-message.ts'
import type { AssistantMessage, Target } from './model-request.ts'
import { failedUpstream, respondingId } from './upstream.ts'
import type { FailedRound } from './upstream.ts'

/** Text and end of the round in an event; either may be absent. */
interface ParsedEvent {
  text?: string
  /** See {@link ModelEvent}. */
  received?: string
  end?: RoundEnd
}

/** End of a round: the final event, or its failure. */
type RoundEnd = Extract<ModelEvent, { kind: 'end' }> | FailedRound

/**
 * Parses a completion. It has no end event, and engines may send a finish reason with every chunk: the end of the stream
 * ends it, and a reason proves it complete.
 */
export class CompletionParser {
  readonly #ids: readonly string[]
  readonly #uniqueId: (value: unknown) => string
  readonly #thinkers: Set<string>
  readonly #message = new CompletionMessage()
  #thoughts: ThoughtFilter | null = null
  readonly #inText = callFilter(isTool)
  /** Text of the answer, without thoughts. */
  #shown = ''
  #usage: Usage | null = null
  #named: unknown = null

  /** @param thinkers models that begin with thoughts without an opening tag; updated */
  constructor({ ids }: Target, { rounds }: ModelCall, thinkers: Set<string>) {
    this.#ids = ids
    this.#thinkers = thinkers
    this.#uniqueId = uniqueCallIds(rounds)
  }

  /** True after a finish reason: the completion may be at its end. */
  get hasReason(): boolean {
    return this.#message.finish !== ''
  }

  parse(chunk: JsonObject): ParsedEvent {
    const usage = parseUsage(usageIn(chunk))
    // Counts of a completion only grow: a smaller one, such as zeros in the last chunk, is none.
    if (tokensOf(usage) >= tokensOf(this.#usage)) this.#usage = usage ?? this.#usage
    this.#named = chunk['model'] ?? this.#named
    const error = errorIn(chunk)
    if (error !== null) {
      const refusal = this.#message.isMissing ? jsonText(error) : null
      return { end: this.#endedEarly('failed', refusal) }
    }
    const { content, refusal, hidden } = this.#message.add(chunk)
    const answer = this.#inText.push(this.#filter.push(content))
    return { received: content + refusal + hidden, ...this.#show(answer, refusal) }
  }

  /** Returns the end of the round when the stream has ended. */
  endOfStream(): ParsedEvent {
    const { finish, text, refusal, calls: parsed } = this.#message
    const rest = parsed.length > 0 && this.#isThinker ? '' : this.#filter.end()
    const last = this.#show(this.#inText.push(rest) + this.#inText.end(), '')
    const inText =
      this.#shown.trim() === '' && this.#inText.calls.length === 0
        ? callsInChannels(text, isTool)
        : this.#inText.calls
    const unparsed = inText.map((call) => ({ ...call, id: '', extra: {} }))
    const written = parsed.length > 0 ? parsed : unparsed
    if (last.end) return last
    if (finish === '') return { end: this.#endedEarly('truncated') }
    if (finish === 'error') return { end: this.#endedEarly('failed') }
    if (finish === 'length' || finish === 'content_filter') return { end: this.#endedEarly('incomplete') }
    const calls = written.map((call) => ({ callId: this.#uniqueId(call.id), call }))
    if (this.#shown.trim() === '' && calls.length === 0) return { end: this.#endedEarly('empty') }
    const output: AssistantMessage = {
      text: unparsed.length > 0 ? this.#shown : text + refusal,
      reasoning: this.#message.reasoning,
      calls: calls.map(({ callId, call }) => ({
        id: callId,
        ...sanitizeCall(call),
        extra: call.extra,
      })),
    }
    const end: RoundEnd = {
      kind: 'end',
      model: respondingId(this.#ids, this.#named),
      calls: calls.map(({ callId, call }) => ({ callId, name: call.name, arguments: call.arguments })),
      refused: refusal !== '',
      output,
      usage: this.#usage,
    }
    return { ...last, end }
  }

  /** The model of the response as far as it is known. */
  get #model(): string {
    return this.#ids.length === 1 ? String(this.#ids[0]) : String(this.#named)
  }

  get #isThinker(): boolean {
    return this.#thinkers.has(this.#model)
  }

  get #filter(): ThoughtFilter {
    return (this.#thoughts ??= thoughtFilter(this.#isThinker))
  }

  /** Text that was shown and turned out to be thoughts ends the round; the model is known from then on. */
  #show(content: string, refusal: string): ParsedEvent {
    if (this.#filter.hasLeaked) {
      this.#thinkers.add(this.#model)
      return { end: this.#endedEarly('invalid_stream') }
    }
    const text = content + refusal
    this.#shown += text
    return text === '' ? {} : { text }
  }

  #endedEarly(
    code: 'invalid_stream' | 'truncated' | 'failed' | 'incomplete' | 'empty',
    refusal: string | null = null,
  ): RoundEnd {
    return failedUpstream(code, { usage: this.#usage, refusal })
  }
}

function isTool(name: string): boolean {
  return toolNameOf(name) !== null
}

/** No model reads or writes this many tokens in one round. */
const MAX_TOKENS = 10_000_000

/** The usage in a chunk. Some engines put it into the choice or into a member of their own. */
function usageIn(chunk: JsonObject): JsonObject | null {
  const holders = [chunk, firstChoice(chunk), asJsonObject(chunk['x_groq'])]
  return holders.map((holder) => asJsonObject(holder?.['usage'])).find((usage) => usage !== null) ?? null
}

/**
 * Parses the usage a provider reports; null if it is missing or invalid. Some count the reasoning in the total alone, and
 * Moonshot names cached tokens beside the others. An impossible number of them counts as zero, so that no discount is
 * assumed.
 */
function parseUsage(usage: JsonObject | null): Usage | null {
  const { prompt_tokens: read, completion_tokens: written, total_tokens: total, ...more } = usage ?? {}
  const cached = (asJsonObject(more['prompt_tokens_details']) ?? more)['cached_tokens']
  if (!isCount(read) || !isCount(written)) return null
  const out = isCount(total) ? Math.max(written, total - read) : written
  return { in: read, out, cached: isCount(cached) && cached <= read ? cached : 0 }
}

function tokensOf(usage: Usage | null): number {
  return usage === null ? 0 : usage.in + usage.out
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS
}

/** Longest id: LiteLLM keeps a signature of thoughts in it. */
const ID_MAX_LENGTH = 16_384

/** Form of a name that every provider accepts. */
const NAME_PATTERN = /^[\w-]{1,64}$/

/**
 * Returns a function that makes the ids of a turn's calls unique, since models repeat them. The first call keeps
 * the model's id.
 */
function uniqueCallIds(rounds: readonly ToolRound[]): (value: unknown) => string {
  const used = new Set(rounds.flatMap(({ results }) => results.map(({ call }) => call.callId)))
  let next = 1
  return (value) => {
    let id = typeof value === 'string' && value.length <= ID_MAX_LENGTH ? value : ''
    while (id === '' || used.has(id)) {
      // Some engines accept nothing but nine letters and digits.
      id = `call${String(next).padStart(5, '0')}`
      next += 1
    }
    used.add(id)
    return id
  }
}

/** Makes a call safe to send back: providers reject invalid names and arguments that are not a JSON object. */
function sanitizeCall(call: { name: string; arguments: string }): { name: string; arguments: string } {
  const { name, arguments: written } = call
  const isObject = parseJsonObject(written) !== null
  const decoded = isObject || written.length > ARGUMENTS_MAX_LENGTH ? null : decodeJson(written)
  return {
    name: toolNameOf(name) ?? (NAME_PATTERN.test(name) ? name : 'unknown'),
    arguments: isObject ? written : JSON.stringify(asJsonObject(decoded) ?? {}),
  }
}
