import { LIVE_VERSION } from '../../domain/feed/live-schema.ts'
import type { LiveFeed } from '../../domain/feed/live-schema.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import type { SearchCaller } from '../../domain/feed/search.ts'
import type {
  Archive,
  ArticleStore,
  Clock,
  FeedSearch,
  Ledger,
  SharedFeedSearch,
  StoredItems,
  YearReader,
} from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/storage.ts'
import type { Instant } from '../../domain/time.ts'
import { yearEnvelopeSchema } from '../../domain/year/schema.ts'
import type { YearEnvelope } from '../../domain/year/schema.ts'
import { provedSnapshots } from '../feed/proved-snapshots.ts'
import type { ProvedFeed, SnapshotReader } from '../feed/proved-snapshots.ts'
import { provedPublications } from '../year/proved-publications.ts'
import type { ProvedPublication } from '../year/proved-publications.ts'

/** What the agent reads: handles through which nothing can be written (docs/agent-tools.md). */
export interface AgentReads {
  items: StoredItems
  search: SharedFeedSearch
  snapshots: SnapshotReader
  articles: Pick<ArticleStore, 'article'>
  ledger: Pick<Ledger, 'witness'>
  archive: Pick<Archive, 'get' | 'newestHead' | 'objectWitness' | 'headWitness'>
  year: YearReader
  clock: Clock
}

/** A publication as the tools tell of it; `envelope` is null for a layout older than the product's own. */
interface YearPublication {
  publicationId: string
  asOfDay: string
  envelope: YearEnvelope | null
}

/** What the agent reads, proved where the interfaces prove it. One for a server. */
export interface AgentSources extends Pick<AgentReads, 'items' | 'search' | 'articles' | 'clock'> {
  /** The newest snapshot's feed of a sort; null when there is no snapshot. */
  feed: (sort: LiveSort) => Promise<LiveFeed | null>
  /** The Year publication that was current at an instant; null when there was none. */
  publication: (at: Instant) => Promise<YearPublication | null>
}

/** The same as one caller reads it. */
export interface CallerSources extends Omit<AgentSources, 'search'> {
  search: FeedSearch
}

export function sourcesFor(caller: SearchCaller, sources: AgentSources): CallerSources {
  return { ...sources, search: sources.search.by(caller) }
}

/** Proved publications kept in memory beside those of the interfaces. */
const YEAR_MEMORY_BYTES = 8 * 1024 * 1024

export function agentSources(reads: AgentReads): AgentSources {
  const { items, search, articles, clock } = reads
  const snapshots = provedSnapshots(reads.snapshots)
  const publications = provedPublications(reads, YEAR_MEMORY_BYTES)
  const feeds = new WeakMap<ProvedFeed, LiveFeed>()
  const years = new WeakMap<ProvedPublication, YearPublication>()
  return {
    items,
    search,
    articles,
    clock,
    async feed(sort) {
      const proved = await snapshots.newest(sort)
      if (!proved) return null
      const feed = feeds.get(proved) ?? parseFeed(proved)
      feeds.set(proved, feed)
      return feed
    },
    async publication(at) {
      const proved = await publications.latestAt(at)
      if (!proved) return null
      const publication = years.get(proved) ?? parsePublication(proved)
      years.set(proved, publication)
      return publication
    },
  }
}

/** Its schema held when it was sealed, so that its version is enough. */
function parseFeed({ snapshot, published }: ProvedFeed): LiveFeed {
  const feed = JSON.parse(published.body.toString('utf8')) as LiveFeed
  const layout: string = feed.algoVersion
  if (layout === LIVE_VERSION) return feed
  throw storageDamaged(`a feed of snapshot ${snapshot.id} has not the layout of ${LIVE_VERSION}`)
}

function parsePublication({ manifest, published }: ProvedPublication): YearPublication {
  const { publicationId, asOfDay } = manifest
  const parsed = yearEnvelopeSchema.safeParse(JSON.parse(published.body.toString('utf8')))
  return { publicationId, asOfDay, envelope: parsed.success ? parsed.data : null }
}
