import { sha256Hex } from '../../digest.ts'
import { parseJson } from '../../text.ts'
import { formatInstant } from '../../time.ts'
import { manifestOf, timelineOf } from '../chain.ts'
import type { TimelineItem } from '../chain.ts'
import { examineBytes } from '../examine.ts'
import { formatTime } from '../finding.ts'
import { parseLeafText, parseLegacyLine } from '../ledger.ts'
import type { LedgerRow, Manifest } from '../ledger.ts'
import type { LogPolicy } from './log-policy.ts'
import { asOfProofSchema, parseLogProof, verifyLogProof } from './log-proof.ts'
import type { LogProof, ProofVerdict } from './log-proof.ts'

/** Result of verifying a publication against a proof file (docs/proof.md), in sentences for a person. */
export interface PublicationVerdict {
  /** Why the proof is invalid; null if it is valid. */
  problem: string | null
  proved: string[]
  notProved: string[]
  /** True if a policy was given and all its requirements are met. */
  verified: boolean
}

/**
 * Verifies the bytes of a publication against a proof file, offline.
 *
 * @param bytes bytes of the publication
 * @param text a proof file, or the JSON document of several proof files from `/tlog/year/proof`
 * @param policy trusted keys; null accepts any signer, which does not prove who signed
 */
export function verifyPublication(
  bytes: Uint8Array,
  text: string,
  policy: LogPolicy | null,
): PublicationVerdict {
  const read = readProofs(text)
  if (typeof read === 'string') return wrong(read)
  const selected = selectedBy(read, bytes)
  if (typeof selected === 'string') return wrong(selected)
  const [problem] = examineBytes(selected.manifest, bytes)
  if (problem) return wrong(`the file ${problem.difference}`)
  const verdicts = read.proofs.map((proof) => verifyLogProof(proof, policy))
  const failed = verdicts.find((verdict) => verdict.problem !== null)
  if (failed?.problem) return wrong(failed.problem)
  return describe(read, selected, verdicts[0] as ValidProof, policy)
}

type ValidProof = Extract<ProofVerdict, { problem: null }>

function wrong(problem: string): PublicationVerdict {
  return { problem, proved: [], notProved: [], verified: false }
}

/** Parsed proofs of consecutive entries, ascending, under one checkpoint. */
interface ReadProofs {
  proofs: LogProof[]
  rows: LedgerRow[]
  /** Every publication in the entries and the legacy ledger. */
  timeline: TimelineItem[]
  /** True if the legacy ledger and its seal are included. */
  hasLegacy: boolean
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @returns the proofs, or a problem as text if they cannot be parsed or do not belong together */
function readProofs(text: string): ReadProofs | string {
  const single = parseLogProof(text)
  const several = single ? null : asOfProofSchema.safeParse(parseJson(text)).data
  const proofs = single ? [single] : (several?.proofs ?? []).map(parseLogProof)
  if (proofs.length === 0 || !proofs.every((proof) => proof !== null)) return 'it is not a proof file'
  const rows: LedgerRow[] = []
  for (const { entry, index, checkpoint } of proofs) {
    const row = parseEntry(entry)
    if (row === null) return `entry ${index} is not a line of a ledger`
    if (row.seq !== index + 1) return `the proof of entry ${index + 1} contains the line of entry ${row.seq}`
    if (rows.length > 0 && row.seq !== (rows.at(-1)?.seq ?? 0) + 1) return 'its entries are not consecutive'
    if (checkpoint !== proofs[0]?.checkpoint) return 'its proofs have different checkpoints'
    rows.push(row)
  }
  const legacy = readLegacy(rows, several?.legacy ?? null)
  if (typeof legacy === 'string') return legacy
  const own = rows.flatMap((row): TimelineItem[] => {
    const manifest = row.kind === 'publication' ? manifestOf(row) : null
    return manifest ? [{ manifest, ledger: 'versioned', seq: row.seq }] : []
  })
  return { proofs, rows, timeline: timelineOf([...legacy.items, ...own]), hasLegacy: legacy.isSealed }
}

function parseEntry(entry: Uint8Array): LedgerRow | null {
  try {
    return parseLeafText(utf8.decode(entry))
  } catch {
    return null
  }
}

/** Reads the legacy ledger, whose SHA-256 must be that of the seal among the entries. */
function readLegacy(
  rows: readonly LedgerRow[],
  text: string | null,
): { items: TimelineItem[]; isSealed: boolean } | string {
  const seal = rows.find(({ kind }) => kind === 'legacy-seal')
  if (text === null) return { items: [], isSealed: false }
  if (seal?.legacyDigest !== sha256Hex(text)) return 'its legacy ledger does not match the seal'
  const items = text.split('\n').flatMap((line): TimelineItem[] => {
    const row = parseLegacyLine(line)
    const manifest = row && manifestOf(row)
    return row && manifest ? [{ manifest, ledger: 'v1', seq: row.position }] : []
  })
  return { items, isSealed: true }
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
  { checkpoint: { origin, size }, cosigners, hasQuorum }: ValidProof,
  policy: LogPolicy | null,
): PublicationVerdict {
  const { manifest, ledger, seq } = selected
  const place =
    ledger === 'v1' ? 'listed in the legacy ledger that is sealed in' : `entry ${seq} of ${size} of`
  const newest = newestWhile(read, selected, size)
  const proved = [
    `the file is ${idOf(manifest)}, byte for byte`,
    `it is ${place} the log ${origin}, with ${formatTime(manifest.publishedAt)} as its time of publication`,
    ...(policy === null ? [] : [`the key of ${origin} signed this log of ${entryCount(size)}`]),
    ...cosigners.map(({ name, time }) => `witness ${name} saw this log at ${formatSeconds(time)}`),
    ...(newest === null ? [] : [newest]),
  ]
  const notProved = [
    ...(policy === null ? ['who signed the log: no policy was given'] : []),
    ...(hasQuorum ? [] : ['that enough witnesses saw this log: the quorum of the policy is not met']),
    ...(cosigners.length > 0 ? [] : ['that other readers see the same log: no witness signed it']),
    ...(newest === null ? ['how long it was the newest publication: request the proof with until=next'] : []),
  ]
  return { problem: null, proved, notProved, verified: policy !== null && hasQuorum }
}

/** Returns a sentence on how long the publication was the newest; null if the entries do not prove it. */
function newestWhile(
  { rows, timeline, hasLegacy }: ReadProofs,
  selected: TimelineItem,
  size: number,
): string | null {
  // The entries of a founding import are not in order of time, so all of them are needed.
  const isWhole = hasLegacy ? rows[0]?.seq === 1 : rows[0]?.seq === selected.seq
  const next = timeline[timeline.indexOf(selected) + 1]
  if (!isWhole) return null
  if (next) {
    const { publicationId, publishedAt } = next.manifest
    return `it was the newest until ${formatTime(publishedAt)}, when ${publicationId} followed`
  }
  return rows.at(-1)?.seq === size ? `it was the newest while the log had ${entryCount(size)}` : null
}

const entryCount = (size: number): string => (size === 1 ? '1 entry' : `${size} entries`)

/** @param seconds time since 1970 as the witness states it; can be outside the range of dates */
function formatSeconds(seconds: number): string {
  const instant = seconds * 1000
  return Number.isNaN(new Date(instant).getTime()) ? `${seconds} s after 1970` : formatInstant(instant)
}
