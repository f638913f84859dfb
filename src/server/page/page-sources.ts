import { sha256Hex } from '../../domain/digest.ts'
import type { State, Clock, CallerSearch } from '../../domain/ports.ts'
import type { Instant } from '../../domain/time.ts'
import { latestAt } from '../../domain/year/chain.ts'
import { checkpointText } from '../../domain/year/log/signed-note.ts'
import type { Agent } from '../agent/routes.ts'
import type { ProvedSnapshots } from '../feed/proved-snapshots.ts'
import type { ServedRecommendation } from '../models/routes.ts'
import type { ProvedPublications } from '../year/proved-publications.ts'
import type { ReadYearLists } from '../year/year-lists.ts'
import type { ShownLog } from './year/proof-panel.ts'

/** The sources of all panels. */
export interface PageSources {
  clock: Clock
  snapshots: ProvedSnapshots
  publications: Pick<ProvedPublications, 'entries' | 'publication'>
  lists: ReadYearLists
  log: () => Promise<ShownLog>
  recommendation: ServedRecommendation
  agent: Pick<Agent, 'config'> & { status: Agent['lastKnownStatus'] }
  audits: Pick<State['audits'], 'newest'>
  search: Pick<CallerSearch, 'itemTrend' | 'search' | 'similar'>
}

/** Period of the clock for pages, in milliseconds: a page that shows an age is rendered again in the next period. */
const PERIOD_MS = 10_000

/** A token of a read: its parts are equal exactly if the read returns the same content. */
type ChangeToken = readonly unknown[]

interface RecordedRead {
  token: ChangeToken
  reread: () => Promise<ChangeToken>
}

/** The sources of one render, and its recorded reads. */
export interface RecordedReads {
  sources: PageSources
  /** False if a read failed, differed from an earlier one of the same render, or queried the search. */
  isConsistent(): boolean
  /**
   * Repeats the reads one after another until one differs. True if none differs; a failed read counts as a change.
   */
  isUnchanged(): Promise<boolean>
}

/** Records reads, so that a page is cached only while all of its reads return the same. */
export function recordReads(original: PageSources): RecordedReads {
  const reads = new Map<string, RecordedRead>()
  const now = original.clock()
  let isConsistent = true

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
      throw error
    }
  }
  /** A query of the search costs as much as the page, so that the page is not cached. */
  const unrepeatable = <T>(read: Promise<T>): Promise<T> => {
    isConsistent = false
    return read
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
    lists: (manifests) => {
      const digests = manifests.map(({ sha256 }) => sha256)
      return recordedRead(
        `lists ${digests.join(' ')}`,
        () => original.lists(manifests),
        () => digests,
      )
    },
    log: () => recordedRead('log', original.log, tokenOfLog),
    recommendation: () =>
      recordedRead('recommendation', original.recommendation, ({ run, seed, storeAvailable }) => [
        run,
        seed,
        storeAvailable,
      ]),
    agent: {
      config: () => recordedRead('chat', () => agent.config(), tokenOfValue),
      status: () => recordedRead('chat status', () => agent.status(), tokenOfValue),
    },
    audits: { newest: () => recordedRead('audit', () => audits.newest(), tokenOfValue) },
    search: {
      itemTrend: (key) => unrepeatable(search.itemTrend(key)),
      search: (query) => unrepeatable(search.search(query)),
      similar: (key, limit) => unrepeatable(search.similar(key, limit)),
    },
  }
  return {
    sources,
    isConsistent: () => isConsistent,
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
 * The last leaf covers every entry and, through the seal, the legacy ledger. The current publication is included because
 * an entry dated in the future becomes current later.
 */
function tokenOfLedger(
  { lastLeaf, entries, timeline, head }: Awaited<ReturnType<ProvedPublications['entries']>>,
  now: Instant,
): ChangeToken {
  const unsealed = entries.length === 0 && timeline.length > 0 ? timeline : null
  return [lastLeaf, unsealed, head?.seq, head?.leaf, latestAt(timeline, now)?.manifest.publicationId]
}

function tokenOfLog(log: ShownLog): ChangeToken {
  if (log === null) return []
  return 'refused' in log ? [log.refused] : [checkpointText(log.checkpoint)]
}

function tokenOfValue(value: unknown): ChangeToken {
  return [sha256Hex(JSON.stringify(value))]
}
