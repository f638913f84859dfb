import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { readFileSync, cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { dash, temporaryFolder } from '../support/dash.ts'
import type { FinishedRun } from '../support/dash.ts'
import { addDays } from '../../src/domain/time.ts'
import type { Day } from '../../src/domain/time.ts'
import { lastCompleteDay } from '../../src/domain/year/ledger.ts'
import { findingsIn, logSettings, noteSizes, signedLogIn } from '../support/signed-log.ts'
import { storiesOf } from '../support/signals.ts'
import { publishDays, reopenWorkspace } from '../support/workspace.ts'

/** True with `DASH_NIGHTLY=1`: every point of an attack is run, as in docs/evidence.md; otherwise a sample. */
export const LONG = process.env['DASH_NIGHTLY'] === '1'

/** Runs one of `scripts/attacks` in another process; returns its counts and exit code. */
export async function countsOf(
  attack: string,
  args: readonly string[],
): Promise<{ counts: unknown; code: number | null }> {
  const script = fileURLToPath(new URL(`../../scripts/attacks/${attack}`, import.meta.url))
  const child = spawn(process.execPath, [script, ...args, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  return { counts: JSON.parse(stdout) as unknown, code: code as number | null }
}

/** Faults injected instead of a system call. */
export const SYSCALL_FAULTS = ['KILL', 'EIO', 'ENOSPC'] as const

export type SyscallFault = (typeof SYSCALL_FAULTS)[number]

/** Every system call by which a run touches files, reading calls too. */
const FILE_CALLS = (
  'openat close read pread64 write pwrite64 writev lseek ftruncate fsync fdatasync link linkat unlink unlinkat ' +
  'rename renameat mkdir rmdir stat lstat fstat statx newfstatat access fcntl fchown fchmod utimensat getdents64'
).split(' ')

/** One system call of a run's main thread that touches the data folder. */
export interface SyscallPoint {
  call: string
  /** Which call of that name on the main thread, from 1, as strace counts. */
  nth: number
  /** Path it touches, with the parts that differ between runs replaced. */
  path: string
}

/** The result of a run with an injected fault. */
interface FaultedRun {
  /** False if the fault hit nothing or another point. */
  fired: boolean
  run: FinishedRun
}

/**
 * Lists the system calls of a run that touch a folder. Files are written synchronously, so all writes are on the
 * main thread; strace counts per thread, so only that thread's calls can be named by a number.
 */
export async function listSyscalls(args: readonly string[], folder: string): Promise<SyscallPoint[]> {
  const { run, log } = await runTraced(args, folder, FILE_CALLS, QUICK)
  if (run.code !== 0) throw new Error(`the rehearsal ended with ${run.code}: ${run.stderr}`)
  return pointsOf(log, folder).filter(({ path }) => path !== OUTSIDE)
}

/**
 * Runs the program with one system call of its main thread killed or failed; the calls of other threads have numbers of
 * their own, and are left alone. Some calls are also used by the runtime to wake its own
 * threads, so that their number is not the same in every run: then the run is made again, on a new folder, with
 * the number it has in another run.
 *
 * @param freshFolder makes the folder as it was before each run
 */
export async function strike(
  args: readonly string[],
  folder: string,
  { point, fault }: { point: SyscallPoint; fault: SyscallFault },
  freshFolder: () => void,
): Promise<FaultedRun> {
  const run = async (options: readonly string[]): Promise<{ run: FinishedRun; points: SyscallPoint[] }> => {
    freshFolder()
    const { run: finished, log } = await runTraced(args, folder, [point.call], options)
    return { run: finished, points: pointsOf(log, folder).filter(({ call }) => call === point.call) }
  }
  const injection = fault === 'KILL' ? 'signal=KILL' : `error=${fault}`
  let { nth } = point
  for (let attempt = 1; ; attempt += 1) {
    const faulted = await run(['-e', `inject=${point.call}:${injection}:when=${nth}`])
    const matched = faulted.points.find((each) => each.nth === nth)
    const fired = matched?.path === point.path && (fault !== 'KILL' || faulted.run.code === null)
    if (fired || attempt === STRIKE_ATTEMPTS) return { fired, run: faulted.run }
    const { points } = await run([])
    nth = points.find(({ path }) => path === point.path)?.nth ?? nth
  }
}

/** Enough attempts for a call number that varies slightly between runs; a point that is never hit is a failure. */
const STRIKE_ATTEMPTS = 100

const OUTSIDE = 'outside'

/** Traces with seccomp, which is three times as fast; strace then follows every thread. */
const QUICK = ['-f', '--seccomp-bpf']

async function runTraced(
  args: readonly string[],
  folder: string,
  calls: readonly string[],
  options: readonly string[],
): Promise<{ run: FinishedRun; log: string }> {
  const logFile = join(temporaryFolder(), 'strace.log')
  // The first line of the log is the start of the program, and names its main thread.
  const trace = ['-y', '-o', logFile, '-e', `trace=execve,${calls.join(',')}`]
  const run = await dash(args, { env: logSettings(folder), wrapper: ['strace', '-qq', ...trace, ...options] })
  return { run, log: readFileSync(logFile, 'utf8') }
}

/** The calls of the thread that began the program; strace puts its id first in each line when it follows others. */
function pointsOf(log: string, folder: string): SyscallPoint[] {
  const lines = log.split('\n')
  const main = /^\d*/.exec(lines[0] ?? '')?.[0]
  const counts = new Map<string, number>()
  return lines.flatMap((line): SyscallPoint[] => {
    const [, thread, call] = /^(\d*) *(\w+)\(/.exec(line) ?? []
    if (call === undefined || thread !== main) return []
    const nth = (counts.get(call) ?? 0) + 1
    counts.set(call, nth)
    return [{ call, nth, path: placeOf(line, folder) }]
  })
}

function placeOf(line: string, folder: string): string {
  const start = line.indexOf(folder)
  if (start === -1) return OUTSIDE
  const path = /^[^">]*/.exec(line.slice(start + folder.length))?.[0] ?? ''
  return path
    .replace(/\.writing-[\w-]+/, '.writing')
    .replace(/sha256\/[0-9a-f]{2}/, 'sha256/xx')
    .replace(/[0-9a-f]{64}/, 'digest')
}

/** A data folder with the key of its log, on which the next publish is that of `day`. */
export interface PreparedFolder {
  folder: string
  day: Day
  /** The days already published, which must never be lost. */
  earlier: Day[]
}

/**
 * A data folder with signals imported, ready for the publish of the last complete day.
 *
 * @param earlierDays how many days before it are published already; with none the ledger is still to be created
 */
export async function preparedFolder(earlierDays = 0, stories = 200): Promise<PreparedFolder> {
  const day = lastCompleteDay(Date.now())
  const folder = join(temporaryFolder(), 'data')
  const earlier = Array.from({ length: earlierDays }, (_, index) => addDays(day, index - earlierDays))
  const stdin = storiesOf(earlier[0] ?? day, stories)
  const imported = await dash(['import', 'signals', '-', '--data-dir', folder], { stdin })
  expect(imported.code).toBe(0)
  const log = signedLogIn(folder)
  if (earlier.length > 0) {
    const workspace = reopenWorkspace(folder)
    await publishDays({ ...workspace, log }, earlier)
    workspace.close()
  }
  return { folder, day, earlier }
}

/** Runs `work` with a copy of a folder, which is removed afterwards. */
export async function withCopy<T>(
  folder: string,
  name: string,
  work: (copy: string) => Promise<T>,
): Promise<T> {
  const copy = `${folder}-${name}`
  cpSync(folder, copy, { recursive: true })
  try {
    return await work(copy)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** The verified content of a data folder, or the reason why verification fails. */
export interface Standing {
  /** The findings of its audit; empty if it is sound. */
  damage: string
  publications: string[]
  gaps: string[]
  attempts: number
  /** Entries that the newest stored note covers; 0 without one. */
  signed: number
}

/** Audits a data folder with `dash verify-archive`, after the recovery that any reader of it begins with. */
export async function audit(folder: string, day: Day): Promise<Standing> {
  const { ledger, objects, close } = reopenWorkspace(folder)
  try {
    const { rows } = await ledger.read()
    const findings = await findingsIn(folder)
    const daysOf = (kind: string): string[] =>
      rows.flatMap((row) => (row.kind === kind ? [row.asOfDay ?? ''] : []))
    return {
      damage: findings
        .flatMap(({ code, path }) => (code === 'orphan_object' ? [] : [`${code} ${path}`]))
        .join('; '),
      publications: daysOf('publication'),
      gaps: daysOf('gap'),
      attempts: (await ledger.attempts(day)).length,
      signed: (await noteSizes(objects)).at(-1) ?? 0,
    }
  } catch (error) {
    return { damage: String(error), publications: [], gaps: [], attempts: 0, signed: 0 }
  } finally {
    close()
  }
}
