import type { Row } from './wrap.ts'

/** The terminal that is painted on. */
export interface Screen {
  write(text: string): unknown
  columns: number
  rows: number
}

/** Rows are clipped, not wrapped, where a terminal counts the columns of a character otherwise. */
const WITHOUT_WRAP = '\x1b[?7l'
const WITH_WRAP = '\x1b[?7h'
/** From the second column on: cleared from its first cell on, a screen is kept by tmux with what has scrolled away. */
const CLEAR_BELOW = '\x1b[C\x1b[J\r\x1b[2K'

/**
 * Rows at the bottom of a terminal that may still change. What is painted again begins at the first row that differs;
 * rows that have scrolled out of reach stay as they are.
 */
export class Painter {
  readonly #screen: Screen
  #painted: readonly Row[] = []

  constructor(screen: Screen) {
    this.#screen = screen
  }

  /** Paints what differs from what is there, in one write. The cursor stays behind the last row. */
  paint(rows: readonly Row[]): void {
    const before = this.#painted
    let first = 0
    while (first < before.length && before[first]?.text === rows[first]?.text) first += 1
    if (first === before.length && first === rows.length) return
    const inReach = Math.max(0, before.length - this.#screen.rows)
    // The cursor stands in the last row, so that row is where anything new is begun from.
    const from = Math.max(inReach, Math.min(first, before.length - 1, rows.length - 1), 0)
    const up = Math.max(0, before.length - 1 - from)
    this.#write(up, rows.slice(from))
    this.#painted = rows
  }

  /**
   * Paints anew after the terminal has changed its size: what was there may take more rows now, where it is wrapped.
   *
   * @param rows for the new size
   */
  repaint(rows: readonly Row[]): void {
    const { columns, rows: height } = this.#screen
    const taken = this.#painted.reduce((sum, { width }) => sum + Math.max(1, Math.ceil(width / columns)), 0)
    const up = Math.max(0, Math.min(taken, height) - 1)
    // Of what does not fit, the beginning is above the screen already.
    this.#write(up, taken > height ? rows.slice(-height) : rows)
    this.#painted = rows
  }

  /** Ends what is painted: from now on it stays as it is, and the cursor is in the row below. */
  end(): void {
    if (this.#painted.length > 0) this.#screen.write('\r\n')
    this.#painted = []
  }

  #write(up: number, rows: readonly Row[]): void {
    const move = up > 0 ? `\r\x1b[${up}A` : '\r'
    const text = rows.map((row) => row.text).join('\r\n')
    this.#screen.write(`${move}${CLEAR_BELOW}${WITHOUT_WRAP}${text}${WITH_WRAP}`)
  }
}
