import { byteLengthOf, firstCodePoints } from '../text.ts'
import type { LiveSort } from '../feed/live-sort.ts'
import { BODY_MAX_BYTES, MESSAGE_MAX_LENGTH, MESSAGES_READ, SCOPE_KEY_MAX_LENGTH } from './bounds.ts'
import type { ChatSettings } from './chat-request.ts'

/** A question and what was answered, whole or as far as it came. */
export interface Turn {
  /** Save key of what it was about; null: the whole site. */
  itemKey: string | null
  question: string
  answer: string
}

/** What a client asks for beside the question. */
export interface TurnOptions {
  /** Save key; null: the whole site. */
  itemKey: string | null
  sort: LiveSort
  settings: Pick<ChatSettings, 'preferredLanguage' | 'tone'>
}

/** The body of a chat request, and what of the conversation is not in it. */
export interface Replay {
  /** JSON, at most {@link BODY_MAX_BYTES} bytes. */
  body: string
  /** Earlier turns of the same scope that are not sent, counted from the oldest. */
  leftOut: number
  /** True when the question is longer than what is read of a message. */
  questionCut: boolean
  /** Sent questions and answers of earlier turns of which only the beginning is sent. */
  earlierCut: number
}

type Message = { role: 'user' | 'assistant'; content: string }

/**
 * The conversation as the next turn sends it (docs/chat.md): whole turns of the same scope alone, the latest that fit into
 * the messages a server reads and into the bytes of a request, each text cut where the server would cut it.
 *
 * @param turns earlier turns, oldest first; one without an answer says nothing and is not sent
 */
export function replayOf(turns: readonly Turn[], question: string, options: TurnOptions): Replay {
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

function bodyOf(messages: readonly Message[], { itemKey, sort, settings }: TurnOptions): string {
  const scope = itemKey === null ? {} : { scope: { type: 'item', key: itemKey } }
  return JSON.stringify({ messages, ...scope, sort, settings })
}

function cut(text: string): { text: string; isCut: boolean } {
  const start = firstCodePoints(text.toWellFormed(), MESSAGE_MAX_LENGTH)
  return { text: start, isCut: start.length < text.length }
}

/** Whether a text could be the save key of an item, `<source-prefix>-<source-id>`. */
export function isItemKey(text: string): boolean {
  return /^[a-z]+-\S+$/.test(text) && Array.from(text).length <= SCOPE_KEY_MAX_LENGTH
}
