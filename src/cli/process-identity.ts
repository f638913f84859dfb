import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseHolder } from '../domain/job-run.ts'

/**
 * This process as a lease holder. On Linux its identity names the boot, the process namespace, the pid and the start
 * time, so that another process of the same host can tell whether it still lives; elsewhere it is null and only time
 * ends a dead holder's lease.
 */
export function thisProcess(): LeaseHolder {
  return { name: `${hostname()} (process ${process.pid})`, process: identityOf(process.pid) }
}

/**
 * True only when a holder's process is known to have died: same boot and same process namespace, and no process of
 * that pid and start time.
 */
export function isDeadProcess(identity: string): boolean {
  const place = placeOfPids()
  const [pid] = identity.split('@', 1)
  if (place === null || pid === undefined || !identity.includes(`@${place}@`)) return false
  return identityOf(Number(pid)) !== identity
}

/** `<pid>@<boot>/<namespace>@<start time>` or null where the system does not tell. */
function identityOf(pid: number): string | null {
  const place = placeOfPids()
  const started = startTimeOf(pid)
  return place === null || started === null ? null : `${pid}@${place}@${started}`
}

function placeOfPids(): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return null
  }
}

/** Field 22 of the process's stat line, in clock ticks since boot; null when there is no such process. */
function startTimeOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the command in parentheses, which may hold spaces and parentheses itself.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}

/** Waits; rejects with the signal's own reason, by which a run knows that it was told to stop. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    signal.throwIfAborted()
    throw error
  })
}
