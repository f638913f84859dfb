import { asJsonObject, parseJsonObject, asArray } from '../http.ts'
import type { JsonObject } from '../http.ts'
import type { ModelResponse } from '../../domain/models/lite/suite.ts'

/** The facts of a body that a classification goes by. */
interface ParsedBody {
  /** True for JSON, and for an event stream of JSON. */
  readable: boolean
  error: ErrorFacts | null
  /** What the model said; null when there is no message. */
  reply: ModelResponse | null
}

/** An error as the service or a provider describes it. */
export interface ErrorFacts {
  /** The error's own code where it is an HTTP status. */
  status: number | null
  message: string
  limitSource: string | null
  errorType: string | null
  availability: string | null
  providerName: string | null
  /** True when the error says that it came from a provider. */
  fromProvider: boolean
  /** True when a filter of content or a guardrail refused the question. */
  filtered: boolean
  /** Seconds to wait, each way the error names them. */
  retryAfterSeconds: readonly unknown[]
  /** Headers the error repeats, names in lower case. */
  headers: Readonly<Record<string, string>>
}

/** Reads a body that may be JSON, an event stream, HTML, or only a part of any of them. */
export function readResponseBody(body: string): ParsedBody {
  const whole = parseJsonObject(body)
  const documents = whole === null ? parseEvents(body) : [whole]
  if (documents.length === 0) return { readable: false, error: parseCutError(body), reply: null }
  const error = documents.map(findError).find((found) => found !== null) ?? null
  return { readable: true, error, reply: error ? null : parseReply(documents) }
}

/** What can be read of an error whose JSON was cut short. */
function parseCutError(body: string): ErrorFacts | null {
  if (!/^\s*\{\s*"error"/.test(body)) return null
  const message = nonEmptyText(body) ?? ''
  return {
    ...parseErrorFacts({ message }),
    fromProvider: /Provider returned error|"provider_name"/.test(body),
  }
}

/** The JSON of each event of a stream; comments, by which the service keeps a connection open, are left out. */
function parseEvents(body: string): JsonObject[] {
  const lines = body.split(/\r\n|[\r\n]/).filter((line) => line.startsWith('data:'))
  return lines.map((line) => parseJsonObject(line.slice('data:'.length))).filter((event) => event !== null)
}

function findError(document: JsonObject): ErrorFacts | null {
  const choice = firstChoice(document)
  const error = document['error'] ?? choice?.['error'] ?? null
  if (error !== null) return parseErrorFacts(asJsonObject(error) ?? { message: error })
  return choice?.['finish_reason'] === 'error' ? parseErrorFacts({}) : null
}

/** The facts of an error by its JSON object; empty for one that says nothing. */
export function parseErrorFacts(error: JsonObject): ErrorFacts {
  const metadata = asJsonObject(error['metadata']) ?? {}
  const availability = asJsonObject(error['availability']) ?? asJsonObject(metadata['availability']) ?? {}
  const message = nonEmptyText(error['message']) ?? ''
  const providerName = nonEmptyText(metadata['provider_name'])
  return {
    status: parseStatus(error['code']),
    message,
    limitSource: nonEmptyText(metadata['limit_source']),
    errorType: nonEmptyText(metadata['error_type']),
    availability: nonEmptyText(availability['code']),
    providerName,
    fromProvider:
      providerName !== null || metadata['raw'] !== undefined || /^Provider returned error/i.test(message),
    filtered: metadata['reasons'] !== undefined || metadata['patterns'] !== undefined,
    retryAfterSeconds: [
      metadata['retry_after_seconds'],
      metadata['retry_after_seconds_raw'],
      availability['retry_after'],
    ],
    headers: lowerCaseHeaders(asJsonObject(metadata['headers']) ?? {}),
  }
}

/** A code is an HTTP status as a number or as its digits; providers also put words of their own there. */
function parseStatus(code: unknown): number | null {
  const status = typeof code === 'string' && /^\d{3}$/.test(code) ? Number(code) : code
  const isStatus = typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600
  return isStatus ? status : null
}

function lowerCaseHeaders(headers: JsonObject): Record<string, string> {
  const known = Object.entries(headers).flatMap(([name, value]) => {
    const text = typeof value === 'number' ? String(value) : nonEmptyText(value)
    return text === null ? [] : [[name.toLowerCase(), text] as const]
  })
  return Object.fromEntries(known)
}

function parseReply(documents: readonly JsonObject[]): ModelResponse | null {
  const choices = documents.map(firstChoice)
  const messages = choices
    .map((choice) => asJsonObject(choice?.['message'] ?? choice?.['delta']))
    .filter((message) => message !== null)
  if (messages.length === 0) return null
  return {
    text: messages.map((message) => contentText(message['content'])).join(''),
    toolCalls: mergeCalls(messages.flatMap((message) => asArray(message['tool_calls']))),
    finishReason: choices.flatMap((choice) => nonEmptyText(choice?.['finish_reason']) ?? []).at(-1) ?? null,
  }
}

/** Calls as a message lists them, or as the events of a stream add to them by their index. */
function mergeCalls(calls: readonly unknown[]): { name: string; arguments: string }[] {
  const merged = new Map<unknown, { name: string; arguments: string }>()
  for (const [position, call] of calls.entries()) {
    const fields = asJsonObject(call) ?? {}
    const { name, arguments: argumentsField } = asJsonObject(fields['function']) ?? {}
    const index = fields['index'] ?? `at ${position}`
    const previous = merged.get(index) ?? { name: '', arguments: '' }
    merged.set(index, {
      name: previous.name + (nonEmptyText(name) ?? ''),
      // Some providers send the arguments as an object instead of its text.
      arguments:
        previous.arguments +
        (typeof argumentsField === 'string' ? argumentsField : (JSON.stringify(argumentsField) ?? '')),
    })
  }
  return [...merged.values()]
}

/** A message's text, which may be split into parts. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content.toWellFormed()
  return asArray(content)
    .map((part) => nonEmptyText(asJsonObject(part)?.['text']) ?? '')
    .join('')
}

function firstChoice(document: JsonObject): JsonObject | null {
  return asJsonObject(asArray(document['choices'])[0])
}

function nonEmptyText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.toWellFormed() : null
}
