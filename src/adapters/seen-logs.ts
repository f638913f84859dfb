import { mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { areSameBytes, decodeBase64, encodeBase64, sha256Hex } from '../domain/digest.ts'
import type { SeenLogs } from '../domain/ports.ts'
import { Refusal, messageOf, storageDamaged, storageUnavailable } from '../domain/refusal.ts'
import type { SeenLog } from '../domain/year/log/log-history.ts'
import { parsePolicy, openCheckpoint } from '../domain/year/log/signed-note.ts'
import { merkleTree, rootAt } from '../domain/year/log/merkle-tree.ts'
import { errorCode, storeFile } from './objects/file-driver.ts'

const utf8 = new TextEncoder()

/**
 * Opens the folder of seen logs. It has one file for each log, named by the SHA-256 of its origin in hexadecimal, then `.txt`:
 * the newest note; after an empty line the hosts that showed this log, the policy, and the hash of each entry. The hashes
 * prove that an older checkpoint of another host belongs to the same history. `forks` holds notes that contradict
 * another one.
 *
 * @param root the folder; created with the first file
 */
export function openSeenLogs(root: string): SeenLogs {
  const pathOf = (origin: string): string => join(root, `${sha256Hex(origin)}.txt`)
  const read = (path: string): SeenLog | null => {
    const text = readText(path)
    return text === null ? null : parseSeenLog(text, path)
  }
  return {
    async read(origin) {
      const seen = read(pathOf(origin))
      if (seen !== null && seen.checkpoint.origin !== origin)
        throw damaged(pathOf(origin), `it is a checkpoint of ${seen.checkpoint.origin}`)
      return seen
    },

    async originOf(base) {
      const logs = namesIn(root).map((name) => read(join(root, name)))
      return logs.find((seen) => seen?.hosts.includes(base))?.checkpoint.origin ?? null
    },

    async replace(before, seen) {
      const path = pathOf(seen.checkpoint.origin)
      const expected = before && formatSeenLog(before)
      return store(path, formatSeenLog(seen), () => readText(path) === expected)
    },

    async keepFork(note) {
      const path = join(root, 'forks', sha256Hex(note))
      store(path, note, false)
      return path
    },
  }
}

function formatSeenLog({ note, hosts, policy, tree }: SeenLog): string {
  const hostLines = hosts.map((host) => `host ${host}\n`)
  const leafLines = (tree.levels[0] ?? []).map((hash) => `leaf ${encodeBase64(hash)}\n`)
  return [note, '\n', ...hostLines, policy, ...leafLines].join('')
}

/** @throws Refusal `storage_damaged` unless the text is one that {@link formatSeenLog} returns */
function parseSeenLog(text: string, path: string): SeenLog {
  // A note has one empty line, before its signatures.
  const end = text.indexOf('\n\n', text.indexOf('\n\n') + 2) + 1
  const note = text.slice(0, end)
  const lines = text.slice(end + 1).split('\n')
  const after = (keyword: string): string[] =>
    lines.filter((line) => line.startsWith(keyword)).map((line) => line.slice(keyword.length))
  const policy = lines.filter((line) => !/^(host|leaf) /.test(line)).join('\n')
  const parsed = parsePolicy(policy)
  if (parsed.problem !== null) throw damaged(path, `its policy is invalid: ${parsed.problem}`)
  const opened = openCheckpoint(note, parsed.keys)
  if (opened.problem !== null) throw damaged(path, opened.problem)
  const { checkpoint } = opened
  const tree = merkleTree(after('leaf ').map((line) => decodeBase64(line) ?? new Uint8Array()))
  if (tree.size !== checkpoint.size || !areSameBytes(rootAt(tree, tree.size), checkpoint.root))
    throw damaged(path, 'its hashes do not have the root of the checkpoint')
  const seen = { note, hosts: after('host '), policy, checkpoint, tree }
  if (formatSeenLog(seen) !== text) throw damaged(path, 'its lines are not in their order')
  return seen
}

function damaged(path: string, problem: string): Refusal {
  return storageDamaged(
    `the state file ${path} is damaged: ${problem}. This is no finding about the host. Restore the file, or remove it to forget this log, and give its policy with --policy`,
  )
}

function namesIn(root: string): string[] {
  try {
    return readdirSync(root).filter((name) => /^[\da-f]{64}\.txt$/.test(name))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw storageUnavailable(`the state folder ${root} cannot be read (${messageOf(error)})`, error)
  }
}

/** @returns null if there is no such file */
function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw storageUnavailable(`the state file ${path} cannot be read (${messageOf(error)})`, error)
  }
}

function store(path: string, text: string, replace: Parameters<typeof storeFile>[2]): boolean {
  try {
    mkdirSync(dirname(path), { recursive: true })
    return storeFile(path, utf8.encode(text), replace)
  } catch (error) {
    if (error instanceof Refusal) throw error
    throw storageUnavailable(
      `the state file ${path} cannot be written (${messageOf(error)}); choose another folder with --state`,
      error,
    )
  }
}
