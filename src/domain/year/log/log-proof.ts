import { z } from 'zod'
import { areSameBytes, decodeBase64, encodeBase64 } from '../../digest.ts'
import { parseQuery } from '../../query.ts'
import type { Instant } from '../../time.ts'
import { instantField } from '../../wire-fields.ts'
import type { ProvedLedger, TimelineItem } from '../chain.ts'
import { historyQuerySchema, pastOr } from '../history/history.ts'
import { sealOf } from '../ledger.ts'
import { HASH_BYTES, inclusionProof, leafHash, rootOfInclusion } from './merkle-tree.ts'
import type { Hash, MerkleTree } from './merkle-tree.ts'
import { openCheckpoint, parseDecimal, parseNote, readCheckpoint } from './signed-note.ts'
import type { OpenedCheckpoint, VerifierKey } from './signed-note.ts'

/** Proof files (C2SP tlog-proof): each proves offline that one entry is in the log. */

export interface LogProof {
  /** Bytes of the entry's line in the ledger. */
  entry: Uint8Array
  index: number
  /** Hashes of the inclusion proof, from the leaf's sibling up. */
  hashes: Hash[]
  /** Signed checkpoint. */
  checkpoint: string
}

const FIRST_LINE = 'c2sp.org/tlog-proof@v1'

/** Formats a proof file. */
export function formatLogProof({ entry, index, hashes, checkpoint }: LogProof): string {
  const head = [FIRST_LINE, `extra ${encodeBase64(entry)}`, `index ${index}`]
  return `${[...head, ...hashes.map(encodeBase64)].join('\n')}\n\n${checkpoint}`
}

/** Parses a proof file; null for any text that {@link formatLogProof} does not produce. */
export function parseLogProof(text: string): LogProof | null {
  const [head = '', ...rest] = text.split('\n\n')
  const [first, extraLine = '', indexLine = '', ...hashLines] = head.split('\n')
  const entry = extraLine.startsWith('extra ') ? decodeBase64(extraLine.slice('extra '.length)) : null
  const index = indexLine.startsWith('index ') ? parseDecimal(indexLine.slice('index '.length)) : null
  const hashes = hashLines.map(decodeBase64).filter((hash) => hash?.byteLength === HASH_BYTES) as Hash[]
  const checkpoint = rest.join('\n\n')
  if (first !== FIRST_LINE || entry === null || index === null) return null
  return hashes.length === hashLines.length && parseNote(checkpoint) !== null
    ? { entry, index, hashes, checkpoint }
    : null
}

/**
 * Creates the proof of an entry in the tree of a checkpoint.
 *
 * @param entry bytes of the entry
 * @param index index of the entry, from 0
 * @param size number of entries of the checkpoint
 * @param checkpoint signed checkpoint
 * @throws RangeError if that tree has no such entry
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

/**
 * Verifies a proof.
 *
 * @param keys trusted keys; null accepts any signer of the checkpoint
 * @returns the checkpoint whose tree contains the entry, or the reason why this is not proved
 */
export function verifyLogProof(proof: LogProof, keys: readonly VerifierKey[] | null): OpenedCheckpoint {
  const opened = keys ? openCheckpoint(proof.checkpoint, keys) : readCheckpoint(proof.checkpoint)
  if (opened.problem !== null) return { problem: `the checkpoint is not trusted: ${opened.problem}` }
  const { size, root } = opened.checkpoint
  const proved = rootOfInclusion(leafHash(proof.entry), proof.index, size, proof.hashes)
  if (proved === null || !areSameBytes(proved, root))
    return { problem: `entry ${proof.index} is not in the tree of ${size} entries that the log signed` }
  return opened
}

/**
 * Returns the entries that prove that a publication was the newest until the next one: from its own entry to the next
 * publication, or to the end of the tree. The entries of a founding import are not in order of time, so all of them are
 * needed.
 *
 * @param size number of entries of the tree
 * @returns sequence numbers; null if the publication is not in the tree
 */
export function entriesUntilNext(
  proved: Pick<ProvedLedger, 'entries'>,
  { ledger, seq }: Pick<TimelineItem, 'ledger' | 'seq'>,
  size: number,
): number[] | null {
  const sealed = sealOf(proved.entries)?.seq ?? 0
  const isFounding = ledger === 'v1' || seq < sealed
  const [first, own] = isFounding ? [1, sealed] : [seq, seq]
  if (own > size) return null
  let last = Math.min(own + 1, size)
  while (last < size && proved.entries[last - 1]?.kind !== 'publication') last += 1
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

/** The query of `GET /tlog/year/proof` (docs/api.md). */
export const proofQuerySchema = z.object({
  at: historyQuerySchema.shape.at,
  until: z.literal('next').optional().meta({
    description:
      '`next`: proofs of all entries from the publication to the next one, which prove that it was the newest until then.',
  }),
})

/** All refusals of the log's HTTP interface (docs/api.md). */
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
  const { at, until } = parseQuery(proofQuerySchema, params, codes)
  return { at: pastOr(at, now), until }
}

/** Response with several proofs. */
export const asOfProofSchema = z
  .strictObject({
    at: instantField,
    proofs: z.array(z.string()).describe('proof files (C2SP tlog-proof), in the order of their entries'),
    legacy: z
      .string()
      .nullable()
      .describe(
        'the legacy ledger if its seal is among the entries, otherwise null; the seal contains its SHA-256',
      ),
  })
  .meta({ id: 'AsOfProof' })

export type AsOfProof = z.infer<typeof asOfProofSchema>
