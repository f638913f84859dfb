import { parseJsonObject } from '../../text.ts'
import { withoutThoughts } from '../../thoughts.ts'
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

/** The last lines of the text prompt: the format that {@link parseTextResponse} reads. */
export const RESPONSE_FORMAT = `Answer with exactly two lines and nothing else, no Markdown:
COMMAND: the one-line shell command
TIME: the true time as hh:mm:ss`

type Label = 'COMMAND' | 'TIME'

/**
 * Parses a response. The format is two labelled lines. Other forms are read as a person reads them
 * ({@link labelledValues}); the last of each label counts, because models reason aloud first. Without labels, the only
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

/** Finds times; full-width digits and colons count. */
function timesIn(text: string): string[] {
  return text.normalize('NFKC').match(/(?<![\d:])\d{1,2}:\d{2}:\d{2}(?![\d:])/g) ?? []
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
  return others.length > 0 || only === null ? null : withoutPrompt(only)
}

/** Marks that open a quotation or emphasis around text, with those that close it. */
const PARTNERS: Readonly<Record<string, string>> = {
  '*': '*',
  _: '_',
  '`': '`',
  '"': '"',
  "'": "'",
  '“': '”',
  '‘': '’',
  '«': '»',
  '「': '」',
  '[': ']',
  '(': ')',
}
const OPENING = '[*_`"\'“‘«「[(]'
const CLOSING = '[*_`"\'”’»」\\])]'

/** A line with a label. Every repetition is bounded, so that the time grows linearly with the text. */
const LABEL_LINE = (label: Label): RegExp =>
  new RegExp(`^(.{0,60}?)(${label})(${CLOSING}{0,6})\\s{0,3}(?:[:：=](.*)|$)`, 'i')
const LABEL_LINES: Readonly<Record<Label, RegExp>> = {
  COMMAND: LABEL_LINE('COMMAND'),
  TIME: LABEL_LINE('TIME'),
}

/** Words and opening marks before a label. */
const LEAD = new RegExp(`^(.*?)(${OPENING}*)\\s*$`)

/** Block quotes, headings and list items before a label. */
const LINE_MARKS = /^(?:\s|>|#{1,6}(?=\s)|[-+*•](?=\s)|\(?\d{1,2}[.)](?=\s))*/

/** The place before a label of a time that follows on the line of another value. */
const SECOND_LABEL =
  /(?<=\S)[ \t,;|]{1,5}(?=[*_`"]{0,3}TIME[*_`"]{0,3} ?[:：=] ?[*_`"]{0,3}\d{1,2}[:：]\d{2}[:：]\d{2})/gi

/** A label, what follows on its line, and the lines up to the next label. */
interface LabelledLines {
  label: Label
  /** Marks before the label that are not closed before the value. */
  open: readonly string[]
  rest: string
  isQuoted: boolean
  following: string[]
}

/**
 * Reads the values of a label in their order, as a person reads them. The value stands behind the label, on the next
 * line, in a fence after it, or in a JSON object. Marks of Markdown and quotes around the line, the label or the value
 * are removed; a mark without a partner around the value belongs to the value.
 */
function labelledValues(answer: string, label: Label): string[] {
  const object = parseJsonObject(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1)) ?? {}
  const member = Object.entries(object).find(([name]) => name.toUpperCase() === label)?.[1]
  if (typeof member === 'string') return [member]
  const found: LabelledLines[] = []
  for (const line of answer.replace(SECOND_LABEL, '\n').split(/\r?\n/)) {
    const labelled = readLabel(line, 'COMMAND') ?? readLabel(line, 'TIME')
    if (labelled) found.push(labelled)
    else found.at(-1)?.following.push(line)
  }
  return found.flatMap((labelled) => (labelled.label === label ? (readValue(labelled) ?? []) : []))
}

/** Words before a label are accepted only if it is in capitals: `Final answer: COMMAND: …`. */
function readLabel(line: string, label: Label): LabelledLines | null {
  const [, lead = '', name = '', closed = '', rest] = LABEL_LINES[label].exec(line) ?? []
  const [marks = ''] = LINE_MARKS.exec(lead) ?? []
  const [, words = '', opening = ''] = LEAD.exec(lead.slice(marks.length).replace(/\d{1,2}[.)]\s/, '')) ?? []
  const isAfterWords = name === label && rest !== undefined && (opening !== '' || /[\s:：]$/.test(lead))
  const isLabel = words === '' ? name !== '' : isAfterWords
  if (!isLabel) return null
  const open = Array.from(opening)
  const takeClosing = (text: string): string => {
    let left = text
    while (left !== '' && left.startsWith(PARTNERS[open.at(-1) ?? ''] ?? '\n')) {
      left = left.slice(1)
      open.pop()
    }
    return left
  }
  takeClosing(closed)
  const value = takeClosing((rest ?? '').replace(/^\s+(?=[*_])/, ''))
  return { label, open, rest: value, isQuoted: marks.includes('>'), following: [] }
}

