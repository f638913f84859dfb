import type { ChatLedger } from '../../domain/ports.ts'
import { auditMetrics } from '../../domain/metrics/audit-metrics.ts'
import { family, single } from '../../domain/metrics/catalogue.ts'
import type { MetricFamily } from '../../domain/metrics/exposition.ts'
import { jobMetrics } from '../../domain/metrics/job-metrics.ts'
import type { AuditLog, Clock, JobLog } from '../../domain/ports.ts'
import { dayOf, startOfDay } from '../../domain/time.ts'
import type { ReadinessChecks } from '../health.ts'
import type { Readers } from '../readers.ts'
import type { MetricSource } from './scrape.ts'

export interface StoredMetricsPorts {
  readers: Readers
  audits: Pick<AuditLog, 'newest'>
  jobs: Pick<JobLog, 'states'>
  budget: { ledger: Pick<ChatLedger, 'spending'>; perDayMicroUsd: number }
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
