import { Bash, defineCommand, getCommandNames } from 'just-bash'
import type { BashExecResult, CommandName, TransformPlugin, WordNode, Command, ExecResult } from 'just-bash'
import { failedRun } from '../../domain/models/lite/suite.ts'
import type { ShellLimits, ShellRun } from '../../domain/models/lite/suite.ts'

/** Adds `"$@"` to loops that omit it: the sandbox would split the arguments at spaces. */
const loopsOverArguments: TransformPlugin = {
  name: 'loops-over-arguments',
  transform({ ast }) {
    addArguments(ast)
    return { ast }
  },
}

const ARGUMENTS: WordNode = {
  type: 'Word',
  parts: [{ type: 'DoubleQuoted', parts: [{ type: 'ParameterExpansion', parameter: '@', operation: null }] }],
}

/** Changes the tree in place: it belongs to one run of one command. */
function addArguments(node: unknown): void {
  if (typeof node !== 'object' || node === null) return
  if ('type' in node && node.type === 'For' && 'words' in node) node.words ??= [ARGUMENTS]
  Object.values(node).forEach(addArguments)
}

/** The working folder of a command; files elsewhere are ignored. */
const WORK_FOLDER = '/work'

/** No task of the suite needs a longer command. */
const COMMAND_MAX_BYTES = 4096

const MEBIBYTE = 1_048_576

/** Commands of just-bash that are disabled. */
const DISABLED_COMMANDS = new Set('sqlite3 yq xan html-to-markdown help clear history'.split(' '))

const COMMANDS = getCommandNames().filter((name) => !DISABLED_COMMANDS.has(name)) as CommandName[]

/**
 * Runs one command in a new shell and returns its outcome. Call it in a process that can be killed: the limits
 * count steps of a command and do not stop a step that hangs.
 */
export async function runCommand(
  command: string,
  files: ReadonlyMap<string, string>,
  limits: ShellLimits,
): Promise<ShellRun> {
  if (command.includes('\0')) return failedRun('not-executable', 'a NUL in the command')
  if (Buffer.byteLength(command) > COMMAND_MAX_BYTES)
    return failedRun('not-executable', `longer than ${COMMAND_MAX_BYTES} bytes`)
  const { run, unsupported } = await execute(command, files, limits)
  const { missingTools } = run
  if (run.outcome !== 'ran') return run
  const withStderr = command.replaceAll(/(?:2|&)>{1,2}\s*\/dev\/null/g, '')
  const { stderr } = withStderr === command ? run : (await execute(withStderr, files, limits)).run
  const reason = missingTools[0] ?? unsupported ?? UNSUPPORTED_MESSAGES.exec(stderr)?.[0] ?? null
  return reason === null ? run : failedRun('unsupported', reason, missingTools)
}

async function execute(
  command: string,
  files: ReadonlyMap<string, string>,
  limits: ShellLimits,
): Promise<{ run: ShellRun; unsupported: string | null }> {
  const missingTools = new Set<string>()
  const unsupportedForms: string[] = []
  let sleptMs = 0
  const bash = new Bash({
    files: Object.fromEntries([...files].map(([path, content]) => [`${WORK_FOLDER}/${path}`, content])),
    cwd: WORK_FOLDER,
    env: { HOME: WORK_FOLDER, LC_ALL: 'C' },
    commands: COMMANDS,
    customCommands: [
      ...wrappedTools((reason) => unsupportedForms.push(reason)),
      ...MISSING_TOOLS.map((name) =>
        defineCommand(name, () => {
          missingTools.add(name)
          return Promise.resolve({ stdout: '', stderr: '', exitCode: 127 })
        }),
      ),
    ],
    // Sleeping is counted, not waited for.
    sleep(ms) {
      sleptMs += ms
      return sleptMs > limits.timeMs ? Promise.reject(new Error('slept too long')) : Promise.resolve()
    },
    executionLimitProfile: 'hardened',
    executionLimits: {
      maxExecutionTimeMs: limits.timeMs,
      maxOutputSize: limits.outputBytes,
      maxStringLength: 4 * MEBIBYTE,
      maxLiveBytes: 32 * MEBIBYTE,
      maxFileSystemBytes: 8 * MEBIBYTE,
    },
  })
  bash.registerTransformPlugin(loopsOverArguments)
  const result = await bash.exec(command, { rawScript: true })
  const run =
    sleptMs > limits.timeMs ? failedRun('limit', 'slept too long') : await toShellRun(bash, result, limits)
  return { run: { ...run, missingTools: [...missingTools] }, unsupported: unsupportedForms[0] ?? null }
}

