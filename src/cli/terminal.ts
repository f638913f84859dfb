import { styleText } from 'node:util'
import { isHttpUrl } from '../domain/text.ts'
import type { Job } from '../domain/jobs.ts'

/** Output of a command: results on stdout, everything else on stderr (docs/operations.md). */
export interface Terminal {
  /**
   * Prints the result of a command: a JSON document under `--json`, nothing under `--quiet`, else `line`. Stored or
   * foreign text in `line` must be {@link escaped}, because line ends are printed.
   *
   * @param isPainted true if `line` has escape sequences of the program itself, which are printed as they are
   */
  result: (json: unknown, line: string, isPainted?: boolean) => void
  /** Under `--json`, prints the document of a command without a result; for a job, a failed result. */
  failure: (reason: string, exitCode: number, job?: Job | null) => void
  /** Prints information on one line; not under `--quiet`. */
  note: (message: string) => void
  /** Prints an error on one line, always. */
  error: (message: string) => void
  /** Replaces the progress line; on a terminal only. */
  progress: (message: string) => void
  verbose: boolean
  json: boolean
  quiet: boolean
  /** True if standard error is a terminal that may show prompts and changing lines. */
  interactive: boolean
  /** True if colours are wanted and supported. */
  colored: boolean
}

/** `color` is false for `--no-color`. */
export type TerminalOptions = Record<'json' | 'quiet' | 'verbose' | 'color', boolean>

export interface Streams {
  stdout: NodeJS.WriteStream
  stderr: NodeJS.WriteStream
  env: NodeJS.ProcessEnv
}

/** Width of a terminal that does not tell its size. */
export const DEFAULT_COLUMNS = 80

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
    result(document, line, isPainted = false) {
      printed = true
      clearProgress()
      if (json) stdout.write(jsonLine(document))
      else if (!quiet && line !== '') stdout.write(`${isPainted ? line : printable(line)}\n`)
    },
    failure(reason, exitCode, job = null) {
      if (!json || printed) return
      const failed = job === null ? {} : { job, outcome: 'failed', reason }
      stdout.write(jsonLine({ ...failed, error: reason, exitCode }))
    },
    note(message) {
      if (!quiet) writeLine(escaped(message))
    },
    error: (message) => writeLine(`${styled('error', ['red'], colored)}: ${escaped(message)}`),
    progress(message) {
      if (!interactive || quiet) return
      // A wrapped line could not be cleared.
      const maxLength = Math.max(1, (stderr.columns || DEFAULT_COLUMNS) - 1)
      stderr.write(`\r\x1b[K${Array.from(escaped(message)).slice(0, maxLength).join('')}`)
      progressShown = true
    },
  }
}

export type Style =
  'bold' | 'dim' | 'italic' | 'underline' | 'strikethrough' | 'cyan' | 'red' | 'yellow' | 'gray'

/** Returns a text with its styles; unchanged if `colored` is false. */
export function styled(text: string, styles: readonly Style[], colored: boolean): string {
  // Whether standard output is a terminal does not matter for text on standard error.
  return colored && text !== '' ? styleText([...styles], text, { validateStream: false }) : text
}

/** Reports the failure of a command and returns its exit code. */
export function fail(
  terminal: Pick<Terminal, 'error' | 'failure'>,
  reason: string,
  exitCode: number,
  job: Job | null = null,
): number {
  terminal.error(reason)
  terminal.failure(reason, exitCode, job)
  return exitCode
}

/** Longest name or code that is shown whole. */
const NAME_MAX_LENGTH = 100

/** Shortens a foreign name or code to a part of one line. */
export function inOneLine(text: string): string {
  const line = escaped(text.replaceAll(/\s+/g, ' ').trim())
  return line.length > NAME_MAX_LENGTH ? `${line.slice(0, NAME_MAX_LENGTH)}…` : line
}

/** Returns lines of text, each {@link escaped}. */
export function printable(text: string): string {
  return text.split('\n').map(escaped).join('\n')
}

/** Returns a value as one line of JSON whose control characters are escaped; a JSON parser restores them. */
export function jsonLine(value: unknown): string {
  return `${escaped(JSON.stringify(value))}\n`
}

/** Quotes a word for a POSIX shell if necessary. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Returns a count with its noun: `1 row`, `2 rows`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Makes stored or foreign text safe for one line of a terminal: control characters, line ends, and hidden and
 * bidirectional format characters become JSON escapes, such as `\n` and `\u001b`. Every command prints such text through
 * this function.
 */
export function escaped(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const units = character.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'))
    return SHORT_ESCAPES[character] ?? units.map((unit) => `\\u${unit}`).join('')
  })
}

/** Hyperlinks in a terminal (OSC 8). */

/** Values of TERM_PROGRAM and TERM of terminals that know hyperlinks. */
const PROGRAMS = new Set(['iTerm.app', 'WezTerm', 'vscode', 'ghostty', 'Hyper', 'zed', 'rio'])
const TERMS = /^(?:xterm-kitty|xterm-ghostty|foot|foot-.*|alacritty|alacritty-.*|wezterm)$/

/** First versions of VTE (0.50.1), Konsole (20.12) and tmux that know hyperlinks. */
const VTE_SINCE = 5001
const KONSOLE_SINCE = 201_200
const TMUX_SINCE = 3.4

/** Returns true if a stream is a terminal that knows hyperlinks. `FORCE_HYPERLINK` decides, 0 for no. */
export function knowsHyperlinks({ isTTY }: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  const { FORCE_HYPERLINK: forced, TERM: term = '', TERM_PROGRAM: program = '' } = env
  if (!isTTY) return false
  if (forced) return forced !== '0'
  if (env['CI'] || term === 'dumb') return false
  // A multiplexer inherits the variables of the terminal that it runs in.
  if (program === 'tmux') return Number.parseFloat(env['TERM_PROGRAM_VERSION'] ?? '') >= TMUX_SINCE
  if (/^(?:screen|tmux)/.test(term)) return false
  return (
    PROGRAMS.has(program) ||
    TERMS.test(term) ||
    Boolean(env['WT_SESSION']) ||
    Number(env['VTE_VERSION'] ?? 0) >= VTE_SINCE ||
    Number(env['KONSOLE_VERSION'] ?? 0) >= KONSOLE_SINCE
  )
}

/** Returns the address of a web page in printable ASCII; null for any other text, which is never made a link. */
export function webAddress(text: string | null): string | null {
  if (text === null || !isHttpUrl(text)) return null
  const { href } = new URL(text)
  return /^[\x21-\x7e]+$/.test(href) ? href : null
}

/** @param address from {@link webAddress} */
export function hyperlink(address: string, text: string): string {
  return `\x1b]8;;${address}\x1b\\${text}\x1b]8;;\x1b\\`
}
