import { decodeJson } from '../../answers/written-json.ts'
import { LINE_ENDS } from '../../text.ts'

/** Reads labelled values such as `COMMAND: ls` in the forms that models write, as a person reads them. */

export type Label = 'COMMAND' | 'TIME'

/** Marks that open a quotation, emphasis or a bracket around a label or value, with those that close it. */
const PARTNERS: Readonly<Record<string, string>> = {
  '*': '*',
  _: '_',
  '`': '`',
  '"': '"',
  "'": "'",
  '“': '”',
  '„': '“',
  '‘': '’',
  '«': '»',
  '‹': '›',
  '「': '」',
  '[': ']',
  '(': ')',
  '{': '}',
  '<': '>',
  $: '$',
}
const TAG = 'code|pre|kbd|samp|tt|b|strong|i|em|u|mark|p|span|div|li|td'
const OPENING = String.raw`(?:<[a-z][\w-]{0,20}(?: [^<>]{0,60})?>|\\(?:boxed|text\w{0,2}|math\w{2})\{|\\?[*_\`"']|[“„‘«‹「[({<$])`
const CLOSING = String.raw`(?:</[a-z][\w-]{0,20}>|\\?[*_\`"']|[”“’»›」\])}>$])`

/** What stands between a label and its value. Other signs than colons count only behind a label in capitals. */
const COLON = String.raw`(?:is ?)?(?:\\?:(?: ?[:=](?=\s))?|[：∶﹕]|==?(?!>))`
const OTHER_SIGN = String.raw`is(?=\s)|\t(?=\S)|[=-]?>(?=\s)|[→⇒]|[|—–](?=\s)|--?(?=\s)`

/** A line with a label. Every repetition is bounded, so that the time grows linearly with the text. */
const LABEL_LINE = (label: Label): RegExp =>
  new RegExp(
    String.raw`^(.{0,60}?)(${label})(${CLOSING}{0,6})(?: ?(?:\([^()]{1,30}\)|#?\d{1,2}\b(?!:\d)))? {0,3}(?:(${COLON}|${OTHER_SIGN}|(?=\s+\S)|(?=\`))(.*)|\s*$)`,
    'i',
  )
const LABEL_LINES: Readonly<Record<Label, RegExp>> = {
  COMMAND: LABEL_LINE('COMMAND'),
  TIME: LABEL_LINE('TIME'),
}
const IS_COLON = new RegExp(`^(?:${COLON})$`)

/** Words and opening marks before a label. */
const LEAD = new RegExp(`^(.*?)(${OPENING}*)\\s*$`)
const OPENING_MARKS = new RegExp(OPENING, 'g')

/** Block quotes, headings and list items before a label. */
const LINE_MARKS = /^(?:\s|>|#{1,6}|[-+*•](?=\s)|\(?\d{1,2}[.)](?=\s))*/

/** Words before a label that announce a remark about the value, not the value. */
const REMARK_WORDS = /\b(?:explan|explain|note|remark|comment|reason|because|why|how|about|where|the)\w*\W*$/i

/** First words of a sentence about a command. None of them is a command. */
const PROSE_WORDS =
  'the|this|that|these|it|its|an?|as|is|was|are|line|lines|counts?|lists?|uses?|using|reads?|prints|finds|searches|sorts|shows|gives|works|we|you|i|he|here|above|below|must|should|can|will|because|since|where|so'
const PROSE = new RegExp(String.raw`^(?:${PROSE_WORDS})\s(?!=)`, 'i')

/** A label, what follows on its line, and the lines up to the next label. */
interface LabelledLines {
  label: Label
  /** Marks before the label that are not closed before the value. */
  open: readonly string[]
  rest: string
  isQuoted: boolean
  following: string[]
  /** How surely it is a label: 2 with a colon, 1 with another sign, 0 behind words that announce a remark. */
  certainty: 0 | 1 | 2
}

/**
 * Reads the values of a label in their order. The value stands behind the label, on the next line, in a fence after it,
 * in tags or a table, or in a JSON object. Marks of Markdown, HTML and LaTeX and quotes around the line, the label or the
 * value are removed; a mark without a partner around the value belongs to the value.
 */
export function labelledValues(answer: string, label: Label): string[] {
  const member = memberOf(decodeJson(answer), label)
  if (member !== null) return [member]
  const found: LabelledLines[] = []
  for (const line of plainLines(answer)) {
    const labelled = readLabel(line, 'COMMAND') ?? readLabel(line, 'TIME')
    if (labelled) found.push(labelled)
    else found.at(-1)?.following.push(line)
  }
  const values = found.flatMap((labelled) => {
    const value = labelled.label === label ? readValue(labelled) : null
    return value === null ? [] : [{ value, certainty: PROSE.test(value) ? 0 : labelled.certainty }]
  })
  const certainty = Math.max(...values.map((each) => each.certainty))
  return values.flatMap((each) => (each.certainty === certainty ? [each.value] : []))
}

/** The text of a member with the name of a label, also in inner objects and lists. */
function memberOf(value: unknown, label: Label, levels = 4): string | null {
  if (typeof value !== 'object' || value === null || levels === 0) return null
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'string' && name.toUpperCase() === label) return member
    const inner = memberOf(member, label, levels - 1)
    if (inner !== null) return inner
  }
  return null
}

