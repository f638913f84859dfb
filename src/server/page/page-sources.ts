import { sha256Hex } from '../../domain/digest.ts'
import type { AuditLog, Clock, FeedSearch, SharedFeedSearch } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import { latestAt } from '../../domain/year/chain.ts'
import type { Agent } from '../agent/routes.ts'
import type { ProvedSnapshots } from '../feed/proved-snapshots.ts'
import type { ServedRecommendation } from '../models/served-recommendation.ts'
import type { ProvedPublications } from '../year/proved-publications.ts'

/** The publications as panels read them. */
export type ShownPublications = Pick<ProvedPublications, 'entries' | 'publication'>

/** All that panels read. A panel that read from elsewhere would be shown from the cache after that had changed. */
export interface PageSources {
  clock: Clock
  snapshots: ProvedSnapshots
  publications: ShownPublications
  recommendation: ServedRecommendation
  agent: Pick<Agent, 'config' | 'status'>
  audits: Pick<AuditLog, 'newest'>
  search: Pick<FeedSearch, 'itemTrend'>
}

/** The sources of all pages; each render asks the search for the client that it is for. */
export interface ServedSources extends Omit<PageSources, 'search'> {
  search: SharedFeedSearch
}

/** Ages and lateness may be this old: a page that shows the time is rendered again in the next of these periods. */
const PERIOD_MS = 10_000

/** Equal, part by part, exactly when a reading gives the same to show. */
type ChangeToken = readonly unknown[]

interface Reading {
  token: ChangeToken
  again: (client: string) => Promise<ChangeToken>
}

/** The sources of one render, and what it read from them. */
export interface RecordedReads {
  sources: PageSources
  /** False when a reading failed, or differed from an earlier one of the same render. */
  isConsistent(): boolean
  /** Reads everything again: true when all of it is what the page was rendered from. A reading that fails is a change. */
  isUnchanged(client: string): Promise<boolean>
}

/**
 * Sources that remember what is read from them, so that a page is kept only as long as all of it would be read again.
 *
 * @param client address that the search counts the readings for; what is read again counts for the client then named
 */
export function recordReads(real: ServedSources, client: string): RecordedReads {
  const readings = new Map<string, Reading>()
  const now = real.clock()
  let isConsistent = true

  const record = (name: string, reading: Reading): void => {
    const earlier = readings.get(name)
    if (earlier && !areSame(earlier.token, reading.token)) isConsistent = false
    readings.set(name, reading)
  }
  const recorded = async <T>(
    name: string,
    read: (client: string) => Promise<T>,
    tokenOf: (value: T, at: Instant) => ChangeToken,
  ): Promise<T> => {
    try {
      const value = await read(client)
      const again = async (later: string): Promise<ChangeToken> => tokenOf(await read(later), real.clock())
      record(name, { token: tokenOf(value, now), again })
      return value
    } catch (error) {
      isConsistent = false
      throw error
    }
  }
  const { snapshots, publications, agent, audits, search } = real
  const sources: PageSources = {
    clock() {
      record('clock', { token: [periodOf(now)], again: async () => [periodOf(real.clock())] })
      return now
    },
    snapshots: {
      newest: (sort) => recorded(`snapshot ${sort}`, () => snapshots.newest(sort), tokenOfFeed),
    },
    publications: {
      entries: () => recorded('ledger', () => publications.entries(), tokenOfLedger),
      publication: (manifest) =>
        recorded(
          `publication ${manifest.publicationId}`,
          () => publications.publication(manifest),
          ({ manifest: { sha256 } }) => [sha256],
        ),
    },
    recommendation: () =>
      recorded('recommendation', real.recommendation, ({ run, seed, storeAnswers }) => [
        run,
        seed,
        storeAnswers,
      ]),
    agent: {
      config: () => recorded('chat', () => agent.config(), tokenOfValue),
      status: () => recorded('chat status', () => agent.status(), tokenOfValue),
    },
    audits: { newest: () => recorded('audit', () => audits.newest(), tokenOfValue) },
    search: {
      itemTrend: (key) =>
        recorded(
          `trend ${key}`,
          // Others wait for the same page: it is not dropped with the one request that began it.
          (address) => search.by({ address, isChat: false, signal: null }).itemTrend(key),
          tokenOfValue,
        ),
    },
  }
  return {
    sources,
    isConsistent: () => isConsistent,
    async isUnchanged(later) {
      const unchanged = [...readings.values()].map(async ({ token, again }) =>
        areSame(token, await again(later)),
      )
      return (await Promise.all(unchanged.map((each) => each.catch(() => false)))).every(Boolean)
    },
  }
}

function areSame(one: ChangeToken, other: ChangeToken): boolean {
  return one.length === other.length && one.every((part, index) => Object.is(part, other[index]))
}

function periodOf(at: Instant): number {
  return Math.floor(at / PERIOD_MS)
}

function tokenOfFeed(proved: Awaited<ReturnType<ProvedSnapshots['newest']>>): ChangeToken {
  return proved === null
    ? []
    : [proved.snapshot.id, proved.snapshot.generatedAt, proved.published.headers['etag']]
}

/**
 * The last leaf covers every entry, and through the seal the legacy ledger. An entry dated later than now changes what is
 * shown when its time comes.
 */
function tokenOfLedger(
  { lastLeaf, entries, timeline, head }: Awaited<ReturnType<ProvedPublications['entries']>>,
  now: Instant,
): ChangeToken {
  const unsealed = entries.length === 0 && timeline.length > 0 ? timeline : null
  return [lastLeaf, unsealed, head?.seq, head?.leaf, latestAt(timeline, now)?.manifest.publicationId]
}

function tokenOfValue(value: unknown): ChangeToken {
  return [sha256Hex(JSON.stringify(value))]
}
