import pLimit from 'p-limit'
import { sha256Hex } from '../../domain/digest.ts'
import { PAGES_CALLER, SEARCH_SLOTS } from '../../domain/feed/search.ts'
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
  agent: Pick<Agent, 'config'> & { status: Agent['shownStatus'] }
  audits: Pick<State['audits'], 'newest'>
  search: Pick<CallerSearch, 'itemTrend'>
}

/** Readings at a time, of all pages together: a publication may be a proof, and an item asks the search. */
const AT_A_TIME = { publications: 4, items: SEARCH_SLOTS.perAddress }

/**
 * What pages read from, with a bound on the costly readings of all renders together. What is read serves every visitor, so
 * it counts for no client.
 */
export function sharedSources({
  publications,
  search,
  ...others
}: Omit<PageSources, 'search'> & { search: Pick<FeedSearch, 'by'> }): PageSources {
  const ofPages = search.by(PAGES_CALLER)
  // Pages that are kept bound how many readings wait.
  const [publicationTurns, itemTurns] = [pLimit(AT_A_TIME.publications), pLimit(AT_A_TIME.items)]
  return {
    ...others,
    publications: {
      entries: () => publications.entries(),
      publication: (manifest) => publicationTurns(() => publications.publication(manifest)),
    },
    search: { itemTrend: (key) => itemTurns(() => ofPages.itemTrend(key)) },
  }
}

/** Ages and lateness may be this old: a page that shows the time is rendered again in the next of these periods. */
const PERIOD_MS = 10_000

/** Equal, part by part, exactly when a reading gives the same to show. */
type ChangeToken = readonly unknown[]

interface Reading {
  token: ChangeToken
  again: () => Promise<ChangeToken>
}

/** The sources of one render, and what it read from them. */
export interface RecordedReads {
  sources: PageSources
  /** False when a reading failed, or differed from an earlier one of the same render. */
  isConsistent(): boolean
  /** True when the search had no place for a reading, which says nothing of what is stored. */
  wasCrowded(): boolean
  /**
   * Reads everything again, one after another until something differs: true when all of it is what the page was rendered
   * from. A reading that fails is a change.
   */
  isUnchanged(): Promise<boolean>
}

/** Sources that remember what is read from them, so that a page is kept only as long as all of it would be read again. */
export function recordReads(real: PageSources): RecordedReads {
  const readings = new Map<string, Reading>()
  const now = real.clock()
  let isConsistent = true
  let wasCrowded = false

  const record = (name: string, reading: Reading): void => {
    const earlier = readings.get(name)
    if (earlier && !areSame(earlier.token, reading.token)) isConsistent = false
    readings.set(name, reading)
  }
  const recorded = async <T>(
    name: string,
    read: () => Promise<T>,
    tokenOf: (value: T, at: Instant) => ChangeToken,
  ): Promise<T> => {
    try {
      const value = await read()
      const again = async (): Promise<ChangeToken> => tokenOf(await read(), real.clock())
      record(name, { token: tokenOf(value, now), again })
      return value
    } catch (error) {
      isConsistent = false
      wasCrowded ||= isCrowded(error)
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
      recorded('recommendation', real.recommendation, ({ run, seed, storeAvailable }) => [
        run,
        seed,
        storeAvailable,
      ]),
    agent: {
      config: () => recorded('chat', () => agent.config(), tokenOfValue),
      status: () => recorded('chat status', () => agent.status(), tokenOfValue),
    },
    audits: { newest: () => recorded('audit', () => audits.newest(), tokenOfValue) },
    search: {
      itemTrend: (key) => recorded(`trend ${key}`, () => search.itemTrend(key), tokenOfValue),
    },
  }
  return {
    sources,
    isConsistent: () => isConsistent,
    wasCrowded: () => wasCrowded,
    async isUnchanged() {
      for (const { token, again } of readings.values()) {
        if (
          !(await again().then(
            (read) => areSame(token, read),
            () => false,
          ))
        )
          return false
      }
      return true
    },
  }
}

const CROWDED: readonly string[] = ['search_limit', 'search_busy'] satisfies FeedSearchRefusal[]

function isCrowded(error: unknown): boolean {
  return error instanceof Refusal && CROWDED.includes(error.code)
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
