import type { HeldLease } from './lease.ts'
import type { Day, Instant } from './time.ts'

/** What is found in a database that is only looked at. */
export interface Inspection<Facts> {
  /** As errors name the database. */
  name: string
  /** False when there is no file: nothing was ever kept. */
  exists: boolean
  migrations: { applied: number; known: number; newer: boolean }
  /** The time of the database's own machine; null for a file. */
  now: Instant | null
  /** null while migrations are missing, or when this release does not know them. */
  facts: Facts | null
}

export interface LedgerFacts {
  publications: number
  newest: { asOfDay: Day; publishedAt: Instant } | null
  /** The greatest time an entry was recorded at; null while there is none. */
  recordedAt: Instant | null
  /** The newest gaps, at most thirty, the newest first. */
  gaps: { asOfDay: Day; reason: string }[]
  lease: HeldLease | null
}

export interface FeedFacts {
  /** When the newest snapshot was taken. */
  snapshotAt: Instant | null
  /** Why the stored rows would keep the next Year from being published; null when they do not. */
  publicationProblem: string | null
}

export interface StateFacts {
  audit: { endedAt: Instant; ok: boolean; complete: boolean } | null
  lease: HeldLease | null
}
