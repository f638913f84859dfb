import { withoutThoughts } from '../../answers/thoughts.ts'
import { callsFollowFormat } from './file-task.ts'
import { labelledValues, openedFence, withoutPrompts } from './labelled-values.ts'
import type { LiteKind, ModelResponse } from './suite.ts'

interface TextResponse {
  /** The command, possibly of several lines; null when missing. */
  command: string | null
  /** The time as written; null when missing. */
  time: string | null
  /** True for exactly the two requested lines. */
  followsFormat: boolean
}

/** The last lines of the text prompt: the format that {@link parseTextResponse} reads. */
export const RESPONSE_FORMAT = `Answer with exactly two lines and nothing else, no Markdown:
COMMAND: the one-line shell command
TIME: the true time as hh:mm:ss`

/**
 * Parses a response. The format is two labelled lines. Other forms are read as a person reads them
 * ({@link labelledValues}); the last value of each label counts, because models reason aloud first. Without labels, the only
 * fenced block and the only time count.
 */
export function parseTextResponse(text: string): TextResponse {
  const answer = withoutThoughts(text).trim()
  const lines = answer.split(/\r?\n/)
  const followsFormat =
    lines.length === 2 && /^COMMAND: \S/.test(lines[0] ?? '') && /^TIME: \d\d:\d\d:\d\d$/.test(lines[1] ?? '')
  const times = labelledValues(answer, 'TIME')
  return {
    command: labelledValues(answer, 'COMMAND').at(-1) ?? onlyBlock(lines),
    time:
      times.length > 0
        ? (times.flatMap((value) => timesIn(value)[0] ?? []).at(-1) ?? null)
        : onlyTime(answer),
    followsFormat,
  }
}

/** Finds times; full-width digits, other colons and spaces around them count. */
function timesIn(text: string): string[] {
  const plain = text.normalize('NFKC').replace(/(?<=\d) ?[:∶] ?(?=\d)/g, ':')
  return plain.match(/(?<![\d:])\d{1,2}:\d{2}:\d{2}(?![\d:])/g) ?? []
}

function onlyTime(text: string): string | null {
  const [first = null, ...others] = new Set(timesIn(text))
  return others.length === 0 ? first : null
}

/** The content of the only closed fence with more than a time in it. */
function onlyBlock(lines: readonly string[]): string | null {
  const fences = lines.flatMap((line, index) => (openedFence(line) ? [index] : []))
  const contentOf = (at: number, end: number): string =>
    lines
      .slice(at + 1, end)
      .join('\n')
      .trim()
  const blocks = fences.flatMap((at, index) => {
    const end = fences[index + 1]
    return index % 2 === 0 && end !== undefined ? [contentOf(at, end)] : []
  })
  const [only = null, ...others] = blocks.filter((block) => !/^[\d:\s]*$/.test(block))
  return others.length > 0 || only === null ? null : withoutPrompts(only)
}

/** True when a response has the requested form, whatever its content. */
export function responseFollowsFormat(kind: LiteKind, response: ModelResponse): boolean {
  return kind === 'tool' ? callsFollowFormat(response) : parseTextResponse(response.text).followsFormat
}

/**
 * True for a response that reached its token limit before it answered the prompt: it proves nothing about the model.
 */
export function isCutShort(kind: LiteKind, { text, toolCalls, finishReason }: ModelResponse): boolean {
  if (finishReason !== 'length') return false
  if (kind === 'tool') return toolCalls.length === 0
  const { command, time } = parseTextResponse(text)
  return command === null && time === null
}
