import { z } from 'zod'
import { isSha256Hex } from '../digest.ts'
import { describeIssues, readAs } from '../feed/source.ts'
import { OBJECT_MAX_BYTES } from '../refusal.ts'
import { asJsonObject } from '../json.ts'
import { dayOf, formatInstant, parseDay, parseInstant } from '../time.ts'
import type { Instant } from '../time.ts'
import { GENESIS_LEAF, sealEntry, sealLegacy } from './chain.ts'
import type { LedgerEntry, LedgerRow, LegacyRow, Manifest } from './ledger.ts'

/**
 * The import of an older archive (docs/importing.md): its manifests, and the ledger rows they found
 * (docs/decisions/0010-archive-import.md).
 */

/** The file in an archive's folder that lists its publications. */
export const MANIFESTS_FILE = 'manifests.ndjson'

/** Each ledger has one version: version 3 is only published, never imported or relabeled. */
const ALGORITHM_OF = { v1: 'top-year-v1', versioned: 'top-year-v2' } as const

/** Prefix of the publisher's own ids, which imported publications must not use. */
const OWN_ID_PREFIX = 'top-year-v3-'

/** A manifest from its line. */
export interface ListedPublication {
  /** Line number in the list, from 1. */
  line: number
  ledger: 'v1' | 'versioned'
  manifest: Manifest
  /** Path of the publication's bytes below the folder. */
  file: string
}

/** A publication that cannot be imported; the line is null for the import as a whole. */
export interface ImportRefusal {
  publicationId: string | null
  line: number | null
  reason: string
}

/** The first rows of a ledger, without the seal, whose time is that of the commit. */
export interface Founding {
  /** Rows of the legacy ledger, positions 1…n. */
  legacy: LegacyRow[]
  /** Rows of the versioned ledger, entries 1…k. */
  rows: LedgerRow[]
}

/** Longest text of a manifest, in characters: lines of the ledger stay far below the maximum of a signed log. */
const TEXT_MAX_LENGTH = 1_000

const storedText = z
  .string('must be a string')
  .max(TEXT_MAX_LENGTH, `has more than ${TEXT_MAX_LENGTH} characters`)
  .refine((value) => value !== '', 'is empty')
  .refine(
    (value) => value.isWellFormed() && !value.includes('\0'),
    'contains a NUL or half a surrogate pair, which the ledger cannot store',
  )

const instant = z.string('must be a string').transform(readAs(parseInstant, 'must be an ISO-8601 instant'))

const manifestRow = z.object({
  ledger: z.enum(['v1', 'versioned'], 'must be "v1" or "versioned"'),
  publicationId: storedText.refine(
    (value) => !value.startsWith(OWN_ID_PREFIX),
    `starts with ${OWN_ID_PREFIX}, which is reserved for own publications`,
  ),
  algorithmVersion: storedText,
  schemaVersion: z.int('must be an integer'),
  kind: storedText,
  asOfDay: z.string('must be a string').transform(readAs(parseDay, 'must be a real YYYY-MM-DD day')),
  windowStart: instant,
  windowEnd: instant,
  generatedAt: instant,
  publishedAt: instant,
  sha256: z.string('must be a string').refine(isSha256Hex, 'must be 64 lower-case hex digits'),
  byteSize: z
    .int('must be an integer')
    .min(0, 'is negative')
    .max(OBJECT_MAX_BYTES, `is more than ${OBJECT_MAX_BYTES}, the maximum of a publication`),
  file: z.string('must be a string').refine(isPathBelow, 'must be a relative path inside the folder'),
})

/**
 * Parses one decoded line of the list to a publication, or to the reason why it is refused (docs/importing.md). Unknown
 * members are ignored.
 *
 * @param row the value of JSON.parse for the line
 * @param line line number
 * @param now latest valid publication time
 */
