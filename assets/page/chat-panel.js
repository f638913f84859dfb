import { chatAccess } from './chat-access.js'
import { bindControls, chatParts, chatSettings, sheetControls } from './chat-sheet.js'
import { chatRequest, omissionsOf, showTurn } from './chat-turn.js'
import { divide, turnView } from './chat-view.js'
import { copy } from './copy.js'
import { store, stored } from './dom.js'

/** @typedef {{ key: string, title: string }} Item */
/** @typedef {{ item: Item | null, question: string, answer: string, view: import('./chat-view.js').TurnView }} Turn */

/** Time after the end of an answer in which Escape does not close the sheet, in milliseconds. */
const STOP_GRACE_MS = 1_000

const LIVE_SORTS = new Set(['trending', 'day', 'week', 'month'])

/** Where the conversation of this tab is kept, so that it survives a reload; the server keeps none. */
const STORED = 'dash-chat'

/** Most turns that are kept; older ones are no longer part of a request either. */
const STORED_MAX = 20

/** @returns {{ item: Item | null, question: string, answer: string }[]} */
function storedTurns() {
  const turns = stored(STORED, 'sessionStorage')
  return Array.isArray(turns)
    ? turns.filter((turn) => typeof turn?.question === 'string' && typeof turn?.answer === 'string')
    : []
}

/** @param {readonly Turn[]} turns */
function storeTurns(turns) {
  const kept = turns.slice(-STORED_MAX).map(({ item, question, answer }) => ({ item, question, answer }))
  store(STORED, kept, 'sessionStorage')
}

/** The turns of this tab's conversation and the item of the next one. */
function conversation() {
  /** @type {Turn[]} */
  let turns = []
  /** @type {Item | null} */
  let item = null

  return {
    /** The item of the next turn; null for the whole site. */
    item: () => item,
    isEmpty: () => turns.length === 0,
    last: () => turns.at(-1),
    /** @param {Turn} turn */
    has: (turn) => turns.includes(turn),
    /** @param {Turn} turn */
    add(turn) {
      turns.push(turn)
    },
    /**
     * @param {Turn} old
     * @param {Turn} turn
     */
    replace(old, turn) {
      turns = turns.map((each) => (each === old ? turn : each))
    },
    clear() {
      turns = []
      storeTurns(turns)
    },
    store: () => storeTurns(turns),
    /**
     * @param {Item | null} next
     * @returns {boolean} whether the item changed
     */
    setItem(next) {
      if (next?.key === item?.key) return false
      item = next
      return true
    },
    /**
     * Answered turns about the current item.
     *
     * @param {Turn | null} excluded
     */
    answered: (excluded) =>
      turns.filter((turn) => turn !== excluded && turn.answer !== '' && turn.item?.key === item?.key),
  }
}

