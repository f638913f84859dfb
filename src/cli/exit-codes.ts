import { Refusal, StorageFault, errorCode, messageOf } from '../domain/refusal.ts'

/** Exit codes (docs/troubleshooting.md). */
export const EXIT = {
  done: 0,
  failed: 1,
  gap: 3,
  usage: 64,
  damaged: 65,
  unavailable: 69,
  internal: 70,
  storage: 74,
  leaseHeld: 75,
  configuration: 78,
  hungUp: 129,
  interrupted: 130,
  quit: 131,
  terminated: 143,
} as const

export const EXIT_OF_SIGNAL = {
  SIGHUP: EXIT.hungUp,
  SIGINT: EXIT.interrupted,
  SIGQUIT: EXIT.quit,
  SIGTERM: EXIT.terminated,
} as const

/** Exit codes, each with the refusal codes that lead to it. */
const REFUSALS: readonly (readonly [exitCode: number, codes: string])[] = [
  [EXIT.configuration, 'configuration'],
  [EXIT.usage, 'usage'],
  [EXIT.damaged, 'archive_damaged'],
  [EXIT.storage, 'storage_unavailable storage_damaged snapshot_damaged'],
  [EXIT.leaseHeld, 'lease_held lease_lost'],
  [EXIT.unavailable, 'port_taken address_unavailable source_unavailable'],
  [EXIT.failed, 'title_not_vouched input_unreadable copy_refused'],
  [EXIT.failed, 'clock_behind snapshot_too_large chat_key_refused'],
]

/** Error codes of stores: full disk, missing permission, broken disk, failed server or connection. */
const STORAGE_ERRORS =
  /^(E(NOSPC|DQUOT|ACCES|PERM|ROFS|IO|MFILE|NFILE|NOENT|NOTDIR|LOOP|FBIG|CONNRESET|PIPE)$|SQLITE_|SERVER_ERROR$|HRANA_|UND_ERR_)/

/** Returns the exit code for an error: that of a refusal's code, 74 for a store, 70 for anything unexpected. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Refusal)
    return REFUSALS.find(([, codes]) => codes.split(' ').includes(error.code))?.[0] ?? EXIT.internal
  const isOfStore = hasStorageCode(error) || causesOf(error).some((cause) => cause instanceof StorageFault)
  return isOfStore ? EXIT.storage : EXIT.internal
}

/** True if an error, or one of its causes, has a code of the disk, of a database, or of the connection to one. */
export function hasStorageCode(error: unknown): boolean {
  return codesOf(error).some((code) => STORAGE_ERRORS.test(code))
}

/** Describes an error in one line: what failed, with which value, and what to do. */
export function describeError(error: unknown): string {
  if (error instanceof Refusal) return messageOf(error)
  const causes = causesOf(error)
  const fault = causes.findLast((cause) => cause instanceof StorageFault)
  if (fault) return fault.message
  const codes = codesOf(error)
  if (codes.some((code) => /^SQLITE_(BUSY|LOCKED)/.test(code)))
    return 'a database is locked by another process; wait until that process ends and run the command again'
  if (codes.some((code) => code === 'ENOSPC' || code === 'SQLITE_FULL'))
    return 'the disk is full; free some space and run the command again (no stored data is lost)'
  if (causes.some((cause) => 'syscall' in cause && cause.syscall === 'mkdtemp'))
    return `${messageOf(error)}; set TMPDIR to a folder in which this user can write`
  if (codes.some((code) => code === 'EACCES' || code === 'EPERM'))
    return `${messageOf(error)}; run the command as the owner, or grant access`
  return messageOf(error)
}

/** Returns an error and its causes, the outermost first. */
export function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : []
}

function codesOf(error: unknown): string[] {
  return causesOf(error).flatMap((cause) => errorCode(cause) ?? [])
}

/** Returns the exit code of a command that a signal ended; the abort reason names the signal. */
export function exitCodeOfStop(signal: AbortSignal): number {
  const reason = signal.reason instanceof Error ? signal.reason.message : ''
  const named = Object.entries(EXIT_OF_SIGNAL).find(([name]) => reason.endsWith(name))
  return named?.[1] ?? EXIT.terminated
}
