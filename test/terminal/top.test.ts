import { describe, expect, test } from 'vitest'
import { newsWorkspace } from '../support/news.ts'
import { ENDED, openTerminal } from '../support/terminal.ts'
import type { TerminalOptions } from '../support/terminal.ts'

const ESC = '\x1b'

async function printed(
  args: readonly string[],
  options: TerminalOptions = {},
): Promise<{ rows: string[]; written: string }> {
  const { folder } = await newsWorkspace()
  const terminal = await openTerminal([...args, '--data-dir', folder], options)
  const screen = await terminal.until(`${ENDED} 0`)
  return { rows: screen.split('\n'), written: terminal.written }
}

describe('dash top on a terminal', () => {
  test.each([
    [120, '#  points  comments  age  source    title'],
    [70, '#  points  source    title'],
    [40, '#  title'],
  ])('a ranking fits %i columns', async (columns, head) => {
    const { rows } = await printed(['top'], { columns })
    const at = rows.indexOf(head)
    expect(at).toBeGreaterThan(-1)
    const items = rows.slice(
      at + 1,
      rows.findIndex((row) => row.startsWith(ENDED)),
    )
    expect(items).toHaveLength(3)
    expect(items[0]).toMatch(columns < 120 ? /Evil\\u001b.*…$/ : /Evil\\u001b.*"title"$/)
    expect(items[2]).toMatch(/Live story$/)
  })

  test('titles are hyperlinks if the terminal knows them, and bring no control character', async () => {
    const { written } = await printed(['top'], { columns: 120, env: { FORCE_HYPERLINK: '1' } })
    expect(written).toContain(`${ESC}]8;;https://example.org/51${ESC}\\Live story${ESC}]8;;${ESC}\\`)
    expect(written).not.toContain('8;;javascript')
    expect(
      written
        .split(ESC)
        .slice(1)
        .every((part) => part.startsWith(']8;;') || /^\\(?!\\)/.test(part)),
    ).toBe(true)
    expect(written).not.toMatch(/[\u0080-\u009f\u202e]/)
    const plain = await printed(['top'], { columns: 120 })
    expect(plain.written).not.toContain(ESC)
  })
})
