import type { ToolName } from '../../../domain/agent/model-call.ts'
import { faintRow, markdownRows } from './markdown.ts'
import { Painter } from './painter.ts'
import type { Screen } from './painter.ts'
import type { Row } from './wrap.ts'

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
export function openTurnScreen(
  screen: Screen & { on?: unknown },
  colored: boolean,
  now: () => number,
): TurnScreen {
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
export function toolWords({ name, ms }: Pick<ToolPart, 'name' | 'ms'>): string {
  return ms === null ? `· ${name} …` : `· ${name} ${(ms / 1000).toFixed(1)} s`
}
