import { randomUUID } from 'node:crypto'
import { utf8Text } from '../domain/text.ts'
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { areSameBytes, sha256Hex } from '../domain/digest.ts'
import type { SeenLogs } from '../domain/ports.ts'
import type { SeenLog } from '../domain/year/log/log-history.ts'
import { Refusal, messageOf, storageDamaged, storageUnavailable } from '../domain/refusal.ts'
import { parsePolicy } from '../domain/year/log/log-policy.ts'
import { merkleTree, rootAt } from '../domain/year/log/merkle-tree.ts'
import { openCheckpoint } from '../domain/year/log/signed-note.ts'
import { parseTile, tileOf, tilePath, tilesOfSize } from '../domain/year/log/tiles.ts'
import type { Tile } from '../domain/year/log/tiles.ts'
import { errorCode, storeFile, syncFolder } from './objects/file-driver.ts'

/** Names in the folder of a version. */
const NOTE = 'latest'
const POLICY = 'policy'

/**
 * Opens the folder of seen logs. The folder of a log is the SHA-256 of its origin in hexadecimal. It has one folder
 * for each version, with the note (`latest`), the policy, and the hashes of all entries as tiles of level 0. A version
 * is written under a temporary name and renamed: of two processes that replace the same version, the second fails. The
 * greatest number is in force; the one before it is kept for processes that are reading it. The origin of the log of a
 * host is in `hosts`, in a file named after the SHA-256 of its base URL.
 *
 * @param root the folder; created with the first version
 */
export function openSeenLogs(root: string): SeenLogs {
  const folderOf = (origin: string): string => join(root, sha256Hex(origin))
  const originOf = async (base: string): Promise<string | null> => {
    try {
      return readFileSync(join(root, 'hosts', sha256Hex(base)), 'utf8')
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null
      throw storageUnavailable(`the state folder ${root} cannot be read (${messageOf(error)})`, error)
    }
  }
  return {
    originOf,

    async rememberHost(base, origin) {
      if ((await originOf(base)) !== origin)
        storing(root, () => write(join(root, 'hosts', sha256Hex(base)), origin, true))
    },

    async read(origin) {
      const folder = folderOf(origin)
      for (;;) {
        const version = versionsIn(folder)[0]
        if (version === undefined) return null
        try {
          return readVersion(join(folder, `${version}`), origin, version)
        } catch (error) {
          // Another process may have removed this version meanwhile.
          if (versionsIn(folder)[0] === version) throw error
        }
      }
    },

    async replace(before, { note, policy, checkpoint, tree }) {
      const folder = folderOf(checkpoint.origin)
      const temporary = join(folder, `.writing-${process.pid}-${randomUUID()}`)
      return storing(root, () => {
        try {
          write(join(temporary, NOTE), note)
          write(join(temporary, POLICY), policy)
          for (const tile of hashTiles(checkpoint.size))
            write(join(temporary, tilePath(tile)), tileOf(tree, tile))
          const next = join(folder, `${before + 1}`)
          if (!renamed(temporary, next)) return false
          // Processes that wrote later versions may have removed this number before.
          if (versionsIn(folder)[0] !== before + 1) {
            rmSync(next, { recursive: true, force: true })
            return false
          }
          syncFolder(folder)
        } finally {
          rmSync(temporary, { recursive: true, force: true })
        }
        for (const version of versionsIn(folder))
          if (version < before) rmSync(join(folder, `${version}`), { recursive: true, force: true })
        return true
      })
    },

    async keepFork(origin, note) {
      const path = join(folderOf(origin), 'forks', sha256Hex(note))
      storing(root, () => write(path, note))
      return path
    },
  }
}

/** Returns the numbers of the versions, the greatest first. */
function versionsIn(folder: string): number[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^[1-9]\d{0,14}$/.test(name))
      .map(Number)
      .sort((a, b) => b - a)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw storageUnavailable(`the state folder ${folder} cannot be read (${messageOf(error)})`, error)
  }
}

function readVersion(folder: string, origin: string, version: number): SeenLog {
  const note = utf8Text(readState(folder, NOTE))
  const policy = utf8Text(readState(folder, POLICY))
  const parsed = parsePolicy(policy)
  if (parsed.problem !== null) throw damaged(folder, POLICY, parsed.problem)
  const opened = openCheckpoint(note, parsed.keys)
  if (opened.problem !== null) throw damaged(folder, NOTE, opened.problem)
  const { checkpoint } = opened
  if (checkpoint.origin !== origin) throw damaged(folder, NOTE, `it is a checkpoint of ${checkpoint.origin}`)
  const leaves = hashTiles(checkpoint.size).flatMap((tile) => {
    const hashes = parseTile(readState(folder, tilePath(tile)), tile.width)
    if (hashes === null) throw damaged(folder, tilePath(tile), `it does not have ${tile.width} hashes`)
    return hashes
  })
  const tree = merkleTree(leaves)
  if (!areSameBytes(rootAt(tree, tree.size), checkpoint.root))
    throw damaged(folder, 'tile', 'its hashes do not have the root of the checkpoint')
  return { version, note, policy, checkpoint, tree }
}

function hashTiles(size: number): (Tile & { level: 0 })[] {
  return tilesOfSize(size).filter((tile): tile is Tile & { level: 0 } => tile.level === 0)
}

function readState(folder: string, path: string): Buffer {
  try {
    return readFileSync(join(folder, path))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw damaged(folder, path, 'it is missing')
    throw storageUnavailable(
      `the state file ${join(folder, path)} cannot be read (${messageOf(error)})`,
      error,
    )
  }
}

function damaged(folder: string, path: string, problem: string): Refusal {
  return storageDamaged(
    `the state file ${join(folder, path)} is damaged: ${problem}. This is no finding about the host. Restore the file, or remove the folder ${dirname(folder)} to forget this log, and give its policy with --policy`,
  )
}

function write(path: string, content: Uint8Array | string, replace = false): void {
  mkdirSync(dirname(path), { recursive: true })
  storeFile(path, typeof content === 'string' ? new TextEncoder().encode(content) : content, replace)
}

/** Renames a folder; false if the target already exists. */
function renamed(from: string, to: string): boolean {
  try {
    renameSync(from, to)
    return true
  } catch (error) {
    if (errorCode(error) === 'ENOTEMPTY' || errorCode(error) === 'EEXIST') return false
    throw error
  }
}

function storing<T>(root: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw storageUnavailable(
      `the state folder ${root} cannot be written (${messageOf(error)}); choose another with --state`,
      error,
    )
  }
}
