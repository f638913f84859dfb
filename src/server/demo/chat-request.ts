import { DATA_MARKER } from '../../domain/agent/prompt.ts'
import { asArray, asJsonObject, parseJsonObject } from '../../domain/text.ts'
import type { JsonObject } from '../../domain/text.ts'
import { parseDay } from '../../domain/time.ts'
import type { Day } from '../../domain/time.ts'

/** The parts of a request to the demo's model that its script uses. */
export interface DemoRequest {
  language: 'en' | 'ru'
  /** The user's last message. */
  text: string
  /** The stored data of the prompt; null if there is none. */
  data: JsonObject | null
  /** Day of the turn, UTC. */
  today: Day
  /** Tool results, in the order of the calls. */
  results: readonly { tool: string; data: JsonObject }[]
  /** False if the request offers no tools. */
  hasTools: boolean
}

const BLOCK = new RegExp(`^<<<${DATA_MARKER} \\w+$(.*?)^${DATA_MARKER} \\w+>>>$`, 'ms')

/** Parses a request for a chat completion; null if it is invalid. */
export function parseDemoRequest(body: unknown): DemoRequest | null {
  const request = asJsonObject(body)
  if (request?.['stream'] !== true) return null
  const sent = asArray(request['messages'])
    .map(asJsonObject)
    .filter((message) => message !== null)
  const messages = sent.filter(({ role }) => role === 'user').map(({ content }) => asString(content))
  const text = messages.at(-1) ?? ''
  const today = parseDay(/ for a turn on (\S+) \(UTC\)/.exec(messages[0] ?? '')?.[1] ?? '')
  if (today === null) return null
  const calls = sent.flatMap((message) => asArray(message['tool_calls'])).map(asJsonObject)
  const toolOf = (id: unknown): string =>
    asString(asJsonObject(calls.find((call) => call?.['id'] === id)?.['function'])?.['name'])
  return {
    language: languageOf(messages, text),
    text,
    data: parseObject(BLOCK.exec(messages[0] ?? '')?.[1]),
    today,
    results: sent
      .filter(({ role }) => role === 'tool')
      .map(({ tool_call_id: id, content }) => ({ tool: toolOf(id), data: parseObject(content) ?? {} })),
    hasTools: asArray(request['tools']).length > 0,
  }
}

/** The preferred language, else that of the question. */
function languageOf(messages: readonly string[], text: string): 'en' | 'ru' {
  const preferences = parseObject(/^My preferences\b[^{]*(\{.*\})$/s.exec(messages[1] ?? '')?.[1])
  const preferred = preferences?.['language']
  if (preferred === 'Russian') return 'ru'
  if (preferred === 'English') return 'en'
  return /\p{Script=Cyrillic}/u.test(text) ? 'ru' : 'en'
}

function parseObject(text: unknown): JsonObject | null {
  return typeof text === 'string' ? parseJsonObject(text) : null
}

export function asString(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
