/** The marks by which models enclose their thoughts. */

/** A mark as the parts of a regular expression, so that its beginning is recognised too. It is within one line. */
type Mark = readonly string[]

interface MarkPair {
  opening: Mark
  /** Only the first one ends thoughts whose opening mark is missing. A header of an answer has none. */
  closings: readonly Mark[]
  /** False if the opening mark within thoughts begins no inner thoughts. */
  nests: boolean
}

/** A longer mark is text. */
export const MARK_MAX_LENGTH = 200

const BLANKS = '[ \\t]*'
const ATTRIBUTES = '(?:[ \\t][^<>\\n]*)?'

const literal = (text: string): Mark => Array.from(text, (character) => character.replace(/[[\]|/]/, '\\$&'))

const tagPair = (name: string): MarkPair => ({
  opening: ['<', BLANKS, ...literal(name), ATTRIBUTES, '/?', '>'],
  closings: [['<', BLANKS, '/', BLANKS, ...literal(name), BLANKS, '>']],
  nests: true,
})

const pair = (opening: string, closing: string): MarkPair => ({
  opening: literal(opening),
  closings: [literal(closing)],
  nests: true,
})

/** Other words of a header in the format of gpt-oss. */
const WORDS = '[^<>\\n]*'
const FINAL_CHANNEL = [...literal('<|channel|>final'), WORDS]

const TAG_NAMES = [
  'think',
  'thinking',
  'thought',
  'thoughts',
  'reasoning',
  'reflection',
  'scratchpad',
  'seed:think',
]

const PAIRS: readonly MarkPair[] = [
  ...TAG_NAMES.map(tagPair),
  ...['think', 'thinking'].flatMap((name) => [
    // A link begins in the same way.
    { ...pair(`[${name}]`, `[/${name}]`), opening: [...literal(`[${name}]`), '(?!\\()'] },
    pair(`◁${name}▷`, `◁/${name}▷`),
    pair(`<|${name}|>`, `<|/${name}|>`),
  ]),
  pair('<|begin_of_thought|>', '<|end_of_thought|>'),
  pair('<|start_thinking|>', '<|end_thinking|>'),
  pair('<|inner_prefix|>', '<|inner_suffix|>'),
  pair('<|channel>thought', '<channel|>'),
  pair('<unused94>thought', '<unused95>'),
  ...['<|channel|>analysis', '<|channel|>commentary'].map((opening) => ({
    opening: literal(opening),
    closings: [FINAL_CHANNEL, literal('<|end|>'), literal('<|call|>')],
    nests: false,
  })),
  ...[
    literal('<|start|>assistant'),
    literal('<|im_start|>assistant'),
    literal('<|start_header_id|>assistant<|end_header_id|>'),
    literal('<|begin_of_box|>'),
    literal('<|begin_of_solution|>'),
    literal('<|start_response|>'),
    literal('<answer>'),
    FINAL_CHANNEL,
    [...literal('<|constrain|>'), WORDS],
    literal('<|message|>'),
  ].map((opening) => ({ opening, closings: [], nests: false })),
]

/** Matches the marks of pairs at the start of a text. */
export interface Marks {
  opening: RegExp
  closing: RegExp
  /** Matches a text that is a mark or the beginning of one. */
  begun: RegExp
  nested: RegExp
  isHeader: boolean
}

function marksOf(pairs: readonly MarkPair[]): Marks {
  const openings = pairs.map(({ opening }) => opening)
  const closings = pairs.flatMap((each) => each.closings)
  return {
    opening: anyOf(openings.map((mark) => mark.join(''))),
    closing: anyOf(closings.map((mark) => mark.join(''))),
    begun: anyOf([...openings, ...closings].map(beginningOf)),
    nested: anyOf(pairs.filter(({ nests }) => nests).map(({ opening }) => opening.join(''))),
    isHeader: closings.length === 0,
  }
}

function anyOf(patterns: readonly string[]): RegExp {
  return new RegExp(patterns.length === 0 ? '(?!)' : `^(?:${patterns.join('|')})`, 'i')
}

/** The pattern of a text that ends within or with the mark. */
function beginningOf(mark: Mark): string {
  return mark.reduceRight((rest, part) => `(?:$|${part}${rest})`, '$')
}

const firstClosing = ({ closings }: MarkPair): readonly Mark[] => closings.slice(0, 1)

export const ALL_MARKS = marksOf(PAIRS.map((each) => ({ ...each, closings: firstClosing(each) })))
export const MARKS_BY_PAIR = PAIRS.map((each) => marksOf([each]))

