import { Bash, defineCommand, getCommandNames } from 'just-bash'
import type { BashExecResult, CommandName, TransformPlugin, WordNode } from 'just-bash'
import type { ShellLimits, ShellRun } from '../../domain/models/lite/suite.ts'
import { respelledTools } from './tools.ts'

/**
 * Where just-bash 3.4.2 is not GNU. A command that steps into a gap is not judged (docs/lite-suite.md). The tables were
 * made by giving every option in the tools' own `--help` to the sandbox; what they do not name is no option at all, so
 * that a command which makes one up is judged.
 */

/** Tools of a usual system that the sandbox lacks, or that it is not given because a worker or a parser comes along. */
export const MISSING_TOOLS: readonly string[] = [
  'perl python python3 ruby node php lua gawk mawk nawk busybox ed ex vim bc dc numfmt factor shuf',
  'tsort yes csplit fmt pr ptx look hexdump xxd uname id nproc ps kill top df mount locate',
  'realpath mktemp install truncate dd mkfifo sync shred chown chgrp rename prename mmv rsync',
  'parallel sponge less more man iconv dos2unix zip unzip bzip2 xz zgrep git make sudo curl wget',
  'ssh nc ag ack fd bat datamash mlr csvcut yq xan sqlite3 nohup nice stdbuf setsid tput logger',
  'cksum b2sum sha512sum envsubst',
  'trap coproc ulimit umask jobs fg bg disown bind complete compgen caller times enable suspend fc hash',
].flatMap((names) => names.split(' '))

/** Commands of the sandbox that it is not given. */
const WITHHELD: ReadonlySet<string> = new Set([
  'sqlite3',
  'yq',
  'xan',
  'html-to-markdown',
  'help',
  'clear',
  'history',
])

/** Real options that the sandbox refuses, by tool: letters first, then long names. */
const MISSING_OPTIONS: Readonly<Record<string, string>> = {
  grep: 'GzsVbHaIdDTZUemABC basic-regexp regexp no-ignore-case null-data no-messages max-count byte-offset line-buffered with-filename label binary-files text directories devices dereference-recursive include exclude exclude-from exclude-dir initial-tab null before-context after-context context group-separator no-group-separator color colour binary',
  sort: 'giRCmSTz general-numeric-sort ignore-nonprinting random-sort random-source sort batch-size check compress-program debug files0-from merge buffer-size temporary-directory parallel zero-terminated',
  uniq: 'Dfszw all-repeated skip-fields group skip-chars zero-terminated check-chars',
  wc: 'L files0-from max-line-length',
  head: 'z bytes lines zero-terminated',
  tail: 'fFsz bytes follow lines max-unchanged-stats pid retry sleep-interval zero-terminated',
  cut: 'bnzM bytes characters delimiter fields complement output-delimiter zero-terminated',
  tr: 't truncate-set1',
  sed: 'lsuz debug expression file follow-symlinks in-place line-length posix separate sandbox unbuffered null-data',
  xargs:
    'adEeIiLlnoPpsx arg-file delimiter eof replace max-lines max-args open-tty max-procs interactive process-slot-var max-chars show-limits exit',
  ls: 'bBcCDfgGHiIkLmnNopqQsTuUvwxXZ author escape block-size ignore-backups color dired file-type format full-time group-directories-first no-group si dereference-command-line hide hyperlink indicator-style inode ignore kibibytes dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style size sort time time-style tabsize width context zero',
  du: '0BbDdHkLlmPStXx null all apparent-size block-size bytes total dereference-args files0-from human-readable inodes dereference count-links no-dereference separate-dirs si summarize threshold time time-style exclude-from exclude one-file-system',
  stat: 'Lft dereference file-system cached printf terse',
  mv: 'biStTuZ backup interactive strip-trailing-slashes suffix target-directory no-target-directory update context',
  cp: 'abdfiHlLPsStTuxZ archive attributes-only backup copy-contents force interactive link dereference no-dereference no-preserve parents reflink remove-destination sparse strip-trailing-slashes symbolic-link suffix target-directory no-target-directory update one-file-system context',
  mkdir: 'mZ mode context',
  paste: 'z zero-terminated',
  comm: 'z check-order nocheck-order output-delimiter total zero-terminated',
  tee: 'ip ignore-interrupts output-error',
  nl: 'dfhlp body-numbering section-delimiter footer-numbering header-numbering line-increment join-blank-lines number-format no-renumber number-separator starting-line-number number-width',
  touch: 'fh no-dereference reference time',
  rm: 'iId interactive one-file-system no-preserve-root preserve-root dir',
  join: 'jz check-order nocheck-order header zero-terminated',
  find: 'PLHD lname Olevel fstype daystart follow regextype warn files0-from ignore_readdir_race mount noignore_readdir_race noleaf xdev amin anewer atime cmin cnewer ctime executable false gid group ilname inum iwholename links mmin nogroup nouser readable samefile true uid used user wholename writable xtype context execdir fls fprint fprint0 fprintf ls ok okdir quit nowarn',
}

