import type { LeaseHolder } from '../domain/job-run.ts'
import type { Objects, Clock, LeaseKeeper, Ledger } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'
import { sealEntry } from '../domain/year/chain.ts'
import type { ProvedLedger } from '../domain/year/chain.ts'
import { countDistinctItems, countItems } from '../domain/year/envelope.ts'
import type { SealedYear } from '../domain/year/envelope.ts'
import { lastCompleteDay } from '../domain/year/ledger.ts'
import type {
  Attempt,
  EntryContent,
  GapReason,
  Head,
  LedgerRow,
  Manifest,
  AppendRefusal,
} from '../domain/year/ledger.ts'
import { COMMIT_WITHIN_MS, LEASE_MS } from '../domain/year/plan.ts'
import type { Coverage } from '../domain/year/schema.ts'

/** The writing of entries and their heads by whoever holds the lease (docs/publishing.md). */
interface EntryPorts {
  ledger: Pick<Ledger, 'append'>
  archive: Pick<Objects, 'putHead'>
  clock: Clock
}

/** Where a chain stands: the sequence number and the leaf that the next entry continues. */
export type ChainEnd = Pick<Head, 'seq' | 'leaf'>

export type Gap = Omit<Extract<EntryContent, { kind: 'gap' }>, 'kind'>

/** Sealing again when a commit came too late is bounded; a machine this slow fails the attempt instead. */
export const SEAL_TRIES = 5

export function endOf({ entries, lastLeaf }: ProvedLedger): ChainEnd {
  return { seq: entries.length, leaf: lastLeaf }
}

/**
 * Appends one entry. The append itself checks that the chain still ends where it is continued.
 *
 * @returns the row that was to be appended, and why it was not, or null
 */
export async function appendEntry(
  { ledger, clock }: EntryPorts,
  end: ChainEnd,
  content: EntryContent,
  recordedAt: Instant,
  token: string,
): Promise<{ refusal: AppendRefusal | null; row: LedgerRow }> {
  const row = sealEntry(content, end.seq + 1, recordedAt, end.leaf)
  return { refusal: await ledger.append(row, { token, clock, withinMs: COMMIT_WITHIN_MS }), row }
}

/** Writes the head of the entry a chain ends with. */
export async function putHead({ archive, clock }: EntryPorts, { seq, leaf }: ChainEnd): Promise<void> {
  await archive.putHead({ seq, leaf, time: clock() })
}

/**
 * Records a day as one without a publication, and its head.
 *
 * @returns where the chain stands then
 * @throws Refusal `lease_lost`, and faults; nothing else stands in for an entry that was not appended
 */
export async function recordGap(
  ports: EntryPorts,
  end: ChainEnd,
  gap: Gap,
  token: string,
): Promise<ChainEnd> {
  const { refusal, row } = await appendEntry(ports, end, { kind: 'gap', ...gap }, ports.clock(), token)
  if (refusal !== null) throw appendFailure(refusal)
  await putHead(ports, row)
  return row
}

/** What a refused append ends its attempt, or its run, with. */
export function appendFailure(refusal: AppendRefusal): Error {
  switch (refusal) {
    case 'lease-lost':
    case 'ledger-moved':
      return leaseLost()
    case 'clock-went-back':
      return new Error('the clock went back while the publication was made')
    case 'too-late':
      return new Error(
        `the commit came more than ${COMMIT_WITHIN_MS} ms after its publication time, ${SEAL_TRIES} times`,
      )
  }
}

export interface LeasePorts extends HolderPorts {
  ledger: Pick<Ledger, 'takeLease' | 'renewLease' | 'releaseLease'>
}

/**
 * Runs work that writes to the ledger under the publisher's lease, renewed until it ends (docs/publishing.md).
 *
 * @throws Refusal `lease_held` when somebody else has the lease; whatever the work throws
 */
export function withPublisherLease<T>(ports: LeasePorts, work: (token: string) => Promise<T>): Promise<T> {
  return withLease(ports.ledger, 'writing to the ledger', ports, work)
}

/** What a run ends with whose lease another took over. */
export function leaseLost(): Refusal<LeaseRefusal> {
  return new Refusal('lease_lost', 'another publisher took over while this one worked')
}

/** Who takes a lease, and how it is watched. */
export interface HolderPorts {
  clock: Clock
  holder: LeaseHolder
  /** True when a lease holder's process is known to have died. */
  isDead: (process: string) => boolean
  /** One line for an operator who watches. */
  onProgress: (message: string) => void
}

