import { saveKey } from '../domain/feed/source.ts'
import type { Objects, Clock, FeedStore, Ledger, TitleSource, YearReader } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { formatInstant } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'
import { headIsBehind } from '../domain/year/chain.ts'
import type { ProvedLedger } from '../domain/year/chain.ts'
import { sealYear } from '../domain/year/envelope.ts'
import type { SealedYear } from '../domain/year/envelope.ts'
import { lastCompleteDay, windowEnding } from '../domain/year/ledger.ts'
import type { EntryContent } from '../domain/year/ledger.ts'
import {
  missedDays,
  planPublication,
  timeAhead,
  windowProblem,
  withoutProvenance,
} from '../domain/year/plan.ts'
import type { FoundWindow, PublicationPlan } from '../domain/year/plan.ts'
import { coverageOf, listedEvents, rankYear } from '../domain/year/rank.ts'
import type { RankedYear, VerifiedTitle, YearEvent } from '../domain/year/rank.ts'
import { shorten } from './collect-sources.ts'
import {
  SEAL_TRIES,
  appendEntry,
  appendFailure,
  contents,
  describe,
  describeGap,
  emptyReport,
  endOf,
  messageOf,
  putHead,
  recordGap,
  withPublisherLease,
} from './publisher.ts'
import type { ChainEnd, Gap, LeasePorts, PublishReport } from './publisher.ts'

export interface PublishPorts extends LeasePorts {
  ledger: Ledger
  year: YearReader
  archive: Objects
  feed: FeedStore
  titles: TitleSource
  /** Waits between attempts; rejects when the signal is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

export interface PublishOptions {
  /** One attempt instead of all that are left. */
  once: boolean
  /** Ranks and reports; counts and writes nothing. */
  dryRun: boolean
  /** Publishes a Year whose lists are all empty. */
  allowEmpty: boolean
  retryDelayMs: number
  /** Ends the run: the lease is given back, a counted attempt stays spent. */
  signal: AbortSignal
}

/** A report, and for a failure what was thrown, so that the caller can tell whose fault it was. */
export interface PublishResult {
  report: PublishReport
  cause: unknown
}

const UNFINISHED_IMPORT =
  'an import of an archive was begun and has not ended: run `dash import archive` with the same folder again'

/**
 * Publishes the Year of the last completed UTC day (docs/publishing.md). The order of effects can be cut anywhere:
 * count the attempt, object durable, manifest row (the commit point), head, report.
 *
 * @throws Refusal `lease_held` or `lease_lost` when another publisher works, `storage_*` when the archive cannot be
 *   proved; faults before an attempt is counted
 */
export async function publishYear(ports: PublishPorts, options: PublishOptions): Promise<PublishResult> {
  const startedAt = ports.clock()
  const run = new PublishRun(ports, options, lastCompleteDay(startedAt), startedAt)
  if (options.dryRun) return run.rehearse()
  return withPublisherLease(ports, (token) => run.publish(token))
}

class PublishRun {
  readonly #ports: PublishPorts
  readonly #options: PublishOptions
  readonly #asOfDay: Day
  readonly #startedAt: Instant

  constructor(ports: PublishPorts, options: PublishOptions, asOfDay: Day, startedAt: Instant) {
    this.#ports = ports
    this.#options = options
    this.#asOfDay = asOfDay
    this.#startedAt = startedAt
  }

  async rehearse(): Promise<PublishResult> {
    const proved = await this.#prove()
    const settled = this.#mayNotPublish(proved) ?? (await this.#alreadySettled(await this.#plan(proved)))
    if (settled) return settled
    const found = await this.#readWindow()
    const problem = await this.#windowProblem(found)
    if (problem !== null) return this.#report('failed', { reason: problem })
    const { sealed } = await this.#seal(found, this.#startedAt, false)
    return this.#report('dry-run', { ...describe(sealed.manifest), publishedAt: null, ...contents(sealed) })
  }

