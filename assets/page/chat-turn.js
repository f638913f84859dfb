import { CUT_OFF, failureMessage } from './chat-messages.js'

/** Bounds of the interface: docs/agent-chat.md. */
const MESSAGES_READ = 12
const MESSAGE_MAX_LENGTH = 2_000
const BODY_MAX_BYTES = 32_768

/** Earlier turns of a request. */
const TURNS_READ = Math.floor((MESSAGES_READ - 1) / 2)

/** @typedef {{ question: string, answer: string }} Answered */
/** @typedef {{ body: string, leftOut: number, cut: number }} ChatRequest */

/**
 * Builds the body of a turn: the question, after as many last turns as the server reads and the byte limit allows. Turns
 * are never split: an answer without its question would be taken as the answer to another one.
 *
 * @param {readonly Answered[]} turns earlier ones, oldest first
 * @param {string} question
 * @param {object} options scope, sort and settings
 * @returns {ChatRequest} the body, and the numbers of omitted turns and shortened messages
 */
export function chatRequest(turns, question, options) {
  for (let keptTurns = Math.min(turns.length, TURNS_READ); ; keptTurns -= 1) {
    const contents = turns.slice(turns.length - keptTurns).flatMap((turn) => [turn.question, turn.answer])
    contents.push(question)
    const messages = contents.map((text, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: cut(text),
    }))
    const body = JSON.stringify({ messages, ...options })
    if (keptTurns > 0 && new TextEncoder().encode(body).length > BODY_MAX_BYTES) continue
    return {
      body,
      leftOut: turns.length - keptTurns,
      cut: contents.filter((text) => cut(text) !== text).length,
    }
  }
}

/**
 * Describes the parts of the conversation that are not sent; empty if all are.
 *
 * @param {ChatRequest} request
 */
export function omissionsOf({ leftOut, cut: shortened }) {
  const parts = []
  if (leftOut > 0) {
    parts.push(
      `${leftOut} older ${leftOut === 1 ? 'turn was' : 'turns were'} not sent: the chat reads at most the last ${TURNS_READ} turns and 32 KiB.`,
    )
  }
  if (shortened > 0) {
    parts.push(
      `Only the first ${MESSAGE_MAX_LENGTH.toLocaleString('en')} characters of ${shortened} ${shortened === 1 ? 'message' : 'messages'} were sent.`,
    )
  }
  return parts.join(' ')
}

/** @param {string} text */
function cut(text) {
  return text.length <= MESSAGE_MAX_LENGTH ? text : Array.from(text).slice(0, MESSAGE_MAX_LENGTH).join('')
}

/**
 * Shows a turn as its events arrive.
 *
 * @param {import('./chat-panel.js').Turn} turn
 * @param {AsyncIterable<import('./chat-stream.js').ChatEvent>} events
 * @param {{ showStatus(text: string): void, onFirstText(): void, onAdmitted(remaining: { session: number, day: number }): Promise<void> }} callbacks
 * @returns {Promise<string>} the error message; empty if the turn succeeded
 * @throws {Error} errors of reading the events
 */
export async function showTurn(turn, events, callbacks) {
  for await (const message of events) {
    switch (message.event) {
      case 'meta':
        await callbacks.onAdmitted(message.data.remaining)
        break
      case 'tool':
        turn.view.tool(message.data.name, message.data.status === 'done', performance.now())
        callbacks.showStatus(
          message.data.status === 'done' ? 'Thinking …' : `Reading: ${message.data.name} …`,
        )
        break
      case 'delta':
        if (turn.answer === '') {
          callbacks.showStatus('Answering …')
          callbacks.onFirstText()
        }
        turn.answer += message.data.text
        turn.view.show(turn.answer)
        break
      case 'done':
        if (message.data.degraded) turn.view.label('degraded: no tools used, the budget is nearly used up')
        if (message.data.cached) turn.view.label('cached answer')
        return ''
      case 'error':
        return failureMessage(message.data)
    }
  }
  return CUT_OFF
}