/** The lease is somebody else's. */
export type LeaseRefusal = 'lease_held' | 'lease_lost'

/**
 * Runs work under a lease, renewed until it ends.
 *
 * @param doing what a holder does, for whoever is refused
 * @throws Refusal `lease_held` when somebody else has the lease; whatever the work throws
 */
export async function withLease<T>(
  lease: LeaseKeeper,
  doing: string,
  { clock, holder, isDead, onProgress }: HolderPorts,
  work: (token: string) => Promise<T>,
): Promise<T> {
  const grant = await lease.takeLease(holder, clock(), LEASE_MS, isDead)
  if (!grant.granted) {
    const { heldBy, since, until } = grant
    throw new Refusal<LeaseRefusal>(
      'lease_held',
      `${heldBy} has been ${doing} since ${formatInstant(since)}; its lease runs until ${formatInstant(until)}`,
    )
  }
  const renewal = setInterval(() => {
    // A lease that cannot be renewed is noticed by whatever it guards, which checks it.
    lease.renewLease(grant.token, clock(), LEASE_MS).catch(() => undefined)
  }, LEASE_MS / 4)
  try {
    return await work(grant.token)
  } finally {
    clearInterval(renewal)
    // The outcome stands whether or not the lease can be given back: it runs out by itself.
    await lease.releaseLease(grant.token).catch((error: unknown) => {
      onProgress(`the lease could not be given back and runs out by itself: ${messageOf(error)}`)
    })
  }
}

/** One line: a refusal's detail, or what lies at the bottom of a fault, since wrappers repeat whole statements. */
export function messageOf(error: unknown): string {
  if (error instanceof Refusal) return error.detail ?? error.code
  if (error instanceof Error && error.cause instanceof Error) return messageOf(error.cause)
  return error instanceof Error ? error.message : String(error)
}

/** The JSON result of `publish-year` (docs/publishing.md). */
export interface PublishReport {
  job: 'publish-year'
  outcome: 'published' | 'already-published' | 'failed' | 'gap' | 'dry-run'
  asOfDay: Day
  attempt: number | null
  publicationId: string | null
  sha256: string | null
  byteSize: number | null
  publishedAt: string | null
  items: Record<string, number> | null
  /** Items of all lists together, each counted once. */
  distinctItems: number | null
  coverage: Coverage | null
  durationMs: number
  reason: string | null
}

/** The report of a run that ended before it could make one, for the same as-of day. */
export function failedReport(now: Instant, startedAt: Instant, reason: string): PublishReport {
  return { ...emptyReport('failed', lastCompleteDay(startedAt)), durationMs: now - startedAt, reason }
}

/** A report with nothing in it but its outcome and day. */
export function emptyReport(outcome: PublishReport['outcome'], asOfDay: Day): PublishReport {
  return {
    job: 'publish-year',
    outcome,
    asOfDay,
    attempt: null,
    publicationId: null,
    sha256: null,
    byteSize: null,
    publishedAt: null,
    items: null,
    distinctItems: null,
    coverage: null,
    durationMs: 0,
    reason: null,
  }
}

/** Why a day is a gap, and what to do about it, in one line that begins with the recorded reason. */
export function describeGap(
  asOfDay: Day,
  { reason, attempts }: { reason: GapReason; attempts: number },
  tried: readonly Attempt[],
): string {
  const mend = 'the day stays a gap, so mend the cause before the next day is published'
  if (reason === 'missed') return `missed: no run published ${asOfDay} in time; ${mend}`
  const failure = tried.at(-1)?.reason ?? null
  const last = failure === null ? 'a run that died gave no reason' : `the last failed with: ${failure}`
  return `attempts_spent: all ${attempts} attempts for ${asOfDay} are spent; ${last}; ${mend}`
}

/** What a report says of a manifest. */
export function describe(manifest: Manifest): Partial<PublishReport> {
  const { publicationId, sha256, byteSize, publishedAt } = manifest
  return { publicationId, sha256, byteSize, publishedAt: formatInstant(publishedAt) }
}

/** What a report says of a publication's contents. */
export function contents({ envelope }: SealedYear): Partial<PublishReport> {
  const { feed } = envelope
  return { items: countItems(feed), distinctItems: countDistinctItems(feed), coverage: envelope.coverage }
}
