import { eventsOf } from './chat-stream.js'

/** @typedef {{ messagesPerSession: number, messagesPerDay: number }} Quotas */
/**
 * @typedef {{ enabled: boolean, requireVerification: boolean, verificationSiteKey?: string | null, model: string,
 *   quotas: Quotas }} ChatConfig
 */

/** What the server declined, by its public code. */
export class ChatRefusal extends Error {
  /**
   * @param {{ error: string, reason?: string, scope?: string, retryAfterSeconds?: number | undefined }} body
   */
  constructor({ error, reason, scope, retryAfterSeconds }) {
    super(error)
    this.code = error
    this.reason = reason
    this.scope = scope
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** @returns {Promise<ChatConfig>} */
export async function chatConfig() {
  const response = await fetch('/api/agent/config')
  if (!response.ok) throw await refusalOf(response)
  return response.json()
}

/**
 * The chat of this server, with a session that is begun when it is first needed and renewed when it is over.
 *
 * @param {(signal: AbortSignal) => Promise<string | null>} proveHuman a fresh proof, or null where none is asked for
 */
export function chatService(proveHuman) {
  /** @type {string | null} */
  let token = null

  /** @param {AbortSignal} signal */
  const begin = async (signal) => {
    const verificationToken = await proveHuman(signal)
    const body = verificationToken === null ? {} : { body: JSON.stringify({ verificationToken }) }
    const response = await fetch('/api/agent/session', { method: 'POST', signal, ...body })
    if (!response.ok) throw await refusalOf(response)
    const session = await response.json()
    token = session.sessionToken
    return session.sessionToken
  }

  /**
   * @param {string} body
   * @param {string} sessionToken
   * @param {AbortSignal} signal
   */
  const post = (body, sessionToken, signal) =>
    fetch('/api/agent/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-agent-session': sessionToken },
      body,
      signal,
    })

  return {
    /** The next turn begins a session of its own. */
    forget() {
      token = null
    },
    /**
     * One turn. A session that is over is renewed once, and the same body is sent again.
     *
     * @param {string} body
     * @param {AbortSignal} signal
     * @throws {ChatRefusal} for what the server declines
     */
    async *turn(body, signal) {
      const kept = token
      let response = await post(body, kept ?? (await begin(signal)), signal)
      if (response.status === 401) {
        token = null
        if (kept !== null) response = await post(body, await begin(signal), signal)
      }
      if (!response.ok || !response.body) throw await refusalOf(response)
      yield* eventsOf(response.body)
    },
  }
}

/**
 * What an answer declined: in the words of the interface, or of whatever stands before the server and knows none of them.
 *
 * @param {Response} response
 */
async function refusalOf(response) {
  const body = await response.json().catch(() => null)
  if (typeof body?.error === 'string') return new ChatRefusal(body)
  const retryAfterSeconds = secondsIn(response.headers.get('retry-after') ?? '', Date.now())
  return new ChatRefusal({ error: `HTTP ${response.status}`, retryAfterSeconds })
}

/**
 * Seconds of a `Retry-After` (RFC 9110, 10.2.3), which may be a date; undefined for what is neither.
 *
 * @param {string} value
 * @param {number} now
 */
function secondsIn(value, now) {
  if (/^\d+$/.test(value)) return Number(value)
  const at = value.endsWith(' GMT') ? Date.parse(value) : NaN
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000))
}
