import fastStringWidth from 'fast-string-width'
import { cleaned } from '../../../domain/agent/answer-text.ts'
import { printable } from '../../terminal.ts'

/** How text is shown: begin and end of each SGR attribute that is used. */
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

/** A text with its styles on; as it is where styles are not to be shown. */
export function styled(text: string, styles: readonly Style[], colored: boolean): string {
  if (!colored || text === '') return text
  const begin = styles.map((style) => `\x1b[${SGR[style][0]}m`).join('')
  const end = styles.map((style) => `\x1b[${SGR[style][1]}m`).join('')
  return `${begin}${text}${end}`
}

/** A stretch of text in one style. */
export interface Span {
  text: string
  styles: readonly Style[]
}

/** One row of a terminal: what is written, and how many columns it takes. */
export interface Row {
  text: string
  width: number
}

/** One character as a reader sees it. */
interface Cell {
  text: string
  width: number
  styles: readonly Style[]
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Columns that a text takes on a terminal. */
export function widthOf(text: string): number {
  return fastStringWidth(text)
}

/** What stands before the first row of a text, and before each other one. */
export interface Indent {
  first: string
  rest: string
}

/**
 * Spans as rows of at most `columns`, broken at spaces, beside wide characters, and within a word that is longer than a row.
 *
 * @param breakWords false to break anywhere, as code is
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
    // What is left of a row behind its break may still be too long for a wide character.
    while (used + cell.width > columns && row.length > 0) {
      const at = breakWords ? breakAt(row) : row.length
      end(trimmed(row.slice(0, at)))
      row = row.slice(at)
      used = widthOf(prefix) + row.reduce((sum, { width }) => sum + width, 0)
    }
    // Of the spaces a row was broken at, none begins the next one.
    if (isWrapped && row.length === 0 && cell.text === ' ') continue
    isWrapped = false
    row.push(cell)
    used += cell.width
  }
  end(row)
  return rows
}

function* cellsOf(spans: readonly Span[]): Generator<Cell> {
  for (const { text: raw, styles } of spans) {
    // A parser makes characters of what stands for them (`&#27;`): nothing a terminal obeys passes here.
    const text = cleaned(raw)
    // Plain characters are their own graphemes, and most texts are of them.
    if (/^[\n\x20-\x7e]*$/.test(text)) for (const each of text) yield { text: each, width: 1, styles }
    else
      for (const { segment } of graphemes.segment(text))
        yield { text: segment, width: widthOf(segment), styles }
  }
}

/** Where a full row is broken: after its last space, or beside its last wide character; else at its end. */
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
  for (const cell of cells) {
    if (cell.styles !== styles) {
      text += styled(run, styles, colored)
      run = ''
      styles = cell.styles
    }
    run += cell.text
  }
  text += styled(run, styles, colored)
  return { text, width: widthOf(prefix) + cells.reduce((sum, { width }) => sum + width, 0) }
}

/** Columns that a line beside the answers may take: some terminals wrap once the last one is written. */
export function noteColumns({ columns }: NodeJS.WriteStream): number {
  return Math.max(8, columns - 1)
}

/** A text beside the answers as rows of a terminal, broken between words. */
export function noteRows(text: string, columns: number, colored: boolean): string[] {
  return wrap([{ text: printable(text), styles: ['dim'] }], columns, { colored }).map((row) => row.text)
}
