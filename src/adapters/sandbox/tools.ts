import { defineCommand, latin1FromBytes } from 'just-bash'
import type { Command, ExecResult, ResolvedCommandContext } from 'just-bash'
import { OPTION_SYNTAX } from './tool-options.ts'
import type { OptionSyntax } from './tool-options.ts'

/** The tools whose arguments are normalized. */
const PARSED_TOOLS: readonly string[] = [...OPTION_SYNTAX.keys()]

interface ParsedArguments {
  /** One word per option, followed by its value. */
  options: string[]
  operands: string[]
}

/**
 * Parses a tool's arguments as the real one does: `-nrk2` is `-nr`, `-k`, `2`, and `--key=2` is `-k`, `2`. Unknown
 * options stay unchanged.
 */
function parseArguments(tool: string, args: readonly string[]): ParsedArguments {
  const { valueLetters, longNames, untilOperand } = OPTION_SYNTAX.get(tool) ?? {
    valueLetters: '',
    longNames: {},
  }
  const parsed: ParsedArguments = { options: [], operands: [] }
  const rest = [...args]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--' || (untilOperand && !isOption(word))) {
      parsed.operands.push(...(word === '--' ? [] : [word]), ...rest)
      break
    }
    if (!isOption(word)) parsed.operands.push(word)
    else if (word.startsWith('--')) parsed.options.push(...longOption(word, longNames, valueLetters, rest))
    else parsed.options.push(...shortOptions(word, valueLetters, rest))
  }
  return parsed
}

/** Returns the arguments in the form that the sandbox accepts. */
function toArguments({ options, operands }: ParsedArguments): string[] {
  return [...options, ...(operands.some(isOption) ? ['--'] : []), ...operands]
}

function isOption(word: string): boolean {
  return word.startsWith('-') && word !== '-'
}

function longOption(
  word: string,
  longNames: OptionSyntax['longNames'],
  valueLetters: string,
  rest: string[],
): string[] {
  const [, name = '', value] = /^--([^=]*)(?:=(.*))?$/s.exec(word) ?? []
  const shortName = Object.hasOwn(longNames, name) ? (longNames[name] ?? '') : ''
  const takesValue = shortName.length > 1 || (shortName !== '' && valueLetters.includes(shortName))
  if (shortName === '' || (value !== undefined && !takesValue)) return [word]
  const optionValue = takesValue ? (value ?? rest.shift()) : undefined
  if (shortName.length > 1) return [optionValue === undefined ? shortName : `${shortName}=${optionValue}`]
  return [`-${shortName}`, ...(optionValue === undefined ? [] : [optionValue])]
}

function shortOptions(word: string, valueLetters: string, rest: string[]): string[] {
  const position = Array.from(word).findIndex((letter, index) => index > 0 && valueLetters.includes(letter))
  if (position < 0) return [word]
  const value = word.slice(position + 1) || rest.shift()
  const flags = word.slice(0, position)
  return [...(flags === '-' ? [] : [flags]), `-${word[position]}`, ...(value === undefined ? [] : [value])]
}

type Tool = (args: string[], context: ResolvedCommandContext) => Promise<ExecResult>

/**
 * Wraps the sandbox's tools so that they accept the arguments of the real ones
 * (docs/decisions/0023-command-sandbox.md). The wrappers apply wherever a command is run: on the
 * command line, in `xargs`, `find -exec` and `sh -c`.
 *
 * @param onUnsupported called with the reason if a command needs a form that cannot be translated
 */
export function normalizedTools(onUnsupported: (why: string) => void): Command[] {
  const wrappers: Readonly<Record<string, Tool>> = {
    find: findTool(onUnsupported),
    grep: grepTool(onUnsupported),
    ls: lsTool,
    sed: sedTool(onUnsupported),
    sort: sortTool,
    xargs: xargsTool,
  }
  const names = new Set([...PARSED_TOOLS, ...Object.keys(wrappers)])
  return [...names].map((name) =>
    defineCommand(
      name,
      wrappers[name] ?? ((args, context) => runOriginal(context, toArguments(parseArguments(name, args)))),
    ),
  )
}