  async publish(token: string): Promise<PublishResult> {
    const found = await this.#ports.year.read()
    let proved = found.proved
    const refused = this.#mayNotPublish(proved)
    if (refused) return refused
    // What a crash between commit and head left undone.
    if (headIsBehind(proved.entries, found.head)) await putHead(this.#ports, endOf(proved))
    proved = await this.#recordMissedDays(proved, token)
    let told: string | null = null
    for (;;) {
      const plan = await this.#plan(proved)
      if (plan.do === 'nothing') return this.#alreadySettled(plan)
      if (plan.do === 'record-gap') {
        await this.#recordSpent(proved, plan.attempts, token)
        proved = await this.#prove()
        continue
      }
      const window = await this.#readWindow()
      const problem = await this.#windowProblem(window)
      if (problem !== null) return this.#report('failed', { reason: problem })
      const result = await this.#attempt(proved, window, plan.attempt, token)
      if (result.report.outcome !== 'failed') return result
      proved = await this.#prove()
      const spent = await this.#plan(proved)
      if (spent.do === 'record-gap') {
        await this.#recordSpent(proved, spent.attempts, token)
        return { report: { ...result.report, outcome: 'gap' }, cause: result.cause }
      }
      if (this.#options.once || this.#options.signal.aborted) return result
      const seconds = this.#options.retryDelayMs / 1000
      const { reason } = result.report
      const why = reason === told ? 'failed likewise' : `failed (${reason})`
      told = reason
      this.#ports.onProgress(`attempt ${plan.attempt} ${why}; the next in ${seconds} s`)
      if (!(await this.#pause())) return result
      proved = await this.#prove()
    }
  }

  /** False when the run was told to stop. */
  async #pause(): Promise<boolean> {
    const { signal, retryDelayMs } = this.#options
    try {
      await this.#ports.sleep(retryDelayMs, signal)
      return true
    } catch (error) {
      if (!signal.aborted) throw error
      return false
    }
  }

  async #plan(proved: ProvedLedger): Promise<PublicationPlan> {
    return planPublication(this.#asOfDay, proved.entries, await this.#ports.ledger.attempts(this.#asOfDay))
  }

  /** What forbids to publish at all, found before an attempt is counted. */
  #mayNotPublish(proved: ProvedLedger): PublishResult | null {
    if (proved.unfinished) return this.#report('failed', { reason: UNFINISHED_IMPORT })
    const now = this.#ports.clock()
    const ahead = timeAhead(now, proved.entries, proved.timeline)
    if (ahead === null) return null
    const reason = `the clock says ${formatInstant(now)}, but the ledger already has ${formatInstant(ahead)}: set the clock right`
    return this.#report('failed', { reason })
  }

  async #alreadySettled(plan: Extract<PublicationPlan, { do: 'nothing' }>): Promise<PublishResult>
  async #alreadySettled(plan: PublicationPlan): Promise<PublishResult | null>
  async #alreadySettled(plan: PublicationPlan): Promise<PublishResult | null> {
    if (plan.do !== 'nothing') return null
    if (plan.because === 'already-published')
      return this.#report('already-published', describe(plan.manifest))
    const reason = describeGap(this.#asOfDay, plan, await this.#ports.ledger.attempts(this.#asOfDay))
    return this.#report('gap', { reason, attempt: plan.attempts })
  }

  async #prove(): Promise<ProvedLedger> {
    return (await this.#ports.year.read()).proved
  }

  /** Years of gaps can follow an imported archive, so the ledger is proved again only after the last of them. */
  async #recordMissedDays(proved: ProvedLedger, token: string): Promise<ProvedLedger> {
    const firstAttemptDay = await this.#ports.ledger.firstAttemptDay()
    const days = missedDays(proved, firstAttemptDay, this.#asOfDay)
    let end: ChainEnd = endOf(proved)
    for (const day of days) {
      this.#options.signal.throwIfAborted()
      const tried = firstAttemptDay !== null && day >= firstAttemptDay
      const attempts = tried ? await this.#ports.ledger.attempts(day) : []
      const gap: Gap = { asOfDay: day, reason: 'missed', attempts: attempts.length }
      end = await recordGap(this.#ports, end, gap, token)
    }
    return days.length === 0 ? proved : this.#prove()
  }

  async #recordSpent(proved: ProvedLedger, attempts: number, token: string): Promise<void> {
    const gap: Gap = { asOfDay: this.#asOfDay, reason: 'attempts_spent', attempts }
    await recordGap(this.#ports, endOf(proved), gap, token)
  }

  async #readWindow(): Promise<FoundWindow> {
    const window = windowEnding(this.#asOfDay)
    return { window, ...(await this.#ports.feed.readWindow(window)) }
  }

  async #windowProblem(found: FoundWindow): Promise<string | null> {
    const { feed, clock } = this.#ports
    const { allowEmpty } = this.#options
    const titles = await feed.verifiedTitles(withoutProvenance(found.events))
    const problem = windowProblem(found, titles, { allowEmpty, now: clock() })
    if (problem === null) return null
    return problem.message(
      await Promise.all(problem.rows.map((event) => feed.latestDay(event, this.#asOfDay))),
    )
  }

  async #attempt(
    proved: ProvedLedger,
    found: FoundWindow,
    attempt: number,
    token: string,
  ): Promise<PublishResult> {
    const { ledger, archive, clock } = this.#ports
    // A store that would take no object must not cost an attempt.
    await archive.prepare()
    if (!(await ledger.countAttempt(this.#asOfDay, attempt, clock(), token)))
      throw appendFailure('lease-lost')
    const tried: { sealed: SealedYear | null } = { sealed: null }
    try {
      await this.#commit(proved, found, token, (sealed) => (tried.sealed = sealed))
    } catch (error) {
      const after = await this.#prove().catch(() => null)
      if (after === null) throw error
      const plan = planPublication(this.#asOfDay, after.entries, [])
      const published =
        plan.do === 'nothing' && plan.because === 'already-published' ? plan.manifest.sha256 : null
      // A commit that was done although it was reported lost has published the day. Another run's has not.
      if (published === null || published !== tried.sealed?.manifest.sha256)
        return this.#failed(attempt, error)
    }
    if (tried.sealed === null) throw new Error('a publication was committed that was never sealed')
    return this.#published(attempt, tried.sealed)
  }

  /** The head comes after the commit: when it cannot be written the day is published all the same. */
  async #published(attempt: number, sealed: SealedYear): Promise<PublishResult> {
    const published = this.#report('published', {
      attempt,
      ...describe(sealed.manifest),
      ...contents(sealed),
    })
    try {
      await putHead(this.#ports, endOf(await this.#prove()))
      return published
    } catch (cause) {
      const reason = `published, but its head could not be written (${messageOf(cause)}); the next run writes it`
      return { report: { ...published.report, reason }, cause }
    }
  }

  async #failed(attempt: number, error: unknown): Promise<PublishResult> {
    const { ledger, clock } = this.#ports
    if (error instanceof Refusal && error.code === 'lease_lost') throw error
    const reason = shorten(messageOf(error))
    await ledger.failAttempt(this.#asOfDay, attempt, clock(), reason)
    return { ...this.#report('failed', { attempt, reason }), cause: error }
  }

  /** @param onSeal is told each sealing before it is stored, so that a lost answer can be recognised afterwards */
  async #commit(
    proved: ProvedLedger,
    found: FoundWindow,
    token: string,
    onSeal: (sealed: SealedYear) => void,
  ): Promise<void> {
    const { sealed: first, reseal } = await this.#seal(found, this.#ports.clock(), true)
    let sealed = first
    for (let tries = 1; ; tries += 1) {
      onSeal(sealed)
      await this.#ports.archive.put(sealed.manifest.sha256, sealed.bytes)
      const content: EntryContent = { kind: 'publication', manifest: sealed.manifest }
      const { refusal } = await appendEntry(
        this.#ports,
        endOf(proved),
        content,
        sealed.manifest.publishedAt,
        token,
      )
      if (refusal === null) return
      if (refusal !== 'too-late' || tries === SEAL_TRIES) throw appendFailure(refusal)
      sealed = reseal(this.#ports.clock())
    }
  }

  async #seal(
    { window, events, observed }: FoundWindow,
    generatedAt: Instant,
    keepTitles: boolean,
  ): Promise<{ sealed: SealedYear; reseal: (publishedAt: Instant) => SealedYear }> {
    const ranked = await rankWithTitles(this.#ports, events, keepTitles, this.#options.signal)
    if (listedEvents(ranked).length === 0 && !this.#options.allowEmpty)
      throw new Error('the Year would be empty: no event can stand in a list with the title its source gives')
    const coverage = coverageOf(window, observed, ranked)
    const reseal = (at: Instant): SealedYear => sealYear(window, ranked, coverage, generatedAt, at)
    return { sealed: reseal(this.#ports.clock()), reseal }
  }

  #report(outcome: PublishReport['outcome'], facts: Partial<PublishReport>): PublishResult {
    const report = { ...emptyReport(outcome, this.#asOfDay), ...facts }
    return { report: { ...report, durationMs: this.#ports.clock() - this.#startedAt }, cause: null }
  }
}

/** Time all titles of one ranking may take together. */
const ALL_TITLES_MS = 300_000

/** Questions open at one source at a time. */
const PER_SOURCE = 4

interface TitlePorts {
  feed: Pick<FeedStore, 'verifiedTitles' | 'saveVerifiedTitle'>
  titles: TitleSource
  clock: Clock
}

/**
 * Ranks a window, asking the owning sources for every title the ranking needs and nobody has verified yet
 * (docs/ranking.md, rule 7). Each answer is kept at once, so that none is asked for twice.
 *
 * @param keep false for a dry run, which writes nothing
 * @throws Refusal `source_unavailable` or `title_not_vouched`: the first that occurs ends the whole ranking
 */
async function rankWithTitles(
  { feed, titles, clock }: TitlePorts,
  events: readonly YearEvent[],
  keep: boolean,
  signal: AbortSignal,
): Promise<RankedYear> {
  const known = new Map<string, VerifiedTitle>()
  const deadline = clock() + ALL_TITLES_MS
  for (;;) {
    const outcome = rankYear(events, known)
    if (outcome.do === 'ranked') return outcome.year
    const stored = await feed.verifiedTitles(outcome.events)
    for (const [key, title] of stored) known.set(key, title)
    const missing = outcome.events.filter(({ source, sourceId }) => !stored.has(saveKey(source, sourceId)))
    await askAll(missing, signal, async (event, until) => {
      if (clock() > deadline) {
        throw new Refusal('source_unavailable', `the titles asked for took more than ${ALL_TITLES_MS} ms`)
      }
      const title = await titles.title(event, until)
      if (keep) await feed.saveVerifiedTitle(event.source, event.sourceId, title, clock())
      known.set(saveKey(event.source, event.sourceId), title)
    })
  }
}

/** Asks for each event, a few at a time in each source; the first failure ends the others. */
async function askAll(
  events: readonly YearEvent[],
  signal: AbortSignal,
  ask: (event: YearEvent, until: AbortSignal) => Promise<void>,
): Promise<void> {
  const queues = new Map<string, YearEvent[]>()
  for (const event of events) queues.set(event.source, [...(queues.get(event.source) ?? []), event])
  const failed = new AbortController()
  const until = AbortSignal.any([signal, failed.signal])
  const worker = async (queue: YearEvent[]): Promise<void> => {
    for (let event = queue.shift(); event; event = queue.shift()) {
      until.throwIfAborted()
      await ask(event, until)
    }
  }
  const workers = [...queues.values()].flatMap((queue) =>
    Array.from({ length: PER_SOURCE }, () => worker(queue)),
  )
  let first: { error: unknown } | null = null
  await Promise.all(
    workers.map((running) =>
      running.catch((error: unknown) => {
        first ??= { error }
        failed.abort()
      }),
    ),
  )
  throwFirst(first)
}

function throwFirst(first: { error: unknown } | null): void {
  if (first) throw first.error
}
