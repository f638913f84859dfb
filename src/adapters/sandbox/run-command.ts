import { Bash, defineCommand, getCommandNames } from 'just-bash'
import type { BashExecResult, CommandName, TransformPlugin, WordNode } from 'just-bash'
import { failedRun } from '../../domain/models/lite/suite.ts'
import type { ShellLimits, ShellRun } from '../../domain/models/lite/suite.ts'
import { MISSING_TOOLS, findUnsupported, wrappedTools } from './tools.ts'

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
  const reason = missingTools[0] ?? unsupported ?? findUnsupported(command, stderr)
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
    sleptMs > limits.timeMs ? failedRun('timeout', 'slept too long') : await toShellRun(bash, result, limits)
  return { run: { ...run, missingTools: [...missingTools] }, unsupported: unsupportedForms[0] ?? null }
}

async function toShellRun(bash: Bash, result: BashExecResult, limits: ShellLimits): Promise<ShellRun> {
  const { stdout, stderr, exitCode } = result
  const limit = exitCode === 126 || exitCode === 124 ? LIMIT.exec(stderr)?.[0] : undefined
  if (limit !== undefined)
    return failedRun(/output|length|bytes/.test(limit) ? 'too-much-output' : 'timeout', limit)
  const syntax = exitCode === 2 ? SYNTAX.exec(stderr)?.[0] : undefined
  const unknown = exitCode === 127 ? /^bash: .*: command not found$/m.exec(stderr)?.[0] : undefined
  if (syntax ?? unknown) return failedRun('not-executable', syntax ?? unknown ?? '')
  const files = await readFiles(bash, limits.outputBytes)
  if (files === null || stdout.length + stderr.length > limits.outputBytes)
    return failedRun('too-much-output', `more than ${limits.outputBytes} bytes`)
  return { outcome: 'ran', stdout, stderr, exitCode, files, reason: null, missingTools: [] }
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
