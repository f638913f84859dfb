import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { dash } from '../support/dash.ts'
import { read } from './examples.ts'

test('the page of commands names the guide of every command', async () => {
  const page = read('docs/commands.md')
  const unnamed: string[] = []
  const visit = async (command: readonly string[]): Promise<number> => {
    const name = command.join(' ')
    if (name !== '' && !page.includes(`- [\`dash ${name}\`](`)) unnamed.push(name)
    let count = 1
    for (const each of await subcommandsOf(command)) count += await visit([...command, each])
    return count
  }
  expect(await visit([])).toBeGreaterThan(25)
  expect(unnamed).toEqual([])
})

test('the pages of commands and configuration hold the lists that are generated from the program', () => {
  const check = fileURLToPath(new URL('../../scripts/configuration-page.mjs', import.meta.url))
  const { status, stderr } = spawnSync(process.execPath, [check, '--check'], { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(status).toBe(0)
})

/** Subcommands listed by a command's `--help`. */
async function subcommandsOf(command: readonly string[]): Promise<string[]> {
  const { code, stdout } = await dash([...command, '--help'])
  expect(code).toBe(0)
  const [listed = ''] = stdout.split(/^Examples?:$/m)
  const [, ...groups] = listed.replace(/^Arguments:\n(?: .*\n)+/m, '').split(/^[A-Z].*:$/m)
  return [...groups.join('').matchAll(/^ {2}([a-z][a-z-]+)/gm)]
    .map(([, name = '']) => name)
    .filter((name) => name !== 'help')
}
