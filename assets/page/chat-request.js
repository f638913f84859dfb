/** Bounds of the interface: docs/agent-chat.md. */
const MESSAGES_READ = 12
const MESSAGE_MAX_LENGTH = 2_000
const BODY_MAX_BYTES = 32_768

/** @typedef {{ role: 'user' | 'assistant', content: string }} Message */
/** @typedef {{ body: string, leftOut: number, cut: number }} ChatRequest */

/**
 * The body of a turn: the last messages that the server reads and that fit its limit, in bytes.
 *
 * @param {readonly Message[]} conversation the last of them the user's
 * @param {object} wishes scope, sort and settings
 * @returns {ChatRequest} with the number of messages left out and of those cut short
 */
export function chatRequest(conversation, wishes) {
  const messages = conversation
    .slice(-MESSAGES_READ)
    .map(({ role, content }) => ({ role, content: cut(content) }))
  let body = JSON.stringify({ messages, ...wishes })
  while (messages.length > 1 && new TextEncoder().encode(body).length > BODY_MAX_BYTES) {
    messages.shift()
    body = JSON.stringify({ messages, ...wishes })
  }
  const sent = conversation.slice(conversation.length - messages.length)
  return {
    body,
    leftOut: conversation.length - messages.length,
    cut: sent.filter(({ content }) => cut(content) !== content).length,
  }
}

/**
 * What of the conversation the server will not read, in words; empty when it reads everything.
 *
 * @param {ChatRequest} request
 */
export function omissionsOf({ leftOut, cut: shortened }) {
  const parts = []
  if (leftOut > 0) {
    parts.push(
      `${leftOut} older ${leftOut === 1 ? 'message was' : 'messages were'} not sent: the last ${MESSAGES_READ} are read, within 32 KiB.`,
    )
  }
  if (shortened > 0) {
    parts.push(
      `Of ${shortened} ${shortened === 1 ? 'message' : 'messages'} only the first ${MESSAGE_MAX_LENGTH.toLocaleString('en')} characters are read.`,
    )
  }
  return parts.join(' ')
}

/** @param {string} text */
function cut(text) {
  return text.length <= MESSAGE_MAX_LENGTH ? text : Array.from(text).slice(0, MESSAGE_MAX_LENGTH).join('')
}
