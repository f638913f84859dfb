import { byteLengthOf, firstCodePoints } from '../text.ts'
import type { LiveSort } from '../feed/live-sort.ts'
import { BODY_MAX_BYTES, MESSAGE_MAX_LENGTH, MESSAGES_READ } from './bounds.ts'
import { SAVE_KEY_MAX_LENGTH } from '../feed/source.ts'
import type { ChatSettings } from './chat-request.ts'

/** A question and its complete or partial answer. */
export interface Turn {
  /** Save key of the item; null for the whole site. */
  itemKey: string | null
  question: string
  answer: string
}

/** The options a client sends with a question. */
export interface ReplayOptions {
  /** Save key of the item; null for the whole site. */
  itemKey: string | null
  sort?: LiveSort
  settings: Partial<ChatSettings>
}

/** The options of a terminal. */
export interface TurnOptions extends ReplayOptions {
  sort: LiveSort
  settings: Pick<ChatSettings, 'preferredLanguage' | 'tone'>
}

/** The body of a chat request, and counts of what it leaves out. */
export interface Replay {
  /** JSON, at most {@link BODY_MAX_BYTES} bytes. */
  body: string
  /** Number of earlier turns of the same scope that are not sent, from the oldest. */
  leftOut: number
  /** True when the question was shortened to the longest message. */
  questionCut: boolean
  /** Number of earlier questions and answers that are sent shortened. */
  earlierCut: number
}

type Message = { role: 'user' | 'assistant'; content: string }

/**
 * Builds the next request of a conversation (docs/chat.md): the latest complete turns of the same scope that fit into
 * the server's limits for messages and bytes, each text shortened as the server would.
 *
 * @param turns earlier turns, oldest first; turns without an answer are not sent
 */
export function replayOf(turns: readonly Turn[], question: string, options: ReplayOptions): Replay {
  const cutQuestion = cut(question)
  const answered = turns.filter(({ itemKey, answer }) => itemKey === options.itemKey && answer.trim() !== '')
  const maxTurns = Math.floor((MESSAGES_READ - 1) / 2)
  for (let kept = Math.min(answered.length, maxTurns); ; kept -= 1) {
    const sent = answered.slice(answered.length - kept)
    const texts = sent.map((turn) => ({ question: cut(turn.question), answer: cut(turn.answer) }))
    const messages: Message[] = texts.flatMap((turn) => [
      { role: 'user', content: turn.question.text },
      { role: 'assistant', content: turn.answer.text },
    ])
    const body = bodyOf([...messages, { role: 'user', content: cutQuestion.text }], options)
    if (kept > 0 && byteLengthOf(body) > BODY_MAX_BYTES) continue
    const earlier = texts.flatMap((turn) => [turn.question, turn.answer])
    return {
      body,
      leftOut: answered.length - kept,
      questionCut: cutQuestion.isCut,
      earlierCut: earlier.filter(({ isCut }) => isCut).length,
    }
  }
}

function bodyOf(messages: readonly Message[], { itemKey, sort, settings }: ReplayOptions): string {
  const scope = itemKey === null ? {} : { scope: { type: 'item', key: itemKey } }
  return JSON.stringify({ messages, ...scope, sort, settings })
}

function cut(text: string): { text: string; isCut: boolean } {
  const start = firstCodePoints(text.toWellFormed(), MESSAGE_MAX_LENGTH)
  return { text: start, isCut: start.length < text.length }
}

/** True for a text of the form of a save key, `<source-prefix>-<source-id>`. */
export function isItemKey(text: string): boolean {
  return /^[a-z]+-\S+$/.test(text) && Array.from(text).length <= SAVE_KEY_MAX_LENGTH
}

/** Messages left of the quotas, as the server last reported them. */
export interface Remaining {
  session: number
  day: number
}

/** The limits of a chat, in words. */
export const LIMIT_TEXTS = {
  gap: 'too soon after the last message',
  session: 'all messages of this session are used',
  burst: 'too many messages from this address',
  address: 'this address has used all its messages of today',
  share: 'this address has used all its messages of today or its share of the budget',
  busy: 'the chat is busy: open answers hold the remaining budget or all streams',
  budget: 'the chat budget of today is used up',
  other: 'a limit was reached',
} as const

/**
 * Describes why an answer is degraded and which part is missing.
 *
 * @param ranTools whether tools ran before the budget allowed no more of them
 */
export function degradedText(ranTools: boolean): string {
  const effect = ranTools ? 'the answer ends without tools and their results' : 'no tools were used'
  return `the budget or the share of this address is nearly used up, so ${effect}`
}

/** Limits that end later are those of the session or of the day; an open answer holds its reservation for two minutes. */
const SOON_SECONDS = 300

/**
 * Tells which limit refused a question: the scope that the server names has a short one and a long one.
 *
 * @param seconds until the limit ends; Infinity if unknown
 * @param remaining null before the server has reported it
 */
export function limitOf(
  scope: string | number | undefined,
  seconds: number,
  remaining: Remaining | null,
): keyof typeof LIMIT_TEXTS {
  const isSoon = seconds <= SOON_SECONDS
  if (scope === 'session') return (remaining ? remaining.session > 0 : isSoon) ? 'gap' : 'session'
  if (scope === 'ip') return remaining?.day === 0 ? 'address' : isSoon ? 'burst' : 'share'
  if (scope === 'global-budget') return isSoon ? 'busy' : 'budget'
  return 'other'
}

/** Says what ended a turn with an error event. */
export function failureText({ error, code }: { error: string; code: string }): string {
  if (code === 'http_429') return 'the provider of the model accepts no more requests for now'
  return error === 'timeout' ? 'the model took too long' : 'the model failed'
}
