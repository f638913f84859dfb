import { readFileSync, readlinkSync } from 'node:fs'
import { homedir, hostname, userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseHolder } from '../domain/jobs.ts'

/**
 * This process as a lease holder. On Linux its identity consists of boot, PID namespace, PID and start time, so
 * that another process of the same host can detect its death. Elsewhere the identity is null, and the lease of a
 * dead holder has to expire.
 */
function thisProcess(): LeaseHolder {
  return { name: `${hostname()} (process ${process.pid})`, process: identityOf(process.pid) }
}

export const THIS_RUN = { clock: Date.now, holder: thisProcess(), isDead: isDeadProcess }

/** Returns true if a process of this boot and namespace is gone: no process has its PID and start time. */
function isDeadProcess(identity: string): boolean {
  const namespace = pidNamespace()
  const [pid] = identity.split('@', 1)
  return namespace !== null && identity.includes(`@${namespace}@`) && identityOf(Number(pid)) !== identity
}

/** Returns `<pid>@<boot>/<namespace>@<start time>`, or null where the system does not provide them. */
function identityOf(pid: number): string | null {
  const namespace = pidNamespace()
  const started = startTimeOf(pid)
  return namespace === null || started === null ? null : `${pid}@${namespace}@${started}`
}

function pidNamespace(): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot}/${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return null
  }
}

/** Reads field 22 of the process's stat line, in clock ticks since boot; null if there is no such process. */
function startTimeOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the command in parentheses, which may itself contain spaces and parentheses.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}

/** Waits for `ms` milliseconds. Rejects with the signal's reason, by which a run knows that it was stopped. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    signal.throwIfAborted()
    throw error
  })
}

/** The user of this process. `name` is the user ID where the system has no name for it, as in many containers. */
export function currentUser(): { uid: number; name: string } {
  try {
    const { uid, username } = userInfo()
    return { uid, name: username }
  } catch (error) {
    const uid = process.getuid?.()
    if (uid === undefined) throw error
    return { uid, name: String(uid) }
  }
}

/** Owner argument for chown: a user name with its login group (`name:`), or a bare user ID, which has none. */
export function ownerName(user: string): string {
  return /^\d+$/.test(user) ? user : `${user}:`
}

/** Home folder of the user (`~`); `/` where the system has none. */
export function homeFolder(): string {
  try {
    return homedir()
  } catch {
    return '/'
  }
}
