import { describe, expect, test } from 'vitest'
import { newsWorkspace } from '../cli/commands/news.ts'
import { ENDED, openTerminal } from './terminal.ts'
import type { TerminalOptions } from './terminal.ts'

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
})
