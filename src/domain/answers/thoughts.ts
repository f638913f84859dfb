import type { TextFilter } from './answer-text.ts'

/**
 * Thoughts that engines leave in the content of an answer: between two marks at its start, such as `<think>…</think>`, or
 * up to a closing mark whose opening mark the prompt had already. Marks elsewhere in an answer, or in code, are text.
 * Within thoughts the first closing mark counts that is not between backquotes.
 */

/** A filter that removes thoughts, and keeps back what may belong to them. */
export interface ThoughtFilter extends TextFilter {
  /** True if the text returned so far turned out to be thoughts. */
  readonly hasLeaked: boolean
}

/**
 * @param isHeld true for a model that omits the opening mark: text is kept back until its thoughts end; without an end it
 *   is the answer
 */
export function thoughtFilter(isHeld = false): ThoughtFilter {
  let state: 'start' | 'thoughts' | 'answer' = 'start'
  let pending = ''
  let hasThought = false
  let hasLeaked = false
  let closing = ALL_MARKS.end
  /** Text that is the answer if it has no thoughts; null within known ones. */
  let held: string | null = null
  let lines = answerLines(isHeld)
  const withoutEnd = endMarkFilter()

  const close = (rest: string): void => {
    pending = rest
    hasThought = true
    state = 'start'
  }

  /** Decides what the text at the start is; false while later text may change it. */
  const begin = (isEnd: boolean): boolean => {
    const text = pending.trimStart()
    const start = text.slice(0, MARK_MAX_LENGTH)
    if (!isEnd && start.length < MARK_MAX_LENGTH && ALL_MARKS.begun.test(start)) return false
    const opened = MARKS_BY_PAIR.find(({ opening }) => opening.test(start))
    const [mark] = (opened?.opening ?? ALL_MARKS.closing).exec(start) ?? []
    if (mark === undefined) {
      if (hasThought) pending = text
      state = isHeld && !hasThought ? 'thoughts' : 'answer'
      if (state === 'thoughts') held = pending
      lines = answerLines(isHeld || hasThought)
    } else if (opened === undefined || opened.isHeader || mark.endsWith('/>')) close(text.slice(mark.length))
    else {
      pending = text.slice(mark.length)
      closing = opened.end
      state = 'thoughts'
    }
    return true
  }

  /** Looks for the end of the thoughts; false while they go on. */
  const think = (isEnd: boolean): boolean => {
    const end = closing.exec(pending)
    const after = end === null ? -1 : end.index + end[0].length
    // Another character can lengthen a mark at the end, or show that it stands between backquotes.
    if (after >= 0 && (isEnd || after < pending.length)) {
      held = null
      close(pending.slice(after))
      return true
    }
    pending = pending.slice(-MARK_MAX_LENGTH)
    if (!isEnd || held === null) return false
    pending = held
    state = 'answer'
    return true
  }

  const filter = (isEnd: boolean): string => {
    for (;;) {
      if (state === 'start') {
        if (!begin(isEnd)) return ''
      } else if (state === 'thoughts') {
        if (!think(isEnd)) return ''
      } else {
        const { text, isThought } = lines.push(pending, isEnd)
        pending = ''
        hasLeaked ||= isThought
        return withoutEnd(text, isEnd)
      }
    }
  }

  return {
    push(chunk) {
      pending += chunk
      if (held !== null) held += chunk
      return filter(false)
    },
    end: () => filter(true),
    get hasLeaked() {
      return hasLeaked
    },
  }
}

/** The answer within a whole text of a model. Text before a closing mark without an opening one counts as thoughts. */
export function withoutThoughts(text: string): string {
  const filter = thoughtFilter(true)
  return filter.push(text) + filter.end()
}

