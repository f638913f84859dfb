import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { EXIT } from '../../src/cli/exit-codes.ts'
import { openApp } from '../support/api-client.ts'
import { dash } from '../support/dash.ts'
import { interfacesOf } from '../support/interfaces.ts'
import { openWorkspace } from '../support/workspace.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8')

/** The cells of every row of a page's tables whose first cells are these. */
function rowsOf(page: string, ...first: readonly string[]): string[][] {
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
function sectionOf(page: string, heading: string): string {
  const rank = heading.split(' ')[0] ?? ''
  const [, rest = ''] = read(page).split(`\n${heading}\n`)
  return rest.split(new RegExp(`^#{1,${rank.length}} `, 'm'))[0] ?? ''
}

describe('the documents name', () => {
  test('every path the server answers, in the API guide', async () => {
    const app = openApp(await openWorkspace())
    const guide = read('docs/api.md')
    const paths = app['~routes'].map(({ route }) => route ?? '')
    const isGuide = (path: string): boolean =>
      path.startsWith('/docs/') && !path.startsWith('/docs/api/') && !path.includes(':')
    const named = paths.filter(
      (path) => !isGuide(path) && !path.startsWith('/assets/') && !path.endsWith('/**'),
    )
    expect(named.length).toBeGreaterThan(20)
    const missing = named.filter(
      (path) =>
        !guide.includes(`\`${path}\``) &&
        !guide.includes(`\`${path}?`) &&
        !/^\/docs\/api\/[\w-]+(\/try)?$/.test(path),
    )
    expect(missing).toEqual([])
  })

  test('every refusal of every interface, with its status, cause and what to do', async () => {
    const interfaces = await interfacesOf(openApp(await openWorkspace()))
    expect(interfaces.length).toBeGreaterThan(4)
    for (const { name, heading, refusals } of interfaces) {
      const section = sectionOf('docs/troubleshooting.md', `### ${heading}`)
      expect(refusals.length).toBeGreaterThan(2)
      for (const { status, error } of refusals) {
        const row = new RegExp(
          `^\\| ${status} +\\| \`${error}\` +\\| [^|]*\\w[^|]* \\| [^|]*\\w[^|]* \\|$`,
          'm',
        )
        expect(section, `${name}: ${status} ${error}`).toMatch(row)
      }
    }
  })

  test('no refusal that no interface gives', async () => {
    const interfaces = await interfacesOf(openApp(await openWorkspace()))
    for (const { name, heading, refusals } of interfaces) {
      const given = refusals.map(({ status, error }) => `${status} ${error}`)
      const told = [
        ...sectionOf('docs/troubleshooting.md', `### ${heading}`).matchAll(/^\| (\d{3}) +\| `(\w+)` /gm),
      ]
      const beside = name === 'agent-chat' ? ['404 not_found'] : []
      expect(told.map(([, status, error]) => `${status} ${error}`).sort()).toEqual(
        [...given, ...beside].sort(),
      )
    }
  })

  test('every way an answer of the chat can end, with what to do', () => {
    const union = /type FailureCode =([^]*?)\n\n/.exec(read('src/domain/agent/ports.ts'))?.[1] ?? ''
    const codes = [...union.matchAll(/['`](\w+?)(?:\$\{number\})?['`]/g)].map(([, code = '']) => code)
    expect(codes.length).toBeGreaterThan(8)
    for (const code of codes) {
      expect(read('docs/agent-chat.md'), code).toContain(
        `\`${code.endsWith('_') ? `${code}<status>` : code}\``,
      )
      expect(sectionOf('docs/chat-providers.md', '## What can go wrong'), code).toContain(`\`${code}`)
    }
  })

  test('every exit code, with what to do', () => {
    const codes = rowsOf('docs/troubleshooting.md').flatMap(([code = '', cause = '', mend = '']) =>
      /^\d+(, \d+)*$/.test(code) && cause.length > 3
        ? code.split(', ').map((each) => ({ code: Number(each), mend }))
        : [],
    )
    const ofCommands = codes.filter(({ code }) => code < 400)
    expect(ofCommands.map(({ code }) => code).sort((a, b) => a - b)).toEqual(
      Object.values(EXIT).sort((a, b) => a - b),
    )
    for (const { code, mend } of ofCommands)
      expect([code, code === EXIT.done || mend.length > 3]).toEqual([code, true])
  })

  test('every finding of an audit, with what to do', () => {
    const union = /type FindingCode =([^]*?)\n\n/.exec(read('src/domain/year/finding.ts'))?.[1] ?? ''
    const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code = '']) => code)
    expect(codes.length).toBeGreaterThan(8)
    for (const code of codes) {
      const [, cause = '', mend = ''] = rowsOf('docs/auditing.md', `\`${code}\``)[0] ?? []
      expect([code, cause.length > 3, mend.length > 3]).toEqual([code, true, true])
    }
  })

  test('every command, and every flag of each in its own rows', async () => {
    const everywhere = sectionOf('docs/configuration.md', '## Flags of every command')
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
    expect(await visit([])).toBeGreaterThan(100)
    expect(unnamed).toEqual([])
  })
})

/** What `--help` of a command lists. */
async function helpOf(command: readonly string[]): Promise<{ flags: string[]; commands: string[] }> {
  const { code, stdout } = await dash([...command, '--help'])
  expect(code).toBe(0)
  const [options = '', commands = ''] = (stdout.split(/^Options:$/m)[1] ?? '').split(/^Commands:$/m)
  return {
    flags: [...options.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, flag = '']) => flag),
    commands: [...commands.matchAll(/^ {2}([a-z][a-z-]+)/gm)]
      .map(([, name = '']) => name)
      .filter((name) => name !== 'help'),
  }
}

/** The flags that the table of flags gives each command; an empty first cell goes on with the command above. */
function flagsByCommand(): Map<string, string> {
  const flags = new Map<string, string>()
  let names: string[] = []
  for (const line of sectionOf('docs/configuration.md', '## Flags of one command').split('\n')) {
    const [, command = '', cell = ''] = /^\|([^|]*)\|([^|]*)\|/.exec(line) ?? []
    const named = [...command.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
    if (named.length > 0) names = named
    for (const name of names) flags.set(name, `${flags.get(name) ?? ''}${cell}`)
  }
  return flags
}
