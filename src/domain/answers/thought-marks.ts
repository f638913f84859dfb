/** The marks by which models enclose their thoughts. */

/** A mark as the parts of a regular expression, so that its beginning is recognised too. It is within one line. */
type Mark = readonly string[]

interface MarkPair {
  opening: Mark
  /** Only the first one ends thoughts whose opening mark is missing. A header of an answer has none. */
  closings: readonly Mark[]
}

/** No mark is longer. */
export const MARK_MAX_LENGTH = 200

const BLANKS = '[ \\t]{0,9}'
const ATTRIBUTES = '(?:[ \\t][^<>\\n]{0,120})?'

const literal = (text: string): Mark => Array.from(text, (character) => character.replace(/[[\]|/]/, '\\$&'))

/** Parts that models add to the names of tags, as in `mm:think`, `longcat_think` and `think:opensource`. */
const NAME_START = ['[\\w:-]{0,20}', '(?<![a-z\\d-])']
const NAME_END = '(?:[:_][\\w:-]{0,20})?'

const tagPair = (name: string): MarkPair => {
  const words = [...NAME_START, ...literal(name), NAME_END]
  return {
    opening: ['<', BLANKS, ...words, ATTRIBUTES, '/?', '>'],
    closings: [['<', BLANKS, '/', BLANKS, ...words, BLANKS, '>']],
  }
}

const pair = (opening: string, closing: string): MarkPair => ({
  opening: literal(opening),
  closings: [literal(closing)],
})

/** Other words of a header in the format of gpt-oss. */
const WORDS = '[^<>\\n]{0,120}'
const FINAL_CHANNEL = [...literal('<|channel|>final'), WORDS]

const PAIRS: readonly MarkPair[] = [
  ...['think', 'thinking', 'thought', 'thoughts', 'reasoning', 'reflection', 'scratchpad'].map(tagPair),
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
  })),
  ...[
    literal('<|start|>assistant'),
    literal('<|im_start|>assistant'),
    literal('<|start_header_id|>assistant<|end_header_id|>'),
    literal('<|begin_of_box|>'),
    literal('<|begin_of_solution|>'),
    literal('<|start_response|>'),
    literal('<answer>'),
    literal('<response>'),
    FINAL_CHANNEL,
    [...literal('<|constrain|>'), WORDS],
    literal('<|message|>'),
  ].map((opening) => ({ opening, closings: [] })),
]

/** Matches the marks of pairs. */
export interface Marks {
  /** Matches at the start of a text. */
  opening: RegExp
  /** Matches at the start of a text. */
  closing: RegExp
  /** Matches the first closing mark in a text that is not between backquotes. */
  end: RegExp
  /** Matches a text that is a mark or the beginning of one. */
  begun: RegExp
  isHeader: boolean
}

function marksOf(pairs: readonly MarkPair[]): Marks {
  const openings = pairs.map(({ opening }) => opening)
  const closings = pairs.flatMap((each) => each.closings)
  return {
    opening: anyOf(openings.map((mark) => mark.join(''))),
    closing: anyOf(closings.map((mark) => mark.join(''))),
    end: unquoted(closings),
    begun: anyOf([...openings, ...closings].map(beginningOf)),
    isHeader: closings.length === 0,
  }
}

/** The pattern of marks anywhere in a text, except for one right between two backquotes. */
function unquoted(marks: readonly Mark[]): RegExp {
  const patterns = marks.map((mark) => mark.join('')).join('|') || '(?!)'
  return new RegExp(`(?<!\`)(?:${patterns})|(?:${patterns})(?!\`)`, 'i')
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

/** Matches the first opening mark in a text that is not between backquotes. */
export const OPENING_IN_TEXT = unquoted(PAIRS.map(({ opening }) => opening))

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
  '</response>',
  '</s>',
].map(literal)
export const END_MARK = anyOf(END_MARKS.map((mark) => mark.join('')))
export const PART_OF_END_MARK = anyOf(END_MARKS.map(beginningOf))