async function toShellRun(bash: Bash, result: BashExecResult, limits: ShellLimits): Promise<ShellRun> {
  const { stdout, stderr, exitCode } = result
  const limit = exitCode === 126 || exitCode === 124 ? LIMIT.exec(stderr)?.[0] : undefined
  if (limit !== undefined) return failedRun('limit', limit)
  const syntax = exitCode === 2 ? SYNTAX.exec(stderr)?.[0] : undefined
  const unknown = exitCode === 127 ? /^bash: .*: command not found$/m.exec(stderr)?.[0] : undefined
  if (syntax ?? unknown) return failedRun('not-executable', syntax ?? unknown ?? '')
  const files = await readFiles(bash, limits.outputBytes)
  if (files === null || stdout.length + stderr.length > limits.outputBytes)
    return failedRun('limit', `more than ${limits.outputBytes} bytes`)
  return { outcome: 'ran', stdout, stderr, files, reason: null, missingTools: [] }
}

/** Matches the sandbox's message about an exceeded limit. */
const LIMIT = /^.*(?:exceeded|too many|deadline|limit).*$/im
const SYNTAX = /^bash: (?:line \d+: )?(?:syntax error|unexpected EOF).*$/m

/** Reads every regular file below the folder; null if they exceed the limit. */
async function readFiles({ fs }: Bash, maxBytes: number): Promise<Map<string, string> | null> {
  const files = new Map<string, string>()
  let bytes = 0
  for (const path of fs.getAllPaths()) {
    if (!path.startsWith(`${WORK_FOLDER}/`) || !(await fs.lstat(path)).isFile) continue
    const content = await fs.readFile(path)
    bytes += path.length + content.length
    if (bytes > maxBytes) return null
    files.set(path.slice(WORK_FOLDER.length + 1), content)
  }
  return files
}

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
  const letters = VALUE_LETTERS[tool]
  if (letters === undefined) return [...args]
  const valued = new RegExp(`^-([^${letters}]*)([${letters}])(.*)$`, 's')
  const split: string[] = []
  const rest = [...args]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const operand = !isOption(word)
    if (word === '--' || (operand && (tool === 'awk' || tool === 'xargs'))) return [...split, word, ...rest]
    const [, flags, letter, value] = operand || word.startsWith('--') ? [] : (valued.exec(word) ?? [])
    if (letter === undefined) split.push(word)
    else split.push(...(flags ? [`-${flags}`] : []), `-${letter}`, ...(value ? [value] : rest.splice(0, 1)))
  }
  return split
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
  awk: (args) =>
    args.some((word) => /\blength\b(?!\s*\()/.test(word)) ? 'awk length needs parentheses' : null,
  diff: () => 'diff uses another output format',
  find(args) {
    if (args.some((word, index) => args[index - 1] === '-size' && !/^[+-]?\d+c$/.test(word)))
      return 'find -size uses another unit'
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
  od: () => 'od uses another output format',
  sed: (args) => (args.some((word) => /^-[nErsuz]*i./.test(word)) ? 'sed -i cannot keep a backup' : null),
  split: () => 'split uses another output format',
}

/**
 * Wraps the sandbox's tools, wherever a command is run: on the command line, in `xargs`, `find -exec` and `sh -c`.
 *
 * @param onUnsupported called with the reason if a command has another effect than in a real shell
 */
function wrappedTools(onUnsupported: (why: string) => void): Command[] {
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
const MISSING_TOOLS: readonly string[] = [
  'perl python python3 ruby node php lua gawk mawk nawk busybox ed ex vim bc dc numfmt factor shuf',
  'tsort yes csplit fmt pr ptx look hexdump xxd uname id nproc ps kill top df mount locate',
  'realpath mktemp install truncate dd mkfifo sync shred chown chgrp rename prename mmv rsync',
  'parallel sponge less more man iconv dos2unix zip unzip bzip2 xz zgrep git make sudo curl wget',
  'ssh nc ag ack fd bat datamash mlr csvcut yq xan sqlite3 nohup nice stdbuf setsid tput logger',
  'cksum b2sum sha512sum envsubst',
  'trap coproc ulimit umask jobs fg bg disown bind complete compgen caller times enable suspend fc hash',
].flatMap((names) => names.split(' '))

/** Messages of the sandbox about options it rejects, which GNU may know, and about other unsupported features. */
const UNSUPPORTED_MESSAGES = new RegExp(
  [
    String.raw`^\w+: (?:invalid option -- '|unrecognized option '|unknown predicate ').*$`,
    String.raw`^.*\b(?:not supported|not implemented|not allowed in sandboxed|not available in)\b.*$`,
    '^usage: paste .*$',
    '^(?:head|tail): invalid number of (?:lines|bytes)$',
    '^awk: .*out of bounds.*$',
    '^awk: Unexpected token: PIPE.*$',
    '^date: invalid date .*$',
  ].join('|'),
  'im',
)
