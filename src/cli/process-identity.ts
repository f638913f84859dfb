import { readFileSync, readlinkSync } from 'node:fs'
import { homedir, hostname, userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseHolder } from '../domain/lease.ts'

/**
 * This process as a lease holder. On Linux its identity names the boot, the process namespace, the pid and the start
 * time, so that another process of the same host can tell whether it still lives; elsewhere it is null, and a dead
 * holder's lease has to expire.
 */
export function thisProcess(): LeaseHolder {
  return { name: `${hostname()} (process ${process.pid})`, process: identityOf(process.pid) }
}

/** True only for a process of this boot and namespace that is gone: its pid has no process of the same start time. */
export function isDeadProcess(identity: string): boolean {
  const place = placeOfPids()
  const [pid] = identity.split('@', 1)
  return place !== null && identity.includes(`@${place}@`) && identityOf(Number(pid)) !== identity
}

/** `<pid>@<boot>/<namespace>@<start time>` or null where the system does not say. */
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

/** Waits; rejects with the signal's own reason, by which a run knows that it was stopped. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    signal.throwIfAborted()
    throw error
  })
}

/** The user this process runs as; `name` is the number where the system knows no name, as in many containers. */
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

/** A user with the group of their login, as chown takes it; a number without a name has no such group. */
export function ownerName(user: string): string {
  return /^\d+$/.test(user) ? user : `${user}:`
}

/** The folder of the user, which `~` stands for; that of the machine where the system knows none. */
export function homeFolder(): string {
  try {
    return homedir()
  } catch {
    return '/'
  }
}
