import { Refusal, StorageFault, messageOf } from '../domain/refusal.ts'

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

/** The codes of refusals, by the exit code of a command that one of them ends. */
const REFUSALS: readonly (readonly [exitCode: number, codes: string])[] = [
  [EXIT.configuration, 'configuration'],
  [EXIT.usage, 'usage'],
  [EXIT.storage, 'storage_unavailable storage_damaged snapshot_damaged'],
  [EXIT.leaseHeld, 'lease_held lease_lost rebuild_superseded'],
  [EXIT.unavailable, 'port_taken address_unavailable source_unavailable search_limit search_busy'],
  [EXIT.failed, 'title_not_vouched lite_suite_refused model_unknown input_unreadable copy_refused'],
  [EXIT.failed, 'clock_behind snapshot_too_large'],
]

/** Errors that a store can meet: no room, no permission, a broken disk, a server or a connection that failed. */
const STORAGE_ERRORS =
  /^(E(NOSPC|DQUOT|ACCES|PERM|ROFS|IO|MFILE|NFILE|NOENT|NOTDIR|FBIG|CONNRESET|PIPE)$|SQLITE_|SERVER_ERROR$|HRANA_|UND_ERR_)/

/** The exit code an error ends a command with: a refusal's own, 74 for a store's, 70 for the unexpected. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof Refusal)
    return REFUSALS.find(([, codes]) => codes.split(' ').includes(error.code))?.[0] ?? EXIT.internal
  const isOfStore = causesOf(error).some(
    (cause) => cause instanceof StorageFault || hasCode(cause, STORAGE_ERRORS),
  )
  return isOfStore ? EXIT.storage : EXIT.internal
}

/** One line for a person: what is wrong, with which value, and what to do. */
export function describeError(error: unknown): string {
  if (error instanceof Refusal) return messageOf(error)
  const causes = causesOf(error)
  const fault = causes.findLast((cause) => cause instanceof StorageFault)
  if (fault) return fault.message
  if (causes.some((cause) => hasCode(cause, /^SQLITE_(BUSY|LOCKED)/)))
    return 'a database is locked by another process; wait until that process ends and run the command again'
  if (causes.some((cause) => hasCode(cause, /^(ENOSPC|SQLITE_FULL)$/)))
    return 'the disk is full; free some space and run the command again (no stored data is lost)'
  return messageOf(error)
}

/** An error and its causes, the outermost first. */
export function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : []
}

function hasCode(error: Error, pattern: RegExp): boolean {
  return 'code' in error && pattern.test(String(error.code))
}

/** The exit code of a command that a signal ended, from the reason the signal was given. */
export function exitCodeOfStop(signal: AbortSignal): number {
  const reason = signal.reason instanceof Error ? signal.reason.message : ''
  const named = Object.entries(EXIT_OF_SIGNAL).find(([name]) => reason.endsWith(name))
  return named?.[1] ?? EXIT.terminated
}
