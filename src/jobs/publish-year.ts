import { listedEvents } from '../domain/feed/columns.ts'
import type { Objects, FeedStore, Ledger, TitleSource, YearReader } from '../domain/ports.ts'
import { Refusal, messageOf } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'
import { headIsBehind, sealEntry } from '../domain/year/chain.ts'
import type { ProvedLedger } from '../domain/year/chain.ts'
import { sealYear } from '../domain/year/envelope.ts'
import type { SealedYear } from '../domain/year/envelope.ts'
import { lastCompleteDay, windowEnding } from '../domain/year/ledger.ts'
import type { AppendRefusal, EntryContent, Head, LedgerRow } from '../domain/year/ledger.ts'
import {
  COMMIT_WITHIN_MS,
  missedDays,
  planPublication,
  laterTimeInLedger,
  windowProblem,
  withoutProvenance,
} from '../domain/year/plan.ts'
import type { FoundWindow, PublicationPlan } from '../domain/year/plan.ts'
import { coverageOf } from '../domain/year/rank.ts'
import { shorten } from '../domain/text.ts'
import { leaseLost, withPublisherLease } from './lease.ts'
import type { LeasePorts } from './lease.ts'
import { contentFacts, describeGap, manifestFacts, publishReport } from './publish-report.ts'
import type { PublishReport } from './publish-report.ts'
import { rankWithTitles } from './rank-with-titles.ts'
import { readContinued, signCheckpoint } from './sign-checkpoint.ts'
import type { SignPorts } from './sign-checkpoint.ts'

export interface PublishPorts extends LeasePorts, SignPorts {
  ledger: Ledger
  year: YearReader
  objects: Objects
  feed: FeedStore
  titles: TitleSource
  /** Waits between attempts; rejects when the signal is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

export interface PublishOptions {
  /** True for one attempt instead of all remaining ones. */
  once: boolean
  /** True to rank and report without counting an attempt or writing. */
  dryRun: boolean
  /** True to publish a Year whose lists are all empty. */
  allowEmpty: boolean
  retryDelayMs: number
  /** Ends the run: the lease is released, a counted attempt stays counted. */
  signal: AbortSignal
}

/** A report, and the error of a failure, so that the caller can determine the responsible side. */
export interface PublishResult {
  report: PublishReport
  cause: unknown
}

/** Input and state of a run. */
interface Run extends PublishPorts, PublishOptions {
  startedAt: Instant
  asOfDay: Day
  /** Token of the lease. */
  token: string
  /** The ledger at its last proof, and the newest head at the start. */
  proved: ProvedLedger
  /** Every row of the ledger, including those that this run appended. */
  rows: LedgerRow[]
  head: Head | null
  /** End of the chain, which the next entry continues. */
  end: Pick<Head, 'seq' | 'leaf'>
  /** The last stored publication. */
  sealed: SealedYear | null
  /** Reason of the last reported failure. */
  reportedReason: string | null
}

/**
 * Publishes the Year of the last complete UTC day (docs/publishing.md). The run can be interrupted anywhere.
 *
 * @throws Refusal `lease_held` or `lease_lost` when another publisher is running, `storage_*` when the archive cannot
 *   be proved or a signed checkpoint continued; faults before an attempt is counted
 */
export async function publishYear(ports: PublishPorts, options: PublishOptions): Promise<PublishResult> {
  const startedAt = ports.clock()
  const begin = async (token: string): Promise<Run> => {
    const { proved, contents, head } = await readContinued(ports)
    const asOfDay = lastCompleteDay(startedAt)
    const facts = { startedAt, asOfDay, token, proved, rows: contents.rows, head, end: endOf(proved) }
    return { ...ports, ...options, ...facts, sealed: null, reportedReason: null }
  }
  if (options.dryRun) return rehearse(await begin(''))
  // A crash from here on: the lease expires.
  return withPublisherLease(ports, async (token) => publish(await begin(token)))
}

async function publish(run: Run): Promise<PublishResult> {
  const { ledger, objects, clock, asOfDay, token, once, signal } = run
  const reason = forbidden(run)
  if (reason !== null) return resultOf(run, 'failed', { reason })
  // Write the head that a crash after a commit left out.
  if (headIsBehind(run.proved.entries, run.head)) await putHead(run)
  await recordMissedDays(run)
  // Sign the checkpoint that a crash left out, or that of the missed days.
  await signCheckpoint(run, run.rows)
  let failed: PublishResult | null = null
  for (;;) {
    const plan = planPublication(asOfDay, run.proved.entries, await ledger.attempts(asOfDay))
    if (plan.do === 'record-gap') {
      await recordGap(run, { asOfDay, reason: 'attempts_spent', attempts: plan.attempts })
      await signCheckpoint(run, run.rows)
      if (failed) return { ...failed, report: { ...failed.report, outcome: 'gap' } }
    } else if (failed) {
      if (once || signal.aborted || !(await pause(run, failed))) return failed
      failed = null
    } else if (plan.do === 'nothing') {
      return settled(run, plan)
    } else {
      const { found, problem } = await readWindow(run)
      if (problem !== null) return resultOf(run, 'failed', { reason: problem })
      // A store that refuses writes must not cost an attempt.
      await objects.prepare()
      // A crash from here on: the attempt stays counted.
      if (!(await ledger.countAttempt(asOfDay, plan.attempt, clock(), token))) throw leaseLost()
      const attempted = await attempt(run, found, plan.attempt)
      if (attempted.report.outcome !== 'failed') return attempted
      failed = attempted
    }
    await prove(run)
  }
}

