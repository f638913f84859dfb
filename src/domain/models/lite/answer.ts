import { calledAsAsked } from './file-task.ts'
import type { LiteKind, ModelResponse } from './suite.ts'

interface TextAnswer {
  /** The command, possibly of several lines; null when none was found. */
  command: string | null
  /** The time as it was given; null when none was found. */
  time: string | null
  /** True for exactly the two lines that were asked for. */
  asAsked: boolean
}

// Every repetition is bounded: a text of any length is read in time that grows with it, not with its square.
const LABEL = (name: string): RegExp =>
  new RegExp(
    `^[\\s>*_#\`-]{0,20}(?:\\d[.)])?[\\s*_\`]{0,10}${name}[*_\`]{0,3}\\s{0,3}[:=][*_]{0,3}(.*)$`,
    'i',
  )
const COMMAND_LABEL = LABEL('command')
const TIME_LABEL = LABEL('time')
const FENCE = /^\s*(?:```|~~~)/
const TIME = /(?<![\d:])\d{1,2}:\d{2}:\d{2}(?![\d:])/g

/** The last lines of the text question: the form that {@link readAnswer} reads. */
export const ANSWER_FORM = `Answer with exactly two lines and nothing else, no Markdown:
COMMAND: the one-line shell command
TIME: the true time as hh:mm:ss`

/**
 * Reads an answer. The form is two labelled lines, the last of each label counting, because models think aloud first.
 * What models write instead is read too: a fenced block or the next line after an empty label, back quotes or a prompt
 * sign around the command, and without a label the only fenced block and the only time.
 */
export function readAnswer(text: string): TextAnswer {
  const said = withoutThoughts(text).trim()
  const lines = said.split(/\r?\n/)
  const asAsked =
    lines.length === 2 && /^COMMAND: \S/.test(lines[0] ?? '') && /^TIME: \d\d:\d\d:\d\d$/.test(lines[1] ?? '')
  const command = labelled(lines, COMMAND_LABEL) ?? onlyFence(lines)
  const time = labelled(lines, TIME_LABEL)
  return {
    command: command === null ? null : bare(command),
    time: time === null ? onlyTime(said) : (time.match(TIME)?.[0] ?? null),
    asAsked,
  }
}

/** Some services leave a model's reasoning in the content, with or without its opening tag. */
function withoutThoughts(text: string): string {
  const closed = text.lastIndexOf('</think>')
  return closed < 0 ? text : text.slice(closed + '</think>'.length)
}

/** What follows the last line with a label: the rest of it, else the fenced block or the line that comes next. */
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

/** Without the back quotes or the prompt sign that models put around a command. */
function bare(command: string): string {
  const quoted = /^(`{1,3})([^`].*[^`]|[^`])\1$/s.exec(command.trim())?.[2] ?? command.trim()
  return quoted.replace(/^\$ /, '').trim()
}

/** Whether a reply has the form that was asked for, whatever it says. */
export function answeredAsAsked(kind: LiteKind, reply: ModelResponse): boolean {
  return kind === 'tool' ? calledAsAsked(reply) : readAnswer(reply.text).asAsked
}

/**
 * True for a reply that its limit of tokens ended before it came to what was asked for: it proves nothing, neither that
 * the model can nor that it cannot.
 */
export function isCutShort(kind: LiteKind, { text, toolCalls, finishReason }: ModelResponse): boolean {
  if (finishReason !== 'length') return false
  if (kind === 'tool') return toolCalls.length === 0
  const { command, time } = readAnswer(text)
  return command === null && time === null
}
