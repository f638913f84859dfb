import type { AgentConfig } from '../../../../domain/agent/schema.ts'
import { humanChallenge } from './chat-human.ts'
import { chatConfig, chatService } from './chat-service.ts'
import { problemMessage } from './chat-messages.ts'
import type { Remaining } from './chat-messages.ts'
import type { chatParts } from './chat-sheet.ts'
import { store, stored } from '../dom.ts'

/** Where the messages left are kept in this tab. */
const STORED = 'dash-chat-left'

/** The messages left that {@link STORED} holds; null if it holds anything else. */
function storedRemaining(): Remaining | null {
  const { session, day } = Object(stored(STORED, 'sessionStorage'))
  return Number.isInteger(session) && Number.isInteger(day) ? { session, day } : null
}

/** Manages access to the chat: the server's configuration, the human verification, the session and its quota. */
export function chatAccess(parts: ReturnType<typeof chatParts>, showStatus: (text: string) => void) {
  const { widget } = parts.sheet.dataset
  const challenge = widget === undefined ? null : humanChallenge(parts.human, widget, showStatus)
  const service = chatService(async (signal) => {
    const { requireVerification, verificationSiteKey } = await config()
    return requireVerification && challenge ? challenge.proof(verificationSiteKey ?? '', signal) : null
  })
  let configPromise: Promise<AgentConfig> | null = null
  let isVerified = service.hasSession()
  /** Remaining messages, as last reported by the server. */
  let remaining: Remaining | null = isVerified ? storedRemaining() : null

  /** The configuration, requested once and again after a failure. */
  function config() {
    configPromise ??= chatConfig().catch((error) => {
      configPromise = null
      throw error
    })
    return configPromise
  }

  function showQuota({ messagesPerSession, messagesPerDay }: AgentConfig['quotas']) {
    parts.quota.textContent = remaining
      ? `${remaining.session} of ${messagesPerSession} messages left in this conversation, ${remaining.day} of ${messagesPerDay} today`
      : `${messagesPerSession} messages a conversation, ${messagesPerDay} a day`
  }

  return {
    turn: (body: string, signal: AbortSignal) => service.turn(body, signal),
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
     * @param remaining messages
     */
    async onAdmitted({ session, day }: { session: number; day: number }) {
      remaining = { session, day }
      store(STORED, remaining, 'sessionStorage')
      const { quotas } = await config()
      isVerified = true
      showQuota(quotas)
    },
    /**
     * @param error of a turn
     * @returns the message for the visitor
     */
    problemOf: (error: unknown): string => problemMessage(error, Date.now(), remaining),
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
