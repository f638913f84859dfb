import { defineCommand } from 'just-bash'
import type { Command, ExecResult } from 'just-bash'

/**
 * Differences between just-bash 3.4.2 and the GNU tools. A command that needs one of them is not graded
 * (docs/lite-suite.md), nor is one whose option the sandbox rejects.
 */

/** Option letters that take a value, by tool. The tools of the sandbox accept such an option only as a separate word. */
const VALUE_LETTERS: Readonly<Record<string, string>> = {
  awk: 'Fv',
  cut: 'bcdf',
  grep: 'ABCDdefm',
  head: 'cn',
  sort: 'koSTt',
  tail: 'cn',
  uniq: 'fsw',
  xargs: 'adEILnPs',
}

/** Splits options that share a word: `-nrk2` is `-nr -k 2`. The first operand of awk and xargs ends their options. */
function splitOptions(tool: string, args: readonly string[]): string[] {
  const split: string[] = []
  const rest = [...args]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const operand = !isOption(word)
    if (word === '--' || (operand && (tool === 'awk' || tool === 'xargs'))) return [...split, word, ...rest]
    if (operand || word.startsWith('--')) split.push(word)
    else split.push(...splitWord(word, VALUE_LETTERS[tool] ?? '', rest))
  }
  return split
}

function splitWord(word: string, valueLetters: string, rest: string[]): string[] {
  const position = Array.from(word).findIndex((letter, index) => index > 0 && valueLetters.includes(letter))
  if (position < 0) return [word]
  const value = word.slice(position + 1) || rest.shift()
  const flags = word.slice(0, position)
  return [...(flags === '-' ? [] : [flags]), `-${word[position]}`, ...(value === undefined ? [] : [value])]
}

function isOption(word: string): boolean {
  return word.startsWith('-') && word !== '-'
}

/** True if one of the letters is among the short options. */
function hasLetter(args: readonly string[], letters: RegExp): boolean {
  return args.some((word) => /^-[A-Za-z]+$/.test(word) && letters.test(word))
}

