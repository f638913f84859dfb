import { TOOL_ACTIONS } from '../../../../domain/agent/model-call.ts'
import type { ToolName } from '../../../../domain/agent/model-call.ts'
import {
  MESSAGES_READ,
  MESSAGE_MAX_LENGTH,
  INTERESTS_MAX,
  INTEREST_MAX_LENGTH,
} from '../../../../domain/agent/bounds.ts'
import type { Replay } from '../../../../domain/agent/conversation.ts'
import type { ChatSettings } from '../../../../domain/agent/chat-request.ts'
import { firstCodePoints } from '../../../../domain/text.ts'
import { make, onReturn, store, stored } from '../dom.ts'

export type TurnView = ReturnType<typeof turnView>

/**
 * Adds a turn to the end of the log: the question, and the answer as it arrives.
 *
 * @param isRetry whether the log already shows the question, until {@link TurnView.replaceView}
 */
export function turnView(log: HTMLElement, question: string, isRetry: boolean) {
  const you = make('span', { className: 'unseen' }, 'You: ')
  const questionBlock = make('div', { className: 'question', dir: 'auto' }, you, question)
  const tools = make('ul', { className: 'tools' })
  const text = make('div', { className: 'answer', dir: 'auto' })
  const labels = make('p', { className: 'labels' })
  const problemLine = make('p', { className: 'trouble' })
  const actions = make('p', { className: 'actions' })
  const heading = make('span', { className: 'unseen' }, 'Answer: ')
  const answer = make('div', { className: 'reply' }, heading, tools, text, labels, problemLine, actions)
  const turn = make('div', { className: isRetry ? 'turn again' : 'turn' }, questionBlock, answer)
  log.append(turn)
  setBusy(true)
  follow()

  const running: Map<ToolName, { line: HTMLElement; since: number }[]> = new Map()
  let frame = 0
  let pending = ''
  let isStreaming = true
  let render: ((markdown: string) => DocumentFragment | string) | null = null
  void markdownRenderer().then((loaded) => {
    render = loaded
    paint()
  })

  // Otherwise a screen reader repeats an answer with every frame.
  function setBusy(isBusy: boolean) {
    for (const part of [answer, log]) part.setAttribute('aria-busy', String(isBusy))
  }

  /** Scrolls down to the turn, at most until it begins at the upper edge: a long answer is read from its start. */
  function follow() {
    log.scrollTop += Math.max(0, turn.getBoundingClientRect().top - log.getBoundingClientRect().top - 8)
  }

  function isFollowed() {
    return log.scrollHeight - log.scrollTop - log.clientHeight < 80
  }

  function paint(isAtEnd = isFollowed()) {
    cancelAnimationFrame(frame)
    frame = 0
    if (render) text.replaceChildren(render(isStreaming ? withoutHalfLink(pending) : pending))
    if (isAtEnd) follow()
    if (render && !isStreaming) setBusy(false)
  }

  return {
    /** @param markdown the whole answer so far */
    show(markdown: string) {
      pending = markdown
      frame ||= requestAnimationFrame(() => paint())
    },
    /** @param now time of a monotonic clock, in milliseconds */
    tool(name: ToolName, isDone: boolean, now: number) {
      const open = running.get(name) ?? []
      running.set(name, open)
      const started = isDone ? open.shift() : undefined
      if (started) {
        started.line.textContent = secondsOf(now - started.since)
        return
      }
      const line = make('span', { className: 'took' }, '…')
      tools.append(make('li', {}, TOOL_ACTIONS[name], ' ', line))
      open.push({ line, since: now })
      follow()
    },
    label: (label: string) => labels.append(make('span', { className: 'label' }, label)),
    /** Ends the turn. @param problem error message; empty for none */
    end(problem: string, actionList: readonly { title: string; act: () => void }[]) {
      // An error and the actions may take many rows.
      const isAtEnd = isFollowed()
      for (const open of running.values()) for (const { line } of open) line.textContent = 'not finished'
      problemLine.textContent = problem
      isStreaming = false
      actions.replaceChildren(...actionList.map(({ title, act }) => button(title, act)))
      paint(isAtEnd)
    },
    /** Removes the actions of this turn except Copy. */
    removeActions() {
      for (const offer of actions.querySelectorAll('button')) if (offer.textContent !== 'Copy') offer.remove()
    },
    remove: () => turn.remove(),
    /** @param old the earlier view of the same question */
    replaceView(old: { remove(): void }) {
      old.remove()
      turn.classList.remove('again')
    },
  }
}

/**
 * Loads the renderer of answers with the first question, since it is larger than the rest of the chat.
 *
 * @returns the text as it is if the renderer cannot be loaded
 */
async function markdownRenderer(): Promise<(markdown: string) => DocumentFragment | string> {
  try {
    const { safeFragment } = await import('./chat-markdown.ts')
    return safeFragment
  } catch {
    return (markdown) => markdown
  }
}

/** Removes a link that has only begun from the end of a Markdown text. */
function withoutHalfLink(markdown: string) {
  return markdown.replace(/!?\[[^\]\n]*(?:\](?:\([^)\n]*)?)?$/, '')
}

