import { fieldsOf, jsonFields, listOf } from '../http.ts'
import type { Fields } from '../http.ts'
import type { ModelResponse } from '../../domain/models/lite/suite.ts'

/** The facts of a body that a classification goes by. */
interface AnswerBody {
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
export function readResponseBody(body: string): AnswerBody {
  const whole = jsonFields(body)
  const documents = whole === null ? eventsOf(body) : [whole]
  if (documents.length === 0) return { readable: false, error: legibleError(body), reply: null }
  const error = documents.map(errorOf).find((found) => found !== null) ?? null
  return { readable: true, error, reply: error ? null : replyOf(documents) }
}

/** What can be read of an error whose JSON was cut short. */
function legibleError(body: string): ErrorFacts | null {
  if (!/^\s*\{\s*"error"/.test(body)) return null
  const message = textOf(body) ?? ''
  return { ...describeError({ message }), fromProvider: /Provider returned error|"provider_name"/.test(body) }
}

/** The JSON of each event of a stream; comments, by which the service keeps a connection open, are left out. */
function eventsOf(body: string): Fields[] {
  const lines = body.split(/\r\n|[\r\n]/).filter((line) => line.startsWith('data:'))
  return lines.map((line) => jsonFields(line.slice('data:'.length))).filter((event) => event !== null)
}

function errorOf(document: Fields): ErrorFacts | null {
  const choice = choiceOf(document)
  const error = document['error'] ?? choice?.['error'] ?? null
  if (error !== null) return describeError(fieldsOf(error) ?? { message: error })
  return choice?.['finish_reason'] === 'error' ? describeError({}) : null
}

/** The facts of an error by its JSON object; empty for one that says nothing. */
export function describeError(error: Fields): ErrorFacts {
  const metadata = fieldsOf(error['metadata']) ?? {}
  const availability = fieldsOf(error['availability']) ?? fieldsOf(metadata['availability']) ?? {}
  const message = textOf(error['message']) ?? ''
  const providerName = textOf(metadata['provider_name'])
  return {
    status: statusOf(error['code']),
    message,
    limitSource: textOf(metadata['limit_source']),
    errorType: textOf(metadata['error_type']),
    availability: textOf(availability['code']),
    providerName,
    fromProvider:
      providerName !== null || metadata['raw'] !== undefined || /^Provider returned error/i.test(message),
    filtered: metadata['reasons'] !== undefined || metadata['patterns'] !== undefined,
    retryAfterSeconds: [
      metadata['retry_after_seconds'],
      metadata['retry_after_seconds_raw'],
      availability['retry_after'],
    ],
    headers: lowerCase(fieldsOf(metadata['headers']) ?? {}),
  }
}

/** A code is an HTTP status as a number or as its digits; providers also put words of their own there. */
function statusOf(code: unknown): number | null {
  const status = typeof code === 'string' && /^\d{3}$/.test(code) ? Number(code) : code
  const isStatus = typeof status === 'number' && Number.isInteger(status) && status >= 400 && status < 600
  return isStatus ? status : null
}

function lowerCase(headers: Fields): Record<string, string> {
  const known = Object.entries(headers).flatMap(([name, value]) => {
    const text = typeof value === 'number' ? String(value) : textOf(value)
    return text === null ? [] : [[name.toLowerCase(), text] as const]
  })
  return Object.fromEntries(known)
}

function replyOf(documents: readonly Fields[]): ModelResponse | null {
  const choices = documents.map(choiceOf)
  const messages = choices
    .map((choice) => fieldsOf(choice?.['message'] ?? choice?.['delta']))
    .filter((message) => message !== null)
  if (messages.length === 0) return null
  return {
    text: messages.map((message) => contentOf(message['content'])).join(''),
    toolCalls: mergeCalls(messages.flatMap((message) => listOf(message['tool_calls']))),
    finishReason: choices.flatMap((choice) => textOf(choice?.['finish_reason']) ?? []).at(-1) ?? null,
  }
}

/** Calls as a message lists them, or as the events of a stream add to them by their index. */
function mergeCalls(calls: readonly unknown[]): { name: string; arguments: string }[] {
  const merged = new Map<unknown, { name: string; arguments: string }>()
  for (const [position, call] of calls.entries()) {
    const fields = fieldsOf(call) ?? {}
    const { name, arguments: given } = fieldsOf(fields['function']) ?? {}
    const index = fields['index'] ?? `at ${position}`
    const before = merged.get(index) ?? { name: '', arguments: '' }
    merged.set(index, {
      name: before.name + (textOf(name) ?? ''),
      // Some providers send the arguments as an object instead of its text.
      arguments: before.arguments + (typeof given === 'string' ? given : (JSON.stringify(given) ?? '')),
    })
  }
  return [...merged.values()]
}

/** A message's text, which may be split into parts. */
function contentOf(content: unknown): string {
  if (typeof content === 'string') return content.toWellFormed()
  return listOf(content)
    .map((part) => textOf(fieldsOf(part)?.['text']) ?? '')
    .join('')
}

function choiceOf(document: Fields): Fields | null {
  return fieldsOf(listOf(document['choices'])[0])
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value.toWellFormed() : null
}
