import { humanChallenge } from './chat-human.js'
import { chatConfig, chatService } from './chat-service.js'
import { problemMessage } from './chat-messages.js'

/**
 * What this visitor may ask: the server's configuration, the proof of being human, the session and its quota.
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
   * Messages left, as the server last said.
   *
   * @type {import('./chat-messages.js').Remaining | null}
   */
  let remaining = null

  /** The configuration, asked once; again after a failure. */
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
    /** Tells what is on before anything is asked, and shows the challenge where there is one; nothing once a turn was admitted. */
    async prepare() {
      if (isVerified) return
      try {
        const { enabled, requireVerification, verificationSiteKey, quotas } = await config()
        if (!enabled) return showStatus('The chat is switched off on this server, or not set up.')
        if (parts.quota.textContent === '') {
          parts.quota.textContent = `${quotas.messagesPerSession} messages a session, ${quotas.messagesPerDay} a day`
        }
        if (requireVerification && challenge) await challenge.show(verificationSiteKey ?? '')
      } catch (error) {
        showStatus(problemMessage(error, Date.now(), remaining))
      }
    },
    /**
     * A turn was admitted.
     *
     * @param {{ session: number, day: number }} remaining messages
     */
    async onAdmitted({ session, day }) {
      remaining = { session, day }
      const { quotas } = await config()
      isVerified = true
      parts.quota.textContent = `${session}/${quotas.messagesPerSession} session, ${day}/${quotas.messagesPerDay} today`
    },
    /**
     * @param {unknown} error of a turn
     * @returns {string} in words
     */
    problemOf: (error) => problemMessage(error, Date.now(), remaining),
    /** The server did not take the proof: the challenge is to be shown again. */
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
