import { make } from './dom.js'

/** @typedef {ReturnType<typeof turnView>} TurnView */

/**
 * Adds a turn to the end of the log: the question, and the answer as it arrives.
 *
 * @param {HTMLElement} log
 * @param {string} question
 * @param {boolean} isRetry whether the log already shows the question, until {@link TurnView.replaceView}
 */
export function turnView(log, question, isRetry) {
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
  log.scrollTop = log.scrollHeight

  /** @type {Map<string, { line: HTMLElement, since: number }[]>} */
  const running = new Map()
  let frame = 0
  let pending = ''
  let isStreaming = true
  /** @type {((markdown: string) => DocumentFragment | string) | null} */
  let render = null
  void markdownRenderer().then((loaded) => {
    render = loaded
    paint()
  })

  /** @param {boolean} isBusy */
  function setBusy(isBusy) {
    for (const part of [answer, log]) part.setAttribute('aria-busy', String(isBusy))
  }

  function paint() {
    cancelAnimationFrame(frame)
    frame = 0
    if (!render) return
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80
    text.replaceChildren(render(isStreaming ? withoutHalfLink(pending) : pending))
    if (isAtEnd) log.scrollTop = log.scrollHeight
    if (!isStreaming) setBusy(false)
  }

  return {
    /** @param {string} markdown the whole answer so far */
    show(markdown) {
      pending = markdown
      frame ||= requestAnimationFrame(paint)
    },
    /**
     * @param {string} name
     * @param {boolean} isDone
     * @param {number} now time of a monotonic clock, in milliseconds
     */
    tool(name, isDone, now) {
      const open = running.get(name) ?? []
      running.set(name, open)
      const started = isDone ? open.shift() : undefined
      if (started) {
        started.line.textContent = secondsOf(now - started.since)
        return
      }
      const line = make('span', { className: 'took' }, 'reading …')
      tools.append(make('li', {}, make('code', {}, name), ' ', line))
      open.push({ line, since: now })
      log.scrollTop = log.scrollHeight
    },
    /** @param {string} label */
    label: (label) => labels.append(make('span', { className: 'label' }, label)),
    /**
     * Ends the turn.
     *
     * @param {string} problem error message; empty for none
     * @param {readonly { title: string, act: () => void }[]} actionList
     */
    end(problem, actionList) {
      for (const open of running.values()) for (const { line } of open) line.textContent = 'not finished'
      problemLine.textContent = problem
      isStreaming = false
      actions.replaceChildren(...actionList.map(({ title, act }) => button(title, act)))
      paint()
      log.scrollTop = log.scrollHeight
    },
    /** Removes the actions of this turn except Copy. */
    removeActions() {
      for (const offer of actions.querySelectorAll('button')) if (offer.textContent !== 'Copy') offer.remove()
    },
    remove: () => turn.remove(),
    /** @param {{ remove(): void }} old the earlier view of the same question */
    replaceView(old) {
      old.remove()
      turn.classList.remove('again')
    },
  }
}

/**
 * Loads the renderer of answers with the first question, since it is larger than the rest of the chat.
 *
 * @returns {Promise<(markdown: string) => DocumentFragment | string>} the text as it is if the renderer cannot be loaded
 */
async function markdownRenderer() {
  try {
    const { safeFragment } = await import('./chat-markdown.js')
    return safeFragment
  } catch {
    return (markdown) => markdown
  }
}

/**
 * Removes a link that has only begun from the end of a Markdown text.
 *
 * @param {string} markdown
 */
function withoutHalfLink(markdown) {
  return markdown.replace(/!?\[[^\]\n]*(?:\](?:\([^)\n]*)?)?$/, '')
}

/** @param {number} ms */
function secondsOf(ms) {
  return `${(ms / 1000).toFixed(ms < 1000 ? 2 : 1)} s`
}

/**
 * @param {string} title
 * @param {() => void} act
 */
function button(title, act) {
  const created = make('button', { type: 'button' }, title)
  created.addEventListener('click', act)
  return created
}

/**
 * Adds a line to the log that names the subject of the following turns.
 *
 * @param {HTMLElement} log
 * @param {string} text
 */
export function divide(log, text) {
  log.append(make('p', { className: 'divider' }, make('bdi', {}, text)))
  log.scrollTop = log.scrollHeight
}
