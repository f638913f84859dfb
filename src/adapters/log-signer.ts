import { existsSync, readFileSync } from 'node:fs'
import { areSameBytes } from '../domain/digest.ts'
import type { LogSigner } from '../domain/ports.ts'
import { Refusal, messageOf, storageDamaged, storageUnavailable } from '../domain/refusal.ts'
import { merkleTree, rootAt } from '../domain/year/log/merkle-tree.ts'
import {
  checkpointText,
  formatSignerKey,
  formatVerifierKey,
  openCheckpoint,
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
 * Opens the key of a log and the record beside it. The record is a signed note, so that damage to it is detected and a
 * mirror's checkpoint can replace a lost one.
 *
 * @param path absolute path of the key file
 * @throws Refusal `configuration` if the file cannot be read or is not a log key
 */
export function openLogSigner(path: string): LogSigner {
  const { seed, ...key } = readKey(path)
  const record = recordPath(path)

  const lastSigned = async (): Promise<Checkpoint> => {
    const opened = openCheckpoint(readRecord(record), [key])
    if (opened.problem !== null)
      throw storageDamaged(`the record ${record} is not a checkpoint signed by ${path}: ${opened.problem}`)
    return opened.checkpoint
  }

  return {
    key,
    lastSigned,

    async sign(checkpoint) {
      const last = await lastSigned()
      const isLarger = checkpoint.size > last.size
      const isSame = checkpoint.size === last.size && areSameBytes(checkpoint.root, last.root)
      if (!isLarger && !isSame)
        throw storageDamaged(
          `cannot sign a tree of ${checkpoint.size} entries: the key already signed a different one of ${last.size} entries (${record})`,
        )
      const note = signNote(checkpointText(checkpoint), { ...key, seed })
      // The record is written even if it is unchanged: a crash may have kept the first write from becoming durable.
      storeFile(record, utf8.encode(note), true)
      return note
    },
  }
}

function readKey(path: string): SignerKey {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw new Refusal('configuration', `the log key ${path} cannot be read (${messageOf(error)})`)
  }
  const key = parseSignerKey(text.replace(/\n$/, ''))
  if (key === null)
    throw new Refusal('configuration', `${path} is not a log key file; create one with dash log-key new`)
  return key
}

function readRecord(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const why = `the record of the last signed checkpoint cannot be read (${messageOf(error)})`
    throw storageUnavailable(
      `${why}; the key signs nothing without ${path}: see docs/backup.md#the-key-of-the-log`,
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
 * @returns the verifier key as text
 * @throws Refusal `usage` if the key or its record already exists
 */
export function createLogKey(path: string, name: string, seed: Uint8Array): string {
  const key = signerKey(name, seed)
  const nothing: Checkpoint = { origin: name, size: 0, root: rootAt(merkleTree([]), 0) }
  const taken = [path, recordPath(path)].find((file) => existsSync(file))
  if (taken !== undefined)
    throw new Refusal(
      'usage',
      `${taken} already exists, and keys are never overwritten; choose another file name`,
    )
  // The record is written first, so that a crash never leaves a key without a record.
  storeFile(recordPath(path), utf8.encode(signNote(checkpointText(nothing), key)), false)
  storeFile(path, utf8.encode(`${formatSignerKey(key)}\n`), false)
  return formatVerifierKey(key)
}
