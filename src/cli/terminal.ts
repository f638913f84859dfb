import { styleText } from 'node:util'
import type { Job } from '../domain/job-run.ts'

/** How a command talks: results on stdout, everything else on stderr (docs/operations.md). */
export interface Terminal {
  /**
   * The one result of a command: a JSON document under `--json`, else its lines; under `--quiet` none. What is stored or
   * foreign in them must be {@link escaped}, since their line ends are printed.
   */
  result: (json: unknown, line: string) => void
  /** Under `--json`, the one document of a command that came to no result; that of a job is a failed result. */
  failure: (reason: string, exitCode: number, job?: Job | null) => void
  /** Something a person should know, on one line; not under `--quiet`. */
  note: (message: string) => void
  /** An error, on one line, always. */
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
      if (options.json) stdout.write(jsonLine(json))
      else if (!options.quiet) stdout.write(`${printable(line)}\n`)
    },
    failure(reason, exitCode, job = null) {
      if (!options.json || printed) return
      const failed = job === null ? {} : { job, outcome: 'failed', reason }
      stdout.write(jsonLine({ ...failed, error: reason, exitCode }))
    },
    note(message) {
      if (!options.quiet) say(escaped(message))
    },
    error(message) {
      say(`${colored ? styleText('red', 'error') : 'error'}: ${escaped(message)}`)
    },
    progress(message) {
      if (!interactive || options.quiet) return
      // A line that the terminal breaks could not be cleared.
      const most = Math.max(1, (stderr.columns || DEFAULT_COLUMNS) - 1)
      const line = Array.from(escaped(message)).slice(0, most).join('')
      stderr.write(`\r\x1b[K${line}`)
      progressShown = true
    },
  }
}

/** A name or a code from another party, as a short part of one line. */
export function inOneLine(text: string): string {
  const line = escaped(text.replaceAll(/\s+/g, ' ').trim())
  return line.length > NAME_MAX_LENGTH ? `${line.slice(0, NAME_MAX_LENGTH)}…` : line
}

/** Lines of text, each {@link escaped}. */
export function printable(text: string): string {
  return text.split('\n').map(escaped).join('\n')
}

/** A value as one line of JSON that no terminal obeys; a reader of JSON reads the escapes as the characters they stand for. */
export function jsonLine(value: unknown): string {
  return `${escaped(JSON.stringify(value))}\n`
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Stored or foreign text on one line that steers no terminal: control characters, line ends, and hidden and bidirectional
 * format characters become the escapes of JSON, `\n` and `\u001b`. Every command prints such text through this function.
 */
export function escaped(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
    return (
      SHORT_ESCAPES[character] ?? units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
    )
  })
}
