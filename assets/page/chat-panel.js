import { chatRequest, omissionsOf } from './chat-request.js'
import { chatConfig, chatService } from './chat-service.js'
import { chatSettings } from './chat-settings.js'
import { chatParts, openable } from './chat-sheet.js'
import { divide, turnView } from './chat-view.js'
import { humanCheck } from './chat-human.js'
import { CUT_OFF, failureOf, troubleOf } from './chat-words.js'

/** @typedef {{ key: string, title: string }} Item */
/** @typedef {{ item: Item | null, question: string, answer: string, view: import('./chat-view.js').TurnView }} Turn */

const LIVE_SORTS = new Set(['trending', 'day', 'week', 'month'])

/** Starts the chat in the sheet that the page has; the conversation lives as long as the page. */
export function startChat() {
  const parts = chatParts()
  const sheet = openable(parts.sheet, parts.text)
  const settings = chatSettings(parts.settings)
  const { widget } = parts.sheet.dataset
  const human = widget === undefined ? null : humanCheck(parts.human, widget, say)
  const service = chatService(async (signal) => {
    const { requireVerification, verificationSiteKey } = await config()
    return requireVerification && human ? human.proof(verificationSiteKey ?? '', signal) : null
  })
  /** @type {Turn[]} */
  let turns = []
  /** @type {Item | null} */
  let item = null
  /** @type {AbortController | null} */
  let running = null
  /** @type {Promise<import('./chat-service.js').ChatConfig> | null} */
  let asked = null
  let isVerified = false

  /** The configuration, asked once; again after a failure. */
  function config() {
    asked ??= chatConfig().catch((error) => {
      asked = null
      throw error
    })
    return asked
  }

  /** @param {string} text */
  function say(text) {
    parts.status.textContent = text
  }

  /** Tells what is on before anything is asked, and shows the challenge where there is one. */
  async function greet() {
    try {
      const { enabled, requireVerification, verificationSiteKey, quotas } = await config()
      if (!enabled) return say('The chat is switched off on this server, or not set up.')
      if (parts.quota.textContent === '') {
        parts.quota.textContent = `${quotas.messagesPerSession} messages a session, ${quotas.messagesPerDay} a day`
      }
      if (requireVerification && human && !isVerified) await human.show(verificationSiteKey ?? '')
    } catch (error) {
      say(troubleOf(error, Date.now()))
    }
  }

  /** @param {Item | null} next */
  function about(next) {
    if (next?.key === item?.key) return
    item = next
    const [name, back] = [parts.scope.querySelector('bdi'), parts.button('site')]
    if (name) name.textContent = item?.title ?? 'this site'
    back.hidden = item === null
    if (turns.length > 0) divide(parts.log, `About ${item?.title ?? 'this site'}`)
    say(`The chat is about ${item?.title ?? 'this site'}.`)
  }

  function wishes() {
    const sort = new URLSearchParams(location.search).get('sort') ?? ''
    return {
      ...(item ? { scope: { type: 'item', key: item.key } } : {}),
      ...(LIVE_SORTS.has(sort) ? { sort } : {}),
      settings: settings(),
    }
  }

  /**
   * Turns about the same thing that have an answer, as messages.
   *
   * @returns {import('./chat-request.js').Message[]}
   */
  function conversation() {
    return turns
      .filter((turn) => turn.answer !== '' && turn.item?.key === item?.key)
      .flatMap(({ question, answer }) => [
        { role: 'user', content: question },
        { role: 'assistant', content: answer },
      ])
  }

  /** @param {string} question */
  async function ask(question) {
    const request = chatRequest([...conversation(), { role: 'user', content: question }], wishes())
    const note = omissionsOf(request)
    parts.note.textContent = note
    parts.note.hidden = note === ''
    turns.at(-1)?.view.settle()
    const turn = { item, question, answer: '', view: turnView(parts.log, question) }
    turns.push(turn)
    const stop = new AbortController()
    setRunning(stop)
    say('Asking …')
    let trouble = CUT_OFF
    try {
      for await (const event of service.turn(request.body, stop.signal)) {
        const ended = await take(turn, event)
        if (ended === null) continue
        trouble = ended
        break
      }
    } catch (error) {
      trouble = stop.signal.aborted ? 'Stopped.' : troubleOf(error, Date.now())
      if (error instanceof Error && error.message === 'human_verification_failed') isVerified = false
    }
    if (stop.signal.aborted && !turns.includes(turn)) return
    setRunning(null)
    finish(turn, trouble)
  }

  /**
   * @param {Turn} turn
   * @param {import('./chat-stream.js').ChatEvent} message
   * @returns {Promise<string | null>} what went wrong when this ends the turn, empty for nothing; null while it goes on
   */
  async function take(turn, message) {
    switch (message.event) {
      case 'meta': {
        const { session, day } = message.data.remaining
        const { quotas } = await config()
        isVerified = true
        parts.quota.textContent = `${session}/${quotas.messagesPerSession} session, ${day}/${quotas.messagesPerDay} today`
        return null
      }
      case 'tool':
        turn.view.tool(message.data.name, message.data.status === 'done', performance.now())
        say(message.data.status === 'done' ? 'Thinking …' : `Reading: ${message.data.name} …`)
        return null
      case 'delta':
        if (turn.answer === '') say('Answering …')
        turn.answer += message.data.text
        turn.view.show(turn.answer)
        return null
      case 'done':
        if (message.data.degraded) turn.view.label('degraded: without tools, the budget is nearly spent')
        if (message.data.cached) turn.view.label('cached: given before to the same question')
        return ''
      case 'error':
        return failureOf(message.data)
    }
  }

  /**
   * @param {Turn} turn
   * @param {string} trouble
   */
  function finish(turn, trouble) {
    const kept = trouble !== '' && turn.answer !== '' ? `${trouble} What came is kept.` : trouble
    const copy = { title: 'Copy', act: () => void copyText(turn.answer) }
    const retry = { title: 'Retry', act: () => again(turn) }
    turn.view.end(kept, turn.answer === '' ? [retry] : [copy, retry])
    say(kept === '' ? 'The answer is complete.' : kept)
    if (!isVerified) void greet()
  }

  /** @param {Turn} turn the last one */
  function again(turn) {
    if (running) return
    about(turn.item)
    turns = turns.filter((each) => each !== turn)
    turn.view.remove()
    parts.text.focus()
    void ask(turn.question)
  }

  /** @param {string} text */
  async function copyText(text) {
    try {
      await navigator.clipboard.writeText(text)
      say('Copied.')
    } catch {
      say('The browser does not let this page copy; select the text instead.')
    }
  }

  /** @param {AbortController | null} stop */
  function setRunning(stop) {
    running = stop
    const hadFocus = [parts.button('send'), parts.button('stop')].some(
      (each) => each === document.activeElement,
    )
    parts.button('send').hidden = stop !== null
    parts.button('stop').hidden = stop === null
    if (hadFocus) parts.text.focus()
  }

  function send() {
    const question = parts.text.value.trim()
    if (question === '' || running) return
    parts.text.value = ''
    void ask(question)
  }

  function begin() {
    turns = []
    running?.abort()
    setRunning(null)
    service.forget()
    isVerified = false
    asked = null
    parts.log.replaceChildren()
    parts.log.setAttribute('aria-busy', 'false')
    parts.note.hidden = true
    parts.quota.textContent = ''
    say('A new conversation.')
    parts.text.focus()
    void greet()
  }

  parts.form.addEventListener('submit', (event) => {
    event.preventDefault()
    send()
  })
  parts.text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    send()
  })
  parts.sheet.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.isComposing) return
    event.preventDefault()
    if (running) running.abort()
    else sheet.close()
  })
  parts.button('stop').addEventListener('click', () => running?.abort())
  parts.button('site').addEventListener('click', () => {
    about(null)
    parts.text.focus()
  })
  parts.button('new').addEventListener('click', begin)
  parts.button('close').addEventListener('click', () => sheet.close())

  return {
    open() {
      sheet.open()
      if (turns.length === 0) void greet()
    },
    /** @param {Item} next */
    discuss: (next) => about(next),
  }
}
