import {
  ALL_MARKS,
  CLOSING_LINE,
  END_MARK,
  MARKS_BY_PAIR,
  MARK_MAX_LENGTH,
  PART_OF_CLOSING_LINE,
  PART_OF_END_MARK,
  isEmptyTag,
  markReader,
  opensThoughts,
} from './thought-marks.ts'
import type { MarkReader, Marks } from './thought-marks.ts'

/**
 * Thoughts that engines leave in the content of an answer: between two marks at its start, such as `<think>…</think>`, or
 * up to a closing mark whose opening mark the prompt had already. Marks elsewhere in an answer, or in code, are text.
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

/**
 * @param isHeld true for a model that omits the opening mark: text is kept back until its thoughts end; without an end it
 *   is the answer
 */
export function thoughtFilter(isHeld = false): ThoughtFilter {
  let state: 'start' | 'thoughts' | 'answer' = 'start'
  let pending = ''
  let hasThought = false
  let hasLeaked = false
  let thoughts = thoughtReader(ALL_MARKS)
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
      if (state === 'thoughts') held = ''
      lines = answerLines(isHeld || hasThought)
    } else if (opened === undefined || opened.isHeader || isEmptyTag(mark)) close(text.slice(mark.length))
    else {
      pending = text.slice(mark.length)
      thoughts = thoughtReader(opened)
      state = 'thoughts'
    }
    return true
  }

  const filter = (isEnd: boolean): string => {
    for (;;) {
      if (state === 'start') {
        if (!begin(isEnd)) return ''
      } else if (state === 'thoughts') {
        if (held !== null) held += pending
        const rest = thoughts.push(pending, isEnd)
        pending = ''
        if (rest !== null) {
          held = null
          close(rest)
        } else if (isEnd && held !== null) {
          pending = held
          state = 'answer'
        } else return ''
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

/**
 * Finds the end of thoughts that have begun. Marks in code are quoted, and inner thoughts end with marks of their own. If
 * thoughts end in no other way, the first end of inner ones counts, whose opening mark was only mentioned, and before it
 * the first end in a fence that is never closed.
 */
function thoughtReader(marks: Marks): {
  /** Returns the text after the thoughts; null while they go on, and if they never end. */
  push(text: string, isEnd: boolean): string | null
} {
  const fence = fenceTracker()
  let depth = 1
  /** Text after the first end of inner thoughts. */
  let afterInner: string | null = null
  /** Text after the first end in the open fence. */
  let afterFenced: string | null = null
  let line = ''
  /** The part of the line that its reader did not get yet. */
  let unread = ''
  let reader = markReader(marks)
  /** True if the line may be a fence; null while its first characters do not decide it. */
  let mayBeFence: boolean | null = null

  const readText = (isWhole: boolean): string | null => {
    reader.add(unread)
    unread = ''
    const followed = follow(reader, isWhole, depth)
    depth = followed.depth
    afterInner ??= followed.afterInner
    return followed.rest
  }

  const readCode = (): void => {
    if (!fence.isOpen) afterFenced = null
    else if (afterFenced !== null) afterFenced += line
    else {
      const fenced = markReader(marks)
      fenced.add(line)
      afterFenced = follow(fenced, true, 1).rest
    }
  }

  return {
    push(text, isEnd) {
      const parts = text.split(/(?<=\n)/)
      for (const [index, part] of parts.entries()) {
        line += part
        unread += part
        if (afterInner !== null) afterInner += part
        const isWhole = part.endsWith('\n') || isEnd
        mayBeFence ??= FENCE_START.test(line) || (FENCE_BEGUN.test(line) ? null : false)
        const isCode = isWhole ? fence.isCode(line) : fence.isOpen || mayBeFence !== false
        const rest = isCode ? null : readText(isWhole)
        if (rest !== null) return rest + parts.slice(index + 1).join('')
        if (!isWhole) continue
        if (isCode) readCode()
        line = unread = ''
        reader = markReader(marks)
        mayBeFence = null
      }
      return isEnd ? (afterFenced ?? afterInner) : null
    },
  }
}

/**
 * Follows the next marks in thoughts.
 *
 * @param depth number of thoughts that are open
 * @returns the text after all of them, and the text after the first end of inner ones
 */
function follow(
  reader: MarkReader,
  isWhole: boolean,
  depth: number,
): { depth: number; rest: string | null; afterInner: string | null } {
  let afterInner: string | null = null
  for (let mark = reader.next(isWhole); mark !== null; mark = reader.next(isWhole)) {
    depth += mark === 'opening' ? 1 : -1
    if (depth === 0) return { depth, rest: reader.rest, afterInner }
    if (mark === 'closing') afterInner ??= reader.rest
  }
  return { depth, rest: null, afterInner }
}

const FENCE_START = /^\s*(?:```|~~~)/
/** The first characters of a line that may begin with it. */
const FENCE_BEGUN = /^\s*(?:`{0,2}|~{0,2})$/

/** Tells whether whole lines, given one after the other, belong to fenced code. */
function fenceTracker(): { isCode(line: string): boolean; readonly isOpen: boolean } {
  let fence = ''
  return {
    isCode(line) {
      if (fence === '') {
        const [, backquotes, tildes = ''] = /^\s*(?:(`{3,})[^`]*$|(~{3,}))/.exec(line) ?? []
        fence = backquotes ?? tildes
        return fence !== ''
      }
      const [, mark = ''] = /^\s*(`{3,}|~{3,})\s*$/.exec(line) ?? []
      if (mark.startsWith(fence)) fence = ''
      return true
    },
    get isOpen() {
      return fence !== ''
    },
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
  const fence = fenceTracker()
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
        if (isWhole && !fence.isCode(line)) {
          if (CLOSING_LINE.test(line) && !isOpened) return { text: output, isThought: true }
          isOpened ||= opensThoughts(line)
        }
        output += held
        held = ''
        if (isWhole) line = ''
      }
      return { text: output, isThought: false }
    },
  }
}

/** Returns a function that passes an answer on without the marks at its end, and the space after them. */
function endMarkFilter(): (text: string, isEnd: boolean) => string {
  /** Marks that are the end of the answer so far. */
  let marks = ''
  /** True after the tag that begins text which is struck through; `</s>` is its end then. */
  let hasStruck = false
  let last = ''
  let pending = ''
  return (text, isEnd) => {
    pending += text
    let output = ''
    while (pending !== '') {
      const [found] = END_MARK.exec(pending) ?? (marks === '' ? null : /^\s+/.exec(pending)) ?? []
      const mark = hasStruck && found === '</s>' ? undefined : found
      if (mark === undefined && !isEnd && PART_OF_END_MARK.test(pending)) break
      const [plain = ''] = mark === undefined ? (/^<?[^<]*/.exec(pending) ?? []) : []
      hasStruck ||= (last + plain).includes('<s>')
      last = (last + plain).slice(-2)
      if (mark === undefined) output += marks + plain
      marks = mark === undefined ? '' : marks + mark
      pending = pending.slice((mark ?? plain).length)
    }
    return output
  }
}
