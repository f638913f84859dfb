import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PassThrough } from 'node:stream'
import { onTestFinished } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { storiesOf } from './signals.ts'

/** The built program. */
export const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface Finished {
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
  /** Where standard error goes instead of to the test. */
  stderrFile?: string
  /** A command that runs the program, `strace …`. */
  under?: readonly string[]
}

/** What makes a root process one that file modes bind, as they bind everybody else. */
const BOUND_BY_MODES = [
  'setpriv',
  '--bounding-set=-dac_override,-dac_read_search',
  '--inh-caps=-dac_override,-dac_read_search',
]

/** A folder of the test's own, removed when it ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'dash-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Starts the program, and ends it with the test. */
export function startDash(args: readonly string[], options: RunOptions = {}): ChildProcess {
  const child = spawnDash(args, options)
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** Starts the program with nothing of this process's environment but the path. */
function spawnDash(
  args: readonly string[],
  { env = {}, cwd, boundByModes = false, stderrFile, under = [] }: RunOptions = {},
): ChildProcess {
  const prefix = boundByModes && process.getuid?.() === 0 ? BOUND_BY_MODES : []
  const [command = process.execPath, ...rest] = [...prefix, ...under, process.execPath, PROGRAM, ...args]
  const child = spawn(command, rest, {
    cwd: cwd ?? tmpdir(),
    stdio: ['pipe', 'pipe', stderrFile === undefined ? 'pipe' : openSync(stderrFile, 'w')],
    env: { PATH: process.env['PATH'] ?? '', ...env },
  })
  return child
}

/** Runs the program to its end. */
export async function dash(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const child = startDash(args, options)
  const output = collect(child)
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(options.stdin ?? '')
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...output }
}

export interface Serving {
  url: string
  child: ChildProcess
  output: { stdout: string; stderr: string }
}

/** Starts `dash serve` on a free port and waits until it says that it listens. */
export async function serve(args: readonly string[], options: RunOptions = {}): Promise<Serving> {
  return listening(startDash(['serve', '--port', '0', ...args], options))
}

/** Where a server told that its metrics are. */
export async function metricsUrlOf({ child, output }: Serving): Promise<string> {
  while (!output.stderr.includes('metrics: ')) await once(child.stderr ?? child, 'data')
  return /metrics: (\S+)/.exec(output.stderr)?.[1] ?? ''
}

/** Starts a demo that outlives a test; `close` asks it to end, so that it removes its folder. */
export async function serveDemo(
  env: Record<string, string> = {},
): Promise<{ url: string; close: () => Promise<void> }> {
  const { url, child } = await listening(spawnDash(['serve', '--port', '0', '--demo'], { env }))
  return {
    url,
    async close() {
      child.kill('SIGTERM')
      await exitOf(child)
    },
  }
}

async function listening(child: ChildProcess): Promise<Serving> {
  const output = collect(child)
  while (!output.stdout.includes('listening on ')) {
    const ended = await Promise.race([
      once(child.stdout ?? child, 'data').then(() => false),
      once(child, 'close').then(() => true),
    ])
    if (ended) throw new Error(`the server did not start: ${output.stderr}`)
  }
  const url = /listening on (\S+)/.exec(output.stdout)?.[1] ?? ''
  return { url, child, output }
}

/** The exit code of a started program. */
export async function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  return output
}

/** How a command ended that ran inside the test's own process. */
interface RunResult {
  code: number
  stdout: string
  stderr: string
}

/** Runs a command line from the sources, without a terminal and with nothing of the environment but `env`. */
export async function run(
  argv: readonly string[],
  { env = {}, cwd = '/', stdin = '' }: { env?: Record<string, string>; cwd?: string; stdin?: string } = {},
): Promise<RunResult> {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    streams[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()))
  streams.stdin.end(stdin)
  const code = await runProgram(argv, {
    stdin: streams.stdin as unknown as NodeJS.ReadStream,
    stdout: streams.stdout as unknown as NodeJS.WriteStream,
    stderr: streams.stderr as unknown as NodeJS.WriteStream,
    env,
    cwd,
    signal: new AbortController().signal,
  })
  return { code, ...output }
}

/** A data folder with stories of the last complete day, whose titles are vouched for unless `changes` says otherwise. */
export async function filledFolder(changes: Record<string, unknown> = {}, count = 5): Promise<string> {
  const data = join(temporaryFolder(), 'data')
  const stdin = storiesOf(lastCompleteDay(Date.now()), count, changes)
  const { code, stderr } = await run(['import', 'signals', '-', '--data-dir', data], { stdin })
  if (code !== 0) throw new Error(stderr)
  return data
}
