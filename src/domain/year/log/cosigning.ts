import { encodeBase64 } from '../../digest.ts'
import type { LogFile } from './log-history.ts'
import { consistencyProof } from './merkle-tree.ts'
import type { MerkleTree } from './merkle-tree.ts'
import { parseNote, verifyNote } from './signed-note.ts'
import type { NoteSignature, VerifierKey } from './signed-note.ts'

/** Requests for cosignatures and their responses (C2SP tlog-witness 1.0). */

/**
 * Formats a request for the cosignature of a note.
 *
 * @param tree tree of the ledger
 * @param older size that the witness cosigned last; 0 before its first cosignature
 * @param size size of the note
 * @throws RangeError if `older` exceeds `size`
 */
export function formatAddCheckpoint(tree: MerkleTree, older: number, size: number, note: string): string {
  const hashes = consistencyProof(tree, older, size).map((hash) => `${encodeBase64(hash)}\n`)
  return `old ${older}\n${hashes.join('')}\n${note}`
}

/** Returns the sizes of all notes of which a cosignature of a witness is stored. */
export function cosignedSizes(files: readonly LogFile[], { id }: VerifierKey): number[] {
  return files.flatMap((file) => (file.kind === 'cosignature' && file.keyId === id ? [file.size] : []))
}

/** A cosignature dated later than this is refused: as the newest one, it would hide all others until then. */
const CLOCK_SKEW_MAX_SECONDS = 600

/** A witness's response to a checkpoint, not verified. */
export type WitnessResponse =
  /** `lines`: the signature lines of the response. */
  | { is: 'cosigned'; lines: string }
  /** The checkpoint does not begin at the size that the witness cosigned last; `size` is that size. */
  | { is: 'other-size'; size: number }
  /** `inconsistent`: the witness states that the checkpoint does not continue the last one it cosigned. */
  | { is: 'refused'; inconsistent: boolean; reason: string }

/** Newest cosignature of a response: its signature line, and its time in seconds since 1970. */
export type ReadCosignature = { problem: string } | { problem: null; line: string; time: number }

/**
 * Verifies the response of a witness. Signature lines of other keys are ignored.
 *
 * @param note the submitted note
 * @param key key of the witness
 * @param now current time in seconds since 1970
 */
export function readCosignature(
  note: string,
  response: string,
  key: VerifierKey,
  now: number,
): ReadCosignature {
  const cosigned = parseNote(note + response)
  // An empty line in a response would change which part of the note is its text.
  if (cosigned === null || cosigned.text !== parseNote(note)?.text)
    return { problem: 'its response does not consist of signature lines' }
  const { text, signatures } = cosigned
  const verdict = verifyNote(cosigned, key)
  if (verdict.is === 'missing') return { problem: `its response has no signature of the key ${key.id}` }
  if (verdict.is !== 'valid') return { problem: 'its cosignature is invalid' }
  const time = Math.max(...verdict.times)
  const isNewest = (signature: NoteSignature): boolean => {
    const one = verifyNote({ text, signatures: [signature] }, key)
    return one.is === 'valid' && one.times.includes(time)
  }
  const line = `${signatures.find(isNewest)?.line}\n`
  return time > now + CLOCK_SKEW_MAX_SECONDS
    ? { problem: `its cosignature is dated ${time - now} s in the future` }
    : { problem: null, line, time }
}
