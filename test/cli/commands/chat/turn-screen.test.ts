import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Painter } from '../../../../src/cli/commands/chat/turn-screen.ts'
import type { Row } from '../../../../src/cli/commands/chat/wrap.ts'

/** Wrapping off or on; up; clear below; clear the row; right; line feed; return; text. */
const SEQUENCES = new RegExp(
  [
    '\\x1b\\[\\?7[lh]',
    '\\x1b\\[(\\d+)A',
    '(\\x1b\\[J)',
    '(\\x1b\\[2K)',
    '(\\x1b\\[C)',
    '(\\r\\n)',
    '(\\r)',
    '([^\\x1b\\r\\n]+)',
  ].join('|'),
  'g',
)

/** The parts of a terminal that the painter uses: its rows and the scrollback. */
class Emulator {
  columns = 40
  rows: number
  lines: string[] = ['']
  #row = 0
  #column = 0
  writes: string[] = []

  constructor(rows: number) {
    this.rows = rows
  }

  write(text: string): void {
    this.writes.push(text)
    const pieces = text.matchAll(SEQUENCES)
    for (const [, up, clear, row, right, feed, back, visible] of pieces) {
      const line = this.lines[this.#row] ?? ''
      if (up !== undefined) this.#row = Math.max(this.#top, this.#row - Number(up))
      else if (row !== undefined) this.lines[this.#row] = ''
      else if (right !== undefined) this.#column += 1
      else if (clear !== undefined) {
        this.lines[this.#row] = line.slice(0, this.#column)
        this.lines.length = this.#row + 1
      } else if (feed !== undefined || back !== undefined) {
        this.#column = 0
        if (feed !== undefined) this.#row += 1
        if (this.#row === this.lines.length) this.lines.push('')
      } else if (visible !== undefined) {
        this.lines[this.#row] =
          line.slice(0, this.#column) + visible + line.slice(this.#column + visible.length)
        this.#column += visible.length
      }
    }
  }

  get #top(): number {
    return Math.max(0, this.lines.length - this.rows)
  }
}

const rowsOf = (texts: readonly string[]): Row[] => texts.map((text) => ({ text, width: text.length }))

describe('the painter', () => {
  test('the painter repaints from the first row that differs, in one write', () => {
    const screen = new Emulator(10)
    const painter = new Painter(screen)
    painter.paint(rowsOf(['a', 'b', 'c']))
    painter.paint(rowsOf(['a', 'b', 'cd', 'e']))
    expect(screen.lines).toEqual(['a', 'b', 'cd', 'e'])
    expect(screen.writes).toHaveLength(2)
    expect(screen.writes[1]).not.toMatch(/[ab]/)
    painter.paint(rowsOf(['a', 'b', 'cd', 'e']))
    expect(screen.writes).toHaveLength(2)
  })

  test('the screen shows the last frame after any sequence of frames', () => {
    const frame = fc.array(fc.constantFrom('', 'a', 'bb', 'ccc'), { maxLength: 8 })
    fc.assert(
      fc.property(fc.array(frame, { minLength: 1, maxLength: 8 }), (frames) => {
        const screen = new Emulator(10)
        const painter = new Painter(screen)
        for (const each of frames) painter.paint(rowsOf(each))
        const last = frames.at(-1) ?? []
        expect(screen.lines).toEqual(last.length === 0 ? [''] : last)
      }),
    )
  })

  test('rows that have scrolled away stay unchanged, and every added row is shown', () => {
    const screen = new Emulator(4)
    const painter = new Painter(screen)
    const all = Array.from({ length: 12 }, (_, index) => `row ${index}`)
    for (let count = 1; count <= all.length; count += 1) painter.paint(rowsOf(all.slice(0, count)))
    expect(screen.lines).toEqual(all)
    painter.paint(rowsOf(['changed', ...all.slice(1, -1), 'last']))
    expect(screen.lines).toEqual([...all.slice(0, -1), 'last'])
  })
})
