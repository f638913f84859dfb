import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { dash } from '../support/dash.ts'
import { rowsOf, sectionOf } from '../support/examples.ts'

test('the page of commands names every command, and every flag of each in its own rows', async () => {
  const everywhere = sectionOf('docs/commands.md', '## Flags of every command')
  const ofCommand = flagsByCommand()
  const unnamed: string[] = []
  const visit = async (command: readonly string[]): Promise<number> => {
    const name = command.join(' ')
    const { flags, commands } = await helpOf(command)
    const rows = `${everywhere}${ofCommand.get(name) ?? ''}`
    unnamed.push(...flags.filter((flag) => !rows.includes(`\`${flag}`)).map((flag) => `${name} ${flag}`))
    if (name !== '' && rowsOf('docs/commands.md', `\`dash ${name}\``).length !== 1) unnamed.push(name)
    let count = flags.length
    for (const each of commands) count += await visit([...command, each])
    return count
  }
  expect(await visit([])).toBeGreaterThan(55)
  expect(unnamed).toEqual([])
})

test('the pages of commands and configuration hold the tables that are generated from the program', () => {
  const check = fileURLToPath(new URL('../../scripts/configuration-page.mjs', import.meta.url))
  const { status, stderr } = spawnSync(process.execPath, [check, '--check'], { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(status).toBe(0)
})

/** Flags and subcommands listed by a command's `--help`. */
async function helpOf(command: readonly string[]): Promise<{ flags: string[]; commands: string[] }> {
  const { code, stdout } = await dash([...command, '--help'])
  expect(code).toBe(0)
  const [listed = ''] = stdout.split(/^Examples?:$/m)
  const [, ...groups] = listed.replace(/^Arguments:\n(?: .*\n)+/m, '').split(/^[A-Z].*:$/m)
  const lines = groups.join('')
  return {
    flags: [...lines.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, flag = '']) => flag),
    commands: [...lines.matchAll(/^ {2}([a-z][a-z-]+)/gm)]
      .map(([, name = '']) => name)
      .filter((name) => name !== 'help'),
  }
}

/** The flags that the table of flags gives each command; an empty first cell goes on with the command above. */
function flagsByCommand(): Map<string, string> {
  const flags = new Map<string, string>()
  let names: string[] = []
  for (const line of sectionOf('docs/commands.md', '## Flags of one command').split('\n')) {
    const [, command = '', cell = ''] = /^\|([^|]*)\|([^|]*)\|/.exec(line) ?? []
    const named = [...command.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
    if (named.length > 0) names = named
    for (const name of names) flags.set(name, `${flags.get(name) ?? ''}${cell}`)
  }
  return flags
}
