import { describe, expect, test } from 'vitest'
import { BASE_URL } from '../../../src/domain/models/catalogue.ts'
import { createMetricsApp, scraper, storedMetrics } from '../../../src/server/metrics/scrape.ts'
import { processMeter } from '../../../src/server/metrics/instruments.ts'
import type { ScrapePorts } from '../../../src/server/metrics/scrape.ts'
import { openReaders } from '../../../src/server/app.ts'
import { silentLog } from '../../support/api-client.ts'
import { AS_OF, publishedWorkspace } from '../../support/workspace.ts'

const never = (): Promise<never> => new Promise(() => undefined)

function scrapeOf(ports: Partial<ScrapePorts>): () => Promise<string> {
  return scraper({ meters: [], sources: {}, sourceTimeoutMs: 60_000, log: silentLog, ...ports })
}

describe('a scrape', () => {
  test('a scrape omits a source that fails or hangs and reports it, a failure once in the log', async () => {
    const lines: unknown[] = []
    const warn = (fields: Record<string, unknown>): void => void lines.push(fields['source'])
    let broken = true
    const jobs: ScrapePorts['sources'][string] = async () => {
      if (broken) throw new Error('the disk is gone')
      return [['dash_gaps', 3]]
    }
    const archive: ScrapePorts['sources'][string] = async () => [['dash_publications', 7]]
    const scrape = scrapeOf({ sources: { jobs, archive }, log: { ...silentLog, warn } })
    for (let count = 0; count < 3; count += 1) {
      const text = await scrape()
      expect(text).toContain('dash_scrape_source_up{source="jobs"} 0\n')
      expect(text).toContain('dash_scrape_source_up{source="archive"} 1\n')
      expect(text).toContain('dash_publications 7\n')
      expect(text).not.toContain('dash_gaps')
    }
    expect(lines).toEqual(['jobs'])
    broken = false
    expect(await scrape()).toContain('dash_gaps 3\n')
    broken = true
    await scrape()
    expect(lines).toEqual(['jobs', 'jobs'])
    const hanging = scrapeOf({ sources: { jobs: never, archive }, sourceTimeoutMs: 20 })
    expect(await hanging()).toMatch(/source="jobs"\} 0\n.*source="archive"\} 1\n/s)
  })

  test('each scrape reads the sources again, and those that wait for another share one read', async () => {
    let reads = 0
    const scrape = scrapeOf({ sources: { archive: async () => [['dash_publications', (reads += 1)]] } })
    const texts = [await scrape(), ...(await Promise.all([scrape(), scrape(), scrape()]))]
    expect(texts.map((text) => /^dash_publications (\d)/m.exec(text)?.[1])).toEqual(['1', '2', '3', '3'])
  })

  test('a scrape has metrics of the process', async () => {
    const text = await scrapeOf({ meters: [processMeter('1.2.3')] })()
    expect(text).toContain(`dash_build_info{version="1.2.3",node="${process.versions.node}"} 1\n`)
    const valueOf = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
    expect(valueOf('process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
    expect(valueOf('process_start_time_seconds')).toBeLessThan(Date.now() / 1000)
    expect(valueOf('process_open_fds')).toBeGreaterThan(3)
  })
})

test('metrics of the stores are those of the archive, its audit and its jobs', async () => {
  const workspace = await publishedWorkspace([AS_OF])
  await workspace.audits.record({
    endedAt: 5_000,
    ok: false,
    complete: true,
    whole: false,
    publications: 1,
    objects: 1,
    bytes: 99,
    gaps: 0,
    damage: 2,
    head: { seq: 1, leaf: 'ab'.repeat(32) },
  })
  const ports = {
    readers: openReaders({ ...workspace, clock: Date.now, publishedBaseUrl: BASE_URL, log: silentLog }),
    audits: workspace.audits,
    jobs: {
      states: async () => [
        { job: 'collect', startedAt: 1_000, endedAt: 2_500, exitCode: 69, lastSuccessAt: null } as const,
        { job: 'snapshot', startedAt: 3_000, endedAt: 3_250, exitCode: 74, lastSuccessAt: 2_345 } as const,
      ],
    },
    budget: {
      ledger: { spending: async () => ({ settled: 250_000, reserved: 1 }) },
      perDayMicroUsd: 2_000_000,
    },
    checks: {
      ledger: () => workspace.ledger.ping(),
      archive: () => Promise.reject(new Error('unmounted')),
    },
    clock: Date.now,
  }
  const text = await scrapeOf({ sources: storedMetrics(ports) })()
  const day = Date.parse(`${AS_OF}T00:00:00Z`) / 1000
  for (const line of [
    'dash_publications 1',
    'dash_gaps 0',
    `dash_publication_newest_day_timestamp_seconds ${day}`,
    'dash_recommendation_seed 1',
    'dash_job_last_run_timestamp_seconds{command="collect"} 2.5',
    'dash_job_last_exit_code{command="collect"} 69',
    'dash_job_last_duration_seconds{command="collect"} 1.5',
    'dash_job_last_success_timestamp_seconds{command="collect"} 0',
    'dash_job_last_success_timestamp_seconds{command="snapshot"} 2.345',
    'dash_audit_ok 0',
    'dash_audit_damage_findings 2',
    'dash_chat_budget_usd 2',
    'dash_chat_budget_spent_usd 0.25',
    'dash_chat_budget_reserved_usd 0.000001',
    'dash_store_up{store="ledger"} 1',
    'dash_store_up{store="archive"} 0',
  ]) {
    expect(text).toContain(`${line}\n`)
  }
  expect(text).not.toContain('dash_snapshot_newest')
  expect(text).not.toContain('dash_recommendation_timestamp')
  expect(text).not.toMatch(/dash_scrape_source_up\{[^}]*\} 0/)
})

test('the metrics application serves /metrics in the text format, uncached, and nothing else', async () => {
  const app = createMetricsApp(async () => 'a 1\n')
  const response = await app.request('/metrics')
  expect([response.status, await response.text()]).toEqual([200, 'a 1\n'])
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-store')
  for (const path of ['/', '/metrics/x', '/healthz', '/api/feed']) {
    const other = await app.request(path)
    expect([path, other.status, await other.json()]).toEqual([path, 404, { error: 'not_found' }])
  }
})
