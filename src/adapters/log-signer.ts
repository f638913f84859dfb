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

/** The file beside a key in which the note stands that the key signed last. */
function recordPath(keyPath: string): string {
  return `${keyPath}.signed`
}

const utf8 = new TextEncoder()

/**
 * A log's key in a file, with its record beside it. The record is a signed note, so that damage to it is found, and so
 * that the checkpoint of a mirror can take the place of a lost one.
 *
 * @param path absolute path of the key
 * @throws Refusal `configuration` when the file holds no key
 */
export function openLogSigner(path: string): LogSigner {
  const { seed, ...key } = readKey(path)
  const record = recordPath(path)

  const lastSigned = async (): Promise<Checkpoint> => {
    const opened = openCheckpoint(readRecord(record), [key])
    if (opened.problem !== null)
      throw storageDamaged(`${record} is not what the key signed: ${opened.problem}`)
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
          `the key has signed another tree, of ${last.size} entries, than the one of ${checkpoint.size} (${record})`,
        )
      const note = signNote(checkpointText(checkpoint), { ...key, seed })
      // Written again when it is the same: the run that wrote it first may have been cut before it was durable.
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
    throw new Refusal('configuration', `the log's key ${path} cannot be read (${messageOf(error)})`)
  }
  const key = parseSignerKey(text.replace(/\n$/, ''))
  if (key === null) throw new Refusal('configuration', `${path} holds no log key; dash log-key new makes one`)
  return key
}

function readRecord(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const why = `what the log's key signed last cannot be read (${messageOf(error)})`
    throw storageUnavailable(
      `${why}; nothing is signed without ${path}: see docs/backup.md#the-key-of-the-log`,
      error,
    )
  }
}

/**
 * Makes a log's key in a new file, and a record beside it that nothing was signed yet.
 *
 * @param path absolute path
 * @param seed 32 random bytes
 * @returns the verifier key
 * @throws Refusal `usage` when there is a key or a record already
 */
export function createLogKey(path: string, name: string, seed: Uint8Array): string {
  const key = signerKey(name, seed)
  const nothing: Checkpoint = { origin: name, size: 0, root: rootAt(merkleTree([]), 0) }
  const taken = [path, recordPath(path)].find((file) => existsSync(file))
  if (taken !== undefined)
    throw new Refusal('usage', `${taken} is there already; keys are never overwritten: choose another name`)
  // The record first: a crash before the key leaves no key without one.
  storeFile(recordPath(path), utf8.encode(signNote(checkpointText(nothing), key)), false)
  storeFile(path, utf8.encode(`${formatSignerKey(key)}\n`), false)
  return formatVerifierKey(key)
}
