import { make } from '../dom.ts'

/** The API of the challenge's script, by its vendor's documentation of explicit rendering. */
export type Challenge = {
  render(container: HTMLElement, options: object): string
  reset(id: string): void
  remove(id: string): void
}

/** The human challenge, which is shown before each session starts. */
export function humanChallenge(
  container: HTMLElement,
  widgetUrl: string,
  showStatus: (text: string) => void,
) {
  let token: string | null = null
  let currentSiteKey = ''
  let widget: string | null = null
  let resolveToken: ((token: string) => void) | null = null
  let loading: Promise<Challenge> | null = null

  const retryButton = make('button', { type: 'button', hidden: true }, 'Try the verification again')

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
      await show(siteKey)
      const nextToken: Promise<string> = new Promise((resolve, reject) => {
        resolveToken = resolve
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
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
