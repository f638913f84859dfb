import pLimit from 'p-limit'
import { sha256Hex } from '../../domain/digest.ts'
import { PAGES_CALLER, SEARCH_PLACES } from '../../domain/feed/search.ts'
import type { FeedSearchRefusal } from '../../domain/feed/search.ts'
import type { State, Clock, CallerSearch, FeedSearch } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Instant } from '../../domain/time.ts'
import { latestAt } from '../../domain/year/chain.ts'
import type { Agent } from '../agent/routes.ts'
import type { ProvedSnapshots } from '../feed/proved-snapshots.ts'
import type { ServedRecommendation } from '../models/served-recommendation.ts'
import type { ProvedPublications } from '../year/proved-publications.ts'

/** All that panels read. */
export interface PageSources {
  clock: Clock
  snapshots: ProvedSnapshots
  publications: Pick<ProvedPublications, 'entries' | 'publication'>
  recommendation: ServedRecommendation
  agent: Pick<Agent, 'config'> & { status: Agent['lastKnownStatus'] }
  audits: Pick<State['audits'], 'newest'>
  search: Pick<CallerSearch, 'itemTrend'>
}

/** Readings at a time, of all pages together: a publication may be a proof, and an item asks the search. */
const MAX_CONCURRENT = { publications: 4, items: SEARCH_PLACES.perAddress }

/**
 * What pages read from, with a bound on the costly readings of all renders together. What is read serves every visitor, so
 * it counts for no client.
 */
export function sharedSources({
  publications,
  search,
  ...others
}: Omit<PageSources, 'search'> & { search: Pick<FeedSearch, 'by'> }): PageSources {
  const pagesSearch = search.by(PAGES_CALLER)
  // Pages that are kept bound how many readings wait.
  const [limitPublications, limitItems] = [pLimit(MAX_CONCURRENT.publications), pLimit(MAX_CONCURRENT.items)]
  return {
    ...others,
    publications: {
      entries: () => publications.entries(),
      publication: (manifest) => limitPublications(() => publications.publication(manifest)),
    },
    search: { itemTrend: (key) => limitItems(() => pagesSearch.itemTrend(key)) },
  }
}

/** Ages and lateness may be this old: a page that shows the time is rendered again in the next of these periods. */
const PERIOD_MS = 10_000

/** Equal, part by part, exactly when a reading gives the same to show. */
type ChangeToken = readonly unknown[]

interface RecordedRead {
  token: ChangeToken
  reread: () => Promise<ChangeToken>
}

/** The sources of one render, and what it read from them. */
export interface RecordedReads {
  sources: PageSources
  /** False when a reading failed, or differed from an earlier one of the same render. */
  isConsistent(): boolean
  /** True when the search had no place for a reading, which says nothing of what is stored. */
  wasSearchBusy(): boolean
  /**
   * Reads everything again, one after another until something differs: true when all of it is what the page was rendered
   * from. A reading that fails is a change.
   */
  isUnchanged(): Promise<boolean>
}

/** Sources that remember what is read from them, so that a page is kept only as long as all of it would be read again. */
export function recordReads(original: PageSources): RecordedReads {
  const reads = new Map<string, RecordedRead>()
  const now = original.clock()
  let isConsistent = true
  let wasSearchBusy = false

  const record = (name: string, read: RecordedRead): void => {
    const earlier = reads.get(name)
    if (earlier && !areEqual(earlier.token, read.token)) isConsistent = false
    reads.set(name, read)
  }
  const recordedRead = async <T>(
    name: string,
    read: () => Promise<T>,
    tokenOf: (value: T, at: Instant) => ChangeToken,
  ): Promise<T> => {
    try {
      const value = await read()
      const reread = async (): Promise<ChangeToken> => tokenOf(await read(), original.clock())
      record(name, { token: tokenOf(value, now), reread })
      return value
    } catch (error) {
      isConsistent = false
      wasSearchBusy ||= isSearchBusy(error)
      throw error
    }
  }
  const { snapshots, publications, agent, audits, search } = original
  const sources: PageSources = {
    clock() {
      record('clock', { token: [periodOf(now)], reread: async () => [periodOf(original.clock())] })
      return now
    },
    snapshots: {
      newest: (sort) => recordedRead(`snapshot ${sort}`, () => snapshots.newest(sort), tokenOfFeed),
    },
    publications: {
      entries: () => recordedRead('ledger', () => publications.entries(), tokenOfLedger),
      publication: (manifest) =>
        recordedRead(
          `publication ${manifest.publicationId}`,
          () => publications.publication(manifest),
          ({ manifest: { sha256 } }) => [sha256],
        ),
    },
    recommendation: () =>
      recordedRead('recommendation', original.recommendation, ({ run, seed, storeAnswers }) => [
        run,
        seed,
        storeAnswers,
      ]),
    agent: {
      config: () => recordedRead('chat', () => agent.config(), tokenOfValue),
      status: () => recordedRead('chat status', () => agent.status(), tokenOfValue),
    },
    audits: { newest: () => recordedRead('audit', () => audits.newest(), tokenOfValue) },
    search: {
      itemTrend: (key) => recordedRead(`trend ${key}`, () => search.itemTrend(key), tokenOfValue),
    },
  }
  return {
    sources,
    isConsistent: () => isConsistent,
    wasSearchBusy: () => wasSearchBusy,
    async isUnchanged() {
      for (const { token, reread } of reads.values()) {
        if (
          !(await reread().then(
            (read) => areEqual(token, read),
            () => false,
          ))
        )
          return false
      }
      return true
    },
  }
}

const BUSY_CODES: readonly string[] = ['search_limit', 'search_busy'] satisfies FeedSearchRefusal[]

function isSearchBusy(error: unknown): boolean {
  return error instanceof Refusal && BUSY_CODES.includes(error.code)
}

function areEqual(one: ChangeToken, other: ChangeToken): boolean {
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
