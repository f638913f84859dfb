import { z } from 'zod'
import { areSameBytes, decodeBase64, encodeBase64, sha256Hex } from '../../digest.ts'
import { utf8Text } from '../../text.ts'
import { parseJson } from '../../json.ts'
import { parseInstant } from '../../time.ts'
import type { Instant, Day } from '../../time.ts'
import { parseQuery, instantField } from '../../wire-format.ts'
import { entryOf, timelineOf } from '../chain.ts'
import type { TimelineItem } from '../chain.ts'
import { ALGORITHM_VERSION } from '../envelope.ts'
import { examineBytes } from '../examine.ts'
import { formatTime } from '../finding.ts'
import { historyQuerySchema, pastOr } from '../history/history.ts'
import { sealOf, parseLeafText, parseLegacyLine } from '../ledger.ts'
import type { LedgerEntry, LedgerRow, LegacyRow, Manifest } from '../ledger.ts'
import { HASH_BYTES, leafHash, rootOfInclusion } from './merkle-tree.ts'
import type { Hash } from './merkle-tree.ts'
import { openCheckpoint, parseDecimal, parseNote, readCheckpoint } from './signed-note.ts'
import type { OpenedCheckpoint, VerifierKey, Checkpoint } from './signed-note.ts'

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
  { entries }: { entries: readonly Pick<LedgerEntry, 'kind' | 'seq'>[] },
  { ledger, seq }: Pick<TimelineItem, 'ledger' | 'seq'>,
  size: number,
): number[] | null {
  const sealed = sealOf(entries)?.seq ?? 0
  const isFounding = ledger === 'v1' || seq < sealed
  const [first, own] = isFounding ? [1, sealed] : [seq, seq]
  if (own > size) return null
  let last = Math.min(own + 1, size)
  while (last < size && entries[last - 1]?.kind !== 'publication') last += 1
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

/** A fact about a publication, and the sentence about it for a person (docs/proof.md#verifying-a-publication). */
export interface Statement {
  code: 'digest' | 'identity' | 'inclusion' | 'log' | 'newest' | 'newest_at'
  text: string
}

export interface PublicationVerdict {
  /** True if trusted keys were given and the proof is valid. */
  ok: boolean
  /** Why the proof is invalid; null if it is valid. */
  problem: string | null
  /** Each code is in one of the lists at most. */
  proved: Statement[]
  notProved: Statement[]
  /** The publication, and its entry of the log; for one of the legacy ledger, the seal. Null if the proof is invalid. */
  entry: { seq: number; publicationId: string; asOfDay: Day } | null
}

/**
 * Verifies the bytes of a publication against a proof file, offline.
 *
 * @param bytes bytes of the publication
 * @param text a proof file, or the JSON document of several proof files from `/tlog/year/proof`
 * @param keys trusted keys; null accepts any signer, which does not prove who signed
 */
export function verifyPublication(
  bytes: Uint8Array,
  text: string,
  keys: readonly VerifierKey[] | null,
): PublicationVerdict {
  const read = readProofs(text)
  if (typeof read === 'string') {
    const isSwapped = typeof readProofs(utf8Text(bytes)) !== 'string'
    return wrong(isSwapped ? 'the first file is a proof; name the publication first, then its proof' : read)
  }
  const selected = selectedBy(read, bytes)
  if (typeof selected === 'string') return wrong(selected)
  const [problem] = examineBytes(selected.manifest, bytes)
  if (problem) return wrong(`the file ${problem.difference}`)
  const verdicts = read.proofs.map((proof) => verifyLogProof(proof, keys))
  const failed = verdicts.find((verdict) => verdict.problem !== null)
  if (failed?.problem) return wrong(failed.problem)
  // All proofs have the same checkpoint.
  const { checkpoint } = verdicts[0] as Extract<OpenedCheckpoint, { problem: null }>
  return describe(read, selected, checkpoint, keys !== null)
}

function wrong(problem: string): PublicationVerdict {
  return { ok: false, problem, proved: [], notProved: [], entry: null }
}

/** Parsed proofs of consecutive entries, ascending, under one checkpoint. */
interface ReadProofs {
  proofs: LogProof[]
  rows: LedgerRow[]
  /** Every publication in the entries and the legacy ledger. */
  timeline: TimelineItem[]
  /** True if the legacy ledger and its seal are included. */
  hasLegacy: boolean
  /** Time at which the proof says that the publication was the newest; null for a single proof file. */
  at: Instant | null
}

/** @returns the proofs, or a problem as text if they cannot be parsed or do not belong together */
function readProofs(text: string): ReadProofs | string {
  const single = parseLogProof(text)
  const several = single ? null : asOfProofSchema.safeParse(parseJson(text)).data
  const proofs = single ? [single] : (several?.proofs ?? []).map(parseLogProof)
  if (proofs.length === 0 || !proofs.every((proof) => proof !== null)) return 'the second file is not a proof'
  const rows: LedgerRow[] = []
  for (const { entry, index, checkpoint } of proofs) {
    const row = parseLeafText(utf8Text(entry))
    if (row === null) return `entry ${index} is not a line of a ledger`
    if (row.seq !== index + 1) return `the proof of entry ${index + 1} contains the line of entry ${row.seq}`
    if (rows.length > 0 && row.seq !== (rows.at(-1)?.seq ?? 0) + 1) return 'its entries are not consecutive'
    if (checkpoint !== proofs[0]?.checkpoint) return 'its proofs have different checkpoints'
    rows.push(row)
  }
  const legacy = readLegacy(rows, several?.legacy ?? null)
  if (typeof legacy === 'string') return legacy
  const entries = rows.map(entryOf).filter((entry) => entry !== null)
  const timeline = timelineOf(entries, legacy ?? [])
  return { proofs, rows, timeline, hasLegacy: legacy !== null, at: several ? parseInstant(several.at) : null }
}

/** Reads the legacy ledger, whose SHA-256 must be that of the seal among the entries; null if both are missing. */
function readLegacy(rows: readonly LedgerRow[], text: string | null): LegacyRow[] | string | null {
  const seal = sealOf(rows)
  if (text === null) return seal ? 'it has the seal of the legacy ledger without its text' : null
  if (seal?.legacyDigest !== sha256Hex(text)) return 'its legacy ledger does not match the seal'
  return text.split('\n').flatMap((line) => parseLegacyLine(line) ?? [])
}

/** Finds the publication with these bytes in the proof; returns a problem as text if there is none. */
function selectedBy({ timeline }: ReadProofs, bytes: Uint8Array): TimelineItem | string {
  const digest = sha256Hex(bytes)
  const selected = timeline.find(({ manifest }) => manifest.sha256 === digest)
  if (selected) return selected
  const [first] = timeline
  const other = first ? `the proof is of ${idOf(first.manifest)}` : 'the proof is not of a publication'
  return `the file has the SHA-256 ${digest}; ${other}`
}

const idOf = ({ publicationId, sha256 }: Manifest): string => `${publicationId}, SHA-256 ${sha256}`

function describe(
  read: ReadProofs,
  selected: TimelineItem,
  { origin, size }: Checkpoint,
  hasKeys: boolean,
): PublicationVerdict {
  const { manifest, ledger, seq } = selected
  const { publicationId, asOfDay, publishedAt } = manifest
  const newest = newestWhile(read, selected, size)
  if (newest === 'contradiction')
    return wrong(`${idOf(manifest)} was not the newest publication at ${formatTime(read.at ?? 0)}`)
  const seal = read.rows.find(({ kind }) => kind === 'legacy-seal')
  const entry = { seq: ledger === 'v1' ? (seal?.seq ?? 0) : seq, publicationId, asOfDay }
  const place =
    ledger === 'v1' ? 'listed in the legacy ledger that is sealed in' : `entry ${seq} of ${size} of`
  const placed: Statement = {
    code: 'inclusion',
    text: `it is ${place} the log ${origin}, with ${formatTime(publishedAt)} as its time of publication`,
  }
  const identity: Statement = { code: 'identity', text: 'it has the id, day and times of that entry' }
  if (!hasKeys) {
    const notProved: Statement[] = [
      {
        code: 'log',
        text: 'who signed the log: no policy was given, so anyone can have written this proof file',
      },
      ...[placed, ...newest.proved].map(({ code, text }) => ({
        code,
        text: `what the proof file says: ${text}`,
      })),
      ...newest.notProved,
    ]
    const digest: Statement = { code: 'digest', text: `the proof file is about this file: ${idOf(manifest)}` }
    return { ok: false, problem: null, proved: [digest, identity], notProved, entry }
  }
  const proved: Statement[] = [
    { code: 'digest', text: `the file is ${idOf(manifest)}, byte for byte` },
    placed,
    identity,
    { code: 'log', text: `the key of ${origin} signed this log of ${entryCount(size)}` },
    ...newest.proved,
  ]
  return { ok: true, problem: null, proved, notProved: newest.notProved, entry }
}

/** Returns sentences on how long the publication was the newest, and whether it was at the time of the proof. */
function newestWhile(
  { rows, timeline, hasLegacy, at }: ReadProofs,
  selected: TimelineItem,
  size: number,
): 'contradiction' | Pick<PublicationVerdict, 'proved' | 'notProved'> {
  const { algorithmVersion, publishedAt } = selected.manifest
  // Entries of a founding import are not in order of time: all of them and the legacy ledger are needed.
  const isOwn = algorithmVersion === ALGORITHM_VERSION
  const isWhole = isOwn || (hasLegacy && rows[0]?.seq === 1)
  const next = timeline[timeline.indexOf(selected) + 1]
  if (!isWhole || (next === undefined && rows.at(-1)?.seq !== size)) {
    const text = 'how long it was the newest publication: request the proof with until=next'
    return { proved: [], notProved: [{ code: 'newest', text }] }
  }
  if (at !== null && (at < publishedAt || (next && at >= next.manifest.publishedAt))) return 'contradiction'
  const period: Statement = {
    code: 'newest',
    text: next
      ? `it was the newest until ${formatTime(next.manifest.publishedAt)}, when ${next.manifest.publicationId} followed`
      : `it was the newest while the log had ${entryCount(size)}`,
  }
  if (at === null) return { proved: [period], notProved: [] }
  const wasNewest = `it was the newest at ${formatTime(at)}`
  if (next) return { proved: [period, { code: 'newest_at', text: wasNewest }], notProved: [] }
  const text = `that ${wasNewest}: a checkpoint does not say when it was signed`
  return { proved: [period], notProved: [{ code: 'newest_at', text }] }
}

/** A number of entries in words. */
export const entryCount = (size: number): string => (size === 1 ? '1 entry' : `${size} entries`)
