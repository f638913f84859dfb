/**
 * Thoughts that engines leave in the content of an answer: `<think>…</think>` at its start, or text up to a `</think>`
 * whose opening tag the prompt had already. Tags elsewhere in an answer, or in code, are text.
 */

/** A streaming filter that removes thoughts. The result does not depend on where the text is split into chunks. */
export interface ThoughtFilter {
  /** Returns the text of the answer so far; keeps back what may belong to thoughts. */
  push(chunk: string): string
  /** Returns the remaining text. */
  end(): string
  /** True if the text returned so far turned out to be thoughts. */
  readonly hasLeaked: boolean
}

const OPENING = /^\s*<(think|thinking|thought)>/i
const CLOSING = /^\s*<\/(?:think|thinking|thought)>/i
const TAG_MAX_LENGTH = '</thinking>'.length
/** A part of a tag at the start of a text. */
const PART_OF_TAG = /^\s*(?:<\/?(?:t(?:h(?:i(?:n(?:k(?:i(?:ng?)?)?)?)?|o(?:u(?:g(?:ht?)?)?)?)?)?)?)?$/i
/** The same at the start of a line. */
const PART_OF_CLOSING_LINE = /^ {0,3}(?:<(?:\/(?:t[a-z]{0,7})?)?|<\/t[a-z]{0,7}>[ \t\r]*)?$/i
const CLOSING_LINE = /^ {0,3}<\/(?:think|thinking|thought)>\s*$/i
const ANY_OPENING = /<(?:think|thinking|thought)>/i
const ANY_CLOSING = /<\/(?:think|thinking|thought)>/i

/**
 * @param isHeld true for a model that omits the opening tag: text is kept back until its thoughts end; without an end it
 *   is the answer
 */
export function thoughtFilter(isHeld = false): ThoughtFilter {
  let state: 'start' | 'opened' | 'held' | 'answer' = 'start'
  let closing = /^/
  let pending = ''
  let hasThought = false
  let hasLeaked = false
  let lines = answerLines(isHeld)

  const close = (rest: string): void => {
    pending = rest
    hasThought = true
    state = 'start'
  }

  /** Decides what the text at the start is; false while later text may change it. */
  const begin = (isEnd: boolean): boolean => {
    const [opening, tag = ''] = OPENING.exec(pending) ?? []
    const [unopened] = CLOSING.exec(pending) ?? []
    if (opening !== undefined) {
      pending = pending.slice(opening.length)
      closing = new RegExp(`</${tag}>`, 'i')
      state = 'opened'
    } else if (unopened !== undefined) close(pending.slice(unopened.length))
    else if (!isEnd && PART_OF_TAG.test(pending)) return false
    else {
      if (hasThought) pending = pending.trimStart()
      state = isHeld && !hasThought ? 'held' : 'answer'
      lines = answerLines(isHeld || hasThought)
    }
    return true
  }

  const filter = (isEnd: boolean): string => {
    for (;;) {
      if (state === 'start') {
        if (!begin(isEnd)) return ''
      } else if (state === 'opened') {
        const { index, 0: tag = '' } = closing.exec(pending) ?? {}
        if (index === undefined) {
          pending = isEnd ? '' : pending.slice(-TAG_MAX_LENGTH)
          return ''
        }
        close(pending.slice(index + tag.length))
      } else if (state === 'held') {
        // Only a whole line shows whether the tag is in a code span.
        const end = endOfThoughts(isEnd ? pending : pending.slice(0, pending.lastIndexOf('\n') + 1))
        if (end !== null) close(pending.slice(end))
        else if (isEnd) state = 'answer'
        else return ''
      } else {
        const { text, isThought } = lines.push(pending, isEnd)
        pending = ''
        hasLeaked ||= isThought
        return text
      }
    }
  }

  return {
    push(chunk) {
      pending += chunk
      return filter(false)
    },
    end: () => filter(true),
    get hasLeaked() {
      return hasLeaked
    },
  }
}

/** The answer within a whole text of a model. Text before a closing tag without an opening one counts as thoughts. */
export function withoutThoughts(text: string): string {
  const filter = thoughtFilter(true)
  return filter.push(text) + filter.end()
}

/** Returns the place after the first closing tag outside code; null without one. */
function endOfThoughts(text: string): number | null {
  const fence = fenceTracker()
  let start = 0
  for (const line of text.split('\n')) {
    const { index = -1, 0: tag = '' } = ANY_CLOSING.exec(withoutCode(line)) ?? {}
    if (!fence.isCode(line) && index !== -1) return start + index + tag.length
    start += line.length + 1
  }
  return null
}

/** Blanks out code spans within a line. */
function withoutCode(line: string): string {
  return line.replace(/(`{1,3})[^`]+\1/g, (code) => ' '.repeat(code.length))
}

/** Tells whether whole lines, given one after the other, belong to fenced code. */
function fenceTracker(): { isCode(line: string): boolean } {
  let fence = ''
  return {
    isCode(line) {
      const [, mark = ''] = /^\s*(`{3,}|~{3,})/.exec(line) ?? []
      if (fence === '') {
        fence = mark
        return mark !== ''
      }
      if (mark.startsWith(fence)) fence = ''
      return true
    },
  }
}

/**
 * Passes an answer on, and finds a line of a closing tag alone that nothing opened, outside code.
 *
 * @param isOpen true if a closing tag proves nothing: the thoughts of the answer are known
 */
function answerLines(isOpen: boolean): {
  push(text: string, isEnd: boolean): { text: string; isThought: boolean }
} {
  let isOpened = isOpen
  const fence = fenceTracker()
  let line = ''
  /** Length of the part of the line that was passed on. */
  let passed = 0
  return {
    push(text, isEnd) {
      let output = ''
      for (const part of text.split(/(?<=\n)/)) {
        line += part
        const isWhole = line.endsWith('\n') || isEnd
        if (!isWhole && PART_OF_CLOSING_LINE.test(line)) continue
        if (isWhole && !fence.isCode(line)) {
          if (CLOSING_LINE.test(line) && !isOpened) return { text: output, isThought: true }
          isOpened ||= ANY_OPENING.test(withoutCode(line))
        }
        output += line.slice(passed)
        passed = isWhole ? 0 : line.length
        if (isWhole) line = ''
      }
      return { text: output, isThought: false }
    },
  }
}
