import { humanCheck } from './chat-human.js'
import { chatConfig, chatService } from './chat-service.js'
import { troubleOf } from './chat-words.js'

/**
 * What this visitor may ask: the server's configuration, the proof of being human, the session and its quota.
 *
 * @param {ReturnType<typeof import('./chat-sheet.js').chatParts>} parts
 * @param {(text: string) => void} say
 */
export function chatAccess(parts, say) {
  const { widget } = parts.sheet.dataset
  const human = widget === undefined ? null : humanCheck(parts.human, widget, say)
  const service = chatService(async (signal) => {
    const { requireVerification, verificationSiteKey } = await config()
    return requireVerification && human ? human.proof(verificationSiteKey ?? '', signal) : null
  })
  /** @type {Promise<import('./chat-service.js').ChatConfig> | null} */
  let asked = null
  let isVerified = false
  /**
   * Messages left, as the server last said.
   *
   * @type {import('./chat-words.js').Left | null}
   */
  let left = null

  /** The configuration, asked once; again after a failure. */
  function config() {
    asked ??= chatConfig().catch((error) => {
      asked = null
      throw error
    })
    return asked
  }

  return {
    /**
     * @param {string} body
     * @param {AbortSignal} signal
     */
    turn: (body, signal) => service.turn(body, signal),
    /** Tells what is on before anything is asked, and shows the challenge where there is one; nothing once a turn was admitted. */
    async greet() {
      if (isVerified) return
      try {
        const { enabled, requireVerification, verificationSiteKey, quotas } = await config()
        if (!enabled) return say('The chat of this server is off or not set up.')
        if (parts.quota.textContent === '') {
          parts.quota.textContent = `${quotas.messagesPerSession} messages per session, ${quotas.messagesPerDay} per day`
        }
        if (requireVerification && human) await human.show(verificationSiteKey ?? '')
      } catch (error) {
        say(troubleOf(error, Date.now(), left))
      }
    },
    /**
     * A turn was admitted.
     *
     * @param {{ session: number, day: number }} remaining messages
     */
    async admitted({ session, day }) {
      left = { session, day }
      const { quotas } = await config()
      isVerified = true
      parts.quota.textContent = `${session}/${quotas.messagesPerSession} session, ${day}/${quotas.messagesPerDay} today`
    },
    /**
     * @param {unknown} error of a turn
     * @returns {string} in words
     */
    troubleOf: (error) => troubleOf(error, Date.now(), left),
    /** The server did not take the proof: the challenge is to be shown again. */
    refused() {
      isVerified = false
    },
    /** Forgets session, configuration and quota. */
    forget() {
      service.forget()
      isVerified = false
      left = null
      asked = null
      parts.quota.textContent = ''
    },
  }
}