/** What the sandbox says when it lacks something that is neither a tool nor an option. */
const OTHER_GAPS = [
  /^.*\b(?:not supported|not implemented|not allowed in sandboxed|not available in)\b.*$/im,
  /^usage: paste .*$/m,
  /^(?:head|tail): invalid number of (?:lines|bytes)$/m,
  /^awk: .*out of bounds.*$/m,
  /^awk: Unexpected token: PIPE.*$/m,
  /^date: invalid date .*$/m,
  // Every real tool ends its options there.
  /^\w+: unrecognized option '--'$/m,
]

/** Forms that the sandbox runs without a word and gives another result than GNU. */
const SILENT_GAPS: readonly { form: RegExp; why: string }[] = [
  { form: /\bfind\b[^|;]*\s-size\s+[+-]?\d+[^c\d]/, why: 'find -size counts in another unit' },
  { form: /\bawk\b.*\blength\b(?!\s*\()/, why: 'awk length needs parentheses' },
  { form: /(?:^|[|;&(]\s*)(?:od|split|diff)\s/, why: 'od, split and diff print in another form' },
]

/**
 * The gap that a command stepped into, in one line, or null.
 *
 * @param stderr what the command said, with nothing thrown away
 */
function gapOf(command: string, stderr: string): string | null {
  const refused =
    /^(\w+): (?:invalid option -- '([^']+)'|unrecognized option '--([^'=]+)[^']*'|unknown predicate '-([^']+)')$/m.exec(
      stderr,
    )
  const [line = '', tool = '', letter, ...names] = refused ?? []
  const [letters = '', ...longNames] = (MISSING_OPTIONS[tool] ?? '').split(' ')
  const name = names.find((each) => each !== undefined) ?? ''
  // Letters behind one dash, the last with its value: the sandbox reads such a word only when it is one letter.
  if (letter !== undefined && (letter.length > 1 || letters.includes(letter))) return line
  if (longNames.includes(name) || (name.length === 1 && letters.includes(name))) return line
  const other = OTHER_GAPS.map((gap) => gap.exec(stderr)?.[0]).find((said) => said !== undefined)
  return other ?? SILENT_GAPS.find(({ form }) => form.test(command))?.why ?? null
}

/** A loop over `"$@"` that leaves it out: the sandbox would split the arguments at their spaces. */
const loopsOverArguments: TransformPlugin = {
  name: 'loops-over-arguments',
  transform({ ast }) {
    respell(ast)
    return { ast }
  },
}

const ARGUMENTS: WordNode = {
  type: 'Word',
  parts: [{ type: 'DoubleQuoted', parts: [{ type: 'ParameterExpansion', parameter: '@', operation: null }] }],
}

/** In place: the tree belongs to one run of one command. */
function respell(node: unknown): void {
  if (typeof node !== 'object' || node === null) return
  if ('type' in node && node.type === 'For' && 'words' in node) node.words ??= [ARGUMENTS]
  Object.values(node).forEach(respell)
}

/** The folder in which a command begins; what lies elsewhere is not looked at. */
const FOLDER = '/work'

/** A command longer than this is no answer to any question of the suite. */
const MAX_COMMAND_BYTES = 4096

const MEBIBYTE = 1_048_576
const COMMANDS = getCommandNames().filter((name) => !WITHHELD.has(name)) as CommandName[]

type Found = Omit<ShellRun, 'missingTools'>

/**
 * Runs one command in a shell of its own and says how it ended. Must be called where it can be stopped from outside: the
 * limits below end what counts its steps, not what hangs within one.
 */
export async function runCommand(
  command: string,
  files: ReadonlyMap<string, string>,
  limits: ShellLimits,
): Promise<ShellRun> {
  if (command.includes('\0')) return { ...ended('not-executable', 'a NUL in the command'), missingTools: [] }
  if (Buffer.byteLength(command) > MAX_COMMAND_BYTES)
    return { ...ended('not-executable', `longer than ${MAX_COMMAND_BYTES} bytes`), missingTools: [] }
  const first = await execute(command, files, limits)
  if (first.found.outcome !== 'ran') return { ...first.found, missingTools: first.missingTools }
  const audible = command.replaceAll(/(?:2|&)>{1,2}\s*\/dev\/null/g, '')
  const { stderr } = audible === command ? first.found : (await execute(audible, files, limits)).found
  const why = first.missingTools[0] ?? first.gap ?? gapOf(command, stderr)
  const found = why === null ? first.found : ended('unsupported', why)
  return { ...found, missingTools: first.missingTools }
}

async function execute(
  command: string,
  files: ReadonlyMap<string, string>,
  limits: ShellLimits,
): Promise<{ found: Found; missingTools: string[]; gap: string | null }> {
  const missing = new Set<string>()
  const gaps: string[] = []
  let slept = 0
  const bash = new Bash({
    files: Object.fromEntries([...files].map(([path, content]) => [`${FOLDER}/${path}`, content])),
    cwd: FOLDER,
    env: { HOME: FOLDER, LC_ALL: 'C' },
    commands: COMMANDS,
    customCommands: [
      ...respelledTools((why) => gaps.push(why)),
      ...MISSING_TOOLS.map((name) =>
        defineCommand(name, () => {
          missing.add(name)
          return Promise.resolve({ stdout: '', stderr: '', exitCode: 127 })
        }),
      ),
    ],
    // Nobody waits: what a command would sleep is counted.
    sleep(ms) {
      slept += ms
      return slept > limits.timeMs ? Promise.reject(new Error('slept too long')) : Promise.resolve()
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
  const found =
    slept > limits.timeMs ? ended('timeout', 'slept too long') : await outcomeOf(bash, result, limits)
  return { found, missingTools: [...missing], gap: gaps[0] ?? null }
}

async function outcomeOf(bash: Bash, result: BashExecResult, limits: ShellLimits): Promise<Found> {
  const { stdout, stderr, exitCode } = result
  const limit = exitCode === 126 || exitCode === 124 ? LIMIT.exec(stderr)?.[0] : undefined
  if (limit !== undefined)
    return ended(/output|length|bytes/.test(limit) ? 'too-much-output' : 'timeout', limit)
  const syntax = exitCode === 2 ? SYNTAX.exec(stderr)?.[0] : undefined
  const unknown = exitCode === 127 ? /^bash: .*: command not found$/m.exec(stderr)?.[0] : undefined
  if (syntax ?? unknown) return ended('not-executable', syntax ?? unknown ?? '')
  const files = await filesBelow(bash, limits.outputBytes)
  if (files === null || stdout.length + stderr.length > limits.outputBytes)
    return ended('too-much-output', `more than ${limits.outputBytes} bytes`)
  return { outcome: 'ran', stdout, stderr, exitCode, files, why: null }
}

/** How the sandbox says that one of its limits was reached. */
const LIMIT = /^.*(?:exceeded|too many|deadline|limit).*$/im
const SYNTAX = /^bash: (?:line \d+: )?(?:syntax error|unexpected EOF).*$/m

/** Every regular file below the folder, or null when there is more than the limit. */
async function filesBelow({ fs }: Bash, mostBytes: number): Promise<Map<string, string> | null> {
  const files = new Map<string, string>()
  let bytes = 0
  for (const path of fs.getAllPaths()) {
    if (!path.startsWith(`${FOLDER}/`) || !(await fs.lstat(path)).isFile) continue
    const content = await fs.readFile(path)
    bytes += path.length + content.length
    if (bytes > mostBytes) return null
    files.set(path.slice(FOLDER.length + 1), content)
  }
  return files
}

function ended(outcome: ShellRun['outcome'], why: string): Found {
  return { outcome, stdout: '', stderr: '', exitCode: null, files: new Map(), why: why.slice(0, 200) }
}
