import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/** The built program, as an operator runs it. */
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
  /** Runs as this user; only root may ask for another. */
  uid?: number
  /** Where standard error goes instead of to the test. */
  stderrFile?: string
}

/** Runs the program as a user whom file modes bind; they do not bind root. */
export const unprivileged: RunOptions = process.getuid?.() === 0 ? { uid: 65_534 } : {}

/** A folder of the test's own, removed when it ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'dash-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Starts the program with nothing of this process's environment but the path. */
export function startDash(
  args: readonly string[],
  { env = {}, cwd, uid, stderrFile }: RunOptions = {},
): ChildProcess {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd: cwd ?? tmpdir(),
    stdio: ['pipe', 'pipe', stderrFile === undefined ? 'pipe' : openSync(stderrFile, 'w')],
    env: { PATH: process.env['PATH'] ?? '', ...env },
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  onTestFinished(() => void child.kill('SIGKILL'))
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
  const child = startDash(['serve', '--port', '0', ...args], options)
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
  if (child.exitCode !== null) return child.exitCode
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

function collect(child: ChildProcess): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  return output
}
