import type { ToolName } from '../../../domain/agent/model-call.ts'
import type { CommandContext } from '../../context.ts'
import { faintRow, markdownRows } from './markdown.ts'
import type { Row } from './wrap.ts'

/** Shows an answer while it comes. */
export interface TurnScreen {
  text(text: string): Promise<void> | void
  tool(name: ToolName, status: 'start' | 'done'): void
  /** Shows everything, and leaves it; once. */
  end(): Promise<void> | void
}

/**
 * Rendered where the answer goes to a terminal, else plain text (none under `--json`) and the tools on standard error.
 *
 * @param signal once aborted, a reader of standard output is not waited for
 */
export function openScreen(context: CommandContext, isTalk: boolean, signal: AbortSignal): TurnScreen {
  const { stdout, terminal } = context
  return stdout.isTTY && terminal.interactive && !terminal.json
    ? paintedScreen(stdout, terminal.colored)
    : plainScreen(context, isTalk, signal)
}

function plainScreen({ stdout, terminal }: CommandContext, isTalk: boolean, signal: AbortSignal): TurnScreen {
  const begun = new Map<ToolName, number>()
  let last = ''
  return {
    async text(text) {
      // Where both streams are one terminal, the answer begins at the start of the line.
      if (!isTalk && last === '') terminal.progress('')
      last = text
      if (!terminal.json) await write(stdout, text, signal)
    },
    tool(name, status) {
      const startedAt = begun.get(name)
      if (!isTalk && last === '') terminal.progress(`${name} …`)
      if (status === 'start') begun.set(name, performance.now())
      else if (isTalk && startedAt !== undefined)
        terminal.note(toolMessage({ name, ms: performance.now() - startedAt }))
    },
    async end() {
      if (!terminal.json && last !== '' && !last.endsWith('\n')) await write(stdout, '\n', signal)
      last = ''
    },
  }
}

/** Writes no faster than the reader takes it, until `signal` says that it has left. */
export async function write(stdout: NodeJS.WriteStream, text: string, signal: AbortSignal): Promise<void> {
  if (stdout.destroyed || stdout.write(text) || signal.aborted) return
  await new Promise<void>((resolve) => {
    const go = (): void => {
      stdout.off('drain', go)
      stdout.off('close', go)
      signal.removeEventListener('abort', go)
      resolve()
    }
    stdout.once('drain', go)
    stdout.once('close', go)
    signal.addEventListener('abort', go, { once: true })
  })
}

/** Frames are at least so far apart, and so many times as far as the quicker of the last two took to make. */
const FRAME_MS = 50
const FRAME_SHARE = 3

const WAITING = 'waiting for the answer; Ctrl-C stops it'

/** A piece of an answer: text, or the call of a tool, whose time is null while it runs. */
type Part =
  { kind: 'text'; text: string } | { kind: 'tool'; name: ToolName; startedAt: number; ms: number | null }

