import { createReadStream, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { openObjects } from '../adapters/objects/open.ts'
import { yearReader } from '../adapters/objects/objects.ts'
import { openFeedSearch } from '../adapters/feed/feed-search.ts'
import { libsqlFeed } from '../adapters/feed/feed.ts'
import { archiveFolder, lineFile, spoolInput } from '../adapters/input.ts'
import { libsqlLedger } from '../adapters/ledger/ledger.ts'
import { database } from '../adapters/sqlite/database.ts'
import { migrationsOf } from '../adapters/sqlite/migrate.ts'
import { libsqlAudits, libsqlJobLog } from '../adapters/state/job-log.ts'
import { QUERY_TIMEOUT_MS, SEARCH_PLACES } from '../domain/feed/search.ts'
import type {
  State,
  Clock,
  FeedSearch,
  FeedStore,
  Ledger,
  LineSource,
  Objects,
  YearReader,
} from '../domain/ports.ts'
import type { ArchivePlace } from '../jobs/copy-archive.ts'
import type { ArchiveImportPorts } from '../jobs/import-archive.ts'
import type { AgentReads } from '../server/agent/tool-answers.ts'
import type { Config } from './settings/config.ts'
import { isDeadProcess, thisProcess } from './process-identity.ts'
import { openAgentReads } from './wire-agent-reads.ts'
import { BATCH_BUSY, openAuditors } from './wire-audit.ts'

/** The stores a command works on. Nothing is opened before its first use; `close` closes what was. */
export interface Stores {
  ledger: Ledger
  feed: FeedStore
  /** Reads a feed that is a file in a process of its own, started by the first question. */
  search: FeedSearch
  archive: Objects
  year: YearReader
  recommendations: Objects['recommendations']
  /** What the chat agent reads, through handles that cannot write. */
  reads: Omit<AgentReads, 'clock'>
  audits: State['audits']
  jobs: State['jobs']
  close(): Promise<void>
}

/** A server must not wait inside the synchronous driver; it retries between turns of its event loop instead. */
export const SERVER_BUSY = { nativeBusyMs: 10, retryMs: 2_000 }

/** A server bounds each of its callers; a command has one. */
const SEARCH_BOUNDS = {
  server: { bounds: SEARCH_PLACES, timeoutMs: QUERY_TIMEOUT_MS },
  batch: { bounds: { perAddress: 64, perNetwork: 64, all: 64 }, timeoutMs: 10_000 },
}

export function openStores(config: Config, kind: 'server' | 'batch'): Stores {
  const busy = kind === 'server' ? SERVER_BUSY : BATCH_BUSY
  const ledgerDatabase = database({
    location: config.ledger,
    store: 'ledger',
    migrationsFolder: migrationsOf('ledger'),
    ...busy,
  })
  const feedDatabase = database({
    location: config.feed,
    store: 'feed',
    migrationsFolder: migrationsOf('feed'),
    ...busy,
  })
  const state = stateDatabase(config, busy)
  const ledger = libsqlLedger(ledgerDatabase)
  const archive = openObjects(config.store)
  const search = openFeedSearch({ location: config.feed, database: feedDatabase, ...SEARCH_BOUNDS[kind] })
  const owners = { ledger: ledgerDatabase, feed: feedDatabase, archive }
  const reads = openAgentReads(config, owners, {
    ...busy,
    searchBounds: SEARCH_BOUNDS[kind].bounds,
  })
  return {
    ledger,
    feed: libsqlFeed(feedDatabase),
    search,
    archive,
    year: yearReader(ledger, archive),
    recommendations: archive.recommendations,
    reads,
    audits: libsqlAudits(state),
    jobs: libsqlJobLog(state),
    async close() {
      await reads.close()
      await search.close()
      ledgerDatabase.close()
      feedDatabase.close()
      state.close()
      await archive.close()
    },
  }
}

function stateDatabase(config: Config, busy: typeof BATCH_BUSY): ReturnType<typeof database> {
  return database({
    location: config.state,
    store: 'state',
    migrationsFolder: migrationsOf('state'),
    ...busy,
  })
}

/** Where commands leave a record of how they went: beside what servers and evaluations remember. */
export function openRecords(config: Config): {
  audits: Pick<State['audits'], 'record'>
  jobs: Pick<State['jobs'], 'record'>
  close: () => void
} {
  const state = stateDatabase(config, BATCH_BUSY)
  return { audits: libsqlAudits(state), jobs: libsqlJobLog(state), close: () => state.close() }
}

/** An archive as a copy reads or writes it. */
export function openArchivePlace(config: Config): ArchivePlace & { close: () => Promise<void> } {
  const stores = openStores(config, 'batch')
  const auditors = openAuditors(config)
  return {
    ledger: stores.ledger,
    archive: stores.archive,
    year: stores.year,
    auditors,
    async close() {
      await stores.close()
      await auditors.close()
    },
  }
}

/** The recommendations in the object store; `close` ends the connections to it. */
export function openRecommendationStore(
  config: Config,
): Objects['recommendations'] & { close: () => Promise<void> } {
  const objects = openObjects(config.store)
  return { ...objects.recommendations, close: () => objects.close() }
}

/** A file of lines under the name it is reported with. */
export function openInput(path: string, name: string): LineSource {
  return lineFile(path, name)
}

/**
 * The files a command line names. Standard input (`-`) and pipes (`<(…)` of a shell) are kept in temporary files, since
 * an import reads twice; `close` removes them.
 */
export async function openInputs(
  files: readonly string[],
  stdin: NodeJS.ReadStream,
  signal: AbortSignal,
): Promise<{ sources: LineSource[]; close: () => Promise<void> }> {
  const sources: LineSource[] = []
  const removals: (() => Promise<void>)[] = []
  const close = async (): Promise<void> => {
    for (const remove of removals) await remove()
  }
  try {
    for (const file of files) {
      if (file !== '-' && !isPipe(file)) {
        sources.push(lineFile(file))
        continue
      }
      const spooled = await spoolInput(file === '-' ? stdin : createReadStream(file), tmpdir(), file, signal)
      sources.push(spooled.source)
      removals.push(spooled.remove)
    }
    return { sources, close }
  } catch (error) {
    await close()
    throw error
  }
}

function isPipe(file: string): boolean {
  const stat = statSync(file, { throwIfNoEntry: false })
  return stat !== undefined && (stat.isFIFO() || stat.isSocket() || stat.isCharacterDevice())
}

/** What founding an archive needs besides the command's own ways to watch and to stop it. */
export function archiveImportPorts(
  stores: Stores,
  folder: string,
  clock: Clock,
  onProgress: (message: string) => void,
): Omit<ArchiveImportPorts, 'onPublication' | 'prepare' | 'signal'> {
  return {
    ...stores,
    folder: archiveFolder(folder),
    clock,
    holder: thisProcess(),
    isDead: isDeadProcess,
    onProgress,
  }
}
