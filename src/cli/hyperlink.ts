import { isHttpUrl } from '../domain/address.ts'

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
