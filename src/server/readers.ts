import type { RecommendationStore } from '../domain/ports.ts'
import { provedSnapshots } from './feed/proved-snapshots.ts'
import type { ProvedSnapshots, SnapshotReader } from './feed/proved-snapshots.ts'
import type { Log } from './log.ts'
import { servedRecommendation } from './models/served-recommendation.ts'
import type { ServedRecommendation } from './models/served-recommendation.ts'
import { provedPublications } from './year/proved-publications.ts'
import type { ProvedPublications, PublicationPorts } from './year/proved-publications.ts'

/** What is served, proved; interfaces, pages and metrics share it. */
export interface Readers {
  publications: ProvedPublications
  snapshots: ProvedSnapshots
  recommendation: ServedRecommendation
}

export interface ReaderPorts extends PublicationPorts {
  live: SnapshotReader
  recommendations: Pick<RecommendationStore, 'current'>
  /** Address of the routing service to publish with every recommendation. */
  publishedBaseUrl: string
  log: Log
}

export function openReaders(ports: ReaderPorts): Readers {
  return {
    publications: provedPublications(ports),
    snapshots: provedSnapshots(ports.live),
    recommendation: servedRecommendation(ports.recommendations, ports.publishedBaseUrl, ports.log),
  }
}
