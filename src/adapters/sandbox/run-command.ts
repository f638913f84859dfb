import { Bash, defineCommand, getCommandNames } from 'just-bash'
import type { BashExecResult, CommandName, TransformPlugin, WordNode } from 'just-bash'
import type { ShellLimits, ShellRun } from '../../domain/models/lite/suite.ts'
import { respelledTools } from './tools.ts'
import { MISSING_TOOLS, unsupportedBy } from './unsupported.ts'

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

/** Commands of the sandbox that it is not given. */
const WITHHELD = new Set('sqlite3 yq xan html-to-markdown help clear history'.split(' '))

const COMMANDS = getCommandNames().filter((name) => !WITHHELD.has(name)) as CommandName[]

/**
 * Runs one command in a shell of its own and says how it ended. Must be called where it can be stopped from outside: the
 * limits below end what counts its steps, not what hangs within one.
 */
export async function runCommand(
  command: string,
  files: ReadonlyMap<string, string>,
  limits: ShellLimits,
): Promise<ShellRun> {
  if (command.includes('\0')) return ended('not-executable', 'a NUL in the command')
  if (Buffer.byteLength(command) > MAX_COMMAND_BYTES)
    return ended('not-executable', `longer than ${MAX_COMMAND_BYTES} bytes`)
  const { found, unsupported } = await execute(command, files, limits)
  const { missingTools } = found
  if (found.outcome !== 'ran') return found
  const audible = command.replaceAll(/(?:2|&)>{1,2}\s*\/dev\/null/g, '')
  const { stderr } = audible === command ? found : (await execute(audible, files, limits)).found
  const why = missingTools[0] ?? unsupported ?? unsupportedBy(command, stderr)
  return why === null ? found : ended('unsupported', why, missingTools)
}

async function execute(
  command: string,
  files: ReadonlyMap<string, string>,
  limits: ShellLimits,
): Promise<{ found: ShellRun; unsupported: string | null }> {
  const missing = new Set<string>()
  const reported: string[] = []
  let slept = 0
  const bash = new Bash({
    files: Object.fromEntries([...files].map(([path, content]) => [`${FOLDER}/${path}`, content])),
    cwd: FOLDER,
    env: { HOME: FOLDER, LC_ALL: 'C' },
    commands: COMMANDS,
    customCommands: [
      ...respelledTools((why) => reported.push(why)),
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
  return { found: { ...found, missingTools: [...missing] }, unsupported: reported[0] ?? null }
}

async function outcomeOf(bash: Bash, result: BashExecResult, limits: ShellLimits): Promise<ShellRun> {
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
  return { outcome: 'ran', stdout, stderr, exitCode, files, reason: null, missingTools: [] }
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

function ended(outcome: ShellRun['outcome'], why: string, missingTools: readonly string[] = []): ShellRun {
  return {
    outcome,
    stdout: '',
    stderr: '',
    exitCode: null,
    files: new Map(),
    reason: why.slice(0, 200),
    missingTools,
  }
}
