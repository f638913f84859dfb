import { replayOf } from '../../../../domain/agent/conversation.ts'
import type { Replay, ReplayOptions } from '../../../../domain/agent/conversation.ts'
import type { LiveSort } from '../../../../domain/feed/live-sort.ts'
import { chatAccess } from './chat-access.ts'
import {
  bindControls,
  chatParts,
  chatSettings,
  sheetControls,
  omissionsOf,
  showTurn,
  divide,
  turnView,
} from './chat-view.ts'
import type { TurnView } from './chat-view.ts'
import { copy, store, stored } from '../dom.ts'

type Item = { key: string; title: string }
type Turn = {
  item: Item | null
  question: string
  answer: string
  view: TurnView
}

/** Time after the end of an answer in which Escape does not close the sheet, in milliseconds. */
const STOP_GRACE_MS = 1_000

const LIVE_SORTS: readonly LiveSort[] = ['trending', 'day', 'week', 'month']

/** The live period that the page shows; empty for another one. */
function shownSort(): { sort?: LiveSort } {
  const sort = LIVE_SORTS.find((each) => each === new URLSearchParams(location.search).get('sort'))
  return sort === undefined ? {} : { sort }
}

/** Where the conversation of this tab is kept, so that it survives a reload; the server keeps none. */
const STORED = 'dash-chat'

/** Most turns that are kept; older ones are no longer part of a request either. */
const STORED_MAX = 20

function storedTurns(): { item: Item | null; question: string; answer: string }[] {
  const turns = stored(STORED, 'sessionStorage')
  return Array.isArray(turns)
    ? turns.filter((turn) => typeof turn?.question === 'string' && typeof turn?.answer === 'string')
    : []
}

function storeTurns(turns: readonly Turn[]) {
  const kept = turns.slice(-STORED_MAX).map(({ item, question, answer }) => ({ item, question, answer }))
  store(STORED, kept, 'sessionStorage')
}

/** The turns of this tab's conversation and the item of the next one. */
function conversation() {
  let turns: Turn[] = []
  let item: Item | null = null

  return {
    /** The item of the next turn; null for the whole site. */
    item: () => item,
    isEmpty: () => turns.length === 0,
    last: () => turns.at(-1),
    has: (turn: Turn) => turns.includes(turn),
    add(turn: Turn) {
      turns.push(turn)
    },
    replace(old: Turn, turn: Turn) {
      turns = turns.map((each) => (each === old ? turn : each))
    },
    clear() {
      turns = []
      storeTurns(turns)
    },
    store: () => storeTurns(turns),
    /** @returns whether the item changed */
    setItem(next: Item | null): boolean {
      if (next?.key === item?.key) return false
      item = next
      return true
    },
    /** The body of the next turn. */
    request: (question: string, excluded: Turn | null, settings: ReplayOptions['settings']): Replay =>
      replayOf(
        turns
          .filter((turn) => turn !== excluded)
          .map((turn) => ({ ...turn, itemKey: turn.item?.key ?? null })),
        question,
        { itemKey: item?.key ?? null, ...shownSort(), settings },
      ),
  }
}

/** The chat in the page's sheet. */
class ChatPanel {
  #parts = chatParts()
  #sheet = sheetControls(this.#parts.sheet, this.#parts.text)
  #settings = chatSettings(this.#parts.settings)
  #conversation = conversation()
  #showStatus = (text: string) => {
    this.#parts.status.textContent = text
  }
  #access = chatAccess(this.#parts, this.#showStatus)
  #running: AbortController | null = null
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

  /** @param item the item of the next question; null for the whole site */
  discuss(item: Item | null) {
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

  /** @param replaced the turn that the answer replaces once it begins */
  async #ask(question: string, replaced: Turn | null = null) {
    const item = this.#conversation.item()
    const request = this.#conversation.request(question, replaced, this.#settings())
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
   * @param onFirstText called before the first text
   * @returns the error message of the turn; empty if it succeeded
   */
  async #runTurn(turn: Turn, onFirstText: () => void, body: string, signal: AbortSignal): Promise<string> {
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

  /** @param keptNote note added to an error if there is an answer */
  #finish(turn: Turn, problem: string, keptNote: string) {
    const message = problem !== '' && turn.answer !== '' ? `${problem} ${keptNote}` : problem
    this.#conversation.store()
    const copyAction = this.#copyAction(turn)
    const retryAction = { title: 'Retry', act: () => this.#retry(turn) }
    this.#showStatus(message)
    turn.view.end(message, turn.answer === '' ? [retryAction] : [copyAction, retryAction])
    void this.#access.prepare()
  }

  #copyAction(turn: { answer: string }) {
    return { title: 'Copy', act: () => void copy(turn.answer).then(this.#showStatus) }
  }

  /** @param turn the last one */
  #retry(turn: Turn) {
    if (this.#running) return
    this.discuss(turn.item)
    this.#parts.text.focus()
    void this.#ask(turn.question, turn)
  }

  #setRunning(controller: AbortController | null) {
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
