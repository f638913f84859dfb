import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Clock, InputLine, LineSource } from '../domain/ports.ts'
import { addDays, DAY_MS, dayOf, formatInstant, startOfDay } from '../domain/time.ts'
import type { Day, Instant } from '../domain/time.ts'
import { lastCompleteDay } from '../domain/year/ledger.ts'
import { evaluateModels } from '../jobs/models/evaluate-models.ts'
import { importSignals } from '../jobs/import-lines.ts'
import { publishYear } from '../jobs/publish-year.ts'
import { rankPeriods } from '../jobs/rank-periods.ts'
import { refreshIndex } from '../jobs/collect.ts'
import { DEMO_CHAT_MODEL, DEMO_REQUEST_MAX_BYTES, demoProviderApp } from '../server/demo/provider-app.ts'
import { verifyArchive } from '../jobs/verify-archive.ts'
import { DEMO_MODELS, demoRouterApp, DEMO_SOURCE_PATHS, demoSourceApp } from '../server/demo/router-app.ts'
import type { DemoTitles } from '../server/demo/router-app.ts'
import { listenOn } from '../server/listen.ts'
import type { RunningServer } from '../server/listen.ts'
import { Container } from './container.ts'
import { leaveAuditRecord } from './job-records.ts'
import type { ChatConfig, Config } from './settings/config.ts'
import { prepareFolders } from './data-folder.ts'
import type { CommandContext } from './context.ts'
import type { Terminal } from './terminal.ts'

const SAMPLE_FILES = ['hn-frontpage.ndjson.gz', 'lobsters-final.ndjson.gz', 'lesswrong-final.ndjson.gz']

/** The last day the bundled sample observes (assets/demo/SOURCES.md). */
const SAMPLE_LAST_DAY: Day = '2021-11-07'

/** As-of days the demo replays, the last one yesterday. */
const REPLAYED_DAYS = 30

/** Days before yesterday on which nobody published: the next run records a gap. */
const GAP_DAYS_AGO = 12

/** Each replayed run starts this long after its midnight. */
const RUN_AFTER_MIDNIGHT_MS = 600_000

const SILENT = { onProgress: () => undefined, onNote: () => undefined }

/** A demo's private surroundings; `close` deletes them. */
export interface Demo {
  config: Config
  close: () => Promise<void>
}

/**
 * Fills a throw-away folder with the bundled sample, shifted by whole days so that it ends yesterday, and publishes
 * the last thirty days by the real job at the times it would have run. The live periods end where the sample does, at
 * the last millisecond of yesterday, which their `generatedAt` says.
 */
export async function openDemo({ config, terminal, signal, version }: CommandContext): Promise<Demo> {
  const folder = await mkdtemp(join(tmpdir(), 'dash-demo-'))
  const servers: RunningServer[] = []
  const close = async (): Promise<void> => {
    for (const server of servers) await server.close(0)
    await rm(folder, { recursive: true, force: true })
  }
  const keepOpen = async (app: Parameters<typeof listenOn>[0]): Promise<string> => {
    const server = await listenQuietly(app, signal)
    servers.push(server)
    return server.url
  }
  try {
    const sources = await openDemoSources(signal)
    try {
      terminal.note(`DEMO: filling ${folder} with the bundled sample; it is deleted when the server stops`)
      // Stays open: the recommendation names it, and so do the lines that the page has to copy.
      const routerUrl = await keepOpen(demoRouterApp(DEMO_MODELS, Date.now))
      const demo = demoConfig(config, folder, sources.url, routerUrl)
      await fill(demo, version, signal, terminal)
      return { config: { ...demo, chat: demoChat(demo.chat, await keepOpen(demoProviderApp())) }, close }
    } finally {
      await sources.close(0)
    }
  } catch (error) {
    await close()
    throw error
  }
}

function demoConfig(config: Config, folder: string, sourcesUrl: string, routerUrl: string): Config {
  return {
    ...config,
    dataDir: folder,
    dataDirNamed: true,
    dataDirUsed: true,
    ledger: { url: pathToFileURL(join(folder, 'ledger.db')).href, authToken: null },
    feed: { url: pathToFileURL(join(folder, 'feed.db')).href, authToken: null },
    state: { url: pathToFileURL(join(folder, 'state.db')).href, authToken: null },
    stateInDataDir: true,
    store: { kind: 'file', path: join(folder, 'objects') },
    storeNamed: false,
    hackerNewsUrl: `${sourcesUrl}${DEMO_SOURCE_PATHS.hn}`,
    lobstersUrl: `${sourcesUrl}${DEMO_SOURCE_PATHS.lobsters}`,
    lessWrongUrl: `${sourcesUrl}${DEMO_SOURCE_PATHS.lesswrong}`,
    openRouterUrl: routerUrl,
    // No real key reaches the demo, and none of its models exists elsewhere.
    openRouterKey: 'demo',
    publishedBaseUrl: routerUrl,
  }
}

/** The chat on a scripted model that costs nothing, with a secret of its own and for everybody. */
function demoChat(chat: ChatConfig, providerUrl: string): ChatConfig {
  return {
    ...chat,
    // The switch is for the operator's own server.
    disabled: false,
    sessionSecret: randomBytes(32).toString('base64url'),
    provider: {
      url: providerUrl,
      key: null,
      model: DEMO_CHAT_MODEL,
      api: 'responses',
      prices: null,
    },
    verification: null,
  }
}