/** Paints the whole answer anew in every frame: the next piece of Markdown may change the meaning of the last. */
function paintedScreen(screen: NodeJS.WriteStream, colored: boolean): TurnScreen {
  const painter = new Painter(screen)
  const parts: Part[] = []
  let isOpen = true
  let timer: NodeJS.Timeout | undefined
  let nextFrameAt = 0
  let lastFrameMs = 0

  const rows = (isRunning: boolean): Row[] => {
    // The last column stays free: some terminals wrap once it is written.
    const options = { columns: Math.max(8, screen.columns - 1), colored }
    const shown = parts.flatMap((part, index) => {
      if (part.kind === 'tool') return [faintRow(toolMessage(part), options)]
      const painted = markdownRows(part.text.replace(/^\n+/, ''), options)
      const isApart = parts[index - 1]?.kind === 'tool' && painted.length > 0
      return isApart ? [{ text: '', width: 0 }, ...painted] : painted
    })
    const isWaiting = isRunning && parts.every((part) => part.kind === 'tool' && part.ms !== null)
    return isWaiting ? [...shown, faintRow(WAITING, options)] : shown
  }
  const frame = (): void => {
    timer = undefined
    const began = performance.now()
    painter.paint(rows(true))
    const ended = performance.now()
    // The first frame of all is slow for reasons of its own.
    nextFrameAt = ended + Math.max(FRAME_MS, Math.min(ended - began, lastFrameMs) * FRAME_SHARE)
    lastFrameMs = ended - began
  }
  const changed = (): void => {
    timer ??= setTimeout(frame, Math.max(0, nextFrameAt - performance.now()))
  }
  const resized = (): void => painter.repaint(rows(true))
  screen.on('resize', resized)
  changed()
  return {
    text(text) {
      const last = parts.at(-1)
      if (last?.kind === 'text') last.text += text
      else parts.push({ kind: 'text', text })
      changed()
    },
    tool(name, status) {
      const now = performance.now()
      const begun = parts.find((part) => part.kind === 'tool' && part.name === name && part.ms === null)
      if (status === 'start') parts.push({ kind: 'tool', name, startedAt: now, ms: null })
      else if (begun?.kind === 'tool') begun.ms = now - begun.startedAt
      changed()
    },
    end() {
      if (!isOpen) return
      isOpen = false
      screen.off('resize', resized)
      clearTimeout(timer)
      painter.paint(rows(false))
      painter.end()
    },
  }
}

/** `search_items 0.8 s`; its arguments and results stay with the server. */
function toolMessage({ name, ms }: { name: ToolName; ms: number | null }): string {
  return ms === null ? `· ${name} …` : `· ${name} ${(ms / 1000).toFixed(1)} s`
}

/** The terminal that is painted on. */
export interface Screen {
  write(text: string): unknown
  columns: number
  rows: number
}

/** Rows are clipped, not wrapped, where a terminal counts the columns of a character otherwise. */
const WITHOUT_WRAP = '\x1b[?7l'
const WITH_WRAP = '\x1b[?7h'
/** From the second column on: cleared from its first cell on, a screen is kept by tmux with what has scrolled away. */
const CLEAR_BELOW = '\x1b[C\x1b[J\r\x1b[2K'

/**
 * Rows at the bottom of a terminal that may still change. What is painted again begins at the first row that differs;
 * rows that have scrolled out of reach stay as they are.
 */
export class Painter {
  readonly #screen: Screen
  #painted: readonly Row[] = []

  constructor(screen: Screen) {
    this.#screen = screen
  }

  /** Paints what differs from what is there, in one write. The cursor stays behind the last row. */
  paint(rows: readonly Row[]): void {
    const before = this.#painted
    let first = 0
    while (first < before.length && before[first]?.text === rows[first]?.text) first += 1
    if (first === before.length && first === rows.length) return
    const inReach = Math.max(0, before.length - this.#screen.rows)
    // The cursor stands in the last row, so that row is where anything new is begun from.
    const from = Math.max(inReach, Math.min(first, before.length - 1, rows.length - 1), 0)
    const up = Math.max(0, before.length - 1 - from)
    this.#write(up, rows.slice(from))
    this.#painted = rows
  }

  /**
   * Paints anew after the terminal has changed its size: what was there may take more rows now, where it is wrapped.
   *
   * @param rows for the new size
   */
  repaint(rows: readonly Row[]): void {
    const { columns, rows: height } = this.#screen
    const taken = this.#painted.reduce((sum, { width }) => sum + Math.max(1, Math.ceil(width / columns)), 0)
    const up = Math.max(0, Math.min(taken, height) - 1)
    // Of what does not fit, the beginning is above the screen already.
    this.#write(up, taken > height ? rows.slice(-height) : rows)
    this.#painted = rows
  }

  /** Ends what is painted: from now on it stays as it is, and the cursor is in the row below. */
  end(): void {
    if (this.#painted.length > 0) this.#screen.write('\r\n')
    this.#painted = []
  }

  #write(up: number, rows: readonly Row[]): void {
    const move = up > 0 ? `\r\x1b[${up}A` : '\r'
    const text = rows.map((row) => row.text).join('\r\n')
    this.#screen.write(`${move}${CLEAR_BELOW}${WITHOUT_WRAP}${text}${WITH_WRAP}`)
  }
}