/** The chat in the page's sheet. */
class ChatPanel {
  #parts = chatParts()
  #sheet = sheetControls(this.#parts.sheet, this.#parts.text)
  #settings = chatSettings(this.#parts.settings)
  #conversation = conversation()
  /** @param {string} text */
  #showStatus = (text) => {
    this.#parts.status.textContent = text
  }
  #access = chatAccess(this.#parts, this.#showStatus)
  /** @type {AbortController | null} */
  #running = null
  /** End of the last answer that was not stopped, in milliseconds since the page was opened. */
  #endedAt = -STOP_GRACE_MS

  constructor() {
    this.#restore()
    this.#parts.suggestions.addEventListener('click', ({ target }) => {
      const button = target instanceof Element ? target.closest('[data-question]') : null
      if (!button || this.#running) return
      // The clicked button is about to be hidden.
      this.#parts.text.focus()
      void this.#ask(button.textContent ?? '')
    })
    bindControls(this.#parts, {
      send: () => this.#send(),
      stop: () => this.#running?.abort(),
      escape: () => this.#escape(),
      close: () => this.#sheet.close(),
      startOver: () => this.#startOver(),
      site: () => {
        this.discuss(null)
        this.#parts.text.focus()
      },
    })
  }

  /** Shows the turns from before a reload. */
  #restore() {
    for (const { item, question, answer } of storedTurns()) {
      this.discuss(item)
      const turn = { item, question, answer, view: turnView(this.#parts.log, question, false) }
      this.#conversation.add(turn)
      turn.view.show(answer)
      turn.view.end('', [this.#copyAction(turn)])
    }
    this.#showStatus('')
    this.#showSuggestions()
  }

  #showSuggestions() {
    this.#parts.suggestions.hidden = !this.#conversation.isEmpty() || this.#conversation.item() !== null
  }

  open() {
    this.#sheet.open()
    void this.#access.prepare()
  }

  /** @param {Item | null} item the item of the next question; null for the whole site */
  discuss(item) {
    if (!this.#conversation.setItem(item)) return
    const title = item?.title ?? 'this site'
    const name = this.#parts.scope.querySelector('bdi')
    if (name) name.textContent = title
    this.#parts.button('site').hidden = item === null
    if (!this.#conversation.isEmpty()) divide(this.#parts.log, `About ${title}`)
    this.#showSuggestions()
    this.#showStatus(`The chat is about ${title}.`)
  }

  /**
   * Stops the answer, else closes the sheet beside another page; not just after an answer, which may end while the key is
   * pressed to stop it.
   */
  #escape() {
    if (this.#running) this.#running.abort()
    else if (!this.#sheet.isInside && performance.now() - this.#endedAt > STOP_GRACE_MS) this.#sheet.close()
  }

  #send() {
    const question = this.#parts.text.value.trim()
    if (question === '' || this.#running) return
    this.#parts.text.value = ''
    void this.#ask(question)
  }

  /**
   * @param {string} question
   * @param {Turn | null} replaced the turn that the answer replaces once it begins
   */
  async #ask(question, replaced = null) {
    const item = this.#conversation.item()
    const request = chatRequest(this.#conversation.answered(replaced), question, this.#requestOptions())
    const note = omissionsOf(request)
    this.#parts.note.textContent = note
    this.#parts.note.hidden = note === ''
    this.#conversation.last()?.view.removeActions()
    const turn = { item, question, answer: '', view: turnView(this.#parts.log, question, replaced !== null) }
    if (replaced === null) this.#conversation.add(turn)
    this.#showSuggestions()
    const onFirstText = () => {
      if (replaced === null || this.#conversation.has(turn)) return
      this.#conversation.replace(replaced, turn)
      turn.view.replaceView(replaced.view)
    }
    const controller = new AbortController()
    this.#setRunning(controller)
    this.#showStatus('Asking …')
    const problem = await this.#runTurn(turn, onFirstText, request.body, controller.signal)
    if (
      controller.signal.aborted &&
      !this.#conversation.has(replaced ?? turn) &&
      !this.#conversation.has(turn)
    )
      return
    this.#setRunning(null)
    if (!controller.signal.aborted) this.#endedAt = performance.now()
    if (replaced === null || this.#conversation.has(turn))
      return this.#finish(turn, problem, 'The part received is kept.')
    turn.view.remove()
    this.#finish(replaced, problem, 'The previous answer is kept.')
  }

  /**
   * @param {Turn} turn
   * @param {() => void} onFirstText called before the first text
   * @param {string} body
   * @param {AbortSignal} signal
   * @returns {Promise<string>} the error message of the turn; empty if it succeeded
   */
  async #runTurn(turn, onFirstText, body, signal) {
    try {
      const events = this.#access.turn(body, signal)
      return await showTurn(turn, events, {
        showStatus: this.#showStatus,
        onFirstText,
        onAdmitted: (remaining) => this.#access.onAdmitted(remaining),
      })
    } catch (error) {
      if (error instanceof Error && error.message === 'human_verification_failed')
        this.#access.resetVerification()
      return signal.aborted ? 'Stopped.' : this.#access.problemOf(error)
    }
  }

  #requestOptions() {
    const item = this.#conversation.item()
    const sort = new URLSearchParams(location.search).get('sort') ?? ''
    return {
      ...(item ? { scope: { type: 'item', key: item.key } } : {}),
      ...(LIVE_SORTS.has(sort) ? { sort } : {}),
      settings: this.#settings(),
    }
  }

  /**
   * @param {Turn} turn
   * @param {string} problem
   * @param {string} keptNote note added to an error if there is an answer
   */
  #finish(turn, problem, keptNote) {
    const message = problem !== '' && turn.answer !== '' ? `${problem} ${keptNote}` : problem
    this.#conversation.store()
    const copyAction = this.#copyAction(turn)
    const retryAction = { title: 'Retry', act: () => this.#retry(turn) }
    this.#showStatus(message === '' ? 'The answer is complete.' : message)
    turn.view.end(message, turn.answer === '' ? [retryAction] : [copyAction, retryAction])
    void this.#access.prepare()
  }

  /** @param {{ answer: string }} turn */
  #copyAction(turn) {
    return { title: 'Copy', act: () => void copy(turn.answer).then(this.#showStatus) }
  }

  /** @param {Turn} turn the last one */
  #retry(turn) {
    if (this.#running) return
    this.discuss(turn.item)
    this.#parts.text.focus()
    void this.#ask(turn.question, turn)
  }

  /** @param {AbortController | null} controller */
  #setRunning(controller) {
    this.#running = controller
    const [sendButton, stopButton] = [this.#parts.button('send'), this.#parts.button('stop')]
    const hadFocus = [sendButton, stopButton].some((button) => button === document.activeElement)
    sendButton.hidden = controller !== null
    stopButton.hidden = controller === null
    if (hadFocus) this.#parts.text.focus()
  }

  #startOver() {
    this.#conversation.clear()
    this.#running?.abort()
    this.#setRunning(null)
    this.#access.forget()
    this.#parts.log.replaceChildren()
    this.#parts.log.setAttribute('aria-busy', 'false')
    this.#parts.note.hidden = true
    this.#showSuggestions()
    this.#showStatus('New conversation started.')
    this.#parts.text.focus()
    void this.#access.prepare()
  }
}

/** Starts the chat in the page's sheet, with the conversation of this tab. */
export function startChat() {
  return new ChatPanel()
}
