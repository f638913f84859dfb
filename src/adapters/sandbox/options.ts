/** How a tool of the sandbox reads its options: one a word, and few by their long names. */
interface Reading {
  /** Letters that take a value. */
  values: string
  /** Letters by long name; one that stays long, and takes a value, by itself. */
  long: Readonly<Record<string, string>>
  /** True when the first operand ends the options, as a command within the arguments does. */
  untilOperand?: true
}

const READINGS: ReadonlyMap<string, Reading> = new Map([
  ['awk', { values: 'Fv', long: { 'field-separator': 'F', assign: 'v' }, untilOperand: true }],
  ['cut', { values: 'bcdf', long: { delimiter: 'd', fields: 'f', characters: 'c', 'only-delimited': 's' } }],
  [
    'grep',
    {
      values: 'ABCDdefm',
      long: {
        'after-context': 'A',
        'basic-regexp': 'G',
        'before-context': 'B',
        context: 'C',
        count: 'c',
        'dereference-recursive': 'R',
        exclude: '--exclude',
        'exclude-dir': '--exclude-dir',
        'extended-regexp': 'E',
        'files-with-matches': 'l',
        'files-without-match': 'L',
        'fixed-strings': 'F',
        'ignore-case': 'i',
        include: '--include',
        'invert-match': 'v',
        'line-number': 'n',
        'line-regexp': 'x',
        'max-count': 'm',
        'no-filename': 'h',
        'no-messages': 's',
        null: 'Z',
        'only-matching': 'o',
        'perl-regexp': 'P',
        quiet: 'q',
        recursive: 'r',
        regexp: 'e',
        silent: 'q',
        text: 'a',
        'with-filename': 'H',
        'word-regexp': 'w',
      },
    },
  ],
  ['head', { values: 'cn', long: { bytes: 'c', lines: 'n', quiet: 'q', silent: 'q' } }],
  [
    'sort',
    {
      values: 'koSTt',
      long: {
        'field-separator': 't',
        'ignore-case': 'f',
        key: 'k',
        'numeric-sort': 'n',
        output: 'o',
        reverse: 'r',
        stable: 's',
        unique: 'u',
        'zero-terminated': 'z',
      },
    },
  ],
  ['sed', { values: 'ef', long: { expression: 'e' } }],
  ['tail', { values: 'cn', long: { bytes: 'c', lines: 'n', quiet: 'q', silent: 'q' } }],
  ['uniq', { values: 'fsw', long: { 'skip-chars': 's', 'skip-fields': 'f' } }],
  [
    'xargs',
    {
      values: 'adEILnPs',
      long: {
        delimiter: 'd',
        'max-args': 'n',
        'max-lines': 'L',
        'max-procs': 'P',
        'no-run-if-empty': 'r',
        null: '0',
        replace: 'I',
      },
      untilOperand: true,
    },
  ],
])

/** The tools whose options are read for the sandbox. */
export const READ_TOOLS: readonly string[] = [...READINGS.keys()]

export interface Words {
  /** Each a word of its own, its value behind it. */
  options: string[]
  operands: string[]
}

/**
 * Takes a tool's arguments apart as the real one does: `-nrk2` is `-nr`, `-k`, `2`, and `--key=2` is `-k`, `2`. What the
 * tool does not have stays as it is.
 */
export function readOptions(tool: string, args: readonly string[]): Words {
  const { values, long, untilOperand } = READINGS.get(tool) ?? { values: '', long: {} }
  const found: Words = { options: [], operands: [] }
  const rest = [...args]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--' || (untilOperand && !isOption(word))) {
      found.operands.push(...(word === '--' ? [] : [word]), ...rest)
      break
    }
    if (!isOption(word)) found.operands.push(word)
    else if (word.startsWith('--')) found.options.push(...longOption(word, long, values, rest))
    else found.options.push(...shortOptions(word, values, rest))
  }
  return found
}

/** The words as the sandbox takes them. */
export function written({ options, operands }: Words): string[] {
  return [...options, ...(operands.some(isOption) ? ['--'] : []), ...operands]
}

function isOption(word: string): boolean {
  return word.startsWith('-') && word !== '-'
}

function longOption(word: string, long: Reading['long'], values: string, rest: string[]): string[] {
  const [, name = '', value] = /^--([^=]*)(?:=(.*))?$/s.exec(word) ?? []
  const known = Object.hasOwn(long, name) ? (long[name] ?? '') : ''
  const takes = known.length > 1 || (known !== '' && values.includes(known))
  if (known === '' || (value !== undefined && !takes)) return [word]
  const given = takes ? (value ?? rest.shift()) : undefined
  if (known.length > 1) return [given === undefined ? known : `${known}=${given}`]
  return [`-${known}`, ...(given === undefined ? [] : [given])]
}

function shortOptions(word: string, values: string, rest: string[]): string[] {
  const at = Array.from(word).findIndex((letter, index) => index > 0 && values.includes(letter))
  if (at < 0) return [word]
  const value = word.slice(at + 1) || rest.shift()
  const flags = word.slice(0, at)
  return [...(flags === '-' ? [] : [flags]), `-${word[at]}`, ...(value === undefined ? [] : [value])]
}