/** Words before a label are accepted only if it is in capitals: `Final answer: COMMAND: …`. */
function readLabel(line: string, label: Label): LabelledLines | null {
  const [, lead = '', name = '', closed = '', sign, rest] = LABEL_LINES[label].exec(line) ?? []
  const [marks = ''] = LINE_MARKS.exec(lead) ?? []
  const [, words = '', opening = ''] = LEAD.exec(lead.slice(marks.length).replace(/\d{1,2}[.)]\s/, '')) ?? []
  const isPlain =
    sign === undefined || IS_COLON.test(sign) || (sign === 'is' && /^\s+[*_]{0,3}`/.test(rest ?? ''))
  const isAfterWords =
    (name === label || sign?.startsWith('is')) &&
    rest !== undefined &&
    (opening !== '' || /[\s:：]$/.test(lead))
  const isLabel = words === '' ? name !== '' && (isPlain || name === label) : isAfterWords && isPlain
  if (!isLabel) return null
  const open: string[] = opening.match(OPENING_MARKS) ?? []
  const takeClosing = (text: string): string => {
    let left = text
    while (left !== '' && left.startsWith(partnerOf(open.at(-1) ?? '') ?? '\n')) {
      left = left.slice(partnerOf(open.pop() ?? '')?.length)
    }
    return left
  }
  takeClosing(closed)
  if (sign === '' && open.length > 0) return null
  const value = takeClosing((rest ?? '').replace(/^\s+(?=[*_}])/, ''))
  // A label without a sign is hardly one unless it stands in marks, or before code.
  const isBare = sign === '' && closed === '' && !value.startsWith('`')
  const certainty = REMARK_WORDS.test(words) || isBare ? 0 : isPlain ? 2 : 1
  return { label, open, rest: value, isQuoted: marks.includes('>'), following: [], certainty }
}

/** The mark that closes another one: a sign, a tag, or the brace of a LaTeX command. */
function partnerOf(mark: string): string | undefined {
  const [, tag] = /^<(\w+)/.exec(mark) ?? []
  if (tag !== undefined) return `</${tag}>`
  if (/^\\\w/.test(mark)) return '}'
  return mark.startsWith('\\') ? mark : PARTNERS[mark]
}

/** What stands behind a label in place of a value: a sign of YAML, the name of a shell, or words that announce code. */
const NO_VALUE = /^\s*(?:[|>][-+]?|\(?(?:ba|z)?sh\)?|[A-Za-z ]*:)?\s*$/
const BEGINS_BELOW = /^\s*(?:[|>][-+]?)?\s*$/
/** Rules, and the underlines of headings. */
const RULE = /^\s*(?:[-=*_]{3,})?\s*$/

/** Reads the value of a label: the rest of its line, else the next fenced block or line; null when it is empty. */
function readValue({ open, rest, isQuoted, following }: LabelledLines): string | null {
  const next = NO_VALUE.test(rest) ? following.findIndex((line) => !RULE.test(line)) : -1
  const from = BEGINS_BELOW.test(rest) || openedFence(following[next] ?? '') ? next : -1
  const isInQuote = isQuoted || (from >= 0 && /^\s*>/.test(following[from] ?? ''))
  const below = isInQuote ? following.map((line) => line.replace(/^\s*(?:>\s?)+/, '')) : following
  const first = from < 0 ? rest : (below[from] ?? '').replace(/^\s*(?:[-+*•]|\d{1,2}[.)])\s/, '')
  const others = below.slice(from + 1)
  const fence = openedFence(first)
  const value = fence ? readBlock(fence, others) : unwrap(withoutClosing(continued(first, others), open))
  return value === '' ? null : withoutPrompts(decodeEntities(value))
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
  const closing = open
    .toReversed()
    .map((mark) => partnerOf(mark))
    .join('')
  return text.endsWith(closing) ? text.slice(0, text.length - closing.length) : text
}