/** Reads the value of a label: the rest of its line, else the next fenced block or line; null when it is empty. */
function readValue({ open, rest, isQuoted, following }: LabelledLines): string | null {
  const from = rest.trim() === '' ? following.findIndex((line) => line.trim() !== '') : -1
  const isInQuote = isQuoted || (from >= 0 && /^\s*>/.test(following[from] ?? ''))
  const below = isInQuote ? following.map((line) => line.replace(/^\s*(?:>\s?)+/, '')) : following
  const first = from < 0 ? rest : (below[from] ?? '').replace(/^\s*(?:[-+*•]|\d{1,2}[.)])\s/, '')
  const others = below.slice(from + 1)
  const fence = openedFence(first)
  const value = fence ? readBlock(fence, others) : unwrap(withoutClosing(continued(first, others), open))
  return value === '' ? null : withoutPrompt(value)
}

/** Joins a line with those that follow a backslash at its end. */
function continued(first: string, others: readonly string[]): string {
  const lines = [first, ...others]
  const last = lines.findIndex((line) => !/\\\s*$/.test(line))
  const joined = lines.slice(0, last < 0 ? lines.length : last + 1).join('\n')
  return joined.trim().replace(/\\$/, '').trim()
}

/** Removes the closing marks of a line, such as the stars in `**COMMAND: ls**`. */
function withoutClosing(text: string, open: readonly string[]): string {
  const closing = open.toReversed().map((mark) => PARTNERS[mark])
  return text.endsWith(closing.join('')) ? text.slice(0, text.length - closing.length) : text
}

/** Removes quotes, emphasis and a code span around a value. The content of a code span is literal. */
function unwrap(value: string, layers = 4): string {
  const text = value.trim()
  const literal = codeSpan(text)
  if (literal !== null) return literal
  const inside = quotedText(text) ?? /^([*_]{1,3})(?=\S)(.*\S)\1$/s.exec(text)?.[2] ?? null
  return inside === null || layers === 0 ? text : unwrap(inside, layers - 1)
}

/** The content of a code span or of a fence on one line; a remark in parentheses may follow. */
function codeSpan(text: string): string | null {
  const [, span = text] = /^(`.*`)(?:[.,;]|\s+[(—–].*)$/s.exec(text) ?? []
  const [run = ''] = /^(?:`+|~{3,})/.exec(span) ?? []
  const [end = ''] = /(?:`+|~{3,})$/.exec(span) ?? []
  const length = Math.min(run.length, end.length)
  const inside = span.slice(length, span.length - length).trim()
  if (length === 0 || span.length <= 2 * length || closesWithin(inside, '`')) return null
  return length < 3 ? inside : withoutLanguage(inside)
}

/** The text between quotes around a whole value. */
function quotedText(text: string): string | null {
  const partner = /^["'“‘«「]/.test(text) ? PARTNERS[text.slice(0, 1)] : undefined
  if (partner === undefined || text.length < 3 || !text.endsWith(partner)) return null
  const inside = text.slice(1, -1)
  if (closesWithin(inside, partner)) return null
  const isEscaped = partner === '"' && !/(?<!\\)"/.test(inside) && inside.includes('\\"')
  return isEscaped ? inside.replace(/\\(["\\])/g, '$1') : inside
}

/**
 * True if the first mark within a text closes a quotation that began before the text, as in "my tool" "a b": it follows
 * no space, and precedes a space, an operator or the end.
 */
function closesWithin(text: string, mark: string): boolean {
  const at = text.search(new RegExp(`(?<!\\\\)${mark}`))
  return at > 0 && !/\s/.test(text.slice(at - 1, at)) && /^.(?:[\s;|&<>)]|$)/s.test(text.slice(at))
}

interface OpenedFence {
  run: string
  /** What follows the run on its line: a language, or the first line of the content. */
  info: string
}

/** The fence that a line opens; null for one that it closes again. */
function openedFence(line: string): OpenedFence | null {
  const [, run = '', info = ''] = /^\s*(`{3,}|~{3,})(.*)$/s.exec(line) ?? []
  return run === '' || info.includes(run.slice(0, 3)) ? null : { run, info: info.trim() }
}

/** Reads a fenced block up to its closing run, which may stand at the end of a line. */
function readBlock({ run, info }: OpenedFence, lines: readonly string[]): string {
  const closing = new RegExp(`${run}[\`~]*[*_]{0,3}\\s*$`)
  const end = lines.findIndex((line) => closing.test(line))
  const inside = end < 0 ? lines : [...lines.slice(0, end), (lines[end] ?? '').replace(closing, '')]
  const content = inside.join('\n').trim()
  const start = withoutLanguage(info)
  return content === '' || /\s/.test(start) ? `${start}\n${content}`.trim() : content
}

/** Removes the language of a fence. `bash -c ls` is a command. */
function withoutLanguage(text: string): string {
  return text.replace(
    /^(?:ba|z|k)?sh(?:ell)?(?:[-_]?session)?(?:\s+(?!-)|$)|^(?:console|text|txt|plaintext)(?:\s+|$)/i,
    '',
  )
}

function withoutPrompt(command: string): string {
  return command.replace(/^[$%] /, '').trim()
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
