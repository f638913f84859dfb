/**
 * Finds the code in Markdown while it arrives: code spans within a line, and fences. Only code that every CommonMark and
 * GFM reader takes for code counts; in doubt there is none (docs/decisions/0031-untrusted-text.md).
 */
export interface CodeRegions {
  /**
   * Returns the length of the code at a place of the text, or that it depends on later text. 0: no code begins there, or
   * the code has ended.
   */
  lengthAt(text: string, at: number, isEnd: boolean): number | 'undecided'
  /** Length of the run of marks at a place, which belong together even if they begin no code. */
  runAt(text: string, at: number): number
  /** Records text outside code as it is shown. */
  pass(shown: string): void
}

/** Longest line to wait for before it can be code. */
const LINE_MAX_LENGTH = 1_000

/** Longest text without an empty line that is examined. */
const PARAGRAPH_MAX_LENGTH = 8_000

interface Fence {
  mark: string
  length: number
  indent: number
  /** True if the current line has more text, which is code. */
  isWithinLine: boolean
}

/** Stands for a code span in the paragraph. */
const SPAN = '\u0000'

export function codeRegions(): CodeRegions {
  let fence: Fence | null = null
  /** False once readers may disagree about what is code. */
  let isAgreed = true
  /** The text since the last empty line, with marks for code spans. */
  let paragraph = ''
  let isAfterEmptyLine = true
  /** True if the last bracket before the paragraph was an opening one. */
  let wasBracketOpen = false

  const isBracketOpen = (): boolean => {
    const brackets = paragraph.replace(/\\[^\n]/g, '').replace(/[^[\]]/g, '')
    return brackets === '' ? wasBracketOpen : brackets.endsWith('[')
  }

  const disagree = (): 0 => {
    isAgreed = false
    fence = null
    return 0
  }

  /** The length of the line of a fence, with its end. */
  const fenceLine = (opened: Fence, rest: string, isEnd: boolean): number | 'undecided' => {
    const end = rest.indexOf('\n')
    const isWhole = end !== -1 || isEnd
    const line = end === -1 ? rest : rest.slice(0, end)
    const length = end === -1 ? rest.length : end + 1
    if (opened.isWithinLine) {
      opened.isWithinLine = end === -1
      return length
    }
    const [marksAlone, indent = '', marks = '', spaces = ''] = /^([ \t]*)([`~]*)([ \t]*)$/.exec(line) ?? []
    if (marksAlone !== undefined && !isWhole) return line.length > LINE_MAX_LENGTH ? disagree() : 'undecided'
    if (marksAlone !== undefined && marks === '') return length
    if (marks.startsWith(opened.mark.repeat(opened.length))) {
      // A list may have ended: the line then opens another fence. Readers differ about other marks and tabs.
      const isClosing =
        indent === ' '.repeat(opened.indent) && new Set(marks).size === 1 && !spaces.includes('\t')
      if (!isClosing) return disagree()
      fence = null
      paragraph = ''
      return length
    }
    if (!line.startsWith(' '.repeat(opened.indent))) return disagree()
    opened.isWithinLine = end === -1
    return length
  }

  /** The length of the line that opens a fence; null if it opens none. */
  const openingLine = (rest: string, run: string, isEnd: boolean): number | 'undecided' | null => {
    const head = paragraph.slice(paragraph.lastIndexOf('\n') + 1)
    if (run.length < 3 || !/^[ \t>*+\-\d.)]*$/.test(head)) return null
    const end = rest.indexOf('\n')
    if (end === -1 && !isEnd) return rest.length > LINE_MAX_LENGTH ? disagree() : 'undecided'
    const info = rest.slice(run.length, end === -1 ? undefined : end)
    const mark = run.slice(0, 1)
    if (mark === '`' && info.includes('`')) return null
    const isPlain = /^ *$/.test(head) && (head.length <= 3 || isAfterEmptyLine)
    // A bracket could begin a definition that includes the fence, and a bar a table.
    if (!isPlain || isBracketOpen() || /[!<\]@&:|]/.test(info)) return disagree()
    fence = { mark, length: run.length, indent: head.length, isWithinLine: end === -1 }
    return end === -1 ? rest.length : end + 1
  }

  /** The length of a code span. */
  const span = (rest: string, run: string, isEnd: boolean): number | 'undecided' => {
    const context = contextOf(paragraph)
    if (context === null) return 0
    const isUnfinished = (length: number): boolean => length === rest.length && !isEnd
    const [inside = ''] = /^[^`\n]*/.exec(rest.slice(run.length)) ?? []
    const closing = runOf(rest, run.length + inside.length)
    const length = run.length + inside.length + closing.length
    if (isUnfinished(length)) return length > LINE_MAX_LENGTH ? 0 : 'undecided'
    // A bar could end the cell of a table.
    if (closing !== run || inside.includes('|')) return 0
    if (context === 'label') {
      if (/[[\]]/.test(inside)) return 0
      // Some readers look for the end of a label first, and then take an open run behind the span for its end.
      const [label = ''] = /^[^`[\]\\\n]*/.exec(rest.slice(length)) ?? []
      const end = length + label.length
      if (isUnfinished(end)) return end > LINE_MAX_LENGTH ? 0 : 'undecided'
      if (rest[end] !== ']') return 0
    }
    paragraph += SPAN
    return length
  }

  return {
    lengthAt(text, at, isEnd) {
      if (!isAgreed) return 0
      const rest = text.slice(at)
      if (fence !== null) return rest === '' ? 0 : fenceLine(fence, rest, isEnd)
      const run = runOf(text, at)
      if (run === '') return 0
      if (run.length === rest.length && !isEnd) return run.length > LINE_MAX_LENGTH ? disagree() : 'undecided'
      const opening = openingLine(rest, run, isEnd)
      if (opening !== null) return opening
      return run.startsWith('`') ? span(rest, run, isEnd) : 0
    },
    runAt: (text, at) => runOf(text, at).length,
    pass(shown) {
      if (!isAgreed) return
      paragraph += shown
      if (shown.includes('\n')) {
        const [whole = '', ...others] = paragraph.split(/(?<=\n)[ \t]*\n/)
        if (others.length > 0) wasBracketOpen = isBracketOpen()
        paragraph = others.at(-1) ?? whole
        isAfterEmptyLine ||= others.length > 0
        isAfterEmptyLine &&= !/\S/.test(paragraph)
      } else isAfterEmptyLine &&= !/\S/.test(shown)
      if (paragraph.length > PARAGRAPH_MAX_LENGTH) disagree()
    },
  }
}

function runOf(text: string, at: number): string {
  return /^(?:`+|~+)/.exec(text.slice(at))?.[0] ?? ''
}

/** The target of a link whose end every reader sees. */
const PLAIN_TARGET = /\]\([ \t\n]{0,8}https?:\/\/[^\s<>()[\]"'`\\]*\)/gi
const PLAIN_LABEL = /\[[^[\]\\]*\]/g

/**
 * The place of a run of backquotes behind this text of a paragraph: in plain text, or in the label of a link. Null if it
 * may not begin a code span.
 */
function contextOf(paragraph: string): 'text' | 'label' | null {
  if (paragraph.includes('`') || paragraph.endsWith('\\')) return null
  // An address could include the run.
  const word = paragraph.slice(
    Math.max(...[' ', '\t', '\n'].map((space) => paragraph.lastIndexOf(space))) + 1,
  )
  if (/:\/|www\.|[@<&]/i.test(word)) return null
  const rest = paragraph.replace(PLAIN_TARGET, ']')
  if (rest.includes('](')) return null
  const labels = rest.replace(PLAIN_LABEL, '').split('[').length - 1
  return labels === 0 ? 'text' : labels === 1 ? 'label' : null
}