async function runOriginal({ origCommand }: ResolvedCommandContext, args: string[]): Promise<ExecResult> {
  if (!origCommand) throw new Error('a required tool is missing in the sandbox')
  return origCommand(args)
}

/** Returns a result with other output; the sandbox's byte count of the old output is dropped. */
function withStdout({ stderr, exitCode }: ExecResult, stdout: string): ExecResult {
  return { stdout, stderr, exitCode }
}

const isLetters = (word: string): boolean => /^-[A-Za-z0-9]+$/.test(word)

/** Returns the letters of all short options; several may share a word. */
function optionLetters(options: readonly string[]): Set<string> {
  return new Set(options.filter(isLetters).flatMap((word) => Array.from(word.slice(1))))
}

function withoutLetters(options: readonly string[], letters: string): string[] {
  const pattern = new RegExp(`[${letters}]`, 'g')
  return options
    .map((word) => (isLetters(word) ? word.replaceAll(pattern, '') : word))
    .filter((word) => word !== '-')
}

const WORD_EDGES = /^\w(?:.*\w)?$/s
const PLAIN_TEXT = /^[\w\s:;,@%#=<>/~"'-]+$/

/** Letters without effect here: every file is text, and error output is not graded. */
const GREP_IGNORED = 'saIGHZ'

function grepTool(onUnsupported: (why: string) => void): Tool {
  return async (args, context) => {
    const parsed = parseArguments('grep', args)
    const letters = optionLetters(parsed.options)
    const hasAny = (wanted: string): boolean => Array.from(wanted).some((letter) => letters.has(letter))
    const patternIndex = parsed.options.indexOf('-e')
    const patterns = patternIndex >= 0 || letters.has('f') ? [] : parsed.operands.slice(0, 1)
    const paths = parsed.operands.slice(patterns.length)
    const pattern = patterns[0] ?? parsed.options[patternIndex + 1] ?? ''
    const listsNames = hasAny('lL')
    if (hasAny('P') && /\(\?<?[=!]/.test(pattern)) onUnsupported('grep -P with lookaround')
    if (parsed.options.filter((word) => word === '-e').length > 1) onUnsupported('grep with several patterns')
    if (hasAny('Z') && !listsNames) onUnsupported('grep -Z without a list of file names')
    if (hasAny('H') && !listsNames && !hasAny('rR') && paths.length === 0)
      onUnsupported('grep -H without a file')
    const wholeWords = hasAny('w') && !WORD_EDGES.test(pattern) ? wholeWordPattern(pattern) : pattern
    if (wholeWords === null || (wholeWords !== pattern && (hasAny('oP') || patternIndex >= 0)))
      onUnsupported('grep -w with a pattern that is not a word')
    const options = withoutLetters(
      parsed.options,
      wholeWords === pattern ? GREP_IGNORED : `${GREP_IGNORED}wFE`,
    )
    const adapted: ParsedArguments = {
      options: wholeWords === pattern ? options : [...options, '-E'],
      operands: [
        ...(patterns.length === 0 ? [] : [wholeWords ?? pattern]),
        ...(hasAny('rR') && paths.length === 0 ? ['.'] : paths),
        // With a second file, grep prefixes every line with its file name.
        ...(hasAny('H') && !listsNames && paths.length > 0 ? ['/dev/null'] : []),
      ],
    }
    const result = await runOriginal(context, toArguments(adapted))
    const addDotSlash = hasAny('rR') && paths.length === 1 && paths[0] === '.' && !hasAny('hq')
    const stdout = formatGrepOutput(result.stdout, addDotSlash)
    return withStdout(result, hasAny('Z') ? stdout.replaceAll('\n', '\0') : stdout)
  }
}

/** Returns a pattern for `-w` whose edges are not word characters; null if the pattern is not plain text. */
function wholeWordPattern(pattern: string): string | null {
  return PLAIN_TEXT.test(pattern) ? `(^|[^[:alnum:]_])${pattern}([^[:alnum:]_]|$)` : null
}

function formatGrepOutput(stdout: string, addDotSlash: boolean): string {
  const output = stdout.replaceAll(/^\/dev\/null:0\n/gm, '')
  return addDotSlash ? output.replaceAll(/^(?=.)(?!--$)(?!\.\/)/gm, './') : output
}

function sedTool(onUnsupported: (why: string) => void): Tool {
  return (args, context) => {
    const parsed = parseArguments('sed', args)
    if (args.some((word) => /^-[nErsuz]*i.|^--in-place=./.test(word)))
      onUnsupported('sed -i cannot keep a backup')
    return runOriginal(context, toArguments(parsed))
  }
}

/** Sorts NUL-terminated records as lines: no file name here contains a line break. */
const sortTool: Tool = async (args, context) => {
  const parsed = withOrderAfterKeys(parseArguments('sort', args))
  if (!optionLetters(parsed.options).has('z') || parsed.operands.length > 0 || !context.exec)
    return runOriginal(context, toArguments(parsed))
  const lines = latin1FromBytes(context.stdin).replaceAll('\0', '\n')
  const { cwd } = context
  const options = {
    cwd,
    stdin: lines,
    stdinKind: 'bytes',
    args: withoutLetters(parsed.options, 'z'),
  } as const
  const result = await context.exec('sort', options)
  return withStdout(result, result.stdout.replaceAll('\n', '\0'))
}

/** Converts `-k 3nr,3` to `-k 3,3nr`. */
function withOrderAfterKeys({ options, operands }: ParsedArguments): ParsedArguments {
  const keyed = options.map((word, index) =>
    options[index - 1] === '-k' ? word.replace(/^([\d.]+)([A-Za-z]+),([\d.]+)$/, '$1,$3$2') : word,
  )
  return { options: keyed, operands }
}

const xargsTool: Tool = (args, context) => {
  const parsed = parseArguments('xargs', args)
  const letters = optionLetters(parsed.options)
  const lines = letters.has('I') && !letters.has('0') && !letters.has('d')
  return runOriginal(context, [...(lines ? ['-d', '\\n'] : []), ...parsed.options, ...parsed.operands])
}

/** Removes the empty lines that the sandbox prints between files as between folders. */
const lsTool: Tool = async (args, context) => {
  const result = await runOriginal(context, args)
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
  return asFiles ? withStdout(result, result.stdout.replaceAll(/\n{2,}/g, '\n')) : result
}

/** Expressions of find that affect the evaluation after `-exec`. */
const FIND_CONTROL: ReadonlySet<string> = new Set([
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

/** Makes the expression after `-exec` depend on the exit code of the command, which the sandbox ignores. */
function findTool(onUnsupported: (why: string) => void): Tool {
  return async (args, context) => {
    const execIndex = args.indexOf('-exec')
    const endIndex = args.indexOf(';', execIndex)
    if (execIndex < 0 || endIndex < 0) return runOriginal(context, args)
    const before = args.slice(0, execIndex)
    const after = args.slice(endIndex + 1).filter((word) => word !== '-a' && word !== '-and')
    const [print] = after
    if (after.length === 0 && !['!', '-not', '-o', '-or'].includes(before.at(-1) ?? ''))
      return runOriginal(context, args)
    const simple = after.length === 1 && (print === '-print' || print === '-print0')
    if (!simple || before.some((word) => FIND_CONTROL.has(word)) || !context.exec) {
      onUnsupported('find has an expression after -exec')
      return runOriginal(context, args)
    }
    return execForEachPath(
      args.slice(execIndex + 1, endIndex),
      await runOriginal(context, [...before, '-print0']),
      {
        context,
        end: print === '-print' ? '\n' : '\0',
      },
    )
  }
}

/** Runs a command for each path. Prints its output, followed by the path if the command succeeded. */
async function execForEachPath(
  command: readonly string[],
  paths: ExecResult,
  { context: { cwd, exec }, end }: { context: ResolvedCommandContext; end: string },
): Promise<ExecResult> {
  const result = withStdout(paths, '')
  for (const path of paths.stdout.split('\0').filter((line) => line !== '')) {
    const [tool = '', ...args] = command.map((word) => word.replaceAll('{}', path))
    const run = await exec?.(`'${tool.replaceAll("'", "'\\''")}'`, { cwd, args })
    result.stdout += `${run?.stdout ?? ''}${run?.exitCode === 0 ? `${path}${end}` : ''}`
    result.stderr += run?.stderr ?? ''
  }
  return result
}
