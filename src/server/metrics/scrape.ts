import { family } from '../../domain/metrics/catalogue.ts'
import { exposition } from '../../domain/metrics/exposition.ts'
import type { MetricFamily, Sample } from '../../domain/metrics/exposition.ts'
import { coalesce } from '../coalesce.ts'
import type { Log } from '../log.ts'
import { withinTime } from '../within-time.ts'

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
