import type { Remaining } from '../../../../domain/agent/conversation.ts'
import type { AgentConfig } from '../../../../domain/agent/schema.ts'
import { store, stored, make } from '../dom.ts'
import { chatConfig, chatService, problemMessage } from './chat-service.ts'
import type { chatParts } from './chat-view.ts'

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
  /** Remaining messages, as last reported by the server. */
  let remaining: Remaining | null = service.hasSession() ? storedRemaining() : null

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
        if (!service.hasSession() && requireVerification && challenge)
          await challenge.show(verificationSiteKey ?? '')
      } catch (error) {
        showStatus(problemMessage(error, Date.now(), remaining))
      }
    },
    /** Updates the quota after an admitted turn. */
    async onAdmitted(left: Remaining) {
      remaining = left
      store(STORED, remaining, 'sessionStorage')
      const { quotas } = await config()
      showQuota(quotas)
    },
    /** The message about a failed turn for the visitor. */
    problemOf: (error: unknown): string => problemMessage(error, Date.now(), remaining),
    /** Forgets session, configuration and quota. */
    forget() {
      service.forget()
      remaining = null
      store(STORED, null, 'sessionStorage')
      configPromise = null
      parts.quota.textContent = ''
    },
  }
}

/** The API of the challenge's script, by its vendor's documentation of explicit rendering. */
type Challenge = {
  render(container: HTMLElement, options: object): string
  reset(id: string): void
  remove(id: string): void
}

/** The human challenge, which is shown before each session starts. */
function humanChallenge(container: HTMLElement, widgetUrl: string, showStatus: (text: string) => void) {
  let token: string | null = null
  let currentSiteKey = ''
  let widget: string | null = null
  let resolveToken: ((token: string) => void) | null = null
  let loading: Promise<Challenge> | null = null

  const retryButton = make('button', { type: 'button', hidden: true }, 'Try the verification again')
  container.hidden = true

  const requestRetry = (message: string) => {
    token = null
    retryButton.hidden = false
    showStatus(message)
  }

  const show = async (siteKey: string) => {
    if (widget !== null) return
    currentSiteKey = siteKey
    container.hidden = false
    container.replaceChildren(retryButton)
    showStatus('This server requires human verification before the first message.')
    loading ??= load(widgetUrl)
    const challenge = await loading.catch(() => null)
    if (challenge === null) {
      loading = null
      return requestRetry(`The verification could not be loaded from ${new URL(widgetUrl).host}.`)
    }
    if (widget !== null) return
    const widgetContainer = document.createElement('div')
    container.prepend(widgetContainer)
    widget = challenge.render(widgetContainer, {
      sitekey: siteKey,
      theme: document.documentElement.dataset['theme'] ?? 'auto',
      size: 'flexible',
      callback: (proof: string) => {
        token = proof
        retryButton.hidden = true
        showStatus('Verified.')
        resolveToken?.(proof)
      },
      'expired-callback': () => requestRetry('The verification has expired. Try it again.'),
      'timeout-callback': () => requestRetry('The verification took too long. Try it again.'),
      'error-callback': () => {
        requestRetry('The verification failed. Try it again.')
        return true
      },
    })
  }

  const hide = async () => {
    const shownWidget = widget
    widget = null
    token = null
    container.hidden = true
    if (shownWidget !== null) (await loading)?.remove(shownWidget)
    container.replaceChildren()
  }

  retryButton.addEventListener('click', () => void hide().then(() => show(currentSiteKey)))

  return {
    show,
    hide,
    /** An unused token: the current one, or the next one. */
    async proof(siteKey: string, signal: AbortSignal): Promise<string> {
      const nextToken: Promise<string> = new Promise((resolve, reject) => {
        resolveToken = resolve
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
      await Promise.race([show(siteKey), nextToken])
      const proof = token ?? (await nextToken)
      await hide()
      return proof
    },
  }
}

function load(widgetUrl: string): Promise<Challenge> {
  const url = new URL(widgetUrl)
  url.searchParams.set('render', 'explicit')
  return new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = url.href
    script.addEventListener('load', () => {
      const { turnstile }: { turnstile?: Challenge } = Object(globalThis)
      if (turnstile) resolve(turnstile)
      else reject(new Error('the script offers no challenge'))
    })
    script.addEventListener('error', () => reject(new Error('the script cannot be loaded')))
    document.head.append(script)
  })
}
