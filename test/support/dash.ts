import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PassThrough } from 'node:stream'
import { onTestFinished } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { storiesOf } from './signals.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** The built program. */
export const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface FinishedRun {
  code: number | null
  stdout: string
  stderr: string
}

export interface RunOptions {
  env?: Record<string, string>
  cwd?: string
  stdin?: string | Buffer
  /** Runs with file modes binding even root; needs `setpriv` when the tests run as root. */
  boundByModes?: boolean
  /** Command that wraps the program, such as `strace …`. */
  wrapper?: readonly string[]
}

/** Command that makes file modes bind a root process. */
const BOUND_BY_MODES = [
  'setpriv',
  '--bounding-set=-dac_override,-dac_read_search',
  '--inh-caps=-dac_override,-dac_read_search',
]

export { temporaryFolder }

/** A started program. */
export interface StartedProgram {
  child: ChildProcess
  /** Its output so far. */
  output: { stdout: string; stderr: string }
  /** Resolves when it has written this text, or any text; rejects if it ends first. */
  until(stream: keyof StartedProgram['output'], text?: string): Promise<void>
  /** Sends a signal, if given; resolves with the exit code after all output was read. */
  end(signal?: NodeJS.Signals): Promise<number | null>
}

/** Starts the program and kills it when the test ends. */
export function startDash(args: readonly string[], options: RunOptions = {}): StartedProgram {
  const child = spawnDash(args, options)
  onTestFinished(() => void child.kill('SIGKILL'))
  return watchProgram(child)
}

function watchProgram(child: ChildProcess): StartedProgram {
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  const closed = once(child, 'close').then(([code]) => code as number | null)
  return {
    child,
    output,
    async until(stream, text = '') {
      while (output[stream] === '' || !output[stream].includes(text)) {
        const ended = await Promise.race([
          once(child[stream] ?? child, 'data').then(() => false),
          closed.then(() => true),
        ])
        if (ended) throw new Error(`the program has ended: ${output.stderr}`)
      }
    },
    end(signal) {
      if (signal !== undefined) child.kill(signal)
      return closed
    },
  }
}

/** Starts the program with no environment variable of this process except PATH and the folder of temporary files. */
function spawnDash(
  args: readonly string[],
  { env = {}, cwd, boundByModes = false, wrapper = [] }: RunOptions = {},
): ChildProcess {
  const prefix = boundByModes && process.getuid?.() === 0 ? BOUND_BY_MODES : []
  const [command = process.execPath, ...rest] = [...prefix, ...wrapper, process.execPath, PROGRAM, ...args]
  return spawn(command, rest, {
    cwd: cwd ?? tmpdir(),
    stdio: 'pipe',
    env: { PATH: process.env['PATH'] ?? '', TMPDIR: tmpdir(), ...env },
  })
}

/** Runs the program to its end. */
export async function dash(args: readonly string[], options: RunOptions = {}): Promise<FinishedRun> {
  const { child, output, end } = startDash(args, options)
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(options.stdin ?? '')
  return { code: await end(), ...output }
}

export interface RunningProgram extends StartedProgram {
  url: string
}

/** Starts `dash serve` on a free port and waits until it listens. */
export async function serve(args: readonly string[], options: RunOptions = {}): Promise<RunningProgram> {
  const child = spawnDash(['serve', '--port', '0', ...args], options)
  onTestFinished(() => void child.kill('SIGKILL'))
  return waitUntilListening(child)
}

/** URL of a server's metrics, from its output. */
export async function metricsUrlOf({ output, until }: RunningProgram): Promise<string> {
  await until('stderr', 'metrics: ')
  return /metrics: (\S+)/.exec(output.stderr)?.[1] ?? ''
}

/** Starts a demo that outlives a test; `close` ends it with SIGTERM, so that it removes its folder. */
export async function serveDemo(
  env: Record<string, string> = {},
): Promise<{ url: string; close: () => Promise<void> }> {
  const { url, end } = await waitUntilListening(spawnDash(['serve', '--port', '0', '--demo'], { env }))
  return { url, close: async () => void (await end('SIGTERM')) }
}

/** Waits until a started server listens. */
export async function waitUntilListening(child: ChildProcess): Promise<RunningProgram> {
  const started = watchProgram(child)
  await started.until('stdout', 'listening on ')
  return { ...started, url: /listening on (\S+)/.exec(started.output.stdout)?.[1] ?? '' }
}

/** The result of a command that ran in the test's process. */
interface RunResult {
  code: number
  stdout: string
  stderr: string
}

/** Runs a command from the sources with only the environment `env`; its messages go to a terminal if `isTTY`. */
export async function run(
  argv: readonly string[],
  {
    env = {},
    cwd = '/',
    stdin = '',
    signal = new AbortController().signal,
    isTTY = false,
  }: Pick<RunOptions, 'env' | 'cwd' | 'stdin'> & { signal?: AbortSignal; isTTY?: boolean } = {},
): Promise<RunResult> {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    streams[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()))
  streams.stdin.end(stdin)
  const code = await runProgram(argv, {
    stdin: streams.stdin as unknown as NodeJS.ReadStream,
    stdout: streams.stdout as unknown as NodeJS.WriteStream,
    stderr: Object.assign(streams.stderr, { isTTY }) as unknown as NodeJS.WriteStream,
    env,
    cwd,
    signal,
  })
  return { code, ...output }
}

/** A data folder with stories of the last complete day, with verified titles unless `changes` differs. */
export async function filledFolder(changes: Record<string, unknown> = {}, count = 5): Promise<string> {
  const data = join(temporaryFolder(), 'data')
  const stdin = storiesOf(lastCompleteDay(Date.now()), count, changes)
  const { code, stderr } = await run(['import', 'signals', '-', '--data-dir', data], { stdin })
  if (code !== 0) throw new Error(stderr)
  return data
}
