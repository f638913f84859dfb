import { LIVE_SORTS } from '../feed/columns.ts'
import type { LiveSort } from '../feed/columns.ts'
import {
  INTERESTS_MAX,
  INTEREST_MAX_LENGTH,
  MESSAGES_READ,
  MESSAGE_MAX_LENGTH,
  PRE_PROMPT_MAX_LENGTH,
  SCOPE_KEY_MAX_LENGTH,
} from './bounds.ts'
import type { InputMessage } from './model-call.ts'
import { firstCodePoints, strictLine, visibleText } from './shown-data.ts'

export const LANGUAGES = ['auto', 'en', 'ru'] as const
export const TONES = ['neutral', 'casual', 'terse'] as const

/** What a user prefers; of a user's authority only. */
export interface ChatSettings {
  preferredLanguage: (typeof LANGUAGES)[number]
  tone: (typeof TONES)[number]
  /** Empty when there is none. */
  prePrompt: string
  interests: readonly string[]
}

/** A chat request as the turn sees it: everything known, cut and cleaned. */
export interface ChatRequest {
  /** At least one, the last of them the user's. */
  messages: readonly InputMessage[]
  /** Save key of the item the chat is about; null: the whole site. */
  itemKey: string | null
  sort: LiveSort
  settings: ChatSettings
}

export type ParsedChatRequest =
  { ok: true; request: ChatRequest } | { ok: false; code: 'invalid_json' | 'no_user_message' }

/**
 * A chat request from its body (docs/agent-tools.md). Unknown or wrong-typed `sort`, `scope` and settings count as absent,
 * and long text is cut; what the conversation itself lacks is refused. A body that is no object is `invalid_json`, as an
 * entry is; a question without anything to read is none.
 *
 * @param body the text of the body, within {@link BODY_MAX_BYTES}
 */
export function parseChatRequest(body: string): ParsedChatRequest {
  const given = parseJson(body)
  if (!isRecord(given)) return { ok: false, code: 'invalid_json' }
  const entries = given['messages']
  if (!Array.isArray(entries) || entries.length === 0) return { ok: false, code: 'no_user_message' }
  const latest = entries.slice(-MESSAGES_READ)
  const read = latest.flatMap((entry) => messageOf(entry) ?? [])
  if (read.length < latest.length) return { ok: false, code: 'invalid_json' }
  const last = read.at(-1)
  if (last?.role !== 'user' || isEmpty(last)) return { ok: false, code: 'no_user_message' }
  const request = {
    messages: read.filter((message) => !isEmpty(message)),
    itemKey: itemKeyOf(given['scope']),
    sort: LIVE_SORTS.find((sort) => sort === given['sort']) ?? 'trending',
    settings: settingsOf(given['settings']),
  }
  return { ok: true, request }
}

/** Own properties of any name: `__proto__` in a JSON text is a property like others, and none of the inherited is read. */
type JsonRecord = Readonly<Record<string, unknown>>

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** null for an entry that is no object or whose content is no text; of roles, `assistant` alone is not the user's. */
function messageOf(entry: unknown): InputMessage | null {
  if (!isRecord(entry) || typeof entry['content'] !== 'string') return null
  const content = firstCodePoints(visibleText(entry['content']), MESSAGE_MAX_LENGTH)
  return { role: entry['role'] === 'assistant' ? 'assistant' : 'user', content }
}

/** Empty messages say nothing, and some providers refuse them. */
function isEmpty({ content }: InputMessage): boolean {
  return content.trim() === ''
}

function itemKeyOf(scope: unknown): string | null {
  if (!isRecord(scope) || scope['type'] !== 'item' || typeof scope['key'] !== 'string') return null
  const { key } = scope as { key: string }
  return key === '' || Array.from(key).length > SCOPE_KEY_MAX_LENGTH ? null : key
}

function settingsOf(given: unknown): ChatSettings {
  const settings = isRecord(given) ? given : {}
  const { prePrompt, interests } = settings
  const words = Array.isArray(interests) ? interests.filter((word) => typeof word === 'string') : []
  return {
    preferredLanguage: LANGUAGES.find((language) => language === settings['preferredLanguage']) ?? 'auto',
    tone: TONES.find((tone) => tone === settings['tone']) ?? 'neutral',
    prePrompt:
      typeof prePrompt === 'string' ? firstCodePoints(strictLine(prePrompt), PRE_PROMPT_MAX_LENGTH) : '',
    interests: words
      .slice(0, INTERESTS_MAX)
      .map((word) => firstCodePoints(strictLine(word), INTEREST_MAX_LENGTH))
      .filter((word) => word !== ''),
  }
}

/** True for an origin of the list exactly as browsers write it; none, `null` and look-alikes are not in it. */
export function isAllowedOrigin(origin: string | null, allowed: readonly string[]): boolean {
  return origin !== null && origin !== 'null' && allowed.includes(origin)
}

/** Hosts that a wildcard or loopback address of a listener is opened by in a browser of the same machine. */
const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']

const LISTENING_LOCALLY = new Set([...LOCAL_HOSTS, '0.0.0.0', '[::]'])

/**
 * The origins of a server's own pages. Never a word of a request.
 *
 * @param listening where it listens, as a URL
 * @param baseUrl where it is reached from outside; null when that was not told
 */
export function ownOrigins(listening: string, baseUrl: string | null): string[] {
  const { origin, protocol, hostname, port } = new URL(listening)
  const local = LISTENING_LOCALLY.has(hostname)
    ? LOCAL_HOSTS.map((host) => new URL(`${protocol}//${host}:${port}`).origin)
    : [origin]
  return [...new Set([...local, ...(baseUrl === null ? [] : [new URL(baseUrl).origin])])]
}
