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
      if (!isAgreed) return null
      const rest = text.slice(at)
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

/**
 * `text` continues a paragraph; `block` begins a block. From `unknown` on, readers may disagree
 * about what is code.
 */
type LineKind = 'code' | 'text' | 'empty' | 'block' | 'undecided' | 'unknown'

/** Longest line to wait for before it can be code. */
const LINE_MAX_LENGTH = 1_000

/** A block quote, or a list item with the number of columns before its content. */
type Container = 'quote' | number

interface Fence {
  mark: string
  length: number
}

/** The beginning of a line that decides about its block. */
const BEGINNING = /^[ \t>*+\-_#\d.)`~]*/
const MARKER = /^ {0,3}(?:[-+*]|(\d{1,9})[.)])(?: +|$)/
const RULE = /^ {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})$/
const HEADING = /^ {0,3}#{1,6}(?: |$)/
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/s
/** Indentation of code, in columns. */
const CODE_INDENT = ' '.repeat(4)

/**
 * Finds the lines of code in Markdown: fences and indented code, also in lists and block quotes, by the rules of
 * CommonMark. A line is classified as soon as its beginning is known.
 *
 * @returns classifies the line at whose start `rest` begins; `isBracketOpen` if a bracket at the start of an earlier line
 *   could begin a definition that includes code
 */
function codeLines(): (rest: string, isEnd: boolean, isBracketOpen: boolean) => LineKind {
  let containers: readonly Container[] = []
  let fence: Fence | null = null
  let isInParagraph = false
  let isAfterEmptyLine = true
  let isInIndentedCode = false
  /** True while readers may disagree about the containers. */
  let isDoubtful = false

  /** Removes the marks of the containers that go on in a line. */
  const enter = (line: string): { rest: string; entered: number } => {
    let rest = line
    for (const [index, container] of containers.entries()) {
      const isEmpty = /^ *$/.test(rest)
      const marks =
        container === 'quote' ? /^ {0,3}> ?/.exec(rest)?.[0].length : isEmpty ? 0 : indentOf(rest, container)
      if (marks === undefined) return { rest, entered: index }
      rest = rest.slice(marks)
    }
    return { rest, entered: containers.length }
  }

  const emptyLine = (entered: number): LineKind => {
    if (entered < containers.length) fence = null
    containers = containers.slice(0, entered)
    if (fence !== null) return 'code'
    isInParagraph = false
    isAfterEmptyLine = true
    return 'empty'
  }

  const lineOfFence = (opened: Fence, rest: string, entered: number): LineKind => {
    // Some readers end the fence with its list or quote, others do not.
    if (entered < containers.length) return 'unknown'
    const [, marks = '', after = ''] = FENCE.exec(rest) ?? []
    if (!marks.startsWith(opened.mark.repeat(opened.length))) return 'code'
    if (/^[ \t]*$/.test(after)) {
      fence = null
      return after.includes('\t') ? 'unknown' : 'code'
    }
    return /^[`~]/.test(after) && /^[`~]+\s*$/.test(after) ? 'unknown' : 'code'
  }

  const otherLine = (
    line: string,
    { rest, entered }: { rest: string; entered: number },
    isBracketOpen: boolean,
  ): LineKind => {
    let inner = rest
    const level = containers.slice(0, entered)
    let mayContinue = isInParagraph
    let isNew = false
    let isWide = false
    const leave = (kind: LineKind, inParagraph: boolean): LineKind => {
      containers = level
      isInParagraph = inParagraph
      if (isAfterEmptyLine && level.length === 0 && !line.startsWith(' ')) isDoubtful = false
      isAfterEmptyLine = false
      isInIndentedCode = false
      return kind
    }
    for (;;) {
      if (inner.startsWith(CODE_INDENT)) {
        if (mayContinue) {
          // Some readers begin another paragraph here.
          if (containers.length > 0) isDoubtful = true
          break
        }
        // Readers differ about code behind a marker, and right behind a list or quote.
        const isCertain = !isWide && !isDoubtful && (entered === containers.length || isAfterEmptyLine)
        if (!isCertain) isDoubtful = true
        leave('block', false)
        isInIndentedCode = isCertain && !isBracketOpen
        return isInIndentedCode ? 'code' : 'block'
      }
      const [, run, info = ''] = FENCE.exec(inner) ?? []
      if (run !== undefined && !(run.startsWith('`') && info.includes('`'))) {
        if (line === inner) isDoubtful = false
        if (isDoubtful) return 'unknown'
        // A bracket could begin a definition that includes the fence, and a bar a table.
        if (isBracketOpen || info.includes('|')) return 'unknown'
        fence = { mark: run.slice(0, 1), length: run.length }
        return leave('code', false)
      }
      if (RULE.test(inner) || HEADING.test(inner)) return leave('block', false)
      const quote = /^ {0,3}> ?/.exec(inner)?.[0]
      const [marker, number = '1'] = MARKER.exec(inner) ?? []
      const mark = quote ?? marker
      if (mark === undefined) break
      const mayInterrupt = quote !== undefined || (number === '1' && mark !== inner)
      const isInner = isNew || entered === containers.length
      if (!mayInterrupt && isInner && (isInParagraph || isInIndentedCode)) {
        // Some readers begin a list here.
        isDoubtful = true
        if (mayContinue) break
      }
      const spaces = /(?<! ) *$/.exec(mark)?.[0].length ?? 0
      isWide = quote === undefined && (spaces > 4 || mark === inner)
      const width = isWide ? mark.length - spaces + 1 : mark.length
      level.push(quote === undefined ? width : 'quote')
      inner = inner.slice(Math.min(width, inner.length))
      mayContinue = false
      isNew = true
      if (/^ *$/.test(inner)) {
        // Some readers end an empty item at the next empty line.
        if (quote === undefined) isDoubtful = true
        return leave('block', false)
      }
    }
    if (!isNew && mayContinue) {
      // A lazy line: some readers begin another paragraph here.
      if (entered < containers.length) isDoubtful = true
      return 'text'
    }
    return leave('block', true)
  }

  return (rest, isEnd, isBracketOpen) => {
    const end = rest.indexOf('\n')
    const whole = end === -1 ? rest : rest.slice(0, end)
    const [beginning = ''] = BEGINNING.exec(whole) ?? []
    const isWhole = end !== -1 || isEnd
    const isDecided =
      isWhole || (beginning.length < whole.length && (fence !== null || !/[`~]/.test(beginning)))
    if (!isDecided) return whole.length > LINE_MAX_LENGTH ? 'unknown' : 'undecided'
    const line = whole
      .replace(/^[ \t]*$/, '')
      .replace(/^\t+/, (tabs) => CODE_INDENT.repeat(tabs.length))
      .replace(/^( *[-+*])\t/, '$1   ')
    // Readers count the columns of other tabs differently.
    if (fence === null && /^[ >*+\-\d.)]*\t/.test(line)) isDoubtful = true
    const place = enter(line)
    if (/^[ \t]*$/.test(place.rest)) return emptyLine(place.entered)
    if (fence !== null) return lineOfFence(fence, place.rest, place.entered)
    const kind = otherLine(line, place, isBracketOpen)
    return kind === 'block' && isDoubtful ? 'text' : kind
  }
}

/** The number of columns if a line has so many spaces. */
function indentOf(line: string, columns: number): number | undefined {
  return line.startsWith(' '.repeat(columns)) ? columns : undefined
}
