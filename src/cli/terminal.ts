import { styleText } from 'node:util'
import type { Job } from '../domain/job-run.ts'

/** How a command talks: results on stdout, everything else on stderr (docs/operations.md). */
export interface Terminal {
  /**
   * The one result of a command: a JSON document under `--json`, else its lines; under `--quiet` none. Stored or foreign
   * text in them must be {@link escaped}, since their line ends are printed.
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

/** `color` is false for `--no-color`. */
export type TerminalOptions = Record<'json' | 'quiet' | 'verbose' | 'color', boolean>

export interface Streams {
  stdout: NodeJS.WriteStream
  stderr: NodeJS.WriteStream
  env: NodeJS.ProcessEnv
}

const DEFAULT_COLUMNS = 80

export function openTerminal(
  { json, quiet, verbose, color }: TerminalOptions,
  { stdout, stderr, env }: Streams,
): Terminal {
  const interactive = stderr.isTTY && !env['CI'] && env['TERM'] !== 'dumb'
  const colored = interactive && color && !env['NO_COLOR']
  let progressShown = false
  let printed = false
  const clearProgress = (): void => {
    if (progressShown) stderr.write('\r\x1b[K')
    progressShown = false
  }
  const writeLine = (message: string): void => {
    clearProgress()
    stderr.write(`${message}\n`)
  }
  return {
    json,
    verbose,
    quiet,
    interactive,
    colored,
    result(document, line) {
      printed = true
      clearProgress()
      if (json) stdout.write(jsonLine(document))
      else if (!quiet) stdout.write(`${printable(line)}\n`)
    },
    failure(reason, exitCode, job = null) {
      if (!json || printed) return
      const failed = job === null ? {} : { job, outcome: 'failed', reason }
      stdout.write(jsonLine({ ...failed, error: reason, exitCode }))
    },
    note(message) {
      if (!quiet) writeLine(escaped(message))
    },
    error: (message) => writeLine(`${colored ? styleText('red', 'error') : 'error'}: ${escaped(message)}`),
    progress(message) {
      if (!interactive || quiet) return
      // A line that the terminal breaks could not be cleared.
      const maxLength = Math.max(1, (stderr.columns || DEFAULT_COLUMNS) - 1)
      stderr.write(`\r\x1b[K${Array.from(escaped(message)).slice(0, maxLength).join('')}`)
      progressShown = true
    },
  }
}

/** No name and no code is longer. */
const NAME_MAX_LENGTH = 100

/** A name or a code from another party, as a short part of one line. */
export function inOneLine(text: string): string {
  const line = escaped(text.replaceAll(/\s+/g, ' ').trim())
  return line.length > NAME_MAX_LENGTH ? `${line.slice(0, NAME_MAX_LENGTH)}…` : line
}

/** Lines of text, each {@link escaped}. */
export function printable(text: string): string {
  return text.split('\n').map(escaped).join('\n')
}

/** A value as one line of JSON that no terminal obeys; a JSON parser reads the escapes as the characters they stand for. */
export function jsonLine(value: unknown): string {
  return `${escaped(JSON.stringify(value))}\n`
}

/** A word of a command line for a POSIX shell, in quotes when it needs them. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : shellQuoted(text)
}

export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** A number of things, as `1 row` and `2 rows`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Stored or foreign text on one line that steers no terminal: control characters, line ends, and hidden and bidirectional
 * format characters become the escapes of JSON, `\n` and `\u001b`. Every command prints such text through this function.
 */
export function escaped(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const units = character.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'))
    return SHORT_ESCAPES[character] ?? units.map((unit) => `\\u${unit}`).join('')
  })
}
