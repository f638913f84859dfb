/**
 * `text` continues a paragraph; `block` begins a block. From `unknown` on, readers may disagree
 * about what is code.
 */
type LineKind = 'code' | 'text' | 'empty' | 'block' | 'undecided' | 'unknown'

/** Longest line to wait for before it can be code. */
export const LINE_MAX_LENGTH = 1_000

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
export function codeLines(): (rest: string, isEnd: boolean, isBracketOpen: boolean) => LineKind {
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
