import { areSameBytes, decodeBase64, encodeBase64 } from '../digest.ts'
import { evaluatePolicy } from './log-policy.ts'
import type { LogPolicy, PolicyVerdict } from './log-policy.ts'
import { HASH_BYTES, inclusionProof, leafHash, rootOfInclusion } from './merkle-tree.ts'
import type { Hash, MerkleTree } from './merkle-tree.ts'
import { openCheckpoint, parseDecimal, parseNote } from './signed-note.ts'
import type { Checkpoint } from './signed-note.ts'

/** Proof files that one entry is in the log (C2SP tlog-proof), which need nothing else to be verified. */

export interface LogProof {
  /** The entry: the line of the ledger. */
  entry: Uint8Array
  index: number
  /** From the leaf's sibling up. */
  hashes: Hash[]
  /** The signed checkpoint with all of its cosignatures. */
  checkpoint: string
}

const FIRST_LINE = 'c2sp.org/tlog-proof@v1'

/** The text of a proof file. */
export function formatLogProof({ entry, index, hashes, checkpoint }: LogProof): string {
  const head = [FIRST_LINE, `extra ${encodeBase64(entry)}`, `index ${index}`]
  return `${[...head, ...hashes.map(encodeBase64)].join('\n')}\n\n${checkpoint}`
}

/** The proof of a text; null for anything {@link formatLogProof} would not have written. */
export function parseLogProof(text: string): LogProof | null {
  const end = text.indexOf('\n\n')
  if (end === -1) return null
  const [first, extraLine = '', indexLine = '', ...hashLines] = text.slice(0, end).split('\n')
  const entry = extraLine.startsWith('extra ') ? decodeBase64(extraLine.slice('extra '.length)) : null
  const index = indexLine.startsWith('index ') ? parseDecimal(indexLine.slice('index '.length)) : null
  const hashes = hashLines.map(decodeBase64).filter((hash) => hash?.byteLength === HASH_BYTES) as Hash[]
  const checkpoint = text.slice(end + 2)
  if (first !== FIRST_LINE || entry === null || index === null) return null
  return hashes.length === hashLines.length && parseNote(checkpoint) !== null
    ? { entry, index, hashes, checkpoint }
    : null
}

/**
 * The proof of an entry in the tree of a checkpoint.
 *
 * @param size of the checkpoint
 * @throws RangeError when that tree has no such entry
 */
export function proveEntry(
  tree: MerkleTree,
  entry: Uint8Array,
  index: number,
  size: number,
  checkpoint: string,
): LogProof {
  return { entry, index, hashes: inclusionProof(tree, index, size), checkpoint }
}

/** What a proof shows: the entry is in the log of a checkpoint, or why it is not shown. */
export type ProofVerdict =
  { problem: string } | (Extract<PolicyVerdict, { problem: null }> & { checkpoint: Checkpoint })

/**
 * Verifies a proof against a policy. Whether the witnesses are enough is said, and is not a problem of the proof.
 */
export function verifyLogProof(proof: LogProof, policy: LogPolicy): ProofVerdict {
  const opened = openCheckpoint(
    proof.checkpoint,
    policy.logs.map(({ key }) => key),
  )
  if (opened.problem !== null) return { problem: `the checkpoint cannot be believed: ${opened.problem}` }
  const { size, root } = opened.checkpoint
  const proved = rootOfInclusion(leafHash(proof.entry), proof.index, size, proof.hashes)
  if (proved === null || !areSameBytes(proved, root))
    return { problem: `entry ${proof.index} is not in the tree of ${size} entries that the log signed` }
  const verdict = evaluatePolicy(policy, opened.note)
  return verdict.problem === null ? { ...verdict, checkpoint: opened.checkpoint } : verdict
}
