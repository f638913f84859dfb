import { humanChallenge } from './chat-human.js'
import { chatConfig, chatService } from './chat-service.js'
import { problemMessage } from './chat-messages.js'
import { store, stored } from './dom.js'

/** Where the messages left are kept in this tab. */
const STORED = 'dash-chat-left'

/**
 * The messages left that {@link STORED} holds; null if it holds anything else.
 *
 * @returns {import('./chat-messages.js').Remaining | null}
 */
function storedRemaining() {
  const left = stored(STORED, 'sessionStorage')
  return Number.isInteger(left?.session) && Number.isInteger(left?.day) ? left : null
}

/**
 * Manages access to the chat: the server's configuration, the human verification, the session and its quota.
 *
 * @param {ReturnType<typeof import('./chat-sheet.js').chatParts>} parts
 * @param {(text: string) => void} showStatus
 */
export function chatAccess(parts, showStatus) {
  const { widget } = parts.sheet.dataset
  const challenge = widget === undefined ? null : humanChallenge(parts.human, widget, showStatus)
  const service = chatService(async (signal) => {
    const { requireVerification, verificationSiteKey } = await config()
    return requireVerification && challenge ? challenge.proof(verificationSiteKey ?? '', signal) : null
  })
  /** @type {Promise<import('./chat-service.js').ChatConfig> | null} */
  let configPromise = null
  let isVerified = service.hasSession()
  /**
   * Remaining messages, as last reported by the server.
   *
   * @type {import('./chat-messages.js').Remaining | null}
   */
  let remaining = isVerified ? storedRemaining() : null

  /** The configuration, requested once and again after a failure. */
  function config() {
    configPromise ??= chatConfig().catch((error) => {
      configPromise = null
      throw error
    })
    return configPromise
  }

  /** @param {import('./chat-service.js').Quotas} quotas */
  function showQuota({ messagesPerSession, messagesPerDay }) {
    parts.quota.textContent = remaining
      ? `${remaining.session} of ${messagesPerSession} messages left in this conversation, ${remaining.day} of ${messagesPerDay} today`
      : `${messagesPerSession} messages a conversation, ${messagesPerDay} a day`
  }

  return {
    /**
     * @param {string} body
     * @param {AbortSignal} signal
     */
    turn: (body, signal) => service.turn(body, signal),
    /** Shows the quota, and the challenge before the first message of a session. */
    async prepare() {
      try {
        const { enabled, requireVerification, verificationSiteKey, quotas } = await config()
        if (!enabled) return showStatus('The chat of this server is off or not set up.')
        showQuota(quotas)
        if (!isVerified && requireVerification && challenge) await challenge.show(verificationSiteKey ?? '')
      } catch (error) {
        showStatus(problemMessage(error, Date.now(), remaining))
      }
    },
    /**
     * Updates the quota after an admitted turn.
     *
     * @param {{ session: number, day: number }} remaining messages
     */
    async onAdmitted({ session, day }) {
      remaining = { session, day }
      store(STORED, remaining, 'sessionStorage')
      const { quotas } = await config()
      isVerified = true
      showQuota(quotas)
    },
    /**
     * @param {unknown} error of a turn
     * @returns {string} the message for the visitor
     */
    problemOf: (error) => problemMessage(error, Date.now(), remaining),
    /** Shows the challenge again after the server rejected the verification. */
    resetVerification() {
      isVerified = false
    },
    /** Forgets session, configuration and quota. */
    forget() {
      service.forget()
      isVerified = false
      remaining = null
      store(STORED, null, 'sessionStorage')
      configPromise = null
      parts.quota.textContent = ''
    },
  }
}
