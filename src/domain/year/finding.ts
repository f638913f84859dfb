import type { Instant } from '../time.ts'
import { examineSeen } from './envelope.ts'
import type { ObjectProblem, SeenBytes } from './envelope.ts'
import type { Manifest, Head } from './ledger.ts'

/** The words of the audit (docs/auditing.md): what can be found, and what of it is damage. */

/** What an audit reports; the last one is a note and no damage. */
export type FindingCode =
  | 'digest_mismatch'
  | 'size_mismatch'
  | 'object_missing'
  | 'object_unreadable'
  | 'envelope_invalid'
  | 'identity_mismatch'
  | 'row_tampered'
  | 'chain_broken'
  | 'head_mismatch'
  | 'orphan_object'

/** One thing that is not as it should be. */
export interface Finding {
  code: FindingCode
  publicationId: string | null
  /** Where: `entries/<seq>`, `legacy_publications/<position>`, or the object's key in the store. */
  path: string | null
  expected: string | number | null
  actual: string | number | null
}

/** What became of reading one object and examining it. */
export type ObjectOutcome = { found: 'bytes'; byteSize: number; problems: ObjectProblem[] } | NoBytes

/** What became of reading one object before its manifest was known. */
export type SeenObject = ({ found: 'bytes' } & SeenBytes) | NoBytes

/** Why there were no bytes; `why` begins with {@link READ_ERROR} when the store failed, not the object. */
export type NoBytes = { found: 'nothing' } | { found: 'something else'; why: string }

/** True for what makes an archive unsound, as opposed to a note or to bytes that could not be read. */
export function isDamage({ code, actual }: Finding): boolean {
  return code !== 'orphan_object' && !(code === 'object_unreadable' && isReadError(actual))
}

/** How a read error is told in `actual` of an `object_unreadable` finding; anything else there is damage. */
export const READ_ERROR = 'read error: '

export function isReadError(actual: Finding['actual']): boolean {
  return typeof actual === 'string' && actual.startsWith(READ_ERROR)
}

/** Where an object stands in the store. */
export function objectPath(sha256: string): string {
  return `sha256/${sha256.slice(0, 2)}/${sha256}`
}

/** An object that was read ahead, against its manifest; null when it must be examined with it. */
export function examineSeenObject(manifest: Manifest, seen: SeenObject): ObjectOutcome | null {
  if (seen.found !== 'bytes') return seen
  const problems = examineSeen(manifest, seen)
  return problems && { found: 'bytes', byteSize: seen.byteSize, problems }
}

/** What became of reading the object of a manifest, as findings; none when it is what was sealed. */
export function objectFindings(manifest: Manifest, outcome: ObjectOutcome): Finding[] {
  const { publicationId, sha256 } = manifest
  const at = { publicationId, path: objectPath(sha256) }
  switch (outcome.found) {
    case 'bytes':
      return outcome.problems.map(({ code, expected, actual }) => ({ code, ...at, expected, actual }))
    case 'nothing':
      return [{ code: 'object_missing', ...at, expected: sha256, actual: null }]
    case 'something else':
      return [{ code: 'object_unreadable', ...at, expected: sha256, actual: outcome.why }]
  }
}

/** What is remembered of an audit of the own archive (docs/auditing.md). */
export interface AuditRecord {
  endedAt: Instant
  /** No damage, and nothing left unread that was to be read. */
  ok: boolean
  /** False when something kept the audit from reading all it was asked to. */
  complete: boolean
  /** False when it was asked to read only some of the objects. */
  whole: boolean
  publications: number
  /** Objects and bytes read. */
  objects: number
  bytes: number
  gaps: number
  /** Findings that are damage. */
  damage: number
  head: { seq: number; leaf: string }
}

/** What of a report is remembered: its counts, not its findings. */
export function auditRecord(
  report: Omit<AuditRecord, 'endedAt' | 'whole' | 'damage'> & { findings: readonly Finding[] },
  whole: boolean,
  endedAt: Instant,
): AuditRecord {
  const { ok, complete, publications, objects, bytes, gaps, head, findings } = report
  const damage = findings.filter(isDamage).length
  return { endedAt, ok, complete, whole, publications, objects, bytes, gaps, damage, head }
}

/** One way to damage an archive, and what an audit must then say. */
export interface Mutation {
  name: string
  /** Of these an audit must report one. */
  expects: readonly FindingCode[]
  /** True for what is reported as a note and leaves the archive sound. */
  sound: boolean
  /** True when no trace is left inside the archive, so that only a head kept elsewhere can tell. */
  needsKeptHead: boolean
  /** Damages the archive in the folder that {@link DamageSample.restored} gave. */
  apply(folder: string): Promise<void>
}

/** A small sound archive of its own making, in a temporary folder, to be damaged again and again. */
export interface DamageSample {
  mutations: readonly Mutation[]
  /** The newest head, as an auditor would have kept it. */
  keptHead: Head & { path: string }
  /** The sample's data folder as it was made, whatever was done to it since. */
  restored(): Promise<string>
  /** Removes the sample. */
  remove(): Promise<void>
}
