import type { ClockCheck } from './clock-check.ts'
import type { Day, Instant } from './time.ts'
import type { AuditRecord } from './year/finding.ts'

/** Result of a read-only inspection of a database. */
export interface Inspection<Facts> {
  /** Name of the database as errors show it. */
  name: string
  /** False when the database file does not exist. */
  exists: boolean
  migrations: { applied: number; known: number; newer: boolean }
  /** Time of the database server; null for a file. */
  now: Instant | null
  /** null while migrations are missing, or when the database belongs to a newer release. */
  facts: Facts | null
}

export interface LedgerFacts {
  publications: number
  newest: { asOfDay: Day; publishedAt: Instant } | null
  /** Time of the latest entry; null while there is none. */
  recordedAt: Instant | null
  /** The newest gaps, at most thirty, the newest first. */
  gaps: { asOfDay: Day; reason: string }[]
}

export interface FeedFacts {
  /** Time of the newest snapshot. */
  snapshotAt: Instant | null
  /** The problem in the stored rows that would prevent the next publication; null without one. */
  publicationProblem: string | null
  /** False if searches are refused: the index is being rebuilt, or has to be. */
  isIndexed: boolean
  /** The clock as the newest `collect` found it; null if none compared it. */
  clockCheck: ClockCheck | null
}

export interface StateFacts {
  audit: Pick<AuditRecord, 'endedAt' | 'ok' | 'damage'> | null
}
