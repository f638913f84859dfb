import { H3 } from 'h3'
import { Registry } from 'prom-client'
import type { JobState } from '../../domain/jobs.ts'
import type { State, Clock } from '../../domain/ports.ts'
import { dayOf, startOfDay } from '../../domain/time.ts'
import type { AuditRecord } from '../../domain/year/finding.ts'
import type { Readers, ReadinessChecks } from '../app.ts'
import { NO_STORE, respondJson, respondText } from '../respond.ts'
import type { Log } from '../route.ts'
import { singleFlight, withTimeout } from '../single-flight.ts'
import { exposition } from './instruments.ts'
import type { Sample, Meter } from './instruments.ts'

/** Metrics read from a store, which may fail. */
type MetricSource = () => Promise<Sample[]>

export interface ScrapePorts {
  meters: readonly Meter[]
  /** By the `source` label of `dash_scrape_source_up`. */
  sources: Readonly<Record<string, MetricSource>>
  /** Timeout of a source, in milliseconds; a late source is left out. */
  sourceTimeoutMs: number
  log: Log
}

/**
 * Returns a function that makes the body of a scrape. It never fails and never exceeds the timeout. A source that fails
 * is reported as down and its metrics are left out, so that no stale value is reported.
 */
export function scraper({ meters, sources, sourceTimeoutMs, log }: ScrapePorts): () => Promise<string> {
  const failing = new Set<string>()
  const readSource = async ([source, read]: [string, MetricSource]): Promise<Sample[]> => {
    const up = (value: number): Sample => ['dash_scrape_source_up', value, { source }]
    try {
      const samples = await withTimeout(read(), sourceTimeoutMs)
      const invalid = samples.find(([, value]) => !Number.isFinite(value))
      if (invalid) throw new Error(`${invalid[0]} has the value ${invalid[1]}`)
      failing.delete(source)
      return [...samples, up(1)]
    } catch (error) {
      // Log the first failure only: the metric reports the rest.
      if (!failing.has(source)) log.warn({ source, err: error }, 'metrics cannot be read')
      failing.add(source)
      return [up(0)]
    }
  }
  return singleFlight(async () => {
    const samples = await Promise.all(Object.entries(sources).map(readSource))
    const texts = [...meters.map((meter) => meter.metrics()), exposition(samples.flat())]
    return (await Promise.all(texts)).join('\n')
  })
}

/** Readers of the stores whose state becomes metrics. */
export interface StoredMetricsPorts {
  readers: Readers
  audits: Pick<State['audits'], 'newest'>
  jobs: Pick<State['jobs'], 'states'>
  budget: { ledger: Pick<State['chat'], 'spending'>; perDayMicroUsd: number }
  checks: ReadinessChecks
  clock: Clock
}

/** Metrics of the stores, read for each scrape by the verified readers of the interfaces. */
export function storedMetrics(ports: StoredMetricsPorts): ScrapePorts['sources'] {
  const { readers, audits, jobs, budget, checks, clock } = ports
  return {
    archive: () => archiveMetrics(readers),
    async snapshots() {
      const newest = await readers.snapshots.newest('trending')
      if (!newest) return []
      const { generatedAt } = newest.snapshot
      return [['dash_snapshot_newest_timestamp_seconds', generatedAt / 1000]]
    },
    async recommendation() {
      const { run, seed } = await readers.recommendation()
      const isSeed: Sample = ['dash_recommendation_seed', Number(seed)]
      const updatedAt = Date.parse(run.updatedAt) / 1000
      return seed ? [isSeed] : [['dash_recommendation_timestamp_seconds', updatedAt], isSeed]
    },
    audits: async () => auditMetrics(await audits.newest()),
    jobs: async () => jobMetrics(await jobs.states()),
    async budget() {
      const { settled, reserved } = await budget.ledger.spending(dayOf(clock()))
      return [
        ['dash_chat_budget_usd', budget.perDayMicroUsd / 1_000_000],
        ['dash_chat_budget_spent_usd', settled / 1_000_000],
        ['dash_chat_budget_reserved_usd', reserved / 1_000_000],
      ]
    },
    stores: () => storeMetrics(checks),
  }
}

async function archiveMetrics({ publications }: Readers): Promise<Sample[]> {
  const { entries, timeline } = await publications.entries()
  const newest = timeline.at(-1)?.manifest
  const counts: Sample[] = [
    ['dash_publications', timeline.length],
    ['dash_gaps', entries.filter(({ kind }) => kind === 'gap').length],
  ]
  if (!newest) return counts
  const day = startOfDay(newest.asOfDay)
  return [
    ...counts,
    ['dash_publication_newest_day_timestamp_seconds', day / 1000],
    ['dash_publication_newest_timestamp_seconds', newest.publishedAt / 1000],
  ]
}

/** Samples of the last audit; none if there is no record. */
function auditMetrics(audit: AuditRecord | null): Sample[] {
  if (audit === null) return []
  return [
    ['dash_audit_timestamp_seconds', audit.endedAt / 1000],
    ['dash_audit_ok', Number(audit.ok)],
    ['dash_audit_complete', Number(audit.complete)],
    ['dash_audit_whole', Number(audit.whole)],
    ['dash_audit_damage_findings', audit.damage],
    ['dash_audit_objects', audit.objects],
    ['dash_audit_bytes', audit.bytes],
  ]
}

function jobMetrics(states: readonly JobState[]): Sample[] {
  return states.flatMap(({ job, startedAt, endedAt, exitCode, lastSuccessAt }): Sample[] => {
    const labels = { command: job }
    return [
      ['dash_job_last_run_timestamp_seconds', endedAt / 1000, labels],
      // 0 for a job that never succeeded, so that alerts on its age fire.
      ['dash_job_last_success_timestamp_seconds', (lastSuccessAt ?? 0) / 1000, labels],
      ['dash_job_last_exit_code', exitCode, labels],
      ['dash_job_last_duration_seconds', (endedAt - startedAt) / 1000, labels],
    ]
  })
}

async function storeMetrics(checks: ReadinessChecks): Promise<Sample[]> {
  return Promise.all(
    Object.entries(checks).map(async ([store, check]): Promise<Sample> => {
      const value = await check().then(
        () => 1,
        () => 0,
      )
      return ['dash_store_up', value, { store }]
    }),
  )
}

/** The application of the metrics' own listener, without a socket (docs/monitoring.md). */
export function createMetricsApp(scrape: () => Promise<string>): H3 {
  const app = new H3({
    silent: true,
    onError: (error, event) => {
      const status = error.status < 500 ? error.status : 500
      return respondJson(event, status, NO_STORE, { error: status === 404 ? 'not_found' : 'internal_error' })
    },
  })
  const type = Registry.PROMETHEUS_CONTENT_TYPE
  app.get('/metrics', async (event) => respondText(event, 200, NO_STORE, type, await scrape()))
  return app
}
