import type { ArchiveAuditor, Clock, LedgerAuditor } from '../domain/ports.ts'
import type { Day } from '../domain/time.ts'
import type { Sample } from '../domain/year/audit-sample.ts'
import type { Head } from '../domain/year/ledger.ts'

/** What an audit asks of the outside. */
export interface VerifyPorts {
  ledger: LedgerAuditor
  archive: ArchiveAuditor
  clock: Clock
  random: () => number
  onProgress: (progress: VerifyProgress) => void
  /** Something an operator should know that is no finding. */
  onNote: (message: string) => void
}

/** What is to be audited, and how. */
export interface VerifyOptions {
  sample: Sample | null
  since: Day | null
  /** A head kept from before, and the file it was kept in. */
  expectedHead: (Head & { path: string }) | null
  /** Proves every payload as a server would before serving it, not only the newest. */
  payloads: boolean
  jobs: number
  signal: AbortSignal
}

/** How far an audit has come. */
export interface VerifyProgress {
  objects: number
  ofObjects: number
  bytes: number
  findings: number
}
