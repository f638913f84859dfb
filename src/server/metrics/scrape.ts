import { H3 } from 'h3'
import type { State, Clock } from '../../domain/ports.ts'
import { dayOf, startOfDay } from '../../domain/time.ts'
import type { Readers, ReadinessChecks } from '../app.ts'
import { NO_STORE, respondJson, respondText } from '../respond.ts'
import type { Log } from '../route.ts'
import { coalesce, withinTime } from '../single-flight.ts'
import { EXPOSITION_TYPE, auditMetrics, exposition, family, jobMetrics, single } from './catalogue.ts'
import type { MetricFamily, Sample } from './catalogue.ts'

/** Metrics that are read from somewhere, and may not come. */
export type MetricSource = () => Promise<MetricFamily[]>

export interface ScrapePorts {
  /** Metrics of this process, at hand. */
  meters: readonly { families: () => MetricFamily[] }[]
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
  const readSource = async (name: string, read: MetricSource): Promise<[MetricFamily[], Sample]> => {
    const labels = { source: name }
    try {
      const families = await withinTime(read(), sourceMs, new AbortController().signal)
      failing.delete(name)
      return [families, { labels, value: 1 }]
    } catch (error) {
      // Once, not at every scrape: the metric tells it meanwhile.
      if (!failing.has(name)) log.warn({ source: name, err: error }, 'metrics cannot be read')
      failing.add(name)
      return [[], { labels, value: 0 }]
    }
  }
  return coalesce(async () => {
    const read = await Promise.all(Object.entries(sources).map(([name, source]) => readSource(name, source)))
    const up = family(
      'dash_scrape_source_up',
      read.map(([, sample]) => sample),
    )
    return exposition([
      ...meters.flatMap((meter) => meter.families()),
      ...read.flatMap(([families]) => families),
      up,
    ])
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
export function storedMetrics(ports: StoredMetricsPorts): Readonly<Record<string, MetricSource>> {
  const { readers, audits, jobs, budget, checks, clock } = ports
  return {
    archive: () => archiveMetrics(readers),
    snapshots: async () => {
      const newest = await readers.snapshots.newest('trending')
      return [single('dash_snapshot_newest_timestamp_seconds', newest && newest.snapshot.generatedAt / 1000)]
    },
    recommendation: async () => {
      const { run, seed } = await readers.recommendation()
      return [
        single('dash_recommendation_timestamp_seconds', seed ? null : Date.parse(run.updatedAt) / 1000),
        single('dash_recommendation_seed', Number(seed)),
      ]
    },
    audits: async () => auditMetrics(await audits.newest()),
    jobs: async () => jobMetrics(await jobs.states()),
    budget: async () => {
      const { settled, reserved } = await budget.ledger.spending(dayOf(clock()))
      return [
        single('dash_chat_budget_usd', budget.perDayMicroUsd / 1_000_000),
        single('dash_chat_budget_spent_usd', settled / 1_000_000),
        single('dash_chat_budget_reserved_usd', reserved / 1_000_000),
      ]
    },
    stores: () => storeMetrics(checks),
  }
}

async function archiveMetrics({ publications }: Readers): Promise<MetricFamily[]> {
  const { entries, timeline } = await publications.entries()
  const newest = timeline.at(-1)?.manifest ?? null
  return [
    single('dash_publications', timeline.length),
    single('dash_gaps', entries.filter(({ kind }) => kind === 'gap').length),
    single('dash_publication_newest_day_timestamp_seconds', newest && startOfDay(newest.asOfDay) / 1000),
    single('dash_publication_newest_timestamp_seconds', newest && newest.publishedAt / 1000),
  ]
}

async function storeMetrics(checks: ReadinessChecks): Promise<MetricFamily[]> {
  const samples = Object.entries(checks).map(async ([store, check]) => {
    const value = await check().then(
      () => 1,
      () => 0,
    )
    return { labels: { store }, value }
  })
  return [family('dash_store_up', await Promise.all(samples))]
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
  app.get('/metrics', async (event) => respondText(event, 200, NO_STORE, EXPOSITION_TYPE, await scrape()))
  return app
}
