import { BODY_MAX_BYTES, MESSAGES_READ, MESSAGE_MAX_LENGTH } from '../../../domain/agent/bounds.ts'
import type { Replay } from '../../../domain/agent/conversation.ts'
import type { ToolName } from '../../../domain/agent/model-call.ts'
import type { ServedEvent } from '../../../domain/agent/schema.ts'
import type { CommandContext } from '../../context.ts'
import type { Keyboard } from './keyboard.ts'
import { faintRow, markdownRows } from './markdown.ts'
import type { Talk } from './talk.ts'
import { canHelpAgain, declinedWords, failureWords, isChatRefusal, labelsOf, quotaWords } from './words.ts'
import type { Row } from './wrap.ts'

/** Where a talk happens. */
export interface Place {
  context: CommandContext
  keyboard: Keyboard
  talk: Talk
  base: string
  /** A line beside the answers. */
  say: (text: string) => void
}

/**
 * Asks and shows the answer while it comes. Ctrl-C ends the request; what came of the answer stays in the talk.
 *
 * @param again true to replace the answer to the last question
 * @param last what the request before left out
 * @returns what this request leaves out
 * @throws the signal's reason once the program is to end, and whatever is no refusal
 */
export async function showTurn(
  place: Place,
  question: string,
  again: boolean,
  last: Replay | null,
): Promise<Replay> {
  const { context, talk, base, say } = place
  const { signal, terminal } = context
  const replay = talk.replay(question, again)
  for (const note of replayNotes(replay, last)) say(note)
  const ending = interruptible(place)
  const screen = openScreen(context)
  const after: string[] = []
  try {
    for await (const each of talk.ask(question, ending.signal, again)) {
      if (each.kind === 'text') screen.text(each.text)
      else if (each.kind === 'renewed') after.push('the session had ended; another was begun')
      else after.push(...show(each.served, screen))
    }
  } catch (error) {
    if (ending.signal.aborted) after.push('stopped; what came stays in the talk, /retry asks again')
    else if (isChatRefusal(error)) {
      const { text } = declinedWords(error, base, Date.now(), { isTalk: true, quota: talk.quota })
      after.push(canHelpAgain(error, talk.quota) ? `${text}; /retry asks again` : text)
    } else throw error
  } finally {
    screen.close()
    ending.release()
  }
  signal.throwIfAborted()
  for (const line of after) say(line)
  if (talk.quota && !terminal.quiet) say(`${quotaWords(talk.quota)} left`)
  return replay
}

/** A signal that Ctrl-C aborts, and the end of the program, until it is released. */
export function interruptible({ context, keyboard }: Place): { signal: AbortSignal; release(): void } {
  const { signal } = context
  const stopping = new AbortController()
  const stop = (): void => stopping.abort(new DOMException('stopped at the keyboard', 'AbortError'))
  keyboard.interruptWith(stop)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  return {
    signal: stopping.signal,
    release() {
      keyboard.interruptWith(null)
      signal.removeEventListener('abort', stop)
    },
  }
}

/** Shows one event; returns what is to be said of it once the answer has ended. */
function show(served: ServedEvent, screen: TurnScreen): string[] {
  switch (served.event) {
    case 'tool':
      screen.tool(served.data.name, served.data.status)
      return []
    case 'done': {
      const { degraded = false, cached = false } = served.data
      return labelsOf({ degraded, cached })
    }
    case 'error':
      return [failureWords(served.data, { isTalk: true })]
    case 'meta':
    case 'delta':
      return []
  }
}

/** A screen that is painted where the answer goes to a terminal, else plain text there and the tools on standard error. */
export function openScreen({ stdout, terminal }: CommandContext): TurnScreen & { close(): void } {
  const now = (): number => performance.now()
  if (!stdout.isTTY) {
    const plain = plainScreen(stdout, terminal.note, now)
    return { ...plain, close: () => plain.end() }
  }
  const screen = openTurnScreen(stdout, terminal.colored, now)
  const resized = (): void => screen.resized()
  stdout.on('resize', resized)
  return {
    ...screen,
    close() {
      stdout.off('resize', resized)
      screen.end()
    },
  }
}

function plainScreen(
  stdout: NodeJS.WriteStream,
  note: (text: string) => void,
  now: () => number,
): TurnScreen {
  const begun = new Map<string, number>()
  let last = '\n'
  return {
    text(text) {
      stdout.write(text)
      last = text
    },
    tool(name, status) {
      const startedAt = begun.get(name)
      if (status === 'start') begun.set(name, now())
      else if (startedAt !== undefined) note(toolWords({ name, ms: now() - startedAt }))
    },
    resized: () => undefined,
    end() {
      if (!last.endsWith('\n')) stdout.write('\n')
    },
  }
}