/** The marks that end thoughts, alone on a line. */
const CLOSING_LINES = PAIRS.flatMap(firstClosing).map((closing) => [' {0,3}', ...closing, '[ \\t\\r]*'])
export const CLOSING_LINE = anyOf(CLOSING_LINES.map((mark) => `${mark.join('')}\\n?$`))
export const PART_OF_CLOSING_LINE = anyOf(CLOSING_LINES.map(beginningOf))

/** Marks that end an answer, which some engines leave in it. */
const END_MARKS: readonly Mark[] = [
  '<|return|>',
  '<|call|>',
  '<|end|>',
  '<|im_end|>',
  '<|eot_id|>',
  '<|eom_id|>',
  '<|eot|>',
  '<|endoftext|>',
  '<|end_of_text|>',
  '<|END_OF_TURN_TOKEN|>',
  '<｜end▁of▁sentence｜>',
  '<end_of_turn>',
  '<turn|>',
  '<eos>',
  '<|end_of_box|>',
  '<|end_of_solution|>',
  '<|END_RESPONSE|>',
  '</answer>',
  '</s>',
].map(literal)
export const END_MARK = anyOf(END_MARKS.map((mark) => mark.join('')))
export const PART_OF_END_MARK = anyOf(END_MARKS.map(beginningOf))

/** Reads the marks of one line outside code spans. */
export interface MarkReader {
  /** Adds the next part of the line. */
  add(part: string): void
  /** Returns the next mark; null if there is none, or none that later text cannot change. */
  next(isWhole: boolean): 'opening' | 'closing' | null
  /** The text after the last mark. */
  readonly rest: string
}

export function markReader({ nested, closing, begun }: Marks): MarkReader {
  const candidates = /`+|[<[◁]/g
  const runs = /`+/g
  /** The part of the line that is not decided yet. */
  let text = ''
  let at = 0
  /** The code span at this place, if it is one, ends after it. */
  let searchedTo = 0
  /** True if only further backquotes, or the end of the line, decide the code span at this place. */
  let isInCode = false

  /** Returns the end of a code span, or of backquotes that nothing closes; null if later text decides. */
  const codeEnd = (length: number, isWhole: boolean): number | null => {
    const isGrowing = (end: number): boolean => !isWhole && end === text.length
    if (isGrowing(at + length)) return null
    runs.lastIndex = Math.max(at + length, searchedTo)
    for (let run = runs.exec(text); run !== null; run = runs.exec(text)) {
      searchedTo = run.index
      if (isGrowing(runs.lastIndex)) return null
      if (run[0].length === length) return runs.lastIndex
    }
    searchedTo = text.length
    isInCode = !isWhole
    return isWhole ? at + length : null
  }

  /** Moves to the next place at which a mark is, or may be. */
  const moveToMark = (isWhole: boolean): boolean => {
    for (;;) {
      candidates.lastIndex = at
      const found = candidates.exec(text)
      at = found?.index ?? text.length
      if (found === null) return false
      if (!found[0].startsWith('`')) return true
      const end = codeEnd(found[0].length, isWhole)
      if (end === null) return false
      at = end
      searchedTo = 0
    }
  }

  return {
    add(part) {
      text = text.slice(at) + part
      searchedTo = Math.max(0, searchedTo - at)
      at = 0
      isInCode &&= !part.includes('`')
    },
    next(isWhole) {
      if (isInCode && !isWhole) return null
      while (moveToMark(isWhole)) {
        const start = text.slice(at, at + MARK_MAX_LENGTH)
        if (!isWhole && start.length < MARK_MAX_LENGTH && begun.test(start)) return null
        const [opening] = nested.exec(start) ?? []
        const [mark] = opening === undefined ? (closing.exec(start) ?? []) : [opening]
        at += mark?.length ?? 1
        if (mark !== undefined && !isEmptyTag(mark)) return opening === undefined ? 'closing' : 'opening'
      }
      return null
    },
    get rest() {
      return text.slice(at)
    },
  }
}

export function isEmptyTag(mark: string): boolean {
  return mark.endsWith('/>')
}

/** True if a whole line has an opening mark outside code spans. */
export function opensThoughts(line: string): boolean {
  const reader = markReader(ALL_MARKS)
  reader.add(line)
  let mark = reader.next(true)
  while (mark === 'closing') mark = reader.next(true)
  return mark !== null
}
