import { degradedText, replayOf } from '../../../../domain/agent/conversation.ts'
import type { Replay } from '../../../../domain/agent/conversation.ts'
import { TOOL_ACTIONS } from '../../../../domain/agent/model-call.ts'
import type { LiveSort } from '../../../../domain/feed/live-sort.ts'
import { chatAccess } from './chat-access.ts'
import { chatParts, chatSettings, sheetControls, omissionsOf, divide, turnView } from './chat-view.ts'
import type { TurnView } from './chat-view.ts'
import { CUT_OFF, failureMessage } from './chat-service.ts'
import { copy, isComposing, onReturn, store, stored } from '../dom.ts'

type Item = { key: string; title: string }
type StoredTurn = {
  item: Item | null
  question: string
  answer: string
  /** Error message; empty for none. */
  problem?: string
}
type Turn = Required<StoredTurn> & { view: TurnView }

/** The error message of a turn until it ends. */
const LEFT = 'The page was left before the answer ended.'

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

/** The turns of this tab; null if it has stored none, or storage is forbidden. */
function storedTurns(): StoredTurn[] | null {
  const turns = stored(STORED, 'sessionStorage')
  return Array.isArray(turns)
    ? turns.filter((turn) => typeof turn?.question === 'string' && typeof turn?.answer === 'string')
    : null
}

function storeTurns(turns: readonly Turn[]) {
  const kept = turns.slice(-STORED_MAX)
  store(
    STORED,
    kept.map(({ item, question, answer, problem }) => ({ item, question, answer, problem })),
    'sessionStorage',
  )
}

