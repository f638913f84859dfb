import { LINE_MAX_LENGTH, codeLines } from './code-lines.ts'

/**
 * Finds the code in Markdown while it arrives: code spans, fences and indented code. Only code that every CommonMark
 * and GFM reader takes for code counts; in doubt there is none (docs/decisions/0031-untrusted-text.md).
 */
export interface CodeRegions {
  /** Returns the length of the code at a place of the text; null if none begins there or the code has ended. */
  codeAt(text: string, at: number, isEnd: boolean): number | 'undecided' | null
  /** Length of the run of marks at a place, which belong together even if they begin no code. */
  runAt(text: string, at: number): number
  /** Records text outside code as it is shown, at most one line. */
  pass(shown: string): void
}

/** Longest text without an empty line that is examined. */
const PARAGRAPH_MAX_LENGTH = 8_000

/** Stands for a code span in the paragraph. */
const SPAN = '\u0000'
/** Stands for a backquote that no reader takes for code. */
const PLAIN_MARK = '\u0001'

export function codeRegions(): CodeRegions {
  const classify = codeLines()
  /** False once readers may disagree about what is code. */
  let isAgreed = true
  let line: 'start' | 'code' | 'text' = 'start'
  /** The text since the last empty line or the start of the block, with marks for code spans. */
  let paragraph = ''
  /** True if a bracket before the paragraph may begin a definition. */
  let wasBracketOpen = false
  /** True if the run of backquotes at this place begins no code for any reader. */
  let isPlainRun = false

  /** True if the last bracket is an opening one at the start of a line. */
  const isBracketOpen = (): boolean => {
    const text = paragraph.replace(/\\[^\n]/g, '')
    return /[[\]]/.test(text) ? /(?:^|\n)[ \t>*+\-\d.)]*\[[^[\]]*$/.test(text) : wasBracketOpen
  }

  const beginParagraph = (): void => {
    wasBracketOpen = isBracketOpen()
    paragraph = ''
  }

  const span = (rest: string, run: string, isEnd: boolean): number | 'undecided' | null => {
    isPlainRun = false
    if (/(?<!\\)(?:\\\\)*\\$/.test(paragraph)) {
      isPlainRun = run.length === 1
      return null
    }
    const context = contextOf(paragraph)
    if (context === null) return null
    const { text, end } = restOfParagraph(paragraph, rest, isEnd)
    const wait = text.length > LINE_MAX_LENGTH ? null : 'undecided'
    const length = spanLength(text, run)
    if (length === null || (length === text.length && end === 'open')) {
      if (end === 'open') return wait
      isPlainRun = end === 'known'
      return null
    }
    const isBarred = endsCell(paragraph, rest, length, isEnd)
    if (isBarred !== false) return isBarred === 'undecided' ? wait : null
    if (context === 'label') {
      const isInLabel = endsInLabel(text, length, end)
      if (isInLabel !== true) return isInLabel === 'undecided' ? wait : null
    }
    paragraph += SPAN
    return length
  }

  return {
    codeAt(text, at, isEnd) {
      const rest = text.slice(at)
      if (!isAgreed || rest === '') return null
      if (line === 'start') {
        const kind = classify(rest, isEnd, isBracketOpen())
        if (kind === 'undecided') return kind
        if (kind === 'unknown') {
          isAgreed = false
          return null
        }
        if (kind !== 'text') beginParagraph()
        line = kind === 'code' ? 'code' : 'text'
      }
      if (line === 'code') {
        const end = rest.indexOf('\n')
        if (end !== -1) line = 'start'
        return end === -1 ? rest.length : end + 1
      }
      const run = runOf(text, at)
      if (!run.startsWith('`')) return null
      if (run.length < rest.length || isEnd) return span(rest, run, isEnd)
      if (run.length <= LINE_MAX_LENGTH) return 'undecided'
      isAgreed = false
      return null
    },
    runAt: (text, at) => runOf(text, at).length,
    pass(shown) {
      if (!isAgreed) return
      paragraph += isPlainRun ? shown.replaceAll('`', PLAIN_MARK) : shown
      isPlainRun = false
      if (shown.endsWith('\n')) line = 'start'
      if (paragraph.length <= PARAGRAPH_MAX_LENGTH) return
      paragraph = '`'
      wasBracketOpen = true
    },
  }
}