/** A remark behind code: in parentheses, another way to write it, or behind a sign that no shell command would have there. */
const REMARK = String.raw`(?:\s*[.,;:]|\s+\([^()]*\)\.?|\s+or\s+(?:\`[^\`]+\`)\.?|\s*[.,:]\s[^\`]*|\s+(?:[(—–#→←]|//|--?\s|(?:${PROSE_WORDS}|to|and|for|in|on|with|which|explanation)\b)[^\`]*)`
const REMARKED = new RegExp(
  String.raw`^(([*_]{0,3})(?:(\`+)[^\`]+\3|<(${TAG})>[^<]*</\4>|"[^"]*"(?=[.,;]$)|'[^']*'(?=[.,;]$))\2)${REMARK}$`,
  'is',
)

/** Longest value whose marks are removed. The time for that grows with the square of the length. */
const MARKED_MAX_LENGTH = 4_000

/** Removes quotes, emphasis, tags and a code span around a value. The content of a code span is literal. */
function unwrap(value: string, layers = 5): string {
  if (value.length > MARKED_MAX_LENGTH) return value.trim()
  const text = REMARKED.exec(value.trim())?.[1] ?? value.trim()
  const literal = codeSpan(text.replace(/^(?:[-•]|(?:use|run|try|execute):?)\s+(?=`)/i, ''))
  if (literal !== null) return literal
  const inside = quotedText(text) ?? enclosedText(text)
  return inside === null || layers === 0 ? text : unwrap(inside, layers - 1)
}

const ENCLOSURES: readonly RegExp[] = [
  /^([*_]{1,3}|==|~~)(?=\S)(?<inside>.*\S)\1$/s,
  new RegExp(String.raw`^<(${TAG})(?: [^<>]{0,60})?>(?<inside>.*)</\1>$`, 'is'),
  /^\\(?:boxed|text\w{0,2}|math\w{2})\{(?<inside>.*)\}$/s,
  /^(\${1,2})(?<inside>\\(?:boxed|text|math).*)\1$/s,
  /^(\\[`"'])(?<inside>.*)\1$/s,
  // Brackets of a shell have spaces within, and parentheses stay without code in them.
  /^\[(?=[^\s[])(?<inside>.*[^\s\]])\]$/s,
  /^\{(?=\S)(?<inside>[^{}]*[^\s;{}])\}$/s,
  /^<(?=[a-z])(?<inside>[^<>]*[^\s<>])>$/s,
  /^\((?<inside>(`+)[^`]+\2)\)$/s,
]

/** The text within emphasis, tags or brackets around a whole value. */
function enclosedText(text: string): string | null {
  for (const enclosure of ENCLOSURES) {
    const inside = enclosure.exec(text)?.groups?.['inside']
    if (inside !== undefined) return inside
  }
  return null
}

/** The content of a code span or of a fence on one line. */
function codeSpan(span: string): string | null {
  const [run = ''] = /^(?:`+|~{3,})/.exec(span) ?? []
  const [end = ''] = /(?:`+|~{3,})$/.exec(span) ?? []
  const length = Math.min(run.length, end.length)
  const inside = span.slice(length, span.length - length).trim()
  if (length === 0 || span.length <= 2 * length || closesWithin(inside, '`')) return null
  return length < 3 ? inside : withoutLanguage(inside)
}

/** The text between quotes around a whole value. */
function quotedText(text: string): string | null {
  const partner = /^["'“„‘«‹「]/.test(text) ? PARTNERS[text.slice(0, 1)] : undefined
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
export function openedFence(line: string): OpenedFence | null {
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

/** Removes the language of a fence. `bash -c ls` and `sh run.sh` are commands. */
function withoutLanguage(text: string): string {
  return text.replace(
    /^(?:ba|z|k)?sh(?:ell)?(?:[-_]?session)?(?:\s+(?![-<"'$]|[^\s'"|;&]*[./])|$)|^(?:console|text|txt|plaintext)(?:\s+|$)/i,
    '',
  )
}

const PROMPT = /^(?:[\w.-]+@[\w.-]+[^$#%\n]{0,60}[$#%]|[~\w./-]{0,30}\$|[%❯]|(?:ba|z)?sh[:>])\s/
/** Comments before a command. */
const COMMENTS = /^(?:#.*\n\s*)+(?=\S)/

/** Removes comments and prompts before commands, and the lines of their output. */
export function withoutPrompts(code: string): string {
  const command = code.replace(COMMENTS, '')
  if (!PROMPT.test(command)) return command.trim()
  const lines = command.split('\n')
  const typed = lines.filter((line, index) => PROMPT.test(line) || /\\\s*$/.test(lines[index - 1] ?? ''))
  return typed
    .map((line) => line.replace(PROMPT, ''))
    .join('\n')
    .trim()
}

/** Divides the answer of a model into lines with at most one labelled value each. */

/** Entities, each also with equal quotes around it alone: then a command looks for it. */
const ENTITIES: readonly [RegExp, string][] = [
  [/(["']?)&(?:nbsp|#160|#xa0);\1/gi, ' '],
  [/(["']?)&(?:grave|#96|#x60);\1/gi, '`'],
  [/(["']?)&(?:apos|#39|#x27);\1/gi, "'"],
  [/(["']?)&(?:quot|#34|#x22);\1/gi, '"'],
  [/(["']?)&(?:lt|#60|#x3c);\1/gi, '<'],
  [/(["']?)&(?:gt|#62|#x3e);\1/gi, '>'],
  [/(["']?)&(?:amp|#38|#x26);\1/gi, '&'],
]

/** Replaces entities of signs that the text has in no other form. */
function decodeEntities(text: string): string {
  return ENTITIES.reduce((decoded, [entity, sign]) => {
    const isEscaped = sign === '&' ? !/&(?!\w+;)/.test(decoded) : sign === ' ' || !decoded.includes(sign)
    if (!isEscaped) return decoded
    return decoded.replace(entity, (written, quote: string) => (quote === '' ? sign : written))
  }, text)
}

const INVISIBLE = /[\u00ad\u200b-\u200f\u2060\ufeff]/g
const WIDE_SPACES = /[\u00a0\u2000-\u200a\u202f\u3000]/g
/** `<COMMAND>…</COMMAND>` and `[COMMAND]…[/COMMAND]`. */
const TAGGED = /[<[](COMMAND|TIME)[>\]]((?:[^<[]|[<[](?!\/\1)){0,500})[<[]\/\1[>\]]/gi

/** The place before a label of a time that follows on the line of another value. */
const SECOND_LABEL =
  /(?:(?<=\S)(?:\.?[ \t,;|]{1,5}|\s{1,2}(?:[/·•—–→-]|and)\s{1,2}|\s{0,2}\\(?:\\\s{0,2}|n ?))|(?<=[`~])(?![`~]))(?=[*_`"[(]{0,3}TIME[*_`"]{0,3} ?(?:is ?)?[:：=]?[*_`" ]{0,6}\d{1,2}[:：]\d{2}[:：]\d{2})/gi

const REMARK_LINE = /^\W*(?:explan|explain|note|remark|comment|reason|because)/i

/** The lines of an answer, without entities, invisible characters, tags around values, and tables. */
function plainLines(answer: string): string[] {
  const text = decodeEntities(answer)
    .replace(INVISIBLE, '')
    .replace(WIDE_SPACES, ' ')
    .replace(
      TAGGED,
      (_whole, label: string, value: string) => `\n${label}:${/^\s*\n/.test(value) ? '' : ' '}${value}\n`,
    )
    .replace(/(?<!["'])<(?:br ?\/?|\/(?:p|li|div))>(?!["'])/gi, '\n')
  const lines = text
    .replace(LINE_ENDS, '\n')
    .split('\n')
    .flatMap((line) => (REMARK_LINE.test(line) ? [line] : line.replace(SECOND_LABEL, '\n').split('\n')))
  return lines.flatMap(rowLines)
}

const LABEL_CELL = /^[*_`\s]*(?:COMMAND|TIME)[*_`\s]*$/i

/** Turns a row of a table into labelled lines: the label is the first cell, or the header of a column. */
function rowLines(line: string, index: number, lines: readonly string[]): string[] {
  const cells = cellsOf(line)
  const at = cells.findIndex((cell) => LABEL_CELL.test(cell))
  const value = cells.slice(at + 1)
  if (at >= 0 && value.length > 0 && !LABEL_CELL.test(value[0] ?? ''))
    return [`${cells[at]?.trim()}: ${value.join('|').trim()}`]
  const header = cellsOf(lines[index - 2] ?? '')
  const isRow = header.length === cells.length && /^[\s|:-]*-[\s|:-]*$/.test(lines[index - 1] ?? '')
  if (!isRow || !header.some((cell) => LABEL_CELL.test(cell))) return [line]
  return header.map((cell, column) => `${cell.trim()}: ${cells[column]?.trim()}`)
}

/** The cells of a row between bars; none for another line. */
function cellsOf(line: string): string[] {
  const [, inside] = /^\s*\|(.*)\|\s*$/.exec(line) ?? []
  return inside?.split(/(?<!\\)\|/).map((cell) => cell.replaceAll('\\|', '|')) ?? []
}