/** The chat in the page's sheet, with the conversation of this tab. */
export class ChatPanel {
  #parts = chatParts()
  #sheet = sheetControls(this.#parts.sheet, this.#parts.text)
  #settings = chatSettings(this.#parts.settings)
  #turns: Turn[] = []
  /** The item of the next turn; null for the whole site. */
  #item: Item | null = null
  #showStatus = (text: string) => {
    this.#parts.status.textContent = text
  }
  #access = chatAccess(this.#parts, this.#showStatus)
  #running: AbortController | null = null
  /** End of the last answer that was not stopped, in milliseconds since the page was opened. */
  #endedAt = -STOP_GRACE_MS

  constructor() {
    this.#show(storedTurns() ?? [])
    this.#parts.suggestions.addEventListener('click', ({ target }) => {
      const button = target instanceof Element ? target.closest('[data-question]') : null
      if (!button || this.#running) return
      // The clicked button is about to be hidden.
      this.#parts.text.focus()
      void this.#ask(button.textContent ?? '')
    })
    this.#bindControls()
    addEventListener('pagehide', () => this.#leave())
    onReturn(() => this.#return())
  }

  /** Enter sends, Shift+Enter breaks the line, Escape stops or closes. */
  #bindControls() {
    const { form, text, sheet, button } = this.#parts
    form.addEventListener('submit', (event) => {
      event.preventDefault()
      this.#send()
    })
    text.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || isComposing(event)) return
      event.preventDefault()
      this.#send()
    })
    // Beside the sheet too: it may cover what has the focus there.
    document.addEventListener('keydown', (event) => {
      const { key, target, defaultPrevented } = event
      if (key !== 'Escape' || defaultPrevented || isComposing(event) || !sheet.open) return
      const own = target instanceof Element ? target.closest('dialog, input, select') : null
      if (own !== null && !sheet.contains(own)) return
      event.preventDefault()
      this.#escape()
    })
    button('stop').addEventListener('click', () => this.#running?.abort())
    button('new').addEventListener('click', () => this.#startOver())
    button('close').addEventListener('click', () => this.#sheet.close())
    button('site').addEventListener('click', () => {
      this.discuss(null)
      text.focus()
    })
  }

  /** Shows turns that have ended. */
  #show(turns: readonly StoredTurn[]) {
    for (const kept of turns) {
      this.discuss(kept.item)
      this.#turns.at(-1)?.view.removeActions()
      const { question, answer, problem = '' } = kept
      const turn = { ...kept, problem, view: turnView(this.#parts.log, question, false) }
      this.#turns.push(turn)
      turn.view.show(answer)
      this.#end(turn)
    }
    this.#showStatus('')
    this.#showSuggestions()
  }

  /** Stops the answer, which cannot go on without the page, and stores what there is of it. */
  #leave() {
    if (!this.#running) return
    storeTurns(this.#turns)
    this.#running.abort()
    this.#setRunning(null)
  }

  /** Shows the turns that a later page of this tab may have stored, with its session. */
  #return() {
    const [item, turns] = [this.#item, storedTurns() ?? this.#turns]
    this.#turns = []
    this.#parts.log.replaceChildren()
    this.#parts.log.setAttribute('aria-busy', 'false')
    this.#access = chatAccess(this.#parts, this.#showStatus)
    this.#show(turns)
    this.discuss(item)
    if (this.#parts.sheet.open) void this.#access.prepare()
  }

  #showSuggestions() {
    this.#parts.suggestions.hidden = this.#turns.length > 0 || this.#item !== null
  }

  open() {
    this.#sheet.open()
    void this.#access.prepare()
  }

  /** @param item the item of the next question; null for the whole site */
  discuss(item: Item | null) {
    if (item?.key === this.#item?.key) return
    this.#item = item
    const title = item?.title ?? 'this site'
    const name = this.#parts.scope.querySelector('bdi')
    if (name) name.textContent = title
    this.#parts.button('site').hidden = item === null
    if (this.#turns.length > 0) divide(this.#parts.log, `About ${title}`)
    this.#showSuggestions()
    this.#showStatus(`The chat is about ${title}.`)
  }

  /**
   * Stops the answer, else closes the sheet beside another page or in its frame; not just after an answer, which may end
   * while the key is pressed to stop it.
   */
  #escape() {
    if (this.#running) this.#running.abort()
    else if (this.#sheet.isClosable && performance.now() - this.#endedAt > STOP_GRACE_MS) this.#sheet.close()
  }

  #send() {
    const question = this.#parts.text.value.trim()
    if (question === '' || this.#running) return
    this.#parts.text.value = ''
    void this.#ask(question)
  }

  /** @param replaced the turn that the answer replaces once it begins */
  async #ask(question: string, replaced: Turn | null = null) {
    const request = this.#request(question, replaced)
    const note = omissionsOf(request)
    this.#parts.note.textContent = note
    this.#parts.note.hidden = note === ''
    this.#turns.at(-1)?.view.removeActions()
    const view = turnView(this.#parts.log, question, replaced !== null)
    const turn = { item: this.#item, question, answer: '', problem: LEFT, view }
    if (replaced === null) this.#turns.push(turn)
    storeTurns(this.#turns)
    this.#showSuggestions()
    const controller = new AbortController()
    this.#setRunning(controller)
    this.#showStatus('Asking …')
    const problem = await this.#showAnswer(turn, replaced, request.body, controller.signal)
    // A new conversation has begun.
    if (this.#running !== controller) return
    this.#setRunning(null)
    if (!controller.signal.aborted) this.#endedAt = performance.now()
    if (replaced === null || turn.answer !== '')
      return this.#finish(turn, problem, 'The part received is kept.')
    turn.view.remove()
    this.#finish(replaced, problem, 'The previous answer is kept.')
  }

  #request(question: string, excluded: Turn | null): Replay {
    const turns = this.#turns.filter((turn) => turn !== excluded)
    return replayOf(
      turns.map((turn) => ({ ...turn, itemKey: turn.item?.key ?? null })),
      question,
      { itemKey: this.#item?.key ?? null, ...shownSort(), settings: this.#settings() },
    )
  }

  /**
   * Shows a turn as its events arrive.
   *
   * @returns the error message of the turn; empty if it succeeded
   */
  async #showAnswer(turn: Turn, replaced: Turn | null, body: string, signal: AbortSignal): Promise<string> {
    let ranTools = false
    try {
      for await (const { event, data } of this.#access.turn(body, signal)) {
        if (event === 'meta') await this.#access.onAdmitted(data.remaining)
        else if (event === 'tool') {
          ranTools = true
          const isDone = data.status === 'done'
          turn.view.tool(data.name, isDone, performance.now())
          this.#showStatus(isDone ? 'Thinking …' : `${TOOL_ACTIONS[data.name]} …`)
        } else if (event === 'delta') {
          if (turn.answer === '') this.#beginAnswer(turn, replaced)
          turn.answer += data.text
          turn.view.show(turn.answer)
        } else if (event === 'done') {
          if (data.degraded) turn.view.label(`degraded: ${degradedText(ranTools)}`)
          if (data.cached) turn.view.label('cached answer')
          return ''
        } else if (event === 'error') return failureMessage(data)
      }
      return CUT_OFF
    } catch (error) {
      return signal.aborted ? 'Stopped.' : this.#access.problemOf(error)
    }
  }

  /** Puts a turn in the place of the one whose question it asks again. */
  #beginAnswer(turn: Turn, replaced: Turn | null) {
    this.#showStatus('Answering …')
    if (replaced === null) return
    this.#turns = this.#turns.map((each) => (each === replaced ? turn : each))
    turn.view.replaceView(replaced.view)
  }

  /** @param keptNote note added to an error if there is an answer */
  #finish(turn: Turn, problem: string, keptNote: string) {
    turn.problem = problem !== '' && turn.answer !== '' ? `${problem} ${keptNote}` : problem
    storeTurns(this.#turns)
    this.#showStatus(turn.problem)
    this.#end(turn)
    void this.#access.prepare()
  }

  #end(turn: Turn) {
    const copyAction = { title: 'Copy', act: () => void copy(turn.answer).then(this.#showStatus) }
    const retryAction = { title: 'Retry', act: () => this.#retry(turn) }
    turn.view.end(turn.problem, turn.answer === '' ? [retryAction] : [copyAction, retryAction])
  }

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
    this.#turns = []
    storeTurns([])
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