async function attempt(run: Run, found: FoundWindow, number: number): Promise<PublishResult> {
  try {
    await commit(run, found)
  } catch (error) {
    const after = await run.year.read().catch(() => null)
    if (after === null) throw error
    // A commit that succeeded although it was reported lost has published the day; another run's commit has not.
    if (!isPublished(after.proved, run.sealed)) return fail(run, number, error)
  }
  if (run.sealed === null) throw new Error('a publication was committed without a seal')
  const facts = { attempt: number, ...manifestFacts(run.sealed.manifest), ...contentFacts(run.sealed) }
  const published = resultOf(run, 'published', facts)
  let unwritten = 'head'
  try {
    await prove(run)
    // A crash before it: the day is published, and the next run writes the head.
    await putHead(run)
    unwritten = 'checkpoint'
    // After a crash before this line, the next run signs the checkpoint.
    await signCheckpoint(run, run.rows)
    return published
  } catch (cause) {
    const reason = `published, but its ${unwritten} could not be written (${messageOf(cause)}); the next run writes it`
    return { report: { ...published.report, reason }, cause }
  }
}

async function fail(run: Run, number: number, error: unknown): Promise<PublishResult> {
  if (error instanceof Refusal && error.code === 'lease_lost') throw error
  const reason = shorten(messageOf(error))
  await run.ledger.failAttempt(run.asOfDay, number, run.clock(), reason)
  return { ...resultOf(run, 'failed', { attempt: number, reason }), cause: error }
}

/** Most sealings when commits are too late; on a slower machine the attempt fails. */
const SEAL_TRIES = 5

async function commit(run: Run, found: FoundWindow): Promise<void> {
  run.sealed = null
  const sealAt = await sealing(run, found, run.clock())
  for (let tries = 1; ; tries += 1) {
    const sealed = sealAt(run.clock())
    run.sealed = sealed
    const { manifest, bytes } = sealed
    // A crash after this leaves an object without a reference.
    await run.objects.put(manifest.sha256, bytes)
    // The commit point: a crash after it leaves a published day.
    const refusal = await append(run, { kind: 'publication', manifest }, manifest.publishedAt)
    if (refusal === null) return
    if (refusal !== 'too-late' || tries === SEAL_TRIES) throw appendFailure(refusal)
  }
}

function isPublished({ entries }: ProvedLedger, sealed: SealedYear | null): boolean {
  const digest = sealed?.manifest.sha256
  return entries.some((entry) => entry.kind === 'publication' && entry.manifest.sha256 === digest)
}

/** A dry run: ranks and reports, writes nothing. */
async function rehearse(run: Run): Promise<PublishResult> {
  const reason = forbidden(run)
  if (reason !== null) return resultOf(run, 'failed', { reason })
  const plan = planPublication(run.asOfDay, run.proved.entries, await run.ledger.attempts(run.asOfDay))
  if (plan.do === 'nothing') return settled(run, plan)
  const { found, problem } = await readWindow(run)
  if (problem !== null) return resultOf(run, 'failed', { reason: problem })
  const sealAt = await sealing(run, found, run.startedAt)
  const sealed = sealAt(run.clock())
  return resultOf(run, 'dry-run', {
    ...manifestFacts(sealed.manifest),
    publishedAt: null,
    ...contentFacts(sealed),
  })
}

const UNFINISHED_IMPORT =
  'the import of an archive is not finished; run `dash import archive` with the same folder again'

/** The reason why nothing may be published, before an attempt is counted; null when publishing is allowed. */
function forbidden({ proved, clock }: Run): string | null {
  if (proved.unfinished) return UNFINISHED_IMPORT
  const now = clock()
  const ahead = laterTimeInLedger(now, proved.entries, proved.timeline)
  if (ahead === null) return null
  const times = `the clock says ${formatInstant(now)}, but the ledger already has an entry of ${formatInstant(ahead)}`
  return `${times}; correct the clock`
}

