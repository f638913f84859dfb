import { createReadStream, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { openArchive, openArchiveAuditor, openRecommendations } from '../adapters/archive/open.ts'
import { yearReader } from '../adapters/archive/year-reader.ts'
import { libsqlFeed } from '../adapters/feed/feed.ts'
import { archiveFolder } from '../adapters/input/archive-folder.ts'
import { lineFile, spoolInput } from '../adapters/input/line-files.ts'
import { ledgerAuditor } from '../adapters/ledger/auditor.ts'
import { libsqlLedger } from '../adapters/ledger/ledger.ts'
import { database } from '../adapters/libsql/database.ts'
import { migrationsOf } from '../adapters/libsql/migrations.ts'
import { openPublishedHistory } from '../adapters/published-history/published-history.ts'
import type {
  Archive,
  Clock,
  DamageSample,
  FeedStore,
  Ledger,
  LineSource,
  PublishedShortlist,
  RecommendationStore,
  YearReader,
} from '../domain/ports.ts'
import type { ArchivePlace } from '../jobs/copy-archive.ts'
import type { ArchiveImportPorts } from '../jobs/import-archive.ts'
import type { EvaluatePorts } from '../jobs/evaluation-situation.ts'
import type { PublishPorts } from '../jobs/publish-year.ts'
import type { Config } from './config.ts'
import { isDeadProcess, thisProcess } from './process-identity.ts'

/** The stores a command works on. Nothing is opened before its first use; `close` closes what was. */
export interface Stores {
  ledger: Ledger
  feed: FeedStore
  archive: Archive
  year: YearReader
  recommendations: RecommendationStore
  close(): Promise<void>
}

/** A server must not wait inside the synchronous driver; it retries between turns of its event loop instead. */
const SERVER_BUSY = { nativeBusyMs: 10, retryMs: 2_000 }

/** A batch command has nothing else to do than to wait for a lock. */
const BATCH_BUSY = { nativeBusyMs: 5_000, retryMs: 10_000 }

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
  const ledger = libsqlLedger(ledgerDatabase)
  const archive = openArchive(config.store)
  const recommendations = openRecommendations(config.store)
  return {
    ledger,
    feed: libsqlFeed(feedDatabase),
    archive,
    year: yearReader(ledger, archive),
    recommendations,
    async close() {
      ledgerDatabase.close()
      feedDatabase.close()
      await archive.close()
      await recommendations.close()
    },
  }
}

/** What an audit reads. Nothing is opened before its first use, and nothing is ever written. */
export function openAuditors(config: Config): ArchivePlace['auditors'] & { close: () => Promise<void> } {
  const archive = openArchive(config.store)
  return {
    ledger: ledgerAuditor(config.ledger, BATCH_BUSY),
    archive: openArchiveAuditor(config.store, archive),
    close: () => archive.close(),
  }
}

/** The public answers of another host; `close` ends the connections to it. */
export function openPublished(base: string): ReturnType<typeof openPublishedHistory> {
  return openPublishedHistory(base)
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
export function openRecommendationStore(config: Config): ReturnType<typeof openRecommendations> {
  return openRecommendations(config.store)
}

/** The shortlist that another host serves; its client is loaded only here. `close` ends the connections. */
export async function openPublishedShortlist(
  base: string,
): Promise<PublishedShortlist & { close: () => Promise<void> }> {
  const { openSourceAgent } = await import('../adapters/sources/json-request.ts')
  const { publishedShortlist } = await import('../adapters/sources/shortlist.ts')
  const agent = openSourceAgent()
  return { ...publishedShortlist(agent, base), close: () => agent.destroy() }
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

/** Rejects with the signal's own reason, by which a run knows that it was told to stop. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    signal.throwIfAborted()
    throw error
  })
}

/**
 * What publishing needs besides the stores; `close` ends the connections to the sources. They are loaded only here: a
 * command that asks no source need not wait for its client.
 */
export async function publishPorts(
  stores: Stores,
  config: Config,
  clock: Clock,
  onProgress: (message: string) => void,
): Promise<{ ports: PublishPorts; close: () => Promise<void> }> {
  const { openSourceAgent } = await import('../adapters/sources/json-request.ts')
  const { sourceTitles } = await import('../adapters/sources/titles.ts')
  const agent = openSourceAgent()
  const urls = { hn: config.hackerNewsUrl, lobsters: config.lobstersUrl, lesswrong: config.lessWrongUrl }
  return {
    ports: {
      ...stores,
      titles: sourceTitles(agent, urls),
      clock,
      sleep: pause,
      holder: thisProcess(),
      isDead: isDeadProcess,
      onProgress,
    },
    close: () => agent.destroy(),
  }
}

/**
 * What an evaluation of models needs; `close` ends everything it opened. The service's client and the sandbox are loaded
 * only here.
 */
export async function openEvaluation(
  config: Config,
  clock: Clock,
  watch: Pick<EvaluatePorts, 'onProgress' | 'onNote'>,
): Promise<{ ports: EvaluatePorts; close: () => Promise<void> }> {
  const { openRouter } = await import('../adapters/router/router.ts')
  const { libsqlEvaluations } = await import('../adapters/state/evaluations.ts')
  const { memoryShell } = await import('../adapters/sandbox/shell.ts')
  const { makeLiteSuite } = await import('../jobs/lite-suite.ts')
  const state = database({
    location: config.state,
    store: 'state',
    migrationsFolder: migrationsOf('state'),
    ...BATCH_BUSY,
  })
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  const referer = `http://${host}:${config.port}`
  const router = openRouter({ base: config.openRouterUrl, key: config.openRouterKey, referer, clock })
  const shell = memoryShell()
  const recommendations = openRecommendations(config.store)
  return {
    ports: {
      router,
      evaluations: libsqlEvaluations(state),
      recommendations,
      makeSuite: (day) => makeLiteSuite(day, shell),
      baseUrl: config.openRouterUrl,
      clock,
      monotonic: () => performance.now(),
      sleep: pause,
      holder: thisProcess(),
      isDead: isDeadProcess,
      ...watch,
    },
    async close() {
      state.close()
      await router.close()
      await shell.close()
      await recommendations.close()
    },
  }
}

/** What founding an archive needs besides the command's own ways to watch and to stop it. */
export function archiveImportPorts(
  stores: Stores,
  folder: string,
  clock: Clock,
  onProgress: (message: string) => void,
): Omit<ArchiveImportPorts, 'onPublication' | 'signal'> {
  return {
    ...stores,
    folder: archiveFolder(folder),
    clock,
    holder: thisProcess(),
    isDead: isDeadProcess,
    onProgress,
  }
}

/** A private archive to damage, in a temporary folder. Loaded only where it is asked for. */
export async function openDamageSample(): Promise<DamageSample> {
  return (await import('../adapters/damage/sample.ts')).makeDamageSample()
}