function runOf(text: string, at: number): string {
  return /^(?:`+|~+)/.exec(text.slice(at))?.[0] ?? ''
}

/** The target of a link whose end every reader sees. */
const PLAIN_TARGET =
  /\]\([ \t\n]{0,8}https?:\/\/(?:[^\s<>()[\]"'`\\]|\([^\s<>()[\]"'`\\]*\))*(?: "[^"`\\\n]*")?\)/gi
const PLAIN_LABEL = /\[[^[\]\\]*\]/g

/** Matches text whose last word may be an address that includes a run of backquotes behind it. */
const IN_ADDRESS = /(?::\/|www\.)[^ \t\n]*$/i

/**
 * The place of a run of backquotes behind this text of a paragraph: in plain text, or in the label of a link. Null if it
 * may not begin a code span.
 */
function contextOf(paragraph: string): 'text' | 'label' | null {
  if (paragraph.includes('`') || /<[^ \t\n]*$/.test(paragraph) || IN_ADDRESS.test(paragraph)) return null
  const rest = paragraph.replace(PLAIN_TARGET, ']')
  if (rest.includes('](')) return null
  const labels = rest.replace(PLAIN_LABEL, '').split('[').length - 1
  return labels === 0 ? 'text' : labels === 1 ? 'label' : null
}

/** A line that certainly continues a paragraph, and one that certainly begins another block. */
const CONTINUATION = /^ {0,3}(?![>*+\-#=_~`|:<[]|\d{1,9}(?:[.)]|$))\S/
const INDENT = /^ *(?:(?:[-+*]|\d{1,9}[.)]) +)*/
const NEW_BLOCK = /^ {0,3}(?:#{1,6} +\S|[-+*] +[^ \-*+]|1[.)] +\S)/
const ITEM = /^ *(?:[-+*]|\d{1,9}[.)]) /

/** `known`: the paragraph ends with the text. `open`: more text must arrive. `doubtful`: it may continue. */
interface RestOfParagraph {
  text: string
  end: 'known' | 'open' | 'doubtful'
}

/** The rest of a paragraph in a text. */
function restOfParagraph(paragraph: string, rest: string, isEnd: boolean): RestOfParagraph {
  const [marker] = ITEM.exec(paragraph) ?? []
  const [indent = ''] = INDENT.exec(paragraph) ?? []
  const isQuoted = paragraph.startsWith('>', indent.length)
  let length = 0
  for (;;) {
    length = rest.indexOf('\n', length)
    if (length === -1) return { text: rest, end: isEnd ? 'known' : 'open' }
    const text = rest.slice(0, length)
    length += 1
    const [next = ''] = /^[^\n]*/.exec(rest.slice(length)) ?? []
    const isPart = !isEnd && length + next.length === rest.length
    if (/^[ \t]*$/.test(next)) return { text, end: isPart ? 'open' : 'known' }
    const isSibling = ITEM.exec(next)?.[0].replace(/\d+/, '') === marker?.replace(/\d+/, '')
    if (isHeading(paragraph) || NEW_BLOCK.test(next) || (marker !== undefined && isSibling))
      return { text, end: 'known' }
    const isContinued =
      !isQuoted && next.startsWith(' '.repeat(indent.length)) && CONTINUATION.test(next.slice(indent.length))
    if (!isContinued) return { text, end: isPart && next.length < 20 ? 'open' : 'doubtful' }
  }
}

function isHeading(paragraph: string): boolean {
  return /^ {0,3}#{1,6} /.test(paragraph)
}

/** The length of the code span that a run begins; null without a run that closes it. */
function spanLength(text: string, run: string): number | null {
  for (const { 0: marks, index } of text.slice(run.length).matchAll(/`+/g))
    if (marks.length === run.length) return run.length + index + run.length
  return null
}

const DELIMITER_ROW = /^[ \t>]*[-:|][-:| \t]*$/

/** True if a bar within a code span may end the cell of a table. */
function endsCell(paragraph: string, rest: string, length: number, isEnd: boolean): boolean | 'undecided' {
  const span = rest.slice(0, length)
  if (!/(?<!\\)(?:\\\\)*\|/.test(span)) return false
  if (
    span.includes('\n') ||
    paragraph
      .split('\n')
      .slice(0, -1)
      .some((line) => DELIMITER_ROW.test(line))
  )
    return true
  const end = rest.indexOf('\n', length)
  // A row of a table may begin with a bar, and the text may go on after its end.
  if (end === -1) return isEnd ? /(?:^|\n)[ \t>]*\|[^\n]*$/.test(paragraph) : 'undecided'
  const [next = ''] = /^[^\n]*/.exec(rest.slice(end + 1)) ?? []
  if (!isEnd && end + 1 + next.length === rest.length && /^[ \t>\-:|]*$/.test(next)) return 'undecided'
  return DELIMITER_ROW.test(next)
}

/** True if every reader finds a code span in a label: some look for the end of the label first. */
function endsInLabel(text: string, length: number, end: RestOfParagraph['end']): boolean | 'undecided' {
  if (/[[\]]/.test(text.slice(0, length))) return false
  const [label = ''] = /^[^`[\]\\\n]*/.exec(text.slice(length)) ?? []
  const next = text[length + label.length]
  if (next === ']') return true
  if (text.includes(']', length) || end === 'doubtful') return false
  return end === 'known' ? true : 'undecided'
}
