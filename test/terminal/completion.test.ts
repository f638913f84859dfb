import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { run, temporaryFolder } from '../support/dash.ts'
import { openTerminal } from '../support/terminal.ts'
import type { TestTerminal } from '../support/terminal.ts'

type Shell = 'bash' | 'zsh' | 'fish'

async function scriptFor(shell: Shell): Promise<{ script: string; folder: string }> {
  const { code, stdout } = await run(['completion', shell])
  expect(code).toBe(0)
  const folder = temporaryFolder()
  const script = join(folder, `completion.${shell}`)
  writeFileSync(script, stdout)
  writeFileSync(join(folder, 'a file.ndjson'), '')
  return { script, folder }
}

/** Returns the completions of a command line, as the shell's own completion requests them. */
const OFFERED: Record<'bash' | 'fish', (script: string, line: string, cwd: string) => string[]> = {
  bash(script, line, cwd) {
    const words = line.split(/ |(?<==)|(?==)/)
    const quoted = words.map((word) => `'${word}'`).join(' ')
    const command = `source ${script}; COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _dash; printf '%s\\n' "\${COMPREPLY[@]}"`
    return execFileSync('bash', ['--norc', '-c', command], { encoding: 'utf8', cwd }).trimEnd().split('\n')
  },
  fish(script, line, cwd) {
    const command = `source ${script}; complete -C '${line}'`
    const output = execFileSync('fish', ['--no-config', '-c', command], { encoding: 'utf8', cwd })
    return output
      .trimEnd()
      .split('\n')
      .map((offer) => offer.split('\t')[0] ?? '')
  },
}

describe.each(['bash', 'fish'] as const)('%s', (shell) => {
  test('the completion offers every command of the help, and flags, choices and files at their positions', async () => {
    const { script, folder } = await scriptFor(shell)
    const offered = (line: string): string[] => OFFERED[shell](script, line, folder).sort()
    expect(offered('dash pub')).toEqual(['publish-year'])
    expect(offered('dash import ')).toEqual(expect.arrayContaining(['archive', 'articles', 'signals']))
    expect(offered('dash import s')).toEqual(['signals'])
    expect(offered('dashctl serve --ho')).toEqual(['--host'])
    expect(offered('dash serve --data-')).toEqual(['--data-dir'])
    expect(offered('dash --data-dir serve evaluate-models --mode ')).toEqual([
      'forceEval',
      'fullEval',
      'healthOnly',
      'metadataOnly',
    ])
    expect(offered('dash evaluate-models --mode=heal').map((word) => word.replace('--mode=', ''))).toEqual([
      'healthOnly',
    ])
    expect(offered('dash completion ')).toEqual(['bash', 'fish', 'zsh'])
    expect(offered('dash publish-year --retry-delay ')).toEqual([''])
    expect(offered('dash import signals a')).toEqual([expect.stringMatching(/^a(\\)? file\.ndjson$/)])
    const { stdout } = await run(['--help'])
    const listed = stdout.split('Start:')[1]!.split('Examples:')[0]!
    const named = [...listed.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = '']) => name)
    expect(named.length).toBeGreaterThan(12)
    expect(offered('dash ')).toEqual(named.sort())
  })
})

/** Returns the screen after the completion; the line is empty again then. */
async function screenWith(terminal: TestTerminal, typed: string, completed: string): Promise<string> {
  await terminal.type(typed)
  await terminal.press('Tab')
  const screen = await terminal.until(completed)
  await terminal.press('C-u')
  return screen
}

test('bash completes at its prompt, also after a colon', async () => {
  const { script, folder } = await scriptFor('bash')
  const terminal = await openTerminal([], {
    command: ['bash', '--norc', '--noprofile'],
    home: folder,
    rows: 40,
  })
  await terminal.enter(`PS1='> '; source ${script}; clear`)
  await terminal.until(/^>$/m)
  for (const [typed, completed] of [
    ['dash pub', '> dash publish-year'],
    ['dash collect --source hype:g', '> dash collect --source hype:github'],
    ['dash collect --source=hype:hug', '> dash collect --source=hype:huggingface'],
    ['dash collect --source hy', '> dash collect --source hype:'],
    ['dash evaluate-models --mode=heal', '> dash evaluate-models --mode=healthOnly'],
  ] as const)
    expect(await screenWith(terminal, typed, completed)).toContain('>')
})

test('zsh completes at its prompt', async () => {
  const { script, folder } = await scriptFor('zsh')
  const terminal = await openTerminal([], { command: ['zsh', '-f'], home: folder, rows: 40 })
  await terminal.enter(`PS1='> '; autoload -Uz compinit; compinit -u; source ${script}; clear`)
  await terminal.until(/^>$/m)
  for (const [typed, completed] of [
    ['dash pub', '> dash publish-year'],
    ['dash publish-year --retr', '> dash publish-year --retry-delay'],
    ['dash evaluate-models --mode=heal', '> dash evaluate-models --mode=healthOnly'],
    ['dashctl import sig', '> dashctl import signals'],
    ['dash import signals a', String.raw`> dash import signals a\ file.ndjson`],
  ] as const)
    expect(await screenWith(terminal, typed, completed)).toContain('>')
  await terminal.type('dash verify-archive --s')
  await terminal.press('Tab', 'Tab')
  await terminal.until(/--since +-- read only objects/)
})
