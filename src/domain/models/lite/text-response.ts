import { callsFollowFormat } from './file-task.ts'
import type { LiteKind, ModelResponse } from './suite.ts'

interface TextResponse {
  /** The command, possibly of several lines; null when missing. */
  command: string | null
  /** The time as written; null when missing. */
  time: string | null
  /** True for exactly the two requested lines. */
  followsFormat: boolean
}

// Every repetition is bounded, so that the time grows linearly with the text.
const LABEL = (name: string): RegExp =>
  new RegExp(
    `^[\\s>*_#\`-]{0,20}(?:\\d[.)])?[\\s*_\`]{0,10}${name}[*_\`]{0,3}\\s{0,3}[:=][*_]{0,3}(.*)$`,
    'i',
  )
const COMMAND_LABEL = LABEL('command')
const TIME_LABEL = LABEL('time')
const FENCE = /^\s*(?:```|~~~)/
const TIME = /(?<![\d:])\d{1,2}:\d{2}:\d{2}(?![\d:])/g

/** The last lines of the text prompt: the format that {@link parseTextResponse} reads. */
export const RESPONSE_FORMAT = `Answer with exactly two lines and nothing else, no Markdown:
COMMAND: the one-line shell command
TIME: the true time as hh:mm:ss`

/**
 * Parses a response. The format is two labelled lines; the last of each label counts, because models reason aloud
 * first. Common deviations are accepted: a fenced block or the next line after an empty label, back quotes or a prompt
 * sign around the command, and, without labels, the only fenced block and the only time.
 */
export function parseTextResponse(text: string): TextResponse {
  const answer = withoutThoughts(text).trim()
  const lines = answer.split(/\r?\n/)
  const followsFormat =
    lines.length === 2 && /^COMMAND: \S/.test(lines[0] ?? '') && /^TIME: \d\d:\d\d:\d\d$/.test(lines[1] ?? '')
  const command = labelled(lines, COMMAND_LABEL) ?? onlyFence(lines)
  const time = labelled(lines, TIME_LABEL)
  return {
    command: command === null ? null : bare(command),
    time: time === null ? onlyTime(answer) : (time.match(TIME)?.[0] ?? null),
    followsFormat,
  }
}

/** Removes reasoning that some services leave in the content, with or without its opening tag. */
function withoutThoughts(text: string): string {
  const closed = text.lastIndexOf('</think>')
  return closed < 0 ? text : text.slice(closed + '</think>'.length)
}

/** The text after the last line with a label: the rest of that line, else the next fenced block or line. */
function labelled(lines: readonly string[], label: RegExp): string | null {
  const at = lines.findLastIndex((line) => label.test(line))
  const rest = label.exec(lines[at] ?? '')?.[1]?.trim()
  if (rest === undefined) return null
  if (rest !== '' && !FENCE.test(rest)) return rest
  const following = lines.slice(at + 1).filter((line) => line.trim() !== '')
  if (rest !== '') return fencedFrom([rest, ...following])
  return FENCE.test(following[0] ?? '') ? fencedFrom(following) : (following[0] ?? null)
}

/** The content of the fenced block that the first line opens; null when it is empty. */
function fencedFrom(lines: readonly string[]): string | null {
  const inside = lines.slice(1)
  const end = inside.findIndex((line) => FENCE.test(line))
  const content = inside.slice(0, end < 0 ? inside.length : end).join('\n')
  return content.trim() === '' ? null : content.trim()
}

function onlyFence(lines: readonly string[]): string | null {
  const fences = lines.filter((line) => FENCE.test(line)).length
  return fences === 2 ? fencedFrom(lines.slice(lines.findIndex((line) => FENCE.test(line)))) : null
}

function onlyTime(text: string): string | null {
  const times = new Set(text.match(TIME))
  const [first] = times
  return times.size === 1 ? (first ?? null) : null
}

/** Removes back quotes or a prompt sign around a command. */
function bare(command: string): string {
  const quoted = /^(`{1,3})([^`].*[^`]|[^`])\1$/s.exec(command.trim())?.[2] ?? command.trim()
  return quoted.replace(/^\$ /, '').trim()
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
