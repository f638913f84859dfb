import { Refusal, StorageFault, networkReason } from '../domain/refusal.ts'
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

/** Signals that ask a command to end, and the exit code it then ends with. */
export const EXIT_OF_SIGNAL = {
  SIGHUP: EXIT.hungUp,
  SIGINT: EXIT.interrupted,
  SIGQUIT: EXIT.quit,
  SIGTERM: EXIT.terminated,
} as const

const OF_REFUSAL: Readonly<Record<string, number>> = {
  configuration: EXIT.configuration,
  usage: EXIT.usage,
  storage_unavailable: EXIT.storage,
  storage_damaged: EXIT.storage,
  lease_held: EXIT.leaseHeld,
  lease_lost: EXIT.leaseHeld,
  port_taken: EXIT.unavailable,
  address_unavailable: EXIT.unavailable,
  source_unavailable: EXIT.unavailable,
  title_not_vouched: EXIT.failed,
  lite_suite_refused: EXIT.failed,
  model_unknown: EXIT.failed,
  input_unreadable: EXIT.failed,
  copy_refused: EXIT.failed,
  clock_behind: EXIT.failed,
  snapshot_damaged: EXIT.storage,
  snapshot_too_large: EXIT.failed,
  rebuild_superseded: EXIT.leaseHeld,
  search_limit: EXIT.unavailable,
  search_busy: EXIT.unavailable,
}

/** Errors that a store can meet: no room, no permission, a broken disk, a server or a connection that failed. */
const STORAGE_ERRORS =
  /^(E(NOSPC|DQUOT|ACCES|PERM|ROFS|IO|MFILE|NFILE|NOENT|NOTDIR|FBIG|CONNRESET|PIPE)$|SQLITE_|SERVER_ERROR$|HRANA_|UND_ERR_)/

/** The exit code an error ends a command with: a refusal's own, 74 for a store's, 70 for the unexpected. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Refusal) return OF_REFUSAL[error.code] ?? EXIT.internal
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof StorageFault) return EXIT.storage
    if ('code' in cause && typeof cause.code === 'string' && STORAGE_ERRORS.test(cause.code))
      return EXIT.storage
  }
  return EXIT.internal
}

/** One line for a person: what is wrong, with which value, and what to do. */
export function describeError(error: unknown): string {
  if (error instanceof Refusal) return error.detail ?? error.code
  if (!(error instanceof Error)) return String(error)
  const fault = innermost(error, (cause) => cause instanceof StorageFault)
  if (fault) return fault.message
  const busy = innermost(
    error,
    (cause) => 'code' in cause && /^SQLITE_(BUSY|LOCKED)/.test(String(cause.code)),
  )
  if (busy) return 'a database is locked by another process; wait for it to end and run the command again'
  const full = innermost(
    error,
    (cause) => 'code' in cause && /^(ENOSPC|SQLITE_FULL)$/.test(String(cause.code)),
  )
  if (full) return 'the disk is full; make room and run the command again, nothing that was stored is lost'
  return networkReason(error)
}

function innermost(error: Error, matches: (cause: Error) => boolean): Error | null {
  let found: Error | null = null
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
    if (matches(cause)) found = cause
  return found
}

/** The exit code of a command that a signal ended, from the reason the signal was given. */
export function exitCodeOfStop(signal: AbortSignal): number {
  const reason = signal.reason instanceof Error ? signal.reason.message : ''
  const told = Object.entries(EXIT_OF_SIGNAL).find(([name]) => reason.endsWith(name))
  return told?.[1] ?? EXIT.terminated
}