const number = (value: number): string => value.toLocaleString('en')

/** What a person is told of what a request leaves out that the one before did not. @param last null before the first */
export function replayNotes(replay: Replay, last: Replay | null): string[] {
  const { leftOut, questionCut, earlierCut } = replay
  return [
    ...(questionCut
      ? [`the question is cut: only its first ${number(MESSAGE_MAX_LENGTH)} characters are read`]
      : []),
    ...(leftOut > (last?.leftOut ?? 0)
      ? [
          `${leftOut === 1 ? 'the oldest turn is' : `the ${leftOut} oldest turns are`} left out from now on: no more than ` +
            `the last ${MESSAGES_READ} messages and ${number(BODY_MAX_BYTES)} bytes are read`,
        ]
      : []),
    ...(earlierCut > (last?.earlierCut ?? 0)
      ? [`of long texts before, only the first ${number(MESSAGE_MAX_LENGTH)} characters are read`]
      : []),
  ]
}

/** Frames are at least so far apart, and so many times as far as the quicker of the last two took to make. */
const FRAME_MS = 50
const FRAME_SHARE = 3

/** What has come of an answer, in order. */
type Part = { kind: 'text'; text: string } | ToolPart

interface ToolPart {
  kind: 'tool'
  name: ToolName
  startedAt: number
  /** null while it runs. */
  ms: number | null
}

/** What is shown of a turn while it runs. */
export interface TurnScreen {
  text(text: string): void
  tool(name: ToolName, status: 'start' | 'done'): void
  /** The terminal has another size. */
  resized(): void
  /** Shows everything, and leaves it. */
  end(): void
}

/** @param now milliseconds of a clock that only goes forward */
function openTurnScreen(screen: Screen & { on?: unknown }, colored: boolean, now: () => number): TurnScreen {
  const painter = new Painter(screen)
  const parts: Part[] = []
  let timer: NodeJS.Timeout | null = null
  let nextFrameAt = 0
  let lastFrameMs = 0

  const rows = (isRunning: boolean): Row[] => {
    // The last column stays free: some terminals wrap once it is written.
    const options = { columns: Math.max(8, screen.columns - 1), colored }
    const shown = parts.flatMap((part, index) => rowsOf(part, parts[index - 1], options))
    const isWaiting = isRunning && parts.every((part) => part.kind === 'tool' && part.ms !== null)
    return isWaiting ? [...shown, faintRow(WAITING, options)] : shown
  }
  const frame = (): void => {
    timer = null
    const began = now()
    painter.paint(rows(true))
    const ended = now()
    // The first frame of all is slow for reasons of its own.
    nextFrameAt = ended + Math.max(FRAME_MS, Math.min(ended - began, lastFrameMs) * FRAME_SHARE)
    lastFrameMs = ended - began
  }
  const changed = (): void => {
    timer ??= setTimeout(frame, Math.max(0, nextFrameAt - now()))
  }
  changed()
  return {
    text(text) {
      const last = parts.at(-1)
      if (last?.kind === 'text') last.text += text
      else parts.push({ kind: 'text', text })
      changed()
    },
    tool(name, status) {
      if (status === 'start') parts.push({ kind: 'tool', name, startedAt: now(), ms: null })
      else {
        const begun = parts.find(
          (part): part is ToolPart => part.kind === 'tool' && part.name === name && part.ms === null,
        )
        if (begun) begun.ms = now() - begun.startedAt
      }
      changed()
    },
    resized() {
      painter.repaint(rows(true))
    },
    end() {
      if (timer !== null) clearTimeout(timer)
      painter.paint(rows(false))
      painter.end()
    },
  }
}

const WAITING = 'waiting for the answer; Ctrl-C stops it'

function rowsOf(part: Part, before: Part | undefined, options: { columns: number; colored: boolean }): Row[] {
  if (part.kind === 'tool') return [faintRow(toolWords(part), options)]
  const rows = markdownRows(part.text.replace(/^\n+/, ''), options)
  return before?.kind === 'tool' && rows.length > 0 ? [{ text: '', width: 0 }, ...rows] : rows
}

/** `search_items 0.8 s`; what it was asked and what it found stay with the server. */
function toolWords({ name, ms }: Pick<ToolPart, 'name' | 'ms'>): string {
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