async function openDemoSources(signal: AbortSignal): Promise<RunningServer> {
  const titles = JSON.parse(await readFile(assetPath('titles.json'), 'utf8')) as DemoTitles
  return listenQuietly(demoSourceApp(titles), signal)
}

function listenQuietly(app: Parameters<typeof listenOn>[0], signal: AbortSignal): Promise<RunningServer> {
  const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
  return listenOn(app, {
    host: '127.0.0.1',
    port: 0,
    log: silent,
    isDraining: () => signal.aborted,
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 15_000,
    bodyMaxBytes: DEMO_REQUEST_MAX_BYTES,
  })
}

async function fill(
  config: Config,
  version: string,
  signal: AbortSignal,
  { note, progress }: Pick<Terminal, 'note' | 'progress'>,
): Promise<void> {
  prepareFolders(config, true)
  const container = new Container({ config, version })
  try {
    const yesterday = lastCompleteDay(Date.now())
    const shiftMs = startOfDay(yesterday) - startOfDay(SAMPLE_LAST_DAY)
    const files = SAMPLE_FILES.map((name) => container.lineFile(assetPath(name), name))
    const sample = (await Promise.all(files)).map((file) => shifted(file, shiftMs))
    const onProgress = (): void => signal.throwIfAborted()
    progress('DEMO: importing the sample')
    const feed = await container.feed()
    const imported = await importSignals({ feed, onProgress }, sample, {
      onError: 'abort',
      titleProvenance: null,
      signal,
    })
    if (imported.errorCount > 0)
      throw new Error(`the bundled sample is damaged: ${imported.errors[0]?.reason}`)
    await refreshIndex({ search: await container.search(), onProgress, signal })
    note(`DEMO: ${imported.inserted} signals imported; publishing the last ${REPLAYED_DAYS} days`)
    const published = Array.from({ length: REPLAYED_DAYS }, (_, index) => REPLAYED_DAYS - 1 - index).filter(
      (daysAgo) => daysAgo !== GAP_DAYS_AGO,
    )
    for (const [done, daysAgo] of published.entries()) {
      signal.throwIfAborted()
      progress(`DEMO: ${done} of ${published.length} days published`)
      await publishAsOf(addDays(yesterday, -daysAgo), container, signal)
    }
    progress('DEMO: ranking the live periods and evaluating models')
    // The sample ends with yesterday: a snapshot of now would find less and less of the last day.
    const endOfSample = startOfDay(yesterday) + DAY_MS - 1
    await rankPeriods({ feed, clock: () => endOfSample }, { signal, discardLater: false })
    await evaluateDemoModels(container, signal)
    note(`DEMO: ${DEMO_MODELS.length} scripted models evaluated; none of them exists`)
    await auditDemo(container, signal, note)
  } finally {
    await container.close()
  }
}

/** Evaluates the scripted models by the real job, over the demo's own routing service. */
async function evaluateDemoModels(container: Container, signal: AbortSignal): Promise<void> {
  const ports = await container.evaluatePorts(SILENT)
  const { report } = await evaluateModels(ports, { mode: 'fullEval', dryRun: false, signal })
  if (report.outcome === 'failed') {
    throw new Error(`the demo could not evaluate its models: ${report.reason}`)
  }
}

/** Audits what was published by the real job, which leaves its record. */
async function auditDemo(
  container: Container,
  signal: AbortSignal,
  note: (message: string) => void,
): Promise<void> {
  const { ledger, archive } = await container.auditors()
  const options = { sample: null, since: null, expectedHead: null, payloads: false, jobs: 1, signal }
  const ports = { ledger, archive, clock: Date.now, random: Math.random, ...SILENT }
  await leaveAuditRecord(container, await verifyArchive(ports, options), options, { note })
}

async function publishAsOf(asOfDay: Day, container: Container, signal: AbortSignal): Promise<void> {
  const ports = await container.publishPorts(clockOfRun(asOfDay), () => undefined)
  const { report } = await publishYear(ports, {
    once: true,
    dryRun: false,
    allowEmpty: false,
    retryDelayMs: 0,
    signal,
  })
  signal.throwIfAborted()
  if (report.outcome !== 'published')
    throw new Error(`the demo could not publish ${asOfDay}: ${report.reason}`)
}

/** A clock that runs from ten minutes past the midnight after the day, or earlier where that is still to come. */
function clockOfRun(asOfDay: Day): Clock {
  const midnight = startOfDay(asOfDay) + DAY_MS
  const sinceMidnight = Math.min(RUN_AFTER_MIDNIGHT_MS, Math.floor((Date.now() - midnight) / 2))
  const started = performance.now()
  return () => midnight + sinceMidnight + Math.floor(performance.now() - started)
}

/** The rows of a sample file, moved in time by whole days. */
function shifted(source: LineSource, shiftMs: number): LineSource {
  return {
    name: source.name,
    async *lines() {
      for await (const lines of source.lines()) yield lines.map((line) => shiftLine(line, shiftMs))
    },
  }
}

function shiftLine(line: InputLine, shiftMs: number): InputLine {
  if ('problem' in line) return line
  const row = JSON.parse(line.text) as { day: Day; publishedAt: string }
  const day = dayOf(startOfDay(row.day) + shiftMs)
  const publishedAt: Instant = Date.parse(row.publishedAt) + shiftMs
  return { ...line, text: JSON.stringify({ ...row, day, publishedAt: formatInstant(publishedAt) }) }
}

function assetPath(name: string): string {
  return fileURLToPath(new URL(`../../assets/demo/${name}`, import.meta.url))
}
