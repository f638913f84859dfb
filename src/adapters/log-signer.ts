import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { areSameBytes } from '../domain/digest.ts'
import type { SignedLog } from '../domain/year/ports.ts'
import { Refusal, errorCode, messageOf, storageDamaged, storageUnavailable } from '../domain/refusal.ts'
import { merkleTree, rootAt } from '../domain/year/log/merkle-tree.ts'
import {
  checkpointText,
  formatSignerKey,
  formatVerifierKey,
  openCheckpoint,
  parseNote,
  parseSignerKey,
  signNote,
  signerKey,
} from '../domain/year/log/signed-note.ts'
import type { Checkpoint, SignerKey } from '../domain/year/log/signed-note.ts'
import { storeFile } from './objects/file-driver.ts'

/** Returns the path of a key's record: a file beside the key that holds the note signed last. */
function recordPath(keyPath: string): string {
  return `${keyPath}.signed`
}

const utf8 = new TextEncoder()

/**
 * Opens the key of a log and the record beside it. A key file has one key on each line: the key of the log, then older
 * keys that it replaces and that sign until their lines are removed. The record is a signed note, so that damage to it is detected and a
 * published checkpoint can replace a lost one.
 *
 * @param path absolute path of the key file
 * @param isDurable false for a key that is deleted with the process, whose record need not survive a power cut
 * @throws Refusal `configuration` if the file cannot be read or is not a log key
 */
export function openLogSigner(path: string, isDurable = true): SignedLog['signer'] {
  const signers = readKeys(path)
  const keys = signers.map(({ seed: _seed, ...key }) => key)
  const [key] = keys
  if (key === undefined) throw notAKeyFile(path)
  const record = recordPath(path)

  const lastSigned = async (): Promise<Checkpoint> => {
    const text = readRecord(record)
    const opened = openCheckpoint(text, keys)
    if (opened.problem === null) return opened.checkpoint
    const signatures = parseNote(text)?.signatures ?? []
    const isOlder = signatures.some(
      ({ name, keyId }) => name === key.name && keys.every(({ id }) => id !== keyId),
    )
    const remedy = isOlder
      ? `; an older key signed it: put that key's line back into ${path} until the next publication`
      : '; restore it: see docs/signed-log.md#keeping-the-key'
    throw storageDamaged(
      `the record ${record} is not a checkpoint signed by ${path}: ${opened.problem}${remedy}`,
    )
  }

  const write = (file: string, text: string): void => {
    try {
      storeFile(file, utf8.encode(text), true, { isDurable })
    } catch (error) {
      throw storageUnavailable(`the record ${record} cannot be written (${messageOf(error)})`, error)
    }
  }

  return {
    key,
    keys,
    lastSigned,

    async tryWriting() {
      const trial = `${record}.trial-${process.pid}`
      try {
        write(trial, '')
      } finally {
        rmSync(trial, { force: true })
      }
    },

    async sign(checkpoint) {
      const last = await lastSigned()
      const isLarger = checkpoint.size > last.size
      const isSame = checkpoint.size === last.size && areSameBytes(checkpoint.root, last.root)
      if (!isLarger && !isSame)
        throw storageDamaged(
          `cannot sign a tree of ${checkpoint.size} entries: the key already signed a different one of ${last.size} entries (${record})`,
        )
      const note = signNote(checkpointText(checkpoint), ...signers)
      // The record is written even if it is unchanged: a crash may have kept the first write from becoming durable.
      write(record, note)
      return note
    },
  }
}

/** @returns the keys of a file: at least one, all of one log, no two the same */
function readKeys(path: string): SignerKey[] {
  let text: string
  try {
    // Opening a pipe without a writer would block for ever.
    if (!statSync(path).isFile()) throw new Error('it is not a regular file')
    text = readText(path)
  } catch (error) {
    throw new Refusal('configuration', `the log key ${path} cannot be read (${messageOf(error)})`)
  }
  const lines = text.replace(/\n$/, '').split('\n')
  const keys = lines.map(parseSignerKey).filter((key) => key !== null)
  const names = new Set(keys.map(({ name }) => name))
  const ids = new Set(keys.map(({ id }) => id))
  if (keys.length < lines.length || names.size !== 1 || ids.size < keys.length) throw notAKeyFile(path)
  return keys
}

function notAKeyFile(path: string): Refusal {
  return new Refusal('configuration', `${path} is not a log key file; create one with dash log-key new`)
}

/** A file read as text in one call would end the process if it cannot be closed, so its bytes are read. */
function readText(path: string): string {
  return readFileSync(path).toString()
}

function readRecord(path: string): string {
  try {
    return readText(path)
  } catch (error) {
    const why = `the record of the last signed checkpoint cannot be read (${messageOf(error)})`
    throw storageUnavailable(
      `${why}; the key signs nothing without ${path}: see docs/signed-log.md#keeping-the-key`,
      error,
    )
  }
}

/**
 * Creates the key file of a log and, beside it, a record with a checkpoint of size 0.
 *
 * @param path absolute path of the key file
 * @param name name (origin) of the log
 * @param seed 32 random bytes
 * @param replaced path of the key file that this one replaces; its keys sign too, and its record is continued
 * @returns the verifier key as text
 * @throws Refusal `usage` if the key or its record already exists, or their folder does not or cannot be written
 */
export function createLogKey(
  path: string,
  name: string,
  seed: Uint8Array,
  replaced: string | null = null,
): string {
  const key = signerKey(name, seed)
  const older = replaced === null ? [] : readKeys(replaced)
  const foreign = older.find((each) => each.name !== name)
  if (foreign)
    throw new Refusal('usage', `the keys of ${replaced} belong to the log ${foreign.name}, not to ${name}`)
  const nothing: Checkpoint = { origin: name, size: 0, root: rootAt(merkleTree([]), 0) }
  const taken = [path, recordPath(path)].find((file) => existsSync(file))
  if (taken !== undefined)
    throw new Refusal(
      'usage',
      `${taken} already exists, and keys are never overwritten; choose another file name`,
    )
  if (!existsSync(dirname(path)))
    throw new Refusal(
      'usage',
      `the folder ${dirname(path)} does not exist; create it, or choose another path`,
    )
  // The record is written first, so that a crash never leaves a key without a record.
  const record = replaced === null ? signNote(checkpointText(nothing), key) : readRecord(recordPath(replaced))
  const lines = [key, ...older].map((each) => `${formatSignerKey(each)}\n`)
  try {
    storeFile(recordPath(path), utf8.encode(record), false)
    storeFile(path, utf8.encode(lines.join('')), false)
  } catch (error) {
    if (!/^E(ACCES|PERM|ROFS)$/.test(errorCode(error) ?? '')) throw error
    throw new Refusal('usage', `this user cannot write in ${dirname(path)}; choose another path`)
  }
  return formatVerifierKey(key)
}
