import { chatAccess } from './chat-access.js'
import { conversation } from './chat-conversation.js'
import { chatRequest, omissionsOf } from './chat-request.js'
import { chatSettings } from './chat-settings.js'
import { chatParts, openable, whenUsed } from './chat-sheet.js'
import { showTurn } from './chat-turn.js'
import { divide, turnView } from './chat-view.js'
import { copy } from './copy.js'

/** @typedef {import('./chat-conversation.js').Item} Item */
/** @typedef {import('./chat-conversation.js').Turn} Turn */

const LIVE_SORTS = new Set(['trending', 'day', 'week', 'month'])

/** The chat in the sheet that the page has. */
class ChatPanel {
  #parts = chatParts()
  #sheet = openable(this.#parts.sheet, this.#parts.text)
  #settings = chatSettings(this.#parts.settings)
  #talk = conversation()
  /** @param {string} text */
  #say = (text) => {
    this.#parts.status.textContent = text
  }
  #access = chatAccess(this.#parts, this.#say)
  /** @type {AbortController | null} */
  #running = null

  constructor() {
    whenUsed(this.#parts, {
      send: () => this.#send(),
      stop: () => this.#running?.abort(),
      leave: () => (this.#running ? this.#running.abort() : this.#sheet.close()),
      close: () => this.#sheet.close(),
      begin: () => this.#begin(),
      site: () => {
        this.discuss(null)
        this.#parts.text.focus()
      },
    })
  }

  open() {
    this.#sheet.open()
    if (this.#talk.isEmpty()) void this.#access.greet()
  }

  /** @param {Item | null} item what the next question is about; null for the site */
  discuss(item) {
    if (!this.#talk.turnTo(item)) return
    const title = item?.title ?? 'this site'
    const name = this.#parts.scope.querySelector('bdi')
    if (name) name.textContent = title
    this.#parts.button('site').hidden = item === null
    if (!this.#talk.isEmpty()) divide(this.#parts.log, `About ${title}`)
    this.#say(`The chat is about ${title}.`)
  }

  #send() {
    const question = this.#parts.text.value.trim()
    if (question === '' || this.#running) return
    this.#parts.text.value = ''
    void this.#ask(question)
  }

  /**
   * @param {string} question
   * @param {Turn | null} old the turn that the answer replaces once it begins
   */
  async #ask(question, old = null) {
    const item = this.#talk.item()
    const request = chatRequest(this.#talk.answered(old), question, this.#wishes())
    const note = omissionsOf(request)
    this.#parts.note.textContent = note
    this.#parts.note.hidden = note === ''
    this.#talk.last()?.view.settle()
    const turn = { item, question, answer: '', view: turnView(this.#parts.log, question, old !== null) }
    if (old === null) this.#talk.add(turn)
    const begun = () => {
      if (old === null || this.#talk.has(turn)) return
      this.#talk.replace(old, turn)
      turn.view.takePlaceOf(old.view)
    }
    const stop = new AbortController()
    this.#setRunning(stop)
    this.#say('Asking …')
    const trouble = await this.#troubleOf(turn, begun, request.body, stop.signal)
    if (stop.signal.aborted && !this.#talk.has(old ?? turn) && !this.#talk.has(turn)) return
    this.#setRunning(null)
    if (old === null || this.#talk.has(turn)) return this.#finish(turn, trouble, 'The part received is kept.')
    turn.view.remove()
    this.#finish(old, trouble, 'The previous answer is kept.')
  }

  /**
   * @param {Turn} turn
   * @param {() => void} begun called before the first text
   * @param {string} body
   * @param {AbortSignal} signal
   * @returns {Promise<string>} what went wrong with the turn, in words; empty for nothing
   */
  async #troubleOf(turn, begun, body, signal) {
    try {
      const events = this.#access.turn(body, signal)
      return await showTurn(turn, events, {
        say: this.#say,
        begun,
        admitted: (left) => this.#access.admitted(left),
      })
    } catch (error) {
      if (error instanceof Error && error.message === 'human_verification_failed') this.#access.refused()
      return signal.aborted ? 'Stopped.' : this.#access.troubleOf(error)
    }
  }

  #wishes() {
    const item = this.#talk.item()
    const sort = new URLSearchParams(location.search).get('sort') ?? ''
    return {
      ...(item ? { scope: { type: 'item', key: item.key } } : {}),
      ...(LIVE_SORTS.has(sort) ? { sort } : {}),
      settings: this.#settings(),
    }
  }

  /**
   * @param {Turn} turn
   * @param {string} trouble
   * @param {string} kept what is said of an answer that is there
   */
  #finish(turn, trouble, kept) {
    const told = trouble !== '' && turn.answer !== '' ? `${trouble} ${kept}` : trouble
    const copying = { title: 'Copy', act: () => void copy(turn.answer).then(this.#say) }
    const retry = { title: 'Retry', act: () => this.#again(turn) }
    this.#say(told === '' ? 'The answer is complete.' : told)
    turn.view.end(told, turn.answer === '' ? [retry] : [copying, retry])
    void this.#access.greet()
  }

  /** @param {Turn} turn the last one */
  #again(turn) {
    if (this.#running) return
    this.discuss(turn.item)
    this.#parts.text.focus()
    void this.#ask(turn.question, turn)
  }

  /** @param {AbortController | null} stop */
  #setRunning(stop) {
    this.#running = stop
    const [send, halt] = [this.#parts.button('send'), this.#parts.button('stop')]
    const hadFocus = [send, halt].some((each) => each === document.activeElement)
    send.hidden = stop !== null
    halt.hidden = stop === null
    if (hadFocus) this.#parts.text.focus()
  }

  #begin() {
    this.#talk.clear()
    this.#running?.abort()
    this.#setRunning(null)
    this.#access.forget()
    this.#parts.log.replaceChildren()
    this.#parts.log.setAttribute('aria-busy', 'false')
    this.#parts.note.hidden = true
    this.#say('New conversation started.')
    this.#parts.text.focus()
    void this.#access.greet()
  }
}

/** Starts the chat in the sheet that the page has; the conversation lives as long as the page. */
export function startChat() {
  return new ChatPanel()
}
