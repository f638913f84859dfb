import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { dash, temporaryFolder } from './dash.ts'
import type { Finished } from './dash.ts'

/** What happens to a system call instead of the call itself. */
export const SYSCALL_FAULTS = ['KILL', 'EIO', 'ENOSPC'] as const

export type SyscallFault = (typeof SYSCALL_FAULTS)[number]

/** Every system call by which a run touches files, reading calls too. */
const FILE_CALLS = (
  'openat close read pread64 write pwrite64 writev lseek ftruncate fsync fdatasync link linkat unlink unlinkat ' +
  'rename renameat mkdir rmdir stat lstat fstat statx newfstatat access fcntl fchown fchmod utimensat getdents64'
).split(' ')

/** The calls that change what is on the disk or make it last. */
const CHANGING = /^(p?write|ftruncate|f(data)?sync|link|unlink|rename|mkdir|rmdir)/

/** One system call of a run's main thread that touches the data folder. */
export interface SyscallPoint {
  call: string
  /** Which call of that name on the main thread, from 1, as strace counts. */
  nth: number
  /** What it touches, with what differs from run to run replaced. */
  place: string
  /** False for a call that only reads or locks. */
  changes: boolean
}

/** How a run went that was struck by a fault. */
export interface Struck {
  /** False when the fault hit nothing, or something else than the point. */
  fired: boolean
  run: Finished
}

/**
 * Lists the system calls of a run that touch a folder. Files are written synchronously, so all writes are on the
 * main thread; strace counts per thread, so only that thread's calls can be named by a number.
 */
export async function listSyscalls(args: readonly string[], folder: string): Promise<SyscallPoint[]> {
  const { run, log } = await traced(args, FILE_CALLS, QUICK)
  if (run.code !== 0) throw new Error(`the rehearsal ended with ${run.code}: ${run.stderr}`)
  return pointsOf(log, folder).filter(({ place }) => place !== OUTSIDE)
}

/**
 * Runs the program with one system call of its main thread killed or failed; the calls of other threads have numbers of
 * their own, and are left alone. Some calls are also used by the runtime to wake its own
 * threads, so that their number is not the same in every run: then the run is made again, on a folder made anew, with
 * the number it has in another run.
 *
 * @param freshFolder makes the folder as it was before each run
 */
export async function strike(
  args: readonly string[],
  folder: string,
  { point, fault }: { point: SyscallPoint; fault: SyscallFault },
  freshFolder: () => void,
): Promise<Struck> {
  const run = async (options: readonly string[]): Promise<{ run: Finished; points: SyscallPoint[] }> => {
    freshFolder()
    const { run: finished, log } = await traced(args, [point.call], options)
    return { run: finished, points: pointsOf(log, folder).filter(({ call }) => call === point.call) }
  }
  const what = fault === 'KILL' ? 'signal=KILL' : `error=${fault}`
  let { nth } = point
  for (let tries = 1; ; tries += 1) {
    const struck = await run(['-e', `inject=${point.call}:${what}:when=${nth}`])
    const hit = struck.points.find((each) => each.nth === nth)
    const fired = hit?.place === point.place && (fault !== 'KILL' || struck.run.code === null)
    if (fired || tries === STRIKE_TRIES) return { fired, run: struck.run }
    const { points } = await run([])
    nth = points.find(({ place }) => place === point.place)?.nth ?? nth
  }
}

/** So often that a number which differs by a few from run to run is met; a point that never is remains a failure. */
const STRIKE_TRIES = 100

const OUTSIDE = 'outside'

/** Stops the program at the traced calls alone, which is three times as fast; strace then follows every thread. */
const QUICK = ['-f', '--seccomp-bpf']

async function traced(
  args: readonly string[],
  calls: readonly string[],
  options: readonly string[],
): Promise<{ run: Finished; log: string }> {
  const logFile = join(temporaryFolder(), 'strace.log')
  // The first line of the log is the start of the program, and names its main thread.
  const trace = ['-y', '-o', logFile, '-e', `trace=execve,${calls.join(',')}`]
  const run = await dash(args, { under: ['strace', '-qq', ...trace, ...options] })
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
    return [{ call, nth, place: placeOf(line, folder), changes: CHANGING.test(call) }]
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
