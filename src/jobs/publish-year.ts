import type { FeedStore } from '../domain/ports.ts'
import type { TitleSource, Objects, Ledger, YearReader } from '../domain/year/ports.ts'
import { isRefusal, messageOf } from '../domain/refusal.ts'
import type { Day, Instant } from '../domain/time.ts'
import { headIsBehind, sealEntry } from '../domain/year/chain.ts'
import type { ProvedLedger } from '../domain/year/chain.ts'
import { yearSealer } from '../domain/year/envelope.ts'
import type { SealedYear } from '../domain/year/envelope.ts'
import { lastCompleteDay, windowEnding } from '../domain/year/ledger.ts'
import type { AppendRefusal, EntryContent, Head, LedgerRow } from '../domain/year/ledger.ts'
import { COMMIT_WITHIN_MS, planPublication } from '../domain/year/plan.ts'
import type { PublicationPlan } from '../domain/year/plan.ts'
import { coverageOf, isEmptyYear } from '../domain/year/rank.ts'
import { shorten } from '../domain/text.ts'
import { leaseLost, withPublisherLease } from './lease.ts'
import type { LeasePorts } from './lease.ts'
import { prepare, readWindow, rankWithTitles } from './prepare-publication.ts'
import type { Prepared, ReadyWindow } from './prepare-publication.ts'
import { contentFacts, describeGap, manifestFacts, publishReport } from './publish-report.ts'
import type { PublishReport } from './publish-report.ts'
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
  /** True to publish a Year whose news lists are all empty. */
  allowEmpty: boolean
  /** Number of missed days that the operator confirms; null for none. */
  recordGaps: number | null
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
  /** Number of gaps that this run recorded. */
  gapsRecorded: number
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
    const progress = { gapsRecorded: 0, sealed: null, reportedReason: null }
    return { ...ports, ...options, ...facts, ...progress }
  }
  if (options.dryRun) return rehearse(await begin(''))
  // A crash from here on: the lease expires.
  return withPublisherLease(ports, async (token) => publish(await begin(token)))
}

async function publish(run: Run): Promise<PublishResult> {
  const prepared = await prepare(run)
  if ('refused' in prepared) return resultOf(run, 'failed', { reason: prepared.refused })
  // Write the head that a crash after a commit left out.
  if (headIsBehind(run.proved.entries, run.head)) await putHead(run)
  try {
    await recordMissedDays(run, prepared.missed)
    // Sign the checkpoint that a crash left out, or that of the missed days.
    await signCheckpoint(run, run.rows)
    return await makeAttempts(run, prepared)
  } catch (error) {
    // Gaps are permanent: a run that recorded some reports their number however it ends.
    if (run.gapsRecorded === 0) throw error
    return { ...resultOf(run, 'failed', { reason: messageOf(error) }), cause: error }
  }
}

/** Attempts the publication until the day is settled, once, or until no attempt is left. */
async function makeAttempts(run: Run, { window }: Prepared): Promise<PublishResult> {
  const { ledger, objects, clock, asOfDay, token, once, signal } = run
  let failed: PublishResult | null = null
  let ready = window && { found: window, problem: null }
  for (;;) {
    const plan = planPublication(asOfDay, run.proved.entries, await ledger.attempts(asOfDay))
    if (plan.do === 'record-gap') {
      await recordGap(run, { asOfDay, reason: 'attempts_spent', attempts: plan.attempts })
      await signCheckpoint(run, run.rows)
      if (failed) {
        const { gapsRecorded } = run
        return { ...failed, report: { ...failed.report, outcome: 'gap', gapsRecorded } }
      }
    } else if (failed) {
      if (once || signal.aborted || !(await pause(run, failed))) return failed
      failed = null
    } else if (plan.do === 'nothing') {
      return settled(run, plan)
    } else {
      const { found, problem } = ready ?? (await readWindow(run))
      ready = null
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

async function attempt(run: Run, found: ReadyWindow, number: number): Promise<PublishResult> {
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
  if (isRefusal(error, 'lease_lost')) throw error
  const reason = shorten(messageOf(error))
  await run.ledger.failAttempt(run.asOfDay, number, run.clock(), reason)
  return { ...resultOf(run, 'failed', { attempt: number, reason }), cause: error }
}

/** Most sealings when commits are too late; on a slower machine the attempt fails. */
const SEAL_TRIES = 5

async function commit(run: Run, found: ReadyWindow): Promise<void> {
  run.sealed = null
  const sealAt = await sealing(run, found)
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
  const prepared = await prepare(run)
  if ('refused' in prepared) return resultOf(run, 'failed', { reason: prepared.refused })
  if (prepared.window === null) {
    const { plan } = prepared
    if (plan.do === 'nothing') return settled(run, plan)
    return settled(run, { ...plan, do: 'nothing', because: 'gap', reason: 'attempts_spent' })
  }
  const { missed, window } = prepared
  const sealAt = await sealing(run, window)
  const sealed = sealAt(run.clock())
  const gaps = missed.length === 1 ? '1 gap' : `${missed.length} gaps`
  return resultOf(run, 'dry-run', {
    ...manifestFacts(sealed.manifest),
    publishedAt: null,
    ...contentFacts(sealed),
    reason: missed.length === 0 ? null : `${gaps} would be recorded`,
  })
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
async function recordMissedDays(run: Run, missed: readonly Day[]): Promise<void> {
  if (missed.length === 0) return
  // A store that refuses writes must not leave a gap without its head.
  await run.objects.prepare()
  const counted = await run.ledger.attempts()
  for (const day of missed) {
    run.signal.throwIfAborted()
    const attempts = counted.filter((each) => each.asOfDay === day).length
    await recordGap(run, { asOfDay: day, reason: 'missed', attempts })
  }
  await prove(run)
}

/** Records a gap. A crash between entry and head: the next run writes the head. */
async function recordGap(run: Run, gap: Omit<Extract<EntryContent, { kind: 'gap' }>, 'kind'>): Promise<void> {
  const refusal = await append(run, { kind: 'gap', ...gap }, run.clock())
  if (refusal !== null) throw appendFailure(refusal)
  run.gapsRecorded += 1
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
  const { token, clock, end, asOfDay } = run
  // The clock was set right after the run began: the day has not ended.
  if (clock() < windowEnding(asOfDay).windowEnd) return 'clock-went-back'
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

/** Returns the function that seals a window for a publication time. Titles that are not verified are fetched first. */
async function sealing(run: Run, found: ReadyWindow): Promise<(publishedAt: Instant) => SealedYear> {
  if (found.seal) return found.seal
  const { window, events, observed, titles } = found
  const generatedAt = run.clock()
  const ranked = await rankWithTitles(run, events, titles)
  if (isEmptyYear(ranked) && !run.allowEmpty)
    throw new Error('the Year would be empty: no news event has a title that its source confirms')
  return yearSealer(window, ranked, coverageOf(window, observed, ranked), generatedAt)
}

function resultOf(
  { startedAt, clock, gapsRecorded }: Run,
  outcome: PublishReport['outcome'],
  facts: Partial<PublishReport>,
): PublishResult {
  return { report: publishReport(outcome, startedAt, clock(), { gapsRecorded, ...facts }), cause: null }
}
