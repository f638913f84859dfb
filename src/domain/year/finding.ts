import type { Instant } from '../time.ts'
import type { KeptHead } from './ledger.ts'

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
  | 'note_invalid'
  | 'log_forked'
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

/** A finding; of no particular publication, unless one is named. */
export function finding(
  code: FindingCode,
  path: string | null,
  expected: Finding['expected'],
  actual: Finding['actual'],
  publicationId: string | null = null,
): Finding {
  return { code, publicationId, path, expected, actual }
}

/** A finding on one line, for a person. */
export function describeFinding({ code, publicationId, path, expected, actual }: Finding): string {
  const where = [path, publicationId === null ? null : `(${publicationId})`].filter(Boolean).join(' ')
  if (code === 'orphan_object') return `${code} ${where}: no entry names it`
  const found = actual === null ? 'there is nothing' : `found ${actual}`
  return `${code} ${where}: ${expected === null ? '' : `expected ${expected}, `}${found}`
}

/** A time of the ledger for a person; a damaged number may be no time at all. */
export function timeOf(instant: number): string {
  const date = new Date(instant)
  return Number.isNaN(date.getTime()) ? String(instant) : date.toISOString()
}

/** True for what makes an archive unsound, as opposed to a note or to bytes that could not be read. */
export function isDamage({ code, actual }: Finding): boolean {
  return code !== 'orphan_object' && !(code === 'object_unreadable' && isReadError(actual))
}

/** How a read error is told in `actual` of an `object_unreadable` finding; anything else there is damage. */
export const READ_ERROR = 'read error: '

export function isReadError(actual: Finding['actual']): boolean {
  return typeof actual === 'string' && actual.startsWith(READ_ERROR)
}

/** True when nothing is damaged, and nothing that was to be read was left unread. */
export function isSound(findings: readonly Finding[]): boolean {
  return !findings.some((one) => isDamage(one) || isReadError(one.actual))
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
  keptHead: KeptHead
  /** The sample's data folder as it was made, whatever was done to it since. */
  restored(): Promise<string>
  /** Removes the sample. */
  remove(): Promise<void>
}