export function parseManifestRow(
  row: unknown,
  line: number,
  now: Instant,
): ListedPublication | ImportRefusal {
  const members = asJsonObject(row)
  const id = members?.['publicationId']
  const publicationId = typeof id === 'string' ? id : null
  const refused = (reason: string): ImportRefusal => ({ publicationId, line, reason })
  if (members === null) return refused('not a JSON object')
  const parsed = manifestRow.safeParse(row)
  if (!parsed.success) return refused(describeIssues(parsed.error))
  const { ledger, file, ...manifest } = parsed.data
  const { algorithmVersion, asOfDay, publishedAt } = manifest
  if (algorithmVersion !== ALGORITHM_OF[ledger]) {
    const expectation = `algorithmVersion: the ledger ${ledger} accepts only ${ALGORITHM_OF[ledger]}`
    return refused(`${expectation}, not ${JSON.stringify(algorithmVersion)}`)
  }
  if (publishedAt > now) {
    return refused(
      `publishedAt: ${formatInstant(publishedAt)} is in the future; now is ${formatInstant(now)}`,
    )
  }
  if (asOfDay > dayOf(publishedAt)) return refused(`asOfDay: ${asOfDay} is later than its publication`)
  return { line, ledger, manifest, file }
}

/** Refusals of publications whose id an earlier line of either ledger already has. */
export function duplicateIdRefusals(listed: readonly ListedPublication[]): ImportRefusal[] {
  const lines = new Map<string, number>()
  const refusals: ImportRefusal[] = []
  for (const { line, manifest } of listed) {
    const { publicationId } = manifest
    const earlier = lines.get(publicationId)
    if (earlier === undefined) lines.set(publicationId, line)
    else refusals.push({ publicationId, line, reason: `publicationId: same as line ${earlier}` })
  }
  return refusals
}

/**
 * Plans the first rows of a ledger: both ledgers by `publishedAt`, equal times in the order of the list. The same list
 * always gives the same rows.
 */
export function planFounding(listed: readonly ListedPublication[]): Founding {
  const inOrder = listed.toSorted((a, b) => a.manifest.publishedAt - b.manifest.publishedAt)
  const legacy: LegacyRow[] = []
  const rows: LedgerRow[] = []
  for (const { ledger, manifest } of inOrder) {
    if (ledger === 'v1') {
      const { kind, ...columns } = manifest
      legacy.push({ ...columns, position: legacy.length + 1, envelopeKind: kind })
    } else {
      const previousLeaf = rows.at(-1)?.leaf ?? GENESIS_LEAF
      const content = { kind: 'publication', manifest } as const
      rows.push(sealEntry(content, rows.length + 1, manifest.publishedAt, previousLeaf))
    }
  }
  return { legacy, rows }
}

/** The seal entry of a founding, which covers its legacy rows; its time is never before the previous entry. */
export function sealFounding({ legacy, rows }: Founding, now: Instant): LedgerRow {
  const last = rows.at(-1)
  const recordedAt = Math.max(now, last?.recordedAt ?? now)
  const content = { kind: 'legacy-seal', ...sealLegacy(legacy) } as const
  return sealEntry(content, rows.length + 1, recordedAt, last?.leaf ?? GENESIS_LEAF)
}

/**
 * True when a proved ledger starts with this founding: the leaf of the last imported entry covers those entries, and
 * the seal after it covers the legacy rows.
 */
export function startsWithFounding(entries: readonly LedgerEntry[], { legacy, rows }: Founding): boolean {
  const seal = entries[rows.length]
  if (seal?.kind !== 'legacy-seal' || seal.previousLeaf !== (rows.at(-1)?.leaf ?? GENESIS_LEAF)) return false
  const { rows: count, digest } = sealLegacy(legacy)
  return seal.rows === count && seal.digest === digest
}

function isPathBelow(path: string): boolean {
  if (path === '' || path.startsWith('/') || path.includes('\0') || !path.isWellFormed()) return false
  return !path.split('/').includes('..')
}
