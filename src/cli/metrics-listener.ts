import { listenOn } from '../server/listen.ts'
import type { RunningServer } from '../server/listen.ts'
import type { Log } from '../server/log.ts'
import { createMetricsApp } from '../server/metrics/metrics-app.ts'
import { processMeter } from '../server/metrics/process-metrics.ts'
import { scraper } from '../server/metrics/scrape.ts'
import type { ScrapePorts } from '../server/metrics/scrape.ts'
import { storedMetrics } from '../server/metrics/stored-metrics.ts'
import type { StoredMetricsPorts } from '../server/metrics/stored-metrics.ts'
import type { ListenAddress } from './settings/monitoring-settings.ts'

/** Prometheus waits ten seconds unless it is told otherwise. */
const SOURCE_MS = 5_000

const ARRIVAL = { headersTimeoutMs: 5_000, requestTimeoutMs: 5_000 }

const SETTING = { name: 'DASH_METRICS_ADDRESS', words: 'DASH_METRICS_ADDRESS' }

export interface ScrapeSurroundings {
  log: Log
  /** Release of dash. */
  version: string
  isDraining: () => boolean
  meters: ScrapePorts['meters']
  stored: StoredMetricsPorts
}

/**
 * Serves `/metrics` on a listener of its own (docs/monitoring.md); without an address nothing listens.
 *
 * @throws Refusal `port_taken` or `address_unavailable`
 */
export async function listenForScrapes(
  address: ListenAddress | null,
  { log, version, isDraining, meters, stored }: ScrapeSurroundings,
): Promise<RunningServer | null> {
  if (address === null) return null
  const ofProcess = processMeter(version)
  const scrape = scraper({
    meters: [ofProcess, ...meters],
    sources: storedMetrics(stored),
    sourceMs: SOURCE_MS,
    log,
  })
  // A line for each scrape would bury those of readers.
  const quiet: Log = {
    info: () => undefined,
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
  }
  try {
    const listener = await listenOn(createMetricsApp(scrape), {
      ...address,
      log: quiet,
      isDraining,
      settings: { port: SETTING, host: SETTING },
      ...ARRIVAL,
    })
    return {
      ...listener,
      async close(graceMs) {
        await listener.close(graceMs)
        ofProcess.close()
      },
    }
  } catch (error) {
    ofProcess.close()
    throw error
  }
}
