import { localSource } from '../support/local-source.ts'

/** A service of human challenges on loopback: the widget's script and frame, and where its answers are checked. */
export interface StandInChallenge {
  widgetUrl: string
  verifyUrl: string
  /** Tokens that were checked, in order. */
  checked: string[]
  /** True if the next checks succeed. */
  passes: boolean
}

/** Implements the vendor's API of explicit rendering; its widget has a button for each outcome. */
const SCRIPT = `{
  if (new URL(document.currentScript.src).searchParams.get('render') !== 'explicit') throw new Error('not explicit')
  const frameUrl = new URL('frame', document.currentScript.src).href
  let made = 0
  const shown = new Map()
  globalThis.turnstile = {
    render(place, options) {
      made += 1
      const id = 'widget-' + made
      const frame = document.createElement('iframe')
      frame.src = frameUrl
      frame.title = 'Challenge'
      frame.height = 20
      const button = (name, act) => {
        const made = document.createElement('button')
        made.type = 'button'
        made.textContent = name
        made.addEventListener('click', act)
        return made
      }
      const token = options.sitekey + '-' + id
      place.append(
        frame,
        button('I am human', () => options.callback(token)),
        button('expire', () => options['expired-callback']()),
        button('fail', () => options['error-callback']('300030')),
      )
      shown.set(id, place)
      return id
    },
    reset() {},
    remove(id) { shown.get(id).replaceChildren() },
  }
}`

export async function startChallenge(): Promise<StandInChallenge> {
  const checked: string[] = []
  const { url } = await localSource(({ method, target, body }, response) => {
    if (method === 'POST') {
      checked.push(new URLSearchParams(body).get('response') ?? '')
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ success: challenge.passes, hostname: '127.0.0.1' }))
      return
    }
    const isScript = target.startsWith('/api.js')
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(
      isScript ? SCRIPT : '<!doctype html><html lang="en"><title>Challenge</title><p>Challenge</p></html>',
    )
  })
  const challenge = { widgetUrl: `${url}/api.js`, verifyUrl: `${url}/siteverify`, checked, passes: true }
  return challenge
}
