import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The text of a page, named from the project's root on. */
export function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

/** The cells of every row of a page's tables whose first cells are these. */
export function rowsOf(page: string, ...first: readonly string[]): string[][] {
  return read(page)
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    )
    .filter((cells) => first.every((cell, index) => cells[index] === cell))
}

/** The text below a heading, up to the next one of its rank. */
export function sectionOf(page: string, heading: string): string {
  const rank = heading.split(' ')[0] ?? ''
  const [, rest = ''] = read(page).split(`\n${heading}\n`)
  return rest.split(new RegExp(`^#{1,${rank.length}} `, 'm'))[0] ?? ''
}