/** Returns a function that tells whether whole lines, given one after the other, belong to fenced code. */
function fenceTracker(): (line: string) => boolean {
  let fence = ''
  return (line) => {
    if (fence === '') {
      const [, backquotes, tildes = ''] = /^\s*(?:(`{3,})[^`]*$|(~{3,}))/.exec(line) ?? []
      fence = backquotes ?? tildes
      return fence !== ''
    }
    const [, mark = ''] = /^\s*(`{3,}|~{3,})\s*$/.exec(line) ?? []
    if (mark.startsWith(fence)) fence = ''
    return true
  }
}

/**
 * Passes an answer on, and finds a closing mark that nothing opened, outside code: alone on a line, or between the thoughts
 * and the answer. Elsewhere in a line it may be a mention.
 *
 * @param isOpen true if a closing mark proves nothing: the thoughts of the answer are known
 */
function answerLines(isOpen: boolean): {
  push(text: string, isEnd: boolean): { text: string; isThought: boolean }
} {
  let isOpened = isOpen
  const isFenced = fenceTracker()
  let line = ''
  /** The part of the line that was not passed on. */
  let held = ''
  return {
    push(text, isEnd) {
      let output = ''
      for (const part of text.split(/(?<=\n)/)) {
        line += part
        held += part
        const isWhole = part.endsWith('\n') || isEnd
        if (!isWhole && line.length < MARK_MAX_LENGTH && PART_OF_CLOSING_LINE.test(line)) continue
        if (isWhole && !isFenced(line)) {
          if (CLOSING_LINE.test(line) && !isOpened) return { text: output, isThought: true }
          isOpened ||= OPENING_IN_TEXT.test(line)
          if (UNOPENED_CLOSING.test(line) && !isOpened) return { text: output + held, isThought: true }
        }
        output += held
        held = ''
        if (isWhole) line = ''
      }
      return { text: output, isThought: false }
    },
  }
}

/** Elements whose end is a mark unless the answer has their beginning: `<s>` strikes text through. */
const ELEMENTS = /<(s|answer|response)>/gi
const ELEMENT_MAX_LENGTH = '<response>'.length

/** Returns a function that passes an answer on without the marks at its end, and the space after them. */
function endMarkFilter(): (text: string, isEnd: boolean) => string {
  /** Marks that are the end of the answer so far. */
  let marks = ''
  /** The ends of elements that the answer began. */
  const ends = new Set<string>()
  let last = ''
  let pending = ''
  return (text, isEnd) => {
    pending += text
    let output = ''
    while (pending !== '') {
      const [found = ''] = END_MARK.exec(pending) ?? (marks === '' ? null : /^\s+/.exec(pending)) ?? []
      // A mark of this form behind a blank is a mention.
      const isMention = /\S[ \t]$/.test(last) && /^<[|｜]/.test(found)
      const mark = found === '' || isMention || ends.has(found.toLowerCase()) ? undefined : found
      if (mark === undefined && !isEnd && PART_OF_END_MARK.test(pending)) break
      const [plain = ''] = mark === undefined ? (/^[<[]?[^<[]*/.exec(pending) ?? []) : []
      const seen = last + plain
      for (const [, name = ''] of seen.matchAll(ELEMENTS)) ends.add(`</${name.toLowerCase()}>`)
      last = seen.slice(-ELEMENT_MAX_LENGTH)
      if (mark === undefined) output += marks + plain
      marks = mark === undefined ? '' : marks + mark
      pending = pending.slice((mark ?? plain).length)
    }
    return output
  }
}

/** The marks by which models enclose their thoughts. */

/** A mark as the parts of a regular expression, so that its beginning is recognised too. It is within one line. */
type Mark = readonly string[]

interface MarkPair {
  opening: Mark
  /** Only the first one ends thoughts whose opening mark is missing. A header of an answer has none. */
  closings: readonly Mark[]
}

/** No mark is longer. */
const MARK_MAX_LENGTH = 200

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
  // The opening mark of Apriel is words, and the prompt has it.
  { opening: ['(?!)'], closings: [literal('[begin final response]')] },
  ...['<|channel|>analysis', '<|channel|>commentary'].map((opening) => ({
    opening: literal(opening),
    closings: [FINAL_CHANNEL, literal('<|end|>'), literal('<|call|>')],
  })),
  ...[
    // A call names its tool here, or behind the channel.
    [...literal('<|start|>assistant'), '(?: (?:$|t(?:$|o(?:$|=[^<>\\n]{0,120}))))?'],
    literal('<|im_start|>assistant'),
    literal('<|start_header_id|>assistant<|end_header_id|>'),
    literal('<|assistant|>'),
    literal('<｜assistant｜>'),
    literal('<start_of_turn>model'),
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
interface Marks {
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

const ALL_MARKS = marksOf(PAIRS.map((each) => ({ ...each, closings: firstClosing(each) })))
const MARKS_BY_PAIR = PAIRS.map((each) => marksOf([each]))

/** Matches the first opening mark in a text that is not between backquotes. */
const OPENING_IN_TEXT = unquoted(PAIRS.map(({ opening }) => opening))

/** The marks that end thoughts, alone on a line. */
const CLOSING_LINES = PAIRS.flatMap(firstClosing).map((closing) => [' {0,3}', ...closing, '[ \\t\\r]*'])
const CLOSING_LINE = anyOf(CLOSING_LINES.map((mark) => `${mark.join('')}\\n?$`))
const PART_OF_CLOSING_LINE = anyOf(CLOSING_LINES.map(beginningOf))

/**
 * Such a mark within a line, right behind the thoughts, and right before the answer or its line end. Behind a letter of
 * a script without spaces it may be a mention.
 */
const UNOPENED_CLOSING = new RegExp(
  `(?<=[^\\s\`*_\\p{Lo}])(?:${PAIRS.flatMap(firstClosing)
    .map((mark) => mark.join(''))
    .join('|')})(?=[\\p{L}\\p{N}*#]|[ \\t\\r]*\\n?$)`,
  'iu',
)

/** Marks that end an answer, which some engines leave in it. */
const END_MARKS: readonly Mark[] = [
  ['<', '[|｜]', '[\\w▁]{1,40}', '[|｜]', '>'],
  ...['<end_of_turn>', '<turn|>', '<eos>', '</answer>', '</response>', '</s>', '[end final response]'].map(
    literal,
  ),
]
const END_MARK = anyOf(END_MARKS.map((mark) => mark.join('')))
const PART_OF_END_MARK = anyOf(END_MARKS.map(beginningOf))
