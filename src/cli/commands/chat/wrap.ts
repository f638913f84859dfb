import fastStringWidth from 'fast-string-width'
import { cleanText } from '../../../domain/agent/answer-text.ts'
import { hyperlink } from '../../hyperlink.ts'
import { printable } from '../../terminal.ts'

/** SGR codes that begin and end each style. */
const SGR = {
  bold: [1, 22],
  dim: [2, 22],
  italic: [3, 23],
  underline: [4, 24],
  strike: [9, 29],
  cyan: [36, 39],
  yellow: [33, 39],
} as const

export type Style = keyof typeof SGR

/** Returns a text with its styles; unchanged if `colored` is false. */
export function styled(text: string, styles: readonly Style[], colored: boolean): string {
  if (!colored || text === '') return text
  const begin = styles.map((style) => `\x1b[${SGR[style][0]}m`).join('')
  const end = styles.map((style) => `\x1b[${SGR[style][1]}m`).join('')
  return `${begin}${text}${end}`
}

/** Text in one style. */
export interface Span {
  text: string
  styles: readonly Style[]
  /** Address of a web page that the text links to. */
  link?: string
}

/** Row of a terminal, with its width in columns. */
export interface Row {
  text: string
  width: number
}

/** One grapheme. */
interface Cell {
  text: string
  width: number
  styles: readonly Style[]
  link: string | undefined
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Returns the width of a text in columns. */
export function widthOf(text: string): number {
  return fastStringWidth(text)
}

/** Prefix of the first row of a text, and of every other row. */
export interface Indent {
  first: string
  rest: string
}

/**
 * Wraps spans to rows of at most `columns` columns: at spaces, beside wide characters, and within a word that is
 * longer than a row.
 *
 * @param breakWords false to break anywhere, as in code
 */
export function wrap(
  spans: readonly Span[],
  columns: number,
  { indent = { first: '', rest: '' }, breakWords = true, colored = true } = {},
): Row[] {
  const rows: Row[] = []
  let prefix = indent.first
  let row: Cell[] = []
  let used = widthOf(prefix)
  let isWrapped = false
  const end = (cells: readonly Cell[]): void => {
    rows.push(rowOf(prefix, cells, colored))
    prefix = indent.rest
  }
  for (const cell of cellsOf(spans)) {
    if (cell.text === '\n') {
      end(row)
      row = []
      used = widthOf(prefix)
      continue
    }
    if (used + cell.width > columns && row.length > 0 && breakWords && cell.text === ' ') {
      end(trimmed(row))
      row = []
      used = widthOf(prefix)
      isWrapped = true
      continue
    }
    // After a break, the rest of the row may still be too long for a wide character.
    while (used + cell.width > columns && row.length > 0) {
      const at = breakWords ? breakAt(row) : row.length
      end(trimmed(row.slice(0, at)))
      row = row.slice(at)
      used = widthOf(prefix) + row.reduce((sum, { width }) => sum + width, 0)
    }
    // Drop leading spaces after a soft wrap.
    if (isWrapped && row.length === 0 && cell.text === ' ') continue
    isWrapped = false
    row.push(cell)
    used += cell.width
  }
  end(row)
  return rows
}

function* cellsOf(spans: readonly Span[]): Generator<Cell> {
  for (const { text: raw, styles, link } of spans) {
    // The Markdown parser decodes entities (`&#27;`), so control characters are removed here.
    const text = cleanText(raw)
    // Fast path: most texts are plain ASCII, where each character is a grapheme.
    if (/^[\n\x20-\x7e]*$/.test(text)) for (const each of text) yield { text: each, width: 1, styles, link }
    else
      for (const { segment } of graphemes.segment(text))
        yield { text: segment, width: widthOf(segment), styles, link }
  }
}

/**
 * Returns the index where a full row is broken: after its last space, or beside its last wide character; else its
 * end.
 */
function breakAt(row: readonly Cell[]): number {
  for (let at = row.length; at > 0; at -= 1) {
    const before = row[at - 1]
    if (before?.text === ' ' || (before?.width ?? 0) > 1) return at
  }
  return row.length
}

function trimmed(cells: readonly Cell[]): readonly Cell[] {
  return cells.at(-1)?.text === ' ' ? cells.slice(0, -1) : cells
}

function rowOf(prefix: string, cells: readonly Cell[], colored: boolean): Row {
  let text = prefix
  let run = ''
  let styles: readonly Style[] = []
  let link: string | undefined
  const endRun = (): void => {
    const shown = styled(run, styles, colored)
    text += link === undefined || run === '' ? shown : hyperlink(link, shown)
    run = ''
  }
  for (const cell of cells) {
    if (cell.styles !== styles || cell.link !== link) {
      endRun()
      ;({ styles, link } = cell)
    }
    run += cell.text
  }
  endRun()
  return { text, width: widthOf(prefix) + cells.reduce((sum, { width }) => sum + width, 0) }
}

/** Returns the width of a line beside the answers: some terminals wrap once the last column is written. */
export function noteColumns({ columns }: NodeJS.WriteStream): number {
  return Math.max(8, columns - 1)
}

/** Wraps a text beside the answers between words, to rows of a terminal. */
export function noteRows(text: string, columns: number, colored: boolean): string[] {
  return wrap([{ text: printable(text), styles: ['dim'] }], columns, { colored }).map((row) => row.text)
}
