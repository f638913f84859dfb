import type { TextFilter } from './answer-text.ts'
import {
  ALL_MARKS,
  CLOSING_LINE,
  END_MARK,
  MARKS_BY_PAIR,
  MARK_MAX_LENGTH,
  OPENING_IN_TEXT,
  PART_OF_CLOSING_LINE,
  PART_OF_END_MARK,
} from './thought-marks.ts'

/**
 * Thoughts that engines leave in the content of an answer: between two marks at its start, such as `<think>…</think>`, or
 * up to a closing mark whose opening mark the prompt had already. Marks elsewhere in an answer, or in code, are text.
 * Within thoughts the first closing mark counts that is not between backquotes.
 */

/** A filter that removes thoughts, and keeps back what may belong to them. */
export interface ThoughtFilter extends TextFilter {
  /** True if the text returned so far turned out to be thoughts. */
  readonly hasLeaked: boolean
}

/**
 * @param isHeld true for a model that omits the opening mark: text is kept back until its thoughts end; without an end it
 *   is the answer
 */
export function thoughtFilter(isHeld = false): ThoughtFilter {
  let state: 'start' | 'thoughts' | 'answer' = 'start'
  let pending = ''
  let hasThought = false
  let hasLeaked = false
  let closing = ALL_MARKS.end
  /** Text that is the answer if it has no thoughts; null within known ones. */
  let held: string | null = null
  let lines = answerLines(isHeld)
  const withoutEnd = endMarkFilter()

  const close = (rest: string): void => {
    pending = rest
    hasThought = true
    state = 'start'
  }

  /** Decides what the text at the start is; false while later text may change it. */
  const begin = (isEnd: boolean): boolean => {
    const text = pending.trimStart()
    const start = text.slice(0, MARK_MAX_LENGTH)
    if (!isEnd && start.length < MARK_MAX_LENGTH && ALL_MARKS.begun.test(start)) return false
    const opened = MARKS_BY_PAIR.find(({ opening }) => opening.test(start))
    const [mark] = (opened?.opening ?? ALL_MARKS.closing).exec(start) ?? []
    if (mark === undefined) {
      if (hasThought) pending = text
      state = isHeld && !hasThought ? 'thoughts' : 'answer'
      if (state === 'thoughts') held = pending
      lines = answerLines(isHeld || hasThought)
    } else if (opened === undefined || opened.isHeader || mark.endsWith('/>')) close(text.slice(mark.length))
    else {
      pending = text.slice(mark.length)
      closing = opened.end
      state = 'thoughts'
    }
    return true
  }

  /** Looks for the end of the thoughts; false while they go on. */
  const think = (isEnd: boolean): boolean => {
    const end = closing.exec(pending)
    const after = end === null ? -1 : end.index + end[0].length
    // Another character can lengthen a mark at the end, or show that it stands between backquotes.
    if (after >= 0 && (isEnd || after < pending.length)) {
      held = null
      close(pending.slice(after))
      return true
    }
    pending = pending.slice(-MARK_MAX_LENGTH)
    if (!isEnd || held === null) return false
    pending = held
    state = 'answer'
    return true
  }

  const filter = (isEnd: boolean): string => {
    for (;;) {
      if (state === 'start') {
        if (!begin(isEnd)) return ''
      } else if (state === 'thoughts') {
        if (!think(isEnd)) return ''
      } else {
        const { text, isThought } = lines.push(pending, isEnd)
        pending = ''
        hasLeaked ||= isThought
        return withoutEnd(text, isEnd)
      }
    }
  }

  return {
    push(chunk) {
      pending += chunk
      if (held !== null) held += chunk
      return filter(false)
    },
    end: () => filter(true),
    get hasLeaked() {
      return hasLeaked
    },
  }
}

/** The answer within a whole text of a model. Text before a closing mark without an opening one counts as thoughts. */
export function withoutThoughts(text: string): string {
  const filter = thoughtFilter(true)
  return filter.push(text) + filter.end()
}

/** Returns a function that tells whether whole lines, given one after the other, belong to fenced code. */
function fenceTracker(): (line: string) => boolean {
  let fence = ''
  return (line) => {
    if (fence === '') {
      const [, backquotes, tildes = ''] = /^\s*(?:(`{3,})[^`]*$|(~{3,}))/.exec(line) ?? []
      fence = backquotes ?? tildes
      return fence !== ''
    }
    const [, mark = ''] = /^\s*(`{3,}|~{3,})\s*$/.exec(line) ?? []
    if (mark.startsWith(fence)) fence = ''
    return true
  }
}

/**
 * Passes an answer on, and finds a line of a closing mark alone that nothing opened, outside code.
 *
 * @param isOpen true if a closing mark proves nothing: the thoughts of the answer are known
 */
function answerLines(isOpen: boolean): {
  push(text: string, isEnd: boolean): { text: string; isThought: boolean }
} {
  let isOpened = isOpen
  const isFenced = fenceTracker()
  let line = ''
  /** The part of the line that was not passed on. */
  let held = ''
  return {
    push(text, isEnd) {
      let output = ''
      for (const part of text.split(/(?<=\n)/)) {
        line += part
        held += part
        const isWhole = part.endsWith('\n') || isEnd
        if (!isWhole && line.length < MARK_MAX_LENGTH && PART_OF_CLOSING_LINE.test(line)) continue
        if (isWhole && !isFenced(line)) {
          if (CLOSING_LINE.test(line) && !isOpened) return { text: output, isThought: true }
          isOpened ||= OPENING_IN_TEXT.test(line)
        }
        output += held
        held = ''
        if (isWhole) line = ''
      }
      return { text: output, isThought: false }
    },
  }
}

/** Elements whose end is a mark unless the answer has their beginning: `<s>` strikes text through. */
const ELEMENTS = /<(s|answer|response)>/gi
const ELEMENT_MAX_LENGTH = '<response>'.length

/** Returns a function that passes an answer on without the marks at its end, and the space after them. */
function endMarkFilter(): (text: string, isEnd: boolean) => string {
  /** Marks that are the end of the answer so far. */
  let marks = ''
  /** The ends of elements that the answer began. */
  const ends = new Set<string>()
  let last = ''
  let pending = ''
  return (text, isEnd) => {
    pending += text
    let output = ''
    while (pending !== '') {
      const [found = ''] = END_MARK.exec(pending) ?? (marks === '' ? null : /^\s+/.exec(pending)) ?? []
      const mark = found === '' || ends.has(found.toLowerCase()) ? undefined : found
      if (mark === undefined && !isEnd && PART_OF_END_MARK.test(pending)) break
      const [plain = ''] = mark === undefined ? (/^<?[^<]*/.exec(pending) ?? []) : []
      const seen = last + plain
      for (const [, name = ''] of seen.matchAll(ELEMENTS)) ends.add(`</${name.toLowerCase()}>`)
      last = seen.slice(-ELEMENT_MAX_LENGTH)
      if (mark === undefined) output += marks + plain
      marks = mark === undefined ? '' : marks + mark
      pending = pending.slice((mark ?? plain).length)
    }
    return output
  }
}