/** Arguments with another effect than in the real tool, without an error: the reason, or null. */
const DIFFERENT_ARGUMENTS: Readonly<Record<string, (args: readonly string[]) => string | null>> = {
  find(args) {
    const exec = args.indexOf('-exec')
    const end = exec < 0 ? -1 : args.indexOf(';', exec)
    const isLast = end === args.length - 1 && !['!', '-not', '-o', '-or'].includes(args[exec - 1] ?? '')
    return end < 0 || isLast ? null : 'find has an expression after -exec'
  },
  grep(args) {
    const pattern = args.find((word) => !isOption(word)) ?? ''
    const wholeWords = hasLetter(args, /w/) || args.includes('--word-regexp')
    if (wholeWords && !/^\w(?:.*\w)?$/s.test(pattern)) return 'grep -w with a pattern that is not a word'
    if (args.filter((word) => word === '-e').length > 1) return 'grep with several patterns'
    return /\(\?<?[=!]/.test(pattern) ? 'grep -P with lookaround' : null
  },
  ls: (args) => (args.filter((word) => !isOption(word)).length > 1 ? 'ls of several files' : null),
  sed: (args) => (args.some((word) => /^-[nErsuz]*i./.test(word)) ? 'sed -i cannot keep a backup' : null),
}

/**
 * Wraps the sandbox's tools, wherever a command is run: on the command line, in `xargs`, `find -exec` and `sh -c`.
 *
 * @param onUnsupported called with the reason if a command has another effect than in a real shell
 */
export function wrappedTools(onUnsupported: (why: string) => void): Command[] {
  const names = new Set([...Object.keys(VALUE_LETTERS), ...Object.keys(DIFFERENT_ARGUMENTS)])
  return [...names].map((name) =>
    defineCommand(name, async (given, { origCommand }) => {
      if (!origCommand) throw new Error('a required tool is missing in the sandbox')
      const args = splitOptions(name, given)
      const different = DIFFERENT_ARGUMENTS[name]?.(args) ?? null
      if (different !== null) onUnsupported(different)
      if (name === 'grep' && isRecursive(args)) return searchFolder(args, origCommand)
      // With -I, a line is one argument.
      const splitsLines = name === 'xargs' && args.includes('-I') && !hasLetter(args, /[0d]/)
      return origCommand(splitsLines ? ['-d', '\\n', ...args] : args)
    }),
  )
}

function isRecursive(args: readonly string[]): boolean {
  return hasLetter(args, /[rR]/) || args.includes('--recursive')
}

/** Without a path, grep searches the current folder; names below the path `.` begin with `./`. */
async function searchFolder(
  args: readonly string[],
  grep: (args: string[]) => Promise<ExecResult>,
): Promise<ExecResult> {
  const operands = args.filter((word, index) => !isOption(word) && !/^-[ABCefm]$/.test(args[index - 1] ?? ''))
  const paths = args.includes('-e') ? operands : operands.slice(1)
  const { stdout, stderr, exitCode } = await grep(paths.length === 0 ? [...args, '.'] : [...args])
  const isNamed = paths.length === 1 && paths[0] === '.' && !hasLetter(args, /[hq]/)
  return { stdout: isNamed ? stdout.replaceAll(/^(?=.)(?!\.\/)/gm, './') : stdout, stderr, exitCode }
}

/**
 * Tools of a usual system that the sandbox does not have, or that are disabled because they bring a worker or a
 * parser.
 */
export const MISSING_TOOLS: readonly string[] = [
  'perl python python3 ruby node php lua gawk mawk nawk busybox ed ex vim bc dc numfmt factor shuf',
  'tsort yes csplit fmt pr ptx look hexdump xxd uname id nproc ps kill top df mount locate',
  'realpath mktemp install truncate dd mkfifo sync shred chown chgrp rename prename mmv rsync',
  'parallel sponge less more man iconv dos2unix zip unzip bzip2 xz zgrep git make sudo curl wget',
  'ssh nc ag ack fd bat datamash mlr csvcut yq xan sqlite3 nohup nice stdbuf setsid tput logger',
  'cksum b2sum sha512sum envsubst',
  'trap coproc ulimit umask jobs fg bg disown bind complete compgen caller times enable suspend fc hash',
].flatMap((names) => names.split(' '))

/** Messages of the sandbox about options it rejects, which GNU may know, and about other unsupported features. */
const UNSUPPORTED_MESSAGES = [
  /^\w+: (?:invalid option -- '|unrecognized option '|unknown predicate ').*$/m,
  /^.*\b(?:not supported|not implemented|not allowed in sandboxed|not available in)\b.*$/im,
  /^usage: paste .*$/m,
  /^(?:head|tail): invalid number of (?:lines|bytes)$/m,
  /^awk: .*out of bounds.*$/m,
  /^awk: Unexpected token: PIPE.*$/m,
  /^date: invalid date .*$/m,
]

/** Forms that the sandbox runs without an error, with another result than GNU. */
const DIFFERENT_RESULTS: readonly { form: RegExp; why: string }[] = [
  { form: /\bfind\b[^|;]*\s-size\s+[+-]?\d+[^c\d]/, why: 'find -size uses another unit' },
  { form: /\bawk\b.*\blength\b(?!\s*\()/, why: 'awk length needs parentheses' },
  { form: /(?:^|[|;&(]\s*)(?:od|split|diff)\s/, why: 'od, split and diff use another output format' },
]

/**
 * Returns the part of a command that the sandbox does not support, in one line; null if there is none.
 *
 * @param stderr complete error output of the command
 */
export function findUnsupported(command: string, stderr: string): string | null {
  const messages = UNSUPPORTED_MESSAGES.map((message) => message.exec(stderr)?.[0])
  const message = messages.find((found) => found !== undefined)
  return message ?? DIFFERENT_RESULTS.find(({ form }) => form.test(command))?.why ?? null
}
