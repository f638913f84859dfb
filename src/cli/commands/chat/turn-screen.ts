import { TOOL_ACTIONS } from '../../../domain/agent/model-call.ts'
import type { ToolName } from '../../../domain/agent/model-call.ts'
import type { CommandContext } from '../../context.ts'
import { knowsHyperlinks } from '../../hyperlink.ts'
import { markdownStream } from './markdown.ts'
import type { MarkdownStream } from './markdown.ts'

/** Display of an answer while it streams. */
export interface TurnScreen {
  text(text: string): Promise<void>
  tool(name: ToolName, status: 'start' | 'done'): Promise<void>
  /** Completes the display; further calls have no effect. */
  end(): Promise<void>
}

const WAITING = 'waiting for the answer; Ctrl-C to stop'

/**
 * Opens a display: on a terminal each block is rendered once it is complete, elsewhere the answer is plain text (none
 * under `--json`). A line on standard error says what is awaited.
 *
 * @param signal once aborted, writes do not wait for the reader of standard output
 * @param say prints a line beside the answers of a conversation; null for a single answer
 */
export function openScreen(
  { stdout, terminal, env }: CommandContext,
  signal: AbortSignal,
  say: ((text: string) => void) | null,
): TurnScreen {
  const isRendered = stdout.isTTY && terminal.interactive && !terminal.json
  const note = say ?? (isRendered ? terminal.note : null)
  const options = {
    // The last column stays free: some terminals wrap once it is written.
    get columns() {
      return stdout.columns - 1
    },
    colored: terminal.colored,
    linked: knowsHyperlinks(stdout, env),
  }
  const open = (): MarkdownStream => (isRendered ? markdownStream(options) : plainStream())
  const startTimes = new Map<ToolName, number>()
  let answer = open()
  let isAfterTool = false

  const put = async (text: string): Promise<void> => {
    if (text === '' || terminal.json) return
    if (isRendered) terminal.progress('')
    await write(stdout, isRendered && isAfterTool ? `\n${text}` : text, signal)
    isAfterTool = false
  }
  // Plain text on the same terminal must begin at the start of a line.
  const show = (status: string): void => terminal.progress(isRendered || !stdout.isTTY ? status : '')
  show(WAITING)
  return {
    async text(text) {
      const rows = answer.push(text)
      await put(rows)
      if (isRendered && rows !== '') show(WAITING)
    },
    async tool(name, status) {
      const startedAt = startTimes.get(name)
      if (status === 'start') {
        startTimes.set(name, performance.now())
        if (isRendered) {
          await put(answer.end())
          answer = open()
        }
        return show(toolMessage(name, null))
      }
      terminal.progress('')
      if (note !== null && startedAt !== undefined) {
        note(toolMessage(name, performance.now() - startedAt))
        isAfterTool = true
      }
      show(WAITING)
    },
    async end() {
      await put(answer.end())
      answer = plainStream()
      terminal.progress('')
    },
  }
}

/** Passes text on, and ends the last line. */
function plainStream(): MarkdownStream {
  let last = '\n'
  return {
    push(text) {
      last = text
      return text
    },
    end: () => (last.endsWith('\n') ? '' : '\n'),
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

/** Returns `· Searching 0.8 s`. Arguments and results of tools stay with the server. */
function toolMessage(name: ToolName, ms: number | null): string {
  return `· ${TOOL_ACTIONS[name]} ${ms === null ? '…' : `${(ms / 1000).toFixed(1)} s`}`
}
