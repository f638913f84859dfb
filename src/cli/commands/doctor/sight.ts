import { accessSync, constants, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { currentUser, ownerWord } from '../../user.ts'

/** What is at a path, as far as this user may see; both null: nothing is there. */
type Sight = { stat: Stats | null; fault: null } | { stat: null; fault: string }

export function sightOf(path: string): Sight {
  try {
    return { stat: statSync(path, { throwIfNoEntry: false }) ?? null, fault: null }
  } catch (error) {
    return { stat: null, fault: error instanceof Error ? error.message : String(error) }
  }
}

/** True when this user may read and write a file, or read, enter and write a folder; nothing is written to try it. */
export function isWritable(path: string, stat: Stats): boolean {
  const { R_OK, W_OK, X_OK } = constants
  try {
    accessSync(path, stat.isDirectory() ? R_OK | W_OK | X_OK : R_OK | W_OK)
    return true
  } catch {
    return false
  }
}

/** What is told of a path that this user cannot write, and what mends it. */
export function notWritable(path: string, stat: Stats): { detail: string; mend: string } {
  const { uid, name } = currentUser()
  const detail = `${path} belongs to user ${stat.uid} and cannot be written by ${name}`
  const rights = stat.isDirectory() ? 'u+rwx' : 'u+rw'
  if (stat.uid === uid)
    return { detail, mend: `chmod ${rights} ${path}, and see that its disk is not mounted read-only` }
  return { detail, mend: `run as its owner, or chown -R ${ownerWord(name)} ${path}` }
}
