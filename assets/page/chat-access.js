import { humanChallenge } from './chat-human.js'
import { chatConfig, chatService } from './chat-service.js'
import { problemMessage } from './chat-messages.js'

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
  let isVerified = false
  /**
   * Remaining messages, as last reported by the server.
   *
   * @type {import('./chat-messages.js').Remaining | null}
   */
  let remaining = null

  /** The configuration, requested once and again after a failure. */
  function config() {
    configPromise ??= chatConfig().catch((error) => {
      configPromise = null
      throw error
    })
    return configPromise
  }

  return {
    /**
     * @param {string} body
     * @param {AbortSignal} signal
     */
    turn: (body, signal) => service.turn(body, signal),
    /** Shows the quota and the challenge before the first message; does nothing after a turn was admitted. */
    async prepare() {
      if (isVerified) return
      try {
        const { enabled, requireVerification, verificationSiteKey, quotas } = await config()
        if (!enabled) return showStatus('The chat of this server is off or not set up.')
        if (parts.quota.textContent === '') {
          parts.quota.textContent = `${quotas.messagesPerSession} messages a conversation, ${quotas.messagesPerDay} a day`
        }
        if (requireVerification && challenge) await challenge.show(verificationSiteKey ?? '')
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
      const { quotas } = await config()
      isVerified = true
      parts.quota.textContent = `${session} of ${quotas.messagesPerSession} messages left in this conversation, ${day} of ${quotas.messagesPerDay} today`
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
      configPromise = null
      parts.quota.textContent = ''
    },
  }
}
