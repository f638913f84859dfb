import { statSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import type { Clock } from '../domain/ports.ts'
import type { ChangeToken } from '../domain/year/ports.ts'

/**
 * Age in milliseconds after which a change counts as complete: a later change can have the same timestamps until
 * then. Two seconds cover the coarsest timestamps of the file systems in use.
 */
const SETTLE_MS = 2_000

/** Change token of a path that does not exist. */
export const ABSENT = '-'

/**
 * Returns the change token of a set of paths: device, inode, size and both change times of each, absence included.
 * The token is null while a path changed less than two seconds ago by `clock`, has a change time in the future, or
 * cannot be inspected.
 *
 * Reading a file between two equal change tokens proves that it held those bytes all along
 * (docs/decisions/0002-caching-verified-publications.md).
 *
 * @param paths files or folders; a folder's change token changes when an entry is added, removed or replaced
 * @param clock the clock that sets the file system's timestamps
 */
export function fileChangeToken(paths: readonly string[], clock: Clock): ChangeToken {
  const parts: string[] = []
  for (const path of paths) {
    const stat = statPath(path)
    if (stat === null) return null
    if (!stat) {
      parts.push(ABSENT)
      continue
    }
    const changedMs = Number((stat.mtimeNs > stat.ctimeNs ? stat.mtimeNs : stat.ctimeNs) / 1_000_000n)
    if (changedMs > clock() - SETTLE_MS) return null
    parts.push(`${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}:${stat.mode}`)
  }
  return parts.join('|')
}

/** Stats of a path; undefined if it does not exist, null if it cannot be inspected. A later read reports the reason. */
function statPath(path: string): BigIntStats | undefined | null {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    return null
  }
}
