import { defineCommand, latin1FromBytes } from 'just-bash'
import type { Command, ExecResult, ResolvedCommandContext } from 'just-bash'

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
const READ_TOOLS: readonly string[] = [...READINGS.keys()]

interface Words {
  /** Each a word of its own, its value behind it. */
  options: string[]
  operands: string[]
}

/**
 * Takes a tool's arguments apart as the real one does: `-nrk2` is `-nr`, `-k`, `2`, and `--key=2` is `-k`, `2`. What the
 * tool does not have stays as it is.
 */
function readOptions(tool: string, args: readonly string[]): Words {
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
function written({ options, operands }: Words): string[] {
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

type Tool = (args: string[], context: ResolvedCommandContext) => Promise<ExecResult>

/**
 * The sandbox's own tools, given their arguments as they read them: what is spelled otherwise, or left out because a real
 * tool knows it, is put in words they know (docs/decisions/0024-commands-that-cannot-be-graded.md). They stand wherever a command
 * is run from: the line itself, `xargs`, `find -exec`, `sh -c`.
 *
 * @param onUnsupported called with what a command needs that cannot be put in such words
 */
export function respelledTools(onUnsupported: (why: string) => void): Command[] {
  const own: Readonly<Record<string, Tool>> = {
    find: findTool(onUnsupported),
    grep: grepTool(onUnsupported),
    ls: lsTool,
    sed: sedTool(onUnsupported),
    sort: sortTool,
    xargs: xargsTool,
  }
  const names = new Set([...READ_TOOLS, ...Object.keys(own)])
  return [...names].map((name) =>
    defineCommand(
      name,
      own[name] ?? ((args, context) => original(context, written(readOptions(name, args)))),
    ),
  )
}

async function original({ origCommand }: ResolvedCommandContext, args: string[]): Promise<ExecResult> {
  if (!origCommand) throw new Error('a required tool is missing in the sandbox')
  return origCommand(args)
}

/** What a tool printed, otherwise: the sandbox's own count of it holds no more. */
function reprinted({ stderr, exitCode }: ExecResult, stdout: string): ExecResult {
  return { stdout, stderr, exitCode }
}

const isLetters = (word: string): boolean => /^-[A-Za-z0-9]+$/.test(word)

/** Each option by its letter, several of which may share a word. */
function lettersOf(options: readonly string[]): Set<string> {
  return new Set(options.filter(isLetters).flatMap((word) => Array.from(word.slice(1))))
}

function without(options: readonly string[], letters: string): string[] {
  const dropped = new RegExp(`[${letters}]`, 'g')
  return options
    .map((word) => (isLetters(word) ? word.replaceAll(dropped, '') : word))
    .filter((word) => word !== '-')
}

const WORD_EDGES = /^\w(?:.*\w)?$/s
const PLAIN_PATTERN = /^[\w\s:;,@%#=<>/~"'-]+$/

/** Letters that change nothing here: every file is text, and complaints are not judged. */
const GREP_IDLE = 'saIGHZ'

function grepTool(onUnsupported: (why: string) => void): Tool {
  return async (args, context) => {
    const words = readOptions('grep', args)
    const letters = lettersOf(words.options)
    const has = (some: string): boolean => Array.from(some).some((letter) => letters.has(letter))
    const named = words.options.indexOf('-e')
    const patterns = named >= 0 || letters.has('f') ? [] : words.operands.slice(0, 1)
    const paths = words.operands.slice(patterns.length)
    const pattern = patterns[0] ?? words.options[named + 1] ?? ''
    const lists = has('lL')
    if (has('P') && /\(\?<?[=!]/.test(pattern)) onUnsupported('grep -P cannot look around')
    if (words.options.filter((word) => word === '-e').length > 1) onUnsupported('grep of several patterns')
    if (has('Z') && !lists) onUnsupported('grep -Z ends only names of files')
    if (has('H') && !lists && !has('rR') && paths.length === 0) onUnsupported('grep -H without a file')
    const bounded = has('w') && !WORD_EDGES.test(pattern) ? boundedPattern(pattern) : pattern
    if (bounded === null || (bounded !== pattern && (has('oP') || named >= 0)))
      onUnsupported('grep -w of other than words')
    const options = without(words.options, bounded === pattern ? GREP_IDLE : `${GREP_IDLE}wFE`)
    const asked: Words = {
      options: bounded === pattern ? options : [...options, '-E'],
      operands: [
        ...(patterns.length === 0 ? [] : [bounded ?? pattern]),
        ...(has('rR') && paths.length === 0 ? ['.'] : paths),
        // With a second file every line names its own.
        ...(has('H') && !lists && paths.length > 0 ? ['/dev/null'] : []),
      ],
    }
    const result = await original(context, written(asked))
    const rooted = has('rR') && paths.length === 1 && paths[0] === '.' && !has('hq')
    const stdout = asGrepPrints(result.stdout, rooted)
    return reprinted(result, has('Z') ? stdout.replaceAll('\n', '\0') : stdout)
  }
}

/** Whole words of a pattern that begins or ends with no letter of a word; null when it is no plain text. */
function boundedPattern(pattern: string): string | null {
  return PLAIN_PATTERN.test(pattern) ? `(^|[^[:alnum:]_])${pattern}([^[:alnum:]_]|$)` : null
}

function asGrepPrints(stdout: string, rooted: boolean): string {
  const own = stdout.replaceAll(/^\/dev\/null:0\n/gm, '')
  return rooted ? own.replaceAll(/^(?=.)(?!--$)(?!\.\/)/gm, './') : own
}

function sedTool(onUnsupported: (why: string) => void): Tool {
  return (args, context) => {
    const words = readOptions('sed', args)
    if (args.some((word) => /^-[nErsuz]*i.|^--in-place=./.test(word)))
      onUnsupported('sed -i keeps no copy of a file')
    return original(context, written(words))
  }
}

/** Lines that end with NUL are sorted as lines: no name here holds a line break. */
const sortTool: Tool = async (args, context) => {
  const words = withOrderBehindKeys(readOptions('sort', args))
  if (!lettersOf(words.options).has('z') || words.operands.length > 0 || !context.exec)
    return original(context, written(words))
  const lines = latin1FromBytes(context.stdin).replaceAll('\0', '\n')
  const { cwd } = context
  const options = { cwd, stdin: lines, stdinKind: 'bytes', args: without(words.options, 'z') } as const
  const result = await context.exec('sort', options)
  return reprinted(result, result.stdout.replaceAll('\n', '\0'))
}

/** `-k 3nr,3` is `-k 3,3nr`. */
function withOrderBehindKeys({ options, operands }: Words): Words {
  const keyed = options.map((word, index) =>
    options[index - 1] === '-k' ? word.replace(/^([\d.]+)([A-Za-z]+),([\d.]+)$/, '$1,$3$2') : word,
  )
  return { options: keyed, operands }
}

const xargsTool: Tool = (args, context) => {
  const words = readOptions('xargs', args)
  const letters = lettersOf(words.options)
  const lines = letters.has('I') && !letters.has('0') && !letters.has('d')
  return original(context, [...(lines ? ['-d', '\\n'] : []), ...words.options, ...words.operands])
}

/** Several files are printed in a row: the sandbox leaves an empty line between them, as between folders. */
const lsTool: Tool = async (args, context) => {
  const result = await original(context, args)
  const { fs, cwd } = context
  const operands = args.filter((word) => !word.startsWith('-'))
  if (operands.length < 2) return result
  const areFolders = await Promise.all(
    operands.map(async (path) => {
      const full = fs.resolvePath(cwd, path)
      return (await fs.exists(full)) && (await fs.stat(full)).isDirectory
    }),
  )
  const asFiles = args.some((word) => /^-\w*d/.test(word)) || !areFolders.includes(true)
  return asFiles ? reprinted(result, result.stdout.replaceAll(/\n{2,}/g, '\n')) : result
}

/** What decides more than which file comes next. */
const FIND_CHOICES: ReadonlySet<string> = new Set([
  '!',
  '-not',
  '-o',
  '-or',
  ',',
  '(',
  ')',
  '-prune',
  '-quit',
])

/** A command's exit decides what follows it: the sandbox only looks at its output. */
function findTool(onUnsupported: (why: string) => void): Tool {
  return async (args, context) => {
    const begins = args.indexOf('-exec')
    const ends = args.indexOf(';', begins)
    if (begins < 0 || ends < 0) return original(context, args)
    const before = args.slice(0, begins)
    const after = args.slice(ends + 1).filter((word) => word !== '-a' && word !== '-and')
    const [print] = after
    if (after.length === 0 && !['!', '-not', '-o', '-or'].includes(before.at(-1) ?? ''))
      return original(context, args)
    const simple = after.length === 1 && (print === '-print' || print === '-print0')
    if (!simple || before.some((word) => FIND_CHOICES.has(word)) || !context.exec) {
      onUnsupported('find goes on after -exec')
      return original(context, args)
    }
    return passedBy(args.slice(begins + 1, ends), await original(context, [...before, '-print0']), {
      context,
      end: print === '-print' ? '\n' : '\0',
    })
  }
}

/** The output of a command for each path, and each path for which it ended well. */
async function passedBy(
  command: readonly string[],
  found: ExecResult,
  { context: { cwd, exec }, end }: { context: ResolvedCommandContext; end: string },
): Promise<ExecResult> {
  const result = reprinted(found, '')
  for (const path of found.stdout.split('\0').filter((each) => each !== '')) {
    const [tool = '', ...args] = command.map((word) => word.replaceAll('{}', path))
    const ran = await exec?.(`'${tool.replaceAll("'", "'\\''")}'`, { cwd, args })
    result.stdout += `${ran?.stdout ?? ''}${ran?.exitCode === 0 ? `${path}${end}` : ''}`
    result.stderr += ran?.stderr ?? ''
  }
  return result
}
