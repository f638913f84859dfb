import { z } from 'zod'
import { LIVE_SORTS } from '../feed/live-sort.ts'
import type { LiveSort } from '../feed/live-sort.ts'
import { SAVE_KEY_MAX_LENGTH } from '../feed/source.ts'
import { firstCodePoints, strictLine, visibleText } from '../text.ts'
import { asJsonObject, parseJson } from '../json.ts'
import {
  INTERESTS_MAX,
  INTEREST_MAX_LENGTH,
  MESSAGES_READ,
  MESSAGE_MAX_LENGTH,
  PRE_PROMPT_MAX_LENGTH,
} from './bounds.ts'
import type { InputMessage } from './model-call.ts'

export const LANGUAGES = ['auto', 'en', 'ru'] as const
export const TONES = ['neutral', 'casual', 'terse'] as const

const messageSchema = z.object({
  role: z.enum(['user', 'assistant']),
  content: z.string().describe(`cut after ${MESSAGE_MAX_LENGTH} characters`),
})

/** Preferences of a user; they have no more authority than a user message. */
const settingsSchema = z.object({
  preferredLanguage: z.enum(LANGUAGES),
  tone: z.enum(TONES),
  prePrompt: z.string().max(PRE_PROMPT_MAX_LENGTH),
  interests: z.array(z.string().max(INTEREST_MAX_LENGTH)).max(INTERESTS_MAX),
})

/** The documented chat request; {@link parseChatRequest} accepts more. */
export const chatRequestSchema = z
  .object({
    messages: z
      .array(messageSchema)
      .min(1)
      .describe(`the last ${MESSAGES_READ} are read; the last must be the user's`),
    scope: z
      .object({ type: z.literal('item'), key: z.string().max(SAVE_KEY_MAX_LENGTH).describe('save key') })
      .optional()
      .describe('one item; the whole site if absent or unknown'),
    sort: z.enum(LIVE_SORTS).optional().describe('ranking that grounds a chat about the site'),
    settings: settingsSchema.partial().optional().describe('preferences of the user'),
  })
  .meta({ id: 'AgentChatRequest' })

export type ChatSettings = z.infer<typeof settingsSchema>

/** A parsed chat request: complete, shortened and cleaned. */
export interface ChatRequest {
  /** At least one message; the last one is the user's. */
  messages: readonly InputMessage[]
  /** Save key of the item; null for the whole site. */
  itemKey: string | null
  sort: LiveSort
  settings: ChatSettings
}

export type ParsedChatRequest =
  { ok: true; request: ChatRequest } | { ok: false; code: 'invalid_json' | 'no_user_message' }

/**
 * Parses the body of a chat request (docs/agent-tools.md). An unknown or invalid `sort`, `scope` or setting is ignored,
 * and long text is shortened. A body or message that is not an object is `invalid_json`; a conversation without a
 * readable user message at its end is `no_user_message`.
 *
 * @param body the text of the body, within {@link BODY_MAX_BYTES}
 */
export function parseChatRequest(body: string): ParsedChatRequest {
  return readChatRequest(parseJson(body))
}

/** As {@link parseChatRequest}, of a body as parsed JSON. */
function readChatRequest(body: unknown): ParsedChatRequest {
  const fields = asJsonObject(body)
  if (fields === null) return { ok: false, code: 'invalid_json' }
  const { messages, scope, sort, settings } = fields
  if (!Array.isArray(messages) || messages.length === 0) return { ok: false, code: 'no_user_message' }
  const parsed = z.array(lenientMessage).safeParse(messages.slice(-MESSAGES_READ)).data
  if (!parsed) return { ok: false, code: 'invalid_json' }
  // Some providers reject empty messages.
  const nonEmpty = parsed.filter(({ content }) => content.trim() !== '')
  const last = parsed.at(-1)
  if (last?.role !== 'user' || last !== nonEmpty.at(-1)) return { ok: false, code: 'no_user_message' }
  const request = {
    messages: nonEmpty,
    itemKey: scopeSchema.safeParse(scope).data?.key ?? null,
    sort: chatRequestSchema.shape.sort.safeParse(sort).data ?? 'trending',
    settings: readSettings(settings),
  }
  return { ok: true, request }
}

/**
 * As {@link parseChatRequest}, of a request for a chat completion as parsed JSON: the content of a message is a text, a
 * list of parts whose texts count, or nothing. Other members than `messages` are ignored.
 */
export function readCompletionRequest(body: unknown): ParsedChatRequest {
  const messages = asJsonObject(body)?.['messages']
  if (!Array.isArray(messages)) return readChatRequest({ messages: null })
  return readChatRequest({ messages: messages.slice(-MESSAGES_READ).map(withPlainContent) })
}

function withPlainContent(message: unknown): unknown {
  const fields = asJsonObject(message)
  if (fields === null) return message
  const { role, content } = fields
  if (!Array.isArray(content)) return { role, content: content ?? '' }
  const texts = content.map((part: unknown) => textPartSchema.safeParse(part).data?.text ?? '')
  return { role, content: texts.filter((text) => text !== '').join('\n') }
}

const textPartSchema = z.object({ type: z.literal('text'), text: z.string() })

/** Every role except `assistant` is the user's. */
const lenientMessage = z
  .object({ role: z.unknown().optional(), content: messageSchema.shape.content })
  .transform(({ role, content }): InputMessage => ({
    role: role === 'assistant' ? 'assistant' : 'user',
    content: firstCodePoints(visibleText(content), MESSAGE_MAX_LENGTH),
  }))

/** The key's limit counts code points; the limit in the published schema counts code units. */
const scopeSchema = z.object({
  type: z.literal('item'),
  key: z.string().refine((key) => key !== '' && Array.from(key).length <= SAVE_KEY_MAX_LENGTH),
})

function readSettings(given: unknown): ChatSettings {
  const { preferredLanguage, tone, prePrompt, interests } = asJsonObject(given) ?? {}
  const { shape } = settingsSchema
  const interestTexts: unknown[] = Array.isArray(interests) ? interests : []
  return {
    preferredLanguage: shape.preferredLanguage.safeParse(preferredLanguage).data ?? 'auto',
    tone: shape.tone.safeParse(tone).data ?? 'neutral',
    prePrompt:
      typeof prePrompt === 'string' ? firstCodePoints(strictLine(prePrompt), PRE_PROMPT_MAX_LENGTH) : '',
    interests: interestTexts
      .filter((interest) => typeof interest === 'string')
      .slice(0, INTERESTS_MAX)
      .map((interest) => firstCodePoints(strictLine(interest), INTEREST_MAX_LENGTH))
      .filter((interest) => interest !== ''),
  }
}

/** Hosts by which a browser on the same machine opens a server on a wildcard or loopback address. */
const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]']

const LISTENING_LOCALLY = new Set([...LOCAL_HOSTS, '0.0.0.0', '[::]'])

/**
 * The origins of a server's own pages; never derived from a request.
 *
 * @param listenUrl URL the server listens on
 * @param baseUrl public URL of the server; null when it is not configured
 */
export function ownOrigins(listenUrl: string, baseUrl: string | null): string[] {
  const { origin, protocol, hostname, port } = new URL(listenUrl)
  const local = LISTENING_LOCALLY.has(hostname)
    ? LOCAL_HOSTS.map((host) => new URL(`${protocol}//${host}:${port}`).origin)
    : [origin]
  return [...new Set([...local, ...(baseUrl === null ? [] : [new URL(baseUrl).origin])])]
}
