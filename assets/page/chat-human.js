import { make } from './dom.js'

/**
 * The API of the challenge's script, by its vendor's documentation of explicit rendering.
 *
 * @typedef {{ render(container: HTMLElement, options: object): string, reset(id: string): void,
 *   remove(id: string): void }} Challenge
 */

/**
 * The human challenge, which is shown before each session starts.
 *
 * @param {HTMLElement} container
 * @param {string} widgetUrl
 * @param {(text: string) => void} showStatus
 */
export function humanChallenge(container, widgetUrl, showStatus) {
  /** @type {string | null} */
  let token = null
  let currentSiteKey = ''
  /** @type {string | null} */
  let widget = null
  /** @type {((token: string) => void) | null} */
  let resolveToken = null
  /** @type {Promise<Challenge> | null} */
  let loading = null

  const retryButton = make('button', { type: 'button', hidden: true }, 'Try the verification again')

  /** @param {string} message */
  const requestRetry = (message) => {
    token = null
    retryButton.hidden = false
    showStatus(message)
  }

  /** @param {string} siteKey */
  const show = async (siteKey) => {
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
      callback: (/** @type {string} */ proof) => {
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
    /**
     * An unused token: the current one, or the next one.
     *
     * @param {string} siteKey
     * @param {AbortSignal} signal
     * @returns {Promise<string>}
     */
    async proof(siteKey, signal) {
      await show(siteKey)
      /** @type {Promise<string>} */
      const nextToken = new Promise((resolve, reject) => {
        resolveToken = resolve
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
      const proof = token ?? (await nextToken)
      await hide()
      return proof
    },
  }
}

/**
 * @param {string} widgetUrl
 * @returns {Promise<Challenge>}
 */
function load(widgetUrl) {
  const url = new URL(widgetUrl)
  url.searchParams.set('render', 'explicit')
  return new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = url.href
    script.addEventListener('load', () => {
      /** @type {{ turnstile?: Challenge }} */
      const { turnstile } = Object(globalThis)
      if (turnstile) resolve(turnstile)
      else reject(new Error('the script offers no challenge'))
    })
    script.addEventListener('error', () => reject(new Error('the script cannot be loaded')))
    document.head.append(script)
  })
}
