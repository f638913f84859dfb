import { asJsonObject, parseJsonObject } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import type { ModelResponse } from '../../domain/models/lite/suite.ts'
import { CompletionMessage, errorIn, finishReason, firstChoice } from '../completion-message.ts'

/** The contents of a body that a classification uses. */
interface ParsedBody {
  /** True for JSON and for an event stream of JSON. */
  readable: boolean
  error: ErrorFacts | null
  /** The model's message; null if there is none. */
  completion: ModelResponse | null
}

/** An error as the service or a provider describes it. */
export interface ErrorFacts {
  /** The error's own code if it is an HTTP status. */
  status: number | null
  message: string
  limitSource: string | null
  errorType: string | null
  availability: string | null
  providerName: string | null
  /** True if the error came from a provider. */
  fromProvider: boolean
  /** True if a content filter or a guardrail refused the request. */
  filtered: boolean
  /** Seconds to wait, from each field that can hold them. */
  retryAfterSeconds: readonly unknown[]
  /** Headers repeated in the error, names in lower case. */
  headers: Readonly<Record<string, string>>
}

/** Parses a body that may be JSON, an event stream, HTML, or a part of one of them. */
export function readResponseBody(text: string): ParsedBody {
  const body = text.replace(/^\uFEFF/, '')
  const whole = parseJsonObject(body)
  const documents = whole === null ? parseEvents(body) : [whole]
  if (documents.length === 0) return { readable: false, error: parseCutError(body), completion: null }
  const error = documents.map(findError).find((found) => found !== null) ?? null
  return { readable: true, error, completion: error ? null : parseCompletion(documents) }
}

/** Parses an error whose JSON was cut off. */
function parseCutError(body: string): ErrorFacts | null {
  if (!/^\s*\{\s*"error"/.test(body)) return null
  const message = nonEmptyText(body) ?? ''
  return {
    ...parseErrorFacts({ message }),
    fromProvider: /Provider returned error|"provider_name"/.test(body),
  }
}

/** Parses the JSON of each event of a stream. Comments, which only keep the connection open, are skipped. */
function parseEvents(body: string): JsonObject[] {
  const lines = body.split(/\r\n|[\r\n]/).filter((line) => line.startsWith('data:'))
  return lines.map((line) => parseJsonObject(line.slice('data:'.length))).filter((event) => event !== null)
}

function findError(document: JsonObject): ErrorFacts | null {
  const error = errorIn(document)
  if (error !== null) return parseErrorFacts(asJsonObject(error) ?? { message: error })
  return finishReason(firstChoice(document)) === 'error' ? parseErrorFacts({}) : null
}

/** Extracts the facts of an error from its JSON object. */
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

/** Parses an HTTP status from a code, which may be a number, digits, or another word of a provider. */
function parseStatus(code: unknown): number | null {
  const status = typeof code === 'string' ? Number(code) : code
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

function parseCompletion(documents: readonly JsonObject[]): ModelResponse | null {
  const message = new CompletionMessage()
  for (const document of documents) message.add(document)
  if (message.isMissing) return null
  return {
    text: message.text.toWellFormed(),
    toolCalls: message.calls.map(({ name, arguments: written }) => ({
      name: name.toWellFormed(),
      arguments: written,
    })),
    finishReason: nonEmptyText(message.finish),
  }
}

function nonEmptyText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.toWellFormed() : null
}
