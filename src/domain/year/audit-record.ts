import type { Instant } from '../time.ts'
import type { Finding } from './finding.ts'
import { isDamage } from './finding.ts'

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
