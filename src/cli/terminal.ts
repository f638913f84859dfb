import { styleText, stripVTControlCharacters } from 'node:util'
import type { Job } from '../domain/job-run.ts'

/** How a command talks: results on stdout, everything else on stderr (docs/operations.md). */
export interface Terminal {
  /** The one result of a command: a JSON document under `--json`, else its line; under `--quiet` no line. */
  result: (json: unknown, line: string) => void
  /** Under `--json`, the one document of a command that came to no result; that of a job is a failed result. */
  failure: (reason: string, exitCode: number, job?: Job | null) => void
  /** Something a person should know; not under `--quiet`. */
  note: (message: string) => void
  /** An error, always. */
  error: (message: string) => void
  /** A line that replaces the one before, on a terminal only. */
  progress: (message: string) => void
  verbose: boolean
  json: boolean
  quiet: boolean
  /** True when a person sits at standard error: prompts and lines that change may be shown there. */
  interactive: boolean
  /** True when colours are wanted and can be shown. */
  colored: boolean
}

/** No name and no code is longer. */
const NAME_MAX_LENGTH = 100

const DEFAULT_COLUMNS = 80

export interface TerminalOptions {
  json: boolean
  quiet: boolean
  verbose: boolean
  /** False for `--no-color`. */
  color: boolean
}

export interface Streams {
  stdout: NodeJS.WriteStream
  stderr: NodeJS.WriteStream
  env: NodeJS.ProcessEnv
}

export function openTerminal(options: TerminalOptions, { stdout, stderr, env }: Streams): Terminal {
  const interactive = stderr.isTTY && !env['CI'] && env['TERM'] !== 'dumb'
  const colored = interactive && options.color && !env['NO_COLOR']
  let progressShown = false
  let printed = false
  const clearProgress = (): void => {
    if (progressShown) stderr.write('\r\x1b[K')
    progressShown = false
  }
  const say = (message: string): void => {
    clearProgress()
    stderr.write(`${message}\n`)
  }
  return {
    json: options.json,
    verbose: options.verbose,
    quiet: options.quiet,
    interactive,
    colored,
    result(json, line) {
      printed = true
      clearProgress()
      if (options.json) stdout.write(`${JSON.stringify(json)}\n`)
      else if (!options.quiet) stdout.write(`${printable(line)}\n`)
    },
    failure(reason, exitCode, job = null) {
      if (!options.json || printed) return
      const failed = job === null ? {} : { job, outcome: 'failed', reason }
      stdout.write(`${JSON.stringify({ ...failed, error: reason, exitCode })}\n`)
    },
    note(message) {
      if (!options.quiet) say(printable(message))
    },
    error(message) {
      say(`${colored ? styleText('red', 'error') : 'error'}: ${printable(message)}`)
    },
    progress(message) {
      if (!interactive || options.quiet) return
      // A line that the terminal breaks could not be cleared.
      const most = Math.max(1, (stderr.columns || DEFAULT_COLUMNS) - 1)
      const line = Array.from(printable(message)).slice(0, most).join('')
      stderr.write(`\r\x1b[K${line}`)
      progressShown = true
    },
  }
}

/** What another party sent as a name or a code, as part of one line. */
export function inOneLine(text: string): string {
  const line = printable(text).replaceAll(/\s+/g, ' ').trim()
  return line.length > NAME_MAX_LENGTH ? `${line.slice(0, NAME_MAX_LENGTH)}…` : line
}

/** Text from files and sources must not steer the terminal: control and format characters become spaces. */
export function printable(text: string): string {
  const lines = stripVTControlCharacters(text).split('\n')
  return lines.map((line) => line.replaceAll(/[\p{Cc}\p{Cf}]/gu, ' ')).join('\n')
}
