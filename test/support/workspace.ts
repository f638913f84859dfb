import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chmodSync, mkdirSync } from 'node:fs'
import { onTestFinished } from 'vitest'
import { fileObjects } from '../../src/adapters/objects/objects.ts'
import { yearReader, libsqlLedger } from '../../src/adapters/ledger/ledger.ts'
import { openFeedSearch } from '../../src/adapters/feed/feed-search.ts'
import { libsqlFeed } from '../../src/adapters/feed/feed.ts'
import { database } from '../../src/adapters/sqlite/database.ts'
import { libsqlAudits } from '../../src/adapters/state/job-stores.ts'
import type { Signal } from '../../src/domain/feed/signal.ts'
import type { State, Clock, FeedStore, FeedSearch } from '../../src/domain/ports.ts'
import type { Manifest } from '../../src/domain/year/ledger.ts'
import type { Ledger, Objects, YearReader } from '../../src/domain/year/ports.ts'
import { Refusal } from '../../src/domain/refusal.ts'
import { addDays, startOfDay } from '../../src/domain/time.ts'
import type { Day, Instant } from '../../src/domain/time.ts'
import { missedDays } from '../../src/domain/year/plan.ts'
import { publishYear } from '../../src/jobs/publish-year.ts'
import type { PublishOptions, PublishPorts, PublishResult } from '../../src/jobs/publish-year.ts'
import { builtModule } from './compiled-sources.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** Real stores in a temporary folder, removed when the test ends. */
export interface Workspace {
  folder: string
  ledgerPath: string
  feedPath: string
  objectsPath: string
  ledger: Ledger
  feed: FeedStore
  search: FeedSearch
  objects: Objects
  year: YearReader
  recommendations: Objects['recommendations']
  audits: State['audits']
  /** Closes the connections before the end of the test. */
  close: () => void
}

/** The compiled worker, because a thread cannot read TypeScript. */
export const SEARCH_WORKER = new URL(builtModule('adapters/feed/search-worker.js'))

/** The time limit of reads and of a process's start in tests, however busy the machine is. */
export const LONG_MS = 600_000

/** The day that the tests publish, ten minutes after its end. */
export const AS_OF: Day = '2026-03-01'

export const RUN_AT: Instant = startOfDay(addDays(AS_OF, 1)) + 600_000

export async function openWorkspace(fileClock: Clock = Date.now): Promise<Workspace> {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'objects'))
  return reopenWorkspace(folder, fileClock)
}

/**
 * The same folder through new connections, as another process would see it.
 *
 * @param retryMs how long a locked database is tried again
 */
export function reopenWorkspace(folder: string, fileClock: Clock = Date.now, retryMs = 5_000): Workspace {
  const ledgerPath = join(folder, 'ledger.db')
  const feedPath = join(folder, 'feed.db')
  const objectsPath = join(folder, 'objects')
  const busy = { nativeBusyMs: 20, retryMs }
  const locationOf = (path: string) => ({ url: pathToFileURL(path).href, authToken: null })
  const ledgerDatabase = database({ location: locationOf(ledgerPath), store: 'ledger', ...busy })
  const location = locationOf(feedPath)
  const feedDatabase = database({ location, store: 'feed', ...busy })
  const stateDatabase = database({ location: locationOf(join(folder, 'state.db')), store: 'state', ...busy })
  const close = (): void => [stateDatabase, ledgerDatabase, feedDatabase].forEach((each) => each.close())
  onTestFinished(close)
  const ledger = libsqlLedger(ledgerDatabase, fileClock)
  const objects = fileObjects(objectsPath, fileClock)
  const feed = libsqlFeed(feedDatabase)
  const search = openFeedSearch({
    location: { ...location, url: 'direct:' },
    database: feedDatabase,
    timeoutMs: LONG_MS,
    startTimeoutMs: LONG_MS,
    script: SEARCH_WORKER,
  })
  onTestFinished(() => search.close())
  return {
    folder,
    ledgerPath,
    feedPath,
    objectsPath,
    ledger,
    feed,
    search,
    objects,
    year: yearReader(ledger, objects),
    recommendations: objects.recommendations,
    audits: libsqlAudits(stateDatabase),
    close,
  }
}

/** A few verified events of each news source on the day before {@link AS_OF} and on it. */
export function sampleSignals(asOfDay: Day = AS_OF): Signal[] {
  const sources = ['hn', 'lobsters', 'lesswrong']
  return sources.flatMap((source) =>
    [1, 2, 3].map((number): Signal => ({
      source,
      sourceId: `${source}${number}`,
      day: number === 1 ? addDays(asOfDay, -1) : asOfDay,
      title: `${source} title ${number}`,
      url: `https://example.org/${source}/${number}`,
      points: 10 * number,
      comments: number,
      publishedAt: startOfDay(addDays(asOfDay, -1)) + number,
      titleProvenance: `${source}:test`,
    })),
  )
}

/** A title source that fails if it is called. */
export const noTitles: PublishPorts['titles'] = {
  title: ({ source, sourceId }) =>
    Promise.reject(new Refusal('source_unavailable', `${source} ${sourceId} was asked`)),
}

/** A clock that advances by a millisecond at each call, so that no two times are equal. */
export function tickingClock(from: Instant): Clock {
  let now = from
  return () => (now += 1)
}

export function publishPortsOf(workspace: Workspace, changes: Partial<PublishPorts> = {}): PublishPorts {
  return {
    log: null,
    ...workspace,
    titles: noTitles,
    clock: tickingClock(RUN_AT),
    sleep: () => Promise.resolve(),
    holder: { name: 'the test', process: null },
    isDead: () => false,
    onProgress: () => undefined,
    ...changes,
  }
}

export function publish(ports: PublishPorts, changes: Partial<PublishOptions> = {}): Promise<PublishResult> {
  const signal = new AbortController().signal
  return publishYear(ports, {
    once: true,
    dryRun: false,
    allowEmpty: false,
    recordGaps: null,
    retryDelayMs: 1_000,
    signal,
    ...changes,
  })
}

/** A workspace with a publication of each of the days. */
export async function publishedWorkspace(days: readonly Day[]): Promise<Workspace> {
  const workspace = await openWorkspace()
  for (const day of days) await workspace.feed.importSignals(sampleSignals(day))
  await publishDays(workspace, days)
  return workspace
}

/** The manifests of the publications in their order. */
export async function manifestsOf({ year }: Pick<Workspace, 'year'>): Promise<Manifest[]> {
  return (await year.read()).proved.timeline.map(({ manifest }) => manifest)
}

/** The file of an object, which a test may then damage. */
export function objectFile({ objectsPath }: Pick<Workspace, 'objectsPath'>, sha256 = ''): string {
  const path = join(objectsPath, 'sha256', sha256.slice(0, 2), sha256)
  chmodSync(path, 0o644)
  return path
}

/** Publishes each of the days, in order, over signals already imported; the days in between become gaps. */
export async function publishDays(
  workspace: Workspace & { log?: PublishPorts['log'] },
  days: readonly Day[],
): Promise<void> {
  for (const day of days) {
    const clock = tickingClock(startOfDay(addDays(day, 1)) + 600_000)
    const { proved } = await workspace.year.read()
    const missed = missedDays(proved, (await workspace.ledger.attempts())[0]?.asOfDay ?? null, day)
    const { report } = await publish(publishPortsOf(workspace, { clock }), { recordGaps: missed.length })
    if (report.outcome !== 'published') throw new Error(`${day} was not published: ${report.reason}`)
  }
}
