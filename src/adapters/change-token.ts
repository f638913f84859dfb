import { statSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import type { Clock, ChangeToken } from '../domain/ports.ts'

/**
 * A change this recent may be followed by another with the same timestamps, so it is not yet provable. Two seconds
 * cover the coarsest timestamps of the file systems in use.
 */
const SETTLED_MS = 2_000

/** Change token of a path where nothing is. */
export const ABSENT = '-'

/**
 * Change token of a set of paths: device, inode, size and both change times of each, absence included. Null while any of
 * them changed less than two seconds ago by `clock`, claims to change in the future, or cannot be looked at.
 *
 * Reading a file between two equal change tokens proves that it held those bytes all along
 * (docs/decisions/0002-caching-verified-publications.md).
 *
 * @param paths files or folders; a folder's change token changes when a name in it comes, goes or is replaced
 * @param clock must be the clock the file system stamps with
 */
export function fileChangeToken(paths: readonly string[], clock: Clock): ChangeToken {
  const parts: string[] = []
  for (const path of paths) {
    const stat = look(path)
    if (stat === null) return null
    if (!stat) {
      parts.push(ABSENT)
      continue
    }
    const changedMs = Number((stat.mtimeNs > stat.ctimeNs ? stat.mtimeNs : stat.ctimeNs) / 1_000_000n)
    if (changedMs > clock() - SETTLED_MS) return null
    parts.push(`${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}:${stat.mode}`)
  }
  return parts.join('|')
}

/** undefined when nothing is there, null when that cannot be told: whoever reads the path then says why. */
function look(path: string): BigIntStats | undefined | null {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    return null
  }
}
