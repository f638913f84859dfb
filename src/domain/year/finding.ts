import type { Instant } from '../time.ts'

/** Findings of an audit (docs/auditing.md), and which of them are damage. */

/** Codes of findings. `orphan_object` is a note, all others are damage. */
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
  | 'tile_mismatch'
  | 'orphan_object'

export interface Finding {
  code: FindingCode
  publicationId: string | null
  /** Location: `entries/<seq>`, `legacy_publications/<position>`, or the object's key. */
  path: string | null
  expected: string | number | null
  actual: string | number | null
}

export function finding(
  code: FindingCode,
  path: string | null,
  expected: Finding['expected'],
  actual: Finding['actual'],
  publicationId: string | null = null,
): Finding {
  return { code, publicationId, path, expected, actual }
}

/** Describes a finding on one line. */
export function describeFinding({ code, publicationId, path, expected, actual }: Finding): string {
  const where = [path, publicationId === null ? null : `(${publicationId})`].filter(Boolean).join(' ')
  if (code === 'orphan_object') return `${code} ${where}: no ledger entry refers to it`
  const found = actual === null ? 'found nothing' : `found ${actual}`
  return `${code} ${where}: ${expected === null ? '' : `expected ${expected}, `}${found}`
}

/** Formats a time of the ledger; an invalid number is printed as it is. */
export function formatTime(instant: number): string {
  const date = new Date(instant)
  return Number.isNaN(date.getTime()) ? String(instant) : date.toISOString()
}

/** True for damage, as opposed to a note or a read error. */
export function isDamage({ code, actual }: Finding): boolean {
  return code !== 'orphan_object' && !(code === 'object_unreadable' && isReadError(actual))
}

/** Prefix of `actual` in an `object_unreadable` finding that is a read error, not damage. */
export const READ_ERROR = 'read error: '

export function isReadError(actual: Finding['actual']): boolean {
  return typeof actual === 'string' && actual.startsWith(READ_ERROR)
}

/** True without damage and without read errors. */
export function isSound(findings: readonly Finding[]): boolean {
  return !findings.some((one) => isDamage(one) || isReadError(one.actual))
}

/** The counts of an audit (docs/auditing.md). */
export interface AuditCounts {
  /** No damage and no read errors. */
  ok: boolean
  /** False when the audit ended early. */
  complete: boolean
  publications: number
  /** Objects and bytes read. */
  objects: number
  bytes: number
  gaps: number
  head: { seq: number; leaf: string }
}

/** The stored result of an audit of the own archive. */
export interface AuditRecord extends AuditCounts {
  endedAt: Instant
  /** False when only some objects were selected. */
  whole: boolean
  /** Number of findings that are damage. */
  damage: number
}

/** The stored part of a report: its counts, not its findings. */
export function auditRecord(
  report: AuditCounts & { findings: readonly Finding[] },
  whole: boolean,
  endedAt: Instant,
): AuditRecord {
  const { ok, complete, publications, objects, bytes, gaps, head, findings } = report
  const damage = findings.filter(isDamage).length
  return { endedAt, ok, complete, whole, publications, objects, bytes, gaps, damage, head }
}
