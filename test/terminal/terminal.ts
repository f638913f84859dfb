import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { PROGRAM, temporaryFolder } from '../support/dash.ts'

/** A real terminal with a program in it: tmux draws its screen and reports output. */
export interface TestTerminal {
  /** Folder of the program's own: its home. */
  home: string
  /** Everything the program has written. */
  readonly written: string
  /** Types text as it is. */
  type(text: string): Promise<void>
  /** Presses keys by tmux's names: `Enter`, `C-c`, `Up`, `Tab`. */
  press(...keys: string[]): Promise<void>
  /** Types a line and sends it with Enter. */
  enter(line: string): Promise<void>
  /** Pastes text as a terminal does, with bracketed paste if the program enabled it. */
  paste(text: string): Promise<void>
  /** The current screen with its scrollback, without trailing spaces. */
  screen(): Promise<string>
  /** Waits for output until the screen is as wanted; returns it. */
  until(expected: string | RegExp | ((screen: string) => boolean)): Promise<string>
  /** Runs a tmux command; returns what it prints. */
  tmux(...words: string[]): Promise<string>
}

export interface TerminalOptions {
  columns?: number
  rows?: number
  env?: Record<string, string>
  home?: string
  /** Where standard output goes instead of to the terminal; below the home. */
  outputFile?: string
}

/** Text that the shell prints after the program has ended. */
export const ENDED = 'ended with'

const shellQuoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`

/** Starts the program in a terminal; the surrounding shell then prints its exit code and the terminal modes. */
export async function openTerminal(
  args: readonly string[],
  { columns = 80, rows = 24, env = {}, home = temporaryFolder(), outputFile }: TerminalOptions = {},
): Promise<TestTerminal> {
  const variables = { HOME: home, PATH: process.env['PATH'] ?? '', LANG: 'C.UTF-8', TZ: 'UTC', ...env }
  const settings = Object.entries(variables).map(([name, value]) => shellQuoted(`${name}=${value}`))
  const program = [process.execPath, PROGRAM, ...args].map(shellQuoted).join(' ')
  const shell = `env -i ${settings.join(' ')} TERM="$TERM" ${program}${outputFile === undefined ? '' : ` > ${shellQuoted(outputFile)}`}; echo ${shellQuoted(ENDED)} $?; stty -a | tr ' ' '\\n' | grep -E '^-?(icanon|echo);?$' | tr '\\n' ' '; echo; cat`
  const socket = `dash-test-${randomBytes(6).toString('hex')}`
  const words = `-u -C -L ${socket} -f /dev/null new-session -x ${columns} -y ${rows}`.split(' ')
  const server = spawn('tmux', [...words, shell], {
    cwd: home,
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'] ?? '', HOME: home, LANG: 'C.UTF-8', SHELL: '/bin/sh' },
  })
  onTestFinished(async () => {
    spawn('tmux', ['-L', socket, 'kill-server'], { stdio: 'ignore' })
    await ended
  })
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()))
  let written = ''
  let count = 0
  let isOver = false
  let changed: () => void = () => undefined
  const replyHandlers: ((replyLines: { lines: string[]; failed: boolean }) => void)[] = []
  let replyLines: string[] | null = null
  createInterface({ input: server.stdout }).on('line', (line) => {
    if (replyLines !== null) {
      if (!/^%(end|error) /.test(line)) return void replyLines.push(line)
      replyHandlers.shift()?.({ lines: replyLines, failed: line.startsWith('%error') })
      replyLines = null
    } else if (line.startsWith('%begin ')) replyLines = []
    else if (line.startsWith('%output ')) {
      written += unescaped(line.replace(/^%output %\d+ /, ''))
      count += 1
      changed()
    }
  })
  void ended.then(() => {
    isOver = true
    changed()
    for (const each of replyHandlers) each({ lines: ['tmux has ended'], failed: true })
  })
  const next = (): Promise<string> =>
    new Promise((resolve, reject) =>
      replyHandlers.push(({ lines, failed }) =>
        failed ? reject(new Error(lines.join('\n'))) : resolve(lines.join('\n')),
      ),
    )
  const started = next()
  const tmux = (...tmuxArgs: string[]): Promise<string> => {
    const done = next()
    server.stdin.write(`${tmuxArgs.map(shellQuoted).join(' ')}\n`)
    return done
  }
  await started
  await tmux('refresh-client', '-C', `${columns}x${rows}`)
  const screen = async (): Promise<string> =>
    (await tmux('capture-pane', '-p', '-S', '-')).replace(/[ \t]+$/gm, '').trimEnd()
  return {
    home,
    get written() {
      return written
    },
    type: async (text) => void (await tmux('send-keys', '-l', text)),
    press: async (...keys) => void (await tmux('send-keys', ...keys)),
    async enter(line) {
      await tmux('send-keys', '-l', line)
      await tmux('send-keys', 'Enter')
    },
    async paste(text) {
      const file = join(home, 'paste')
      await writeFile(file, text)
      await tmux('load-buffer', file)
      await tmux('paste-buffer', '-p', '-r')
    },
    screen,
    async until(expected) {
      const matches = (text: string): boolean =>
        typeof expected === 'function'
          ? expected(text)
          : typeof expected === 'string'
            ? text.includes(expected)
            : expected.test(text)
      for (;;) {
        const countBefore = count
        const shown = await screen()
        if (matches(shown)) return shown
        if (isOver) throw new Error(`the terminal has ended:\n${shown}`)
        if (count === countBefore) await new Promise<void>((resolve) => (changed = resolve))
      }
    },
    tmux,
  }
}

/** Decodes output of tmux, which escapes control characters and backslashes as three octal digits. */
function unescaped(text: string): string {
  const bytes = text
    .split(/(\\[0-7]{3})/)
    .map((part) =>
      /^\\[0-7]{3}$/.test(part) ? Buffer.of(Number.parseInt(part.slice(1), 8)) : Buffer.from(part),
    )
  return Buffer.concat(bytes).toString()
}
