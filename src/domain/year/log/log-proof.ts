import { z } from 'zod'
import { areSameBytes, decodeBase64, encodeBase64 } from '../../digest.ts'
import { parseQuery } from '../../query.ts'
import { Refusal } from '../../refusal.ts'
import type { Instant } from '../../time.ts'
import type { ProvedLedger, TimelineItem } from '../chain.ts'
import { historyQuerySchema, isPast } from '../history.ts'
import type { LedgerEntry } from '../ledger.ts'
import { evaluatePolicy } from './log-policy.ts'
import type { LogPolicy, PolicyVerdict } from './log-policy.ts'
import { HASH_BYTES, inclusionProof, leafHash, rootOfInclusion } from './merkle-tree.ts'
import type { Hash, MerkleTree } from './merkle-tree.ts'
import { openCheckpoint, parseDecimal, parseNote, readCheckpoint } from './signed-note.ts'
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

/** The result of verifying a proof: the entry is in the log of a checkpoint, or the reason why that is not proved. */
export type ProofVerdict =
  { problem: string } | (Extract<PolicyVerdict, { problem: null }> & { checkpoint: Checkpoint })

/**
 * Verifies a proof against a policy. A quorum that is not met is reported, but does not make the proof invalid.
 *
 * @param policy trusted keys; null accepts any signer of the checkpoint
 */
export function verifyLogProof(proof: LogProof, policy: LogPolicy | null): ProofVerdict {
  const opened = policy
    ? openCheckpoint(
        proof.checkpoint,
        policy.logs.map(({ key }) => key),
      )
    : readCheckpoint(proof.checkpoint)
  if (opened.problem !== null) return { problem: `the checkpoint cannot be believed: ${opened.problem}` }
  const { size, root } = opened.checkpoint
  const proved = rootOfInclusion(leafHash(proof.entry), proof.index, size, proof.hashes)
  if (proved === null || !areSameBytes(proved, root))
    return { problem: `entry ${proof.index} is not in the tree of ${size} entries that the log signed` }
  const verdict: PolicyVerdict = policy
    ? evaluatePolicy(policy, opened.note)
    : { problem: null, cosigners: [], hasQuorum: true }
  return verdict.problem === null ? { ...verdict, checkpoint: opened.checkpoint } : verdict
}

/** The entry that seals the legacy ledger. */
export function sealOf({ entries }: Pick<ProvedLedger, 'entries'>): LedgerEntry | undefined {
  return entries.find(({ kind }) => kind === 'legacy-seal')
}

/**
 * The entries that show that a publication was the newest until the next one: from its own to that of the next, or to the
 * end of the tree. What an import founded the archive with is not in the order of its times, so that all of it is needed.
 *
 * @param size of the tree
 * @returns sequence numbers; null when the publication is not in the tree
 */
export function entriesUntilNext(
  proved: Pick<ProvedLedger, 'entries'>,
  { ledger, seq }: Pick<TimelineItem, 'ledger' | 'seq'>,
  size: number,
): number[] | null {
  const sealed = sealOf(proved)?.seq ?? 0
  const isFounding = ledger === 'v1' || seq < sealed
  const [first, own] = isFounding ? [1, sealed] : [seq, seq]
  if (own > size) return null
  const next = proved.entries.find((entry) => entry.seq > own && entry.kind === 'publication')?.seq ?? size
  const last = Math.min(next, size)
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

/** The query of `GET /tlog/year/proof` (docs/api.md). */
export const proofQuerySchema = z.object({
  at: historyQuerySchema.shape.at,
  until: z.literal('next').optional().meta({
    description:
      '`next`: the proofs of all entries from the publication to the next one, which show that it was the newest.',
  }),
})

/** Refusals of the log's interface (docs/api.md): the whole, closed list. */
export type LogRefusal =
  | 'invalid_at'
  | 'invalid_until'
  | 'year_log_not_found'
  | 'method_not_allowed'
  | 'year_log_storage_unavailable'
  | 'year_log_archive_corrupt'
  | 'year_log_lookup_failed'

/**
 * Parses the query of a request for a proof.
 *
 * @param now default of `at`
 * @throws Refusal `invalid_at`, then `invalid_until`
 */
export function parseProofQuery(
  params: URLSearchParams,
  now: Instant,
): { at: Instant; until: 'next' | undefined } {
  const codes = { at: 'invalid_at', until: 'invalid_until' } satisfies Record<string, LogRefusal>
  const { at = now, until } = parseQuery(proofQuerySchema, params, codes)
  if (!isPast(at, now)) throw new Refusal<LogRefusal>('invalid_at')
  return { at, until }
}

/** Several proofs at once. */
export const asOfProofSchema = z
  .strictObject({
    at: z.iso.datetime({ precision: 3 }),
    proofs: z.array(z.string()).describe('proof files (C2SP tlog-proof), in the order of their entries'),
    legacy: z
      .string()
      .nullable()
      .describe('the legacy ledger, where the seal is among the entries; its SHA-256 stands in the seal'),
  })
  .meta({ id: 'AsOfProof' })

export type AsOfProof = z.infer<typeof asOfProofSchema>
