import { H3 } from 'h3'
import { Registry } from 'prom-client'
import type { State, Clock } from '../../domain/ports.ts'
import { dayOf, startOfDay } from '../../domain/time.ts'
import type { AuditRecord } from '../../domain/year/finding.ts'
import type { Readers, ReadinessChecks } from '../app.ts'
import { NO_STORE, respondJson, respondText } from '../respond.ts'
import type { Log } from '../route.ts'
import { singleFlight, withTimeout } from '../single-flight.ts'
import { exposition, jobMetrics } from './catalogue.ts'
import type { Reading } from './catalogue.ts'
import type { Meter } from './instruments.ts'

/** Metrics that are read from somewhere, and may not come. */
type MetricSource = () => Promise<Reading[]>

export interface ScrapePorts {
  meters: readonly Meter[]
  /** By the name under which `dash_scrape_source_up` tells of each. */
  sources: Readonly<Record<string, MetricSource>>
  /** How long a source may take; what has not come by then is left out. */
  sourceMs: number
  log: Log
}

/**
 * Makes what a scrape is answered with: never an error and never late, however the stores do. A source that fails is
 * told as down and its metrics are left out, so that no old number stands for one that cannot be read.
 */
export function scraper({ meters, sources, sourceMs, log }: ScrapePorts): () => Promise<string> {
  const failing = new Set<string>()
  const readSource = async ([source, read]: [string, MetricSource]): Promise<Reading[]> => {
    const up = (value: number): Reading => ['dash_scrape_source_up', value, { source }]
    try {
      const readings = await withTimeout(read(), sourceMs)
      const wrong = readings.find(([, value]) => !Number.isFinite(value))
      if (wrong) throw new Error(`${wrong[0]} reads ${wrong[1]}`)
      failing.delete(source)
      return [...readings, up(1)]
    } catch (error) {
      // Once, not at every scrape: the metric tells it meanwhile.
      if (!failing.has(source)) log.warn({ source, err: error }, 'metrics cannot be read')
      failing.add(source)
      return [up(0)]
    }
  }
  return singleFlight(async () => {
    const readings = await Promise.all(Object.entries(sources).map(readSource))
    const texts = [...meters.map((meter) => meter.metrics()), exposition(readings.flat())]
    return (await Promise.all(texts)).join('\n')
  })
}

export interface StoredMetricsPorts {
  readers: Readers
  audits: Pick<State['audits'], 'newest'>
  jobs: Pick<State['jobs'], 'states'>
  budget: { ledger: Pick<State['chat'], 'spending'>; perDayMicroUsd: number }
  checks: ReadinessChecks
  clock: Clock
}

/** What the stores hold, read for each scrape by the same proved readers as the interface. */
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
      const isSeed: Reading = ['dash_recommendation_seed', Number(seed)]
      const madeAt = Date.parse(run.updatedAt) / 1000
      return seed ? [isSeed] : [['dash_recommendation_timestamp_seconds', madeAt], isSeed]
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

async function archiveMetrics({ publications }: Readers): Promise<Reading[]> {
  const { entries, timeline } = await publications.entries()
  const newest = timeline.at(-1)?.manifest
  const counted: Reading[] = [
    ['dash_publications', timeline.length],
    ['dash_gaps', entries.filter(({ kind }) => kind === 'gap').length],
  ]
  if (!newest) return counted
  const day = startOfDay(newest.asOfDay)
  return [
    ...counted,
    ['dash_publication_newest_day_timestamp_seconds', day / 1000],
    ['dash_publication_newest_timestamp_seconds', newest.publishedAt / 1000],
  ]
}

/** How the archive was found last; none while there is no record. */
function auditMetrics(audit: AuditRecord | null): Reading[] {
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

async function storeMetrics(checks: ReadinessChecks): Promise<Reading[]> {
  return Promise.all(
    Object.entries(checks).map(async ([store, check]): Promise<Reading> => {
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