async function settled(run: Run, plan: Extract<PublicationPlan, { do: 'nothing' }>): Promise<PublishResult> {
  if (plan.because === 'already-published')
    return resultOf(run, 'already-published', manifestFacts(plan.manifest))
  const reason = describeGap(run.asOfDay, plan, await run.ledger.attempts(run.asOfDay))
  return resultOf(run, 'gap', { reason, attempt: plan.attempts })
}

/** Waits before the next attempt; false when the run was aborted. */
async function pause(run: Run, { report: { attempt: number, reason } }: PublishResult): Promise<boolean> {
  const why = reason === run.reportedReason ? 'failed for the same reason' : `failed (${reason})`
  run.reportedReason = reason
  run.onProgress(`attempt ${number} ${why}; next attempt in ${run.retryDelayMs / 1000} s`)
  try {
    await run.sleep(run.retryDelayMs, run.signal)
    return true
  } catch (error) {
    if (!run.signal.aborted) throw error
    return false
  }
}

/**
 * Records missed days. Years of gaps can follow an imported archive, so that the ledger is proved again only after the
 * last one.
 */
async function recordMissedDays(run: Run): Promise<void> {
  const firstAttemptDay = await run.ledger.firstAttemptDay()
  const days = missedDays(run.proved, firstAttemptDay, run.asOfDay)
  for (const day of days) {
    run.signal.throwIfAborted()
    const tried = firstAttemptDay !== null && day >= firstAttemptDay
    const attempts = tried ? await run.ledger.attempts(day) : []
    await recordGap(run, { asOfDay: day, reason: 'missed', attempts: attempts.length })
  }
  if (days.length > 0) await prove(run)
}

/** Records a gap. A crash between entry and head: the next run writes the head. */
async function recordGap(run: Run, gap: Omit<Extract<EntryContent, { kind: 'gap' }>, 'kind'>): Promise<void> {
  const refusal = await append(run, { kind: 'gap', ...gap }, run.clock())
  if (refusal !== null) throw appendFailure(refusal)
  await putHead(run)
}

function endOf({ entries, lastLeaf }: ProvedLedger): Run['end'] {
  return { seq: entries.length, leaf: lastLeaf }
}

async function prove(run: Run): Promise<void> {
  const { proved, contents } = await run.year.read()
  run.proved = proved
  run.rows = contents.rows
  run.end = endOf(proved)
}

/**
 * Appends one entry. The append itself checks that the chain still ends at the previous one.
 *
 * @returns the refusal, or null
 */
async function append(run: Run, content: EntryContent, recordedAt: Instant): Promise<AppendRefusal | null> {
  const { token, clock, end } = run
  const row = sealEntry(content, end.seq + 1, recordedAt, end.leaf)
  const refusal = await run.ledger.append(row, { token, clock, withinMs: COMMIT_WITHIN_MS })
  if (refusal !== null) return refusal
  run.end = row
  run.rows = [...run.rows, row]
  return null
}

async function putHead({ objects, clock, end: { seq, leaf } }: Run): Promise<void> {
  await objects.putHead({ seq, leaf, time: clock() })
}

function appendFailure(refusal: AppendRefusal): Error {
  switch (refusal) {
    case 'lease-lost':
    case 'ledger-moved':
      return leaseLost()
    case 'clock-went-back':
      return new Error('the clock went backwards during the publication')
    case 'too-late':
      return new Error(
        `the commit was more than ${COMMIT_WITHIN_MS} ms after the publication time, ${SEAL_TRIES} times`,
      )
  }
}

async function readWindow({ feed, clock, asOfDay, allowEmpty }: Run): Promise<{
  found: FoundWindow
  problem: string | null
}> {
  const window = windowEnding(asOfDay)
  const read = await feed.readWindow(window)
  const titles = await feed.verifiedTitles(withoutProvenance(read.events))
  const found = { window, ...read, titles }
  const problem = windowProblem(found, { allowEmpty, now: clock() })
  const days = await Promise.all((problem?.rows ?? []).map((event) => feed.latestDay(event, asOfDay)))
  return { found, problem: problem?.message(days) ?? null }
}

/** Ranks a window; the returned function seals it for a publication time. */
async function sealing(
  run: Run,
  { window, events, observed, titles }: FoundWindow,
  generatedAt: Instant,
): Promise<(publishedAt: Instant) => SealedYear> {
  const ranked = await rankWithTitles(run, events, titles)
  if (listedEvents([ranked]).length === 0 && !run.allowEmpty)
    throw new Error('the Year would be empty: no event has a title that its source confirms')
  const coverage = coverageOf(window, observed, ranked)
  return (publishedAt) => sealYear(window, ranked, coverage, generatedAt, publishedAt)
}

function resultOf(
  { startedAt, clock }: Run,
  outcome: PublishReport['outcome'],
  facts: Partial<PublishReport>,
): PublishResult {
  return { report: publishReport(outcome, startedAt, clock(), facts), cause: null }
}
