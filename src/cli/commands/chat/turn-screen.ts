import type { ToolName } from '../../../domain/agent/model-call.ts'
import type { CommandContext } from '../../context.ts'
import { knowsHyperlinks } from '../../hyperlink.ts'
import { Sources, faintRow, markdownRows } from './markdown.ts'
import type { Row } from './wrap.ts'

/** Display of an answer while it streams. */
export interface TurnScreen {
  text(text: string): Promise<void> | void
  tool(name: ToolName, status: 'start' | 'done'): void
  /** Completes the display; further calls have no effect. */
  end(): Promise<void> | void
}

/**
 * Opens a display: rendered on a terminal, else plain text (none under `--json`) with tools on standard error.
 *
 * @param signal once aborted, writes do not wait for the reader of standard output
 */
export function openScreen(context: CommandContext, isTalk: boolean, signal: AbortSignal): TurnScreen {
  const { stdout, terminal, env } = context
  return stdout.isTTY && terminal.interactive && !terminal.json
    ? paintedScreen(stdout, terminal.colored, knowsHyperlinks(stdout, env))
    : plainScreen(context, isTalk, signal)
}

function plainScreen({ stdout, terminal }: CommandContext, isTalk: boolean, signal: AbortSignal): TurnScreen {
  const startTimes = new Map<ToolName, number>()
  let last = ''
  return {
    async text(text) {
      // If both streams are one terminal, the answer must begin at the start of a line.
      if (!isTalk && last === '') terminal.progress('')
      last = text
      if (!terminal.json) await write(stdout, text, signal)
    },
    tool(name, status) {
      const startedAt = startTimes.get(name)
      if (!isTalk && last === '') terminal.progress(`${name} …`)
      if (status === 'start') startTimes.set(name, performance.now())
      else if (isTalk && startedAt !== undefined)
        terminal.note(toolMessage({ name, ms: performance.now() - startedAt }))
    },
    async end() {
      if (!terminal.json && last !== '' && !last.endsWith('\n')) await write(stdout, '\n', signal)
      last = ''
    },
  }
}

/** Writes no faster than the reader reads, until `signal` aborts. */
export async function write(stdout: NodeJS.WriteStream, text: string, signal: AbortSignal): Promise<void> {
  if (stdout.destroyed || stdout.write(text) || signal.aborted) return
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      stdout.off('drain', settle)
      stdout.off('close', settle)
      signal.removeEventListener('abort', settle)
      resolve()
    }
    stdout.once('drain', settle)
    stdout.once('close', settle)
    signal.addEventListener('abort', settle, { once: true })
  })
}

/** Shortest time between frames, and its ratio to the time that the faster of the last two frames took. */
const FRAME_MS = 50
const FRAME_SHARE = 3

const WAITING = 'waiting for the answer; Ctrl-C to stop'

/** Part of an answer: text, or a tool call, whose duration is null while it runs. */
type Part =
  { kind: 'text'; text: string } | { kind: 'tool'; name: ToolName; startedAt: number; ms: number | null }

/** Renders the whole answer in every frame, because the next piece of Markdown may change the meaning of the last. */
function paintedScreen(screen: NodeJS.WriteStream, colored: boolean, linked: boolean): TurnScreen {
  const painter = new Painter(screen)
  const parts: Part[] = []
  let isOpen = true
  let timer: NodeJS.Timeout | undefined
  let nextFrameAt = 0
  let lastFrameMs = 0

  const rows = (isRunning: boolean): Row[] => {
    // The last column stays free: some terminals wrap once it is written.
    const sources = new Sources()
    const options = { columns: Math.max(8, screen.columns - 1), colored, linked, sources }
    const shown = parts.flatMap((part, index) => {
      if (part.kind === 'tool') return [faintRow(toolMessage(part), options)]
      const painted = markdownRows(part.text.replace(/^\n+/, ''), options)
      const isApart = parts[index - 1]?.kind === 'tool' && painted.length > 0
      return isApart ? [{ text: '', width: 0 }, ...painted] : painted
    })
    const isWaiting = isRunning && parts.every((part) => part.kind === 'tool' && part.ms !== null)
    if (isRunning) return isWaiting ? [...shown, faintRow(WAITING, options)] : shown
    const listed = sources.rows(options)
    return listed.length > 0 ? [...shown, { text: '', width: 0 }, ...listed] : shown
  }
  const frame = (): void => {
    timer = undefined
    const began = performance.now()
    painter.paint(rows(true))
    const ended = performance.now()
    // The first frame is slower than others: the faster of two counts.
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
      const running = parts.find((part) => part.kind === 'tool' && part.name === name && part.ms === null)
      if (status === 'start') parts.push({ kind: 'tool', name, startedAt: now, ms: null })
      else if (running?.kind === 'tool') running.ms = now - running.startedAt
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

/** Returns `search_items 0.8 s`. Arguments and results of tools stay with the server. */
function toolMessage({ name, ms }: { name: ToolName; ms: number | null }): string {
  return ms === null ? `· ${name} …` : `· ${name} ${(ms / 1000).toFixed(1)} s`
}

/** Terminal that is painted on. */
export interface Screen {
  write(text: string): unknown
  columns: number
  rows: number
}

/** Without wrapping, a terminal that counts the columns of a character differently clips the row. */
const WITHOUT_WRAP = '\x1b[?7l'
const WITH_WRAP = '\x1b[?7h'
/** Clears from the second column on: tmux moves a screen that is cleared from its first cell to the scrollback. */
const CLEAR_BELOW = '\x1b[C\x1b[J\r\x1b[2K'

/**
 * Rows at the bottom of a terminal that may still change. Painting begins at the first row that differs; rows that
 * have scrolled away stay as they are.
 */
export class Painter {
  readonly #screen: Screen
  #painted: readonly Row[] = []

  constructor(screen: Screen) {
    this.#screen = screen
  }

  /** Paints the changed rows in one write. The cursor stays behind the last row. */
  paint(rows: readonly Row[]): void {
    const before = this.#painted
    let first = 0
    while (first < before.length && before[first]?.text === rows[first]?.text) first += 1
    if (first === before.length && first === rows.length) return
    const inReach = Math.max(0, before.length - this.#screen.rows)
    // The cursor stands in the last row, so painting begins there at the latest.
    const from = Math.max(inReach, Math.min(first, before.length - 1, rows.length - 1), 0)
    const up = Math.max(0, before.length - 1 - from)
    this.#write(up, rows.slice(from))
    this.#painted = rows
  }

  /**
   * Repaints after the terminal was resized: the old rows may take more rows now, because the terminal wraps them.
   *
   * @param rows for the new size
   */
  repaint(rows: readonly Row[]): void {
    const { columns, rows: height } = this.#screen
    const taken = this.#painted.reduce((sum, { width }) => sum + Math.max(1, Math.ceil(width / columns)), 0)
    const up = Math.max(0, Math.min(taken, height) - 1)
    // The beginning of rows that do not fit is above the screen already.
    this.#write(up, taken > height ? rows.slice(-height) : rows)
    this.#painted = rows
  }

  /** Ends painting: the rows stay, and the cursor moves to the row below. */
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