function secondsOf(ms: number) {
  return `${(ms / 1000).toFixed(ms < 1000 ? 2 : 1)} s`
}

function button(title: string, act: () => void) {
  const created = make('button', { type: 'button' }, title)
  created.addEventListener('click', act)
  return created
}

/** Adds a line to the log that names the subject of the following turns. */
export function divide(log: HTMLElement, text: string) {
  log.append(make('p', { className: 'divider' }, make('bdi', {}, text)))
  log.scrollTop = log.scrollHeight
}

/** Earlier turns of a request. */
const TURNS_READ = Math.floor((MESSAGES_READ - 1) / 2)

/** Describes the parts of the conversation that are not sent; empty if all are. */
export function omissionsOf({ leftOut, questionCut, earlierCut }: Replay) {
  const shortened = earlierCut + Number(questionCut)
  const parts = []
  if (leftOut > 0) {
    parts.push(
      `${leftOut} older ${leftOut === 1 ? 'turn was' : 'turns were'} not sent: the chat reads at most the last ${TURNS_READ} turns and 32 KiB.`,
    )
  }
  if (shortened > 0) {
    parts.push(
      `Only the first ${MESSAGE_MAX_LENGTH.toLocaleString('en')} characters of ${shortened} ${shortened === 1 ? 'message' : 'messages'} were sent.`,
    )
  }
  return parts.join(' ')
}

export function chatParts() {
  const sheet = partById('chat-sheet', HTMLDialogElement)
  return {
    sheet,
    log: partById('chat-log', HTMLElement),
    scope: partById('chat-scope', HTMLElement),
    suggestions: partById('chat-suggestions', HTMLElement),
    human: partById('chat-human', HTMLElement),
    status: partById('chat-status', HTMLElement),
    note: partById('chat-note', HTMLElement),
    quota: partById('chat-quota', HTMLElement),
    form: partById('chat-form', HTMLFormElement),
    text: partById('chat-text', HTMLTextAreaElement),
    settings: partById('chat-settings', HTMLFormElement),
    button: (name: string) => {
      const element = sheet.querySelector(`button[data-chat="${name}"]`)
      if (!(element instanceof HTMLButtonElement)) throw new Error(`the page has no button ${name}`)
      return element
    },
  }
}

function partById<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const element = document.getElementById(id)
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`)
  return element
}

/**
 * Opens and closes the sheet: beside the page on a wide screen, as a modal dialog on a narrow one. On the page of the chat
 * it is a part of the page.
 */
export function sheetControls(sheet: HTMLDialogElement, text: HTMLTextAreaElement) {
  const wideScreen = matchMedia('(min-width: 60rem)')
  let opener: Element | null = null
  const isInside = sheet.classList.contains('inside')
  const show = () => {
    if (wideScreen.matches || isInside) sheet.show()
    else sheet.showModal()
  }
  wideScreen.addEventListener('change', () => {
    if (!sheet.open || isInside) return
    const focused = document.activeElement
    sheet.close()
    show()
    // A dialog that is shown takes the focus to its first button.
    if (focused instanceof HTMLElement) focused.focus()
  })
  return {
    /** False on the page of the chat, which has nothing else to show; a frame of another page is closed. */
    isClosable: !isInside || 'themeFixed' in document.documentElement.dataset,
    open() {
      if (!sheet.open) {
        opener = document.activeElement
        show()
      }
      text.focus()
    },
    /** Closes the sheet; the focus goes back to what opened it, unless it is elsewhere on the page. */
    close() {
      const isElsewhere = !sheet.contains(document.activeElement) && document.activeElement !== document.body
      sheet.close()
      if (opener instanceof HTMLElement && !isElsewhere) opener.focus()
    },
  }
}

const KEY = 'dash-chat-settings'

/** Reads the settings, which are stored in this browser only. If storage is forbidden, they last as long as the page. */
export function chatSettings(form: HTMLFormElement): () => Partial<ChatSettings> {
  const readAgain = () => fill(form, Object(stored(KEY)))
  readAgain()
  onReturn(readAgain)
  form.addEventListener('change', () => store(KEY, textsOf(form)))
  form.addEventListener('reset', () => store(KEY, null))
  form.addEventListener('submit', (event) => event.preventDefault())
  return () => {
    const { interests = '', ...values } = textsOf(form)
    const interestList = interests.split(',').map((word) => firstCodePoints(word.trim(), INTEREST_MAX_LENGTH))
    return { ...values, interests: interestList.filter((word) => word !== '').slice(0, INTERESTS_MAX) }
  }
}

function textsOf(form: HTMLFormElement): Record<string, string> {
  const fields = [...new FormData(form)]
  return Object.fromEntries(
    fields.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
}

function fill(form: HTMLFormElement, values: Record<string, unknown>) {
  for (const field of form.elements) {
    const isField =
      field instanceof HTMLInputElement ||
      field instanceof HTMLTextAreaElement ||
      field instanceof HTMLSelectElement
    const value = isField ? values[field.name] : undefined
    if (!isField || typeof value !== 'string') continue
    const isChoice = field instanceof HTMLSelectElement
    if (!isChoice || [...field.options].some((option) => option.value === value)) field.value = value
  }
}
