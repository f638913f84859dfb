/**
 * What the script of the challenge offers, as its vendor documents explicit rendering.
 *
 * @typedef {{ render(place: HTMLElement, options: object): string, reset(id: string): void,
 *   remove(id: string): void }} Challenge
 */

/**
 * The human challenge: shown before a session is begun, and again before the next one.
 *
 * @param {HTMLElement} place
 * @param {string} widgetUrl
 * @param {(text: string) => void} say
 */
export function humanCheck(place, widgetUrl, say) {
  /** @type {string | null} */
  let token = null
  let key = ''
  /** @type {string | null} */
  let widget = null
  /** @type {((token: string) => void) | null} */
  let given = null
  /** @type {Promise<Challenge> | null} */
  let loading = null

  const again = document.createElement('button')
  again.type = 'button'
  again.textContent = 'Try the verification again'
  again.hidden = true

  /** @param {string} why */
  const askAgain = (why) => {
    token = null
    again.hidden = false
    say(why)
  }

  /** @param {string} siteKey */
  const show = async (siteKey) => {
    if (widget !== null) return
    key = siteKey
    place.hidden = false
    place.replaceChildren(again)
    say('This server requires human verification before the first message.')
    loading ??= load(widgetUrl)
    const challenge = await loading.catch(() => null)
    if (challenge === null) {
      loading = null
      return askAgain(`The verification could not be loaded from ${new URL(widgetUrl).host}.`)
    }
    if (widget !== null) return
    const box = document.createElement('div')
    place.prepend(box)
    widget = challenge.render(box, {
      sitekey: siteKey,
      theme: document.documentElement.dataset['theme'] ?? 'auto',
      size: 'flexible',
      callback: (/** @type {string} */ proof) => {
        token = proof
        again.hidden = true
        say('Verified.')
        given?.(proof)
      },
      'expired-callback': () => askAgain('The verification has expired. Try it again.'),
      'timeout-callback': () => askAgain('The verification took too long. Try it again.'),
      'error-callback': () => {
        askAgain('The verification failed. Try it again.')
        return true
      },
    })
  }

  const hide = async () => {
    const shown = widget
    widget = null
    token = null
    place.hidden = true
    if (shown !== null) (await loading)?.remove(shown)
    place.replaceChildren()
  }

  again.addEventListener('click', () => void hide().then(() => show(key)))

  return {
    show,
    hide,
    /**
     * A proof that was not used before: the one that is there, or the next one given.
     *
     * @param {string} siteKey
     * @param {AbortSignal} signal
     * @returns {Promise<string>}
     */
    async proof(siteKey, signal) {
      await show(siteKey)
      /** @type {Promise<string>} */
      const next = new Promise((resolve, reject) => {
        given = resolve
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
      const proof = token ?? (await next)
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
  const address = new URL(widgetUrl)
  address.searchParams.set('render', 'explicit')
  return new Promise((resolve, reject) => {
    const script = document.createElement('script')
    script.src = address.href
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
