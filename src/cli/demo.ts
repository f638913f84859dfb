import { randomBytes, randomInt } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ED25519_KEY_BYTES } from '../domain/digest.ts'
import { storedRunSchema } from '../domain/models/schema.ts'
import { auditRecord } from '../domain/year/finding.ts'
import { sealRun } from '../domain/models/stored-run.ts'
import type { Clock, InputLine, LineSource } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { addDays, DAY_MS, dayOf, formatInstant, startOfDay } from '../domain/time.ts'
import type { Day } from '../domain/time.ts'
import { lastCompleteDay } from '../domain/year/ledger.ts'
import { importArticles, importSignals } from '../jobs/import-lines.ts'
import { publishYear } from '../jobs/publish-year.ts'
import { rankPeriods } from '../jobs/snapshot.ts'
import { audit } from '../jobs/archive/audit.ts'
import { ownArchive } from '../jobs/archive/archives.ts'
import { DEMO_CHAT_MODEL, scriptedModelApp } from '../server/demo/scripted-model.ts'
import { listenOn } from '../server/listen.ts'
import type { RunningServer } from '../server/listen.ts'
import type { Log } from '../server/route.ts'
import { Container } from './container.ts'
import type { Config } from './settings/config.ts'
import { databaseAt, prepareFolders } from './data-folder.ts'
import type { CommandContext } from './context.ts'
import type { Terminal } from './terminal.ts'

const SAMPLE_FILES = [
  'hn-frontpage.ndjson.gz',
  'lobsters-final.ndjson.gz',
  'lesswrong-final.ndjson.gz',
  'hype-github.ndjson.gz',
  'hype-huggingface.ndjson.gz',
]
const ARTICLES_FILE = 'articles.ndjson.gz'
const RECOMMENDATION_FILE = 'recommendation.json'

/** Last day of observations in the bundled sample (assets/demo/SOURCES.md). */
const SAMPLE_LAST_DAY: Day = '2021-11-07'

const REPLAYED_DAYS = 30

/** Day without a publication, in days before yesterday: the next run records a gap. */
const GAP_DAYS_AGO = 12

const RUN_AFTER_MIDNIGHT_MS = 600_000

const SILENT = { onProgress: () => undefined, onNote: () => undefined }

/**
 * Runs a function with the configuration of a demo installation, which is deleted afterwards.
 *
 * A temporary folder is filled with the bundled sample, shifted by whole days so that it ends yesterday, and the
 * publish job runs for the last 30 days at the times it would have run. The live periods end with the sample, at the
 * midnight that ended yesterday; `generatedAt` shows that time. Older days cannot follow in the background: a ledger takes
 * its entries in the order of their days.
 *
 * @throws Refusal `usage` if a flag names a data folder
 */
export async function withDemo<T>(
  { config, flags, terminal, signal, version }: CommandContext,
  run: (config: Config) => Promise<T>,
): Promise<T> {
  if (flags.dataDir !== undefined)
    throw new Refusal('usage', '--demo uses a temporary folder; remove --data-dir')
  const folder = await mkdtemp(join(tmpdir(), 'dash-demo-'))
  let model: RunningServer | null = null
  try {
    model = await listenOn(scriptedModelApp(), { ...LISTENING, isDraining: () => signal.aborted })
    terminal.note(`DEMO: filling ${folder} with the bundled sample; it is deleted when the server stops`)
    const demo = demoConfig(config, folder, model.url)
    await fill(demo, version, signal, terminal)
    return await run(demo)
  } finally {
    await model?.close(0)
    await rm(folder, { recursive: true, force: true })
  }
}

/** Log of a server that is used by this process only. */
export const NO_LOG: Log = { info: () => undefined, warn: () => undefined, error: () => undefined }

const LISTENING = {
  host: '127.0.0.1',
  port: 0,
  log: NO_LOG,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  /** As many as `/v1` takes. */
  bodyMaxBytes: 4 * 1024 * 1024,
}

function demoConfig(config: Config, folder: string, modelUrl: string): Config {
  return {
    ...config,
    dataDir: folder,
    dataDirNamed: true,
    dataDirUsed: true,
    ledger: databaseAt(join(folder, 'ledger.db')),
    feed: databaseAt(join(folder, 'feed.db')),
    state: databaseAt(join(folder, 'state.db')),
    stateInDataDir: true,
    store: { kind: 'file', path: join(folder, 'objects') },
    storeNamed: false,
    // Each demo is another log: auditors remember logs by their names.
    log: {
      keyFile: join(folder, 'log.key'),
      origin: `demo-${randomInt(2 ** 47)}.dash.example/tlog/year`,
      url: null,
    },
    // The demo gets no real key; its models exist nowhere else. The page offers snippets with this URL.
    openRouterUrl: modelUrl,
    openRouterKey: null,
    publishedBaseUrl: modelUrl,
    // A scripted model that costs nothing. DASH_CHAT_DISABLED applies to the operator's own server only.
    chat: {
      ...config.chat,
      disabled: false,
      sessionSecret: randomBytes(32).toString('base64url'),
      provider: { url: modelUrl, key: null, model: DEMO_CHAT_MODEL, prices: null },
      verification: null,
    },
  }
}

async function fill(
  config: Config,
  version: string,
  signal: AbortSignal,
  { note, progress }: Pick<Terminal, 'note' | 'progress'>,
): Promise<void> {
  prepareFolders(config, true)
  // The folder is deleted with this process: nothing needs to survive a power cut.
  const container = new Container({ config, version, isTemporary: true })
  try {
    const { keyFile, origin } = config.log
    await container.newLogKey(keyFile ?? '', origin ?? '', randomBytes(ED25519_KEY_BYTES))
    progress('DEMO: importing the sample')
    const yesterday = lastCompleteDay(Date.now())
    const inserted = await importSample(container, yesterday, signal)
    note(`DEMO: ${inserted} signals imported; publishing the last ${REPLAYED_DAYS} days`)
    for (let daysAgo = REPLAYED_DAYS - 1; daysAgo >= 0; daysAgo--) {
      if (daysAgo === GAP_DAYS_AGO) continue
      signal.throwIfAborted()
      progress(`DEMO: publishing ${addDays(yesterday, -daysAgo)}`)
      await publishAsOf(addDays(yesterday, -daysAgo), container, signal)
    }
    await keepRecommendations(container, yesterday)
    progress('DEMO: ranking the live periods')
    // The sample ends yesterday: a snapshot as of now would cover less and less of its last day.
    const endOfSample = startOfDay(yesterday) + DAY_MS
    const ranked = { feed: await container.feed(), clock: () => endOfSample }
    await rankPeriods(ranked, { signal, discardLater: false })
    await auditDemo(container, signal)
  } finally {
    await container.close()
  }
}

/** @returns number of imported signals */
async function importSample(container: Container, yesterday: Day, signal: AbortSignal): Promise<number> {
  const shiftMs = sampleShiftMs(yesterday)
  const shiftedFile = async (name: string): Promise<LineSource> =>
    shifted(await container.lineFile(assetPath(name), name), shiftMs)
  const ports = { feed: await container.feed(), onProgress: () => signal.throwIfAborted() }
  // The bundled sample is valid: it is read once, and any bad row ends the demo below.
  const options = { onError: 'skip', titleProvenance: null, signal } as const
  const signals = await importSignals(ports, await Promise.all(SAMPLE_FILES.map(shiftedFile)), options)
  const articles = await importArticles(ports, [await shiftedFile(ARTICLES_FILE)], options)
  for (const { errors } of [signals, articles]) {
    if (errors[0]) throw new Error(`the bundled sample is damaged: ${errors[0].file}: ${errors[0].reason}`)
  }
  return signals.inserted
}

const EVALUATED_DAYS = 14

/** Stores the bundled evaluation of made-up models as that of each of the last days, with response times that vary. */
async function keepRecommendations(container: Container, yesterday: Day): Promise<void> {
  const bundled = await readFile(assetPath(RECOMMENDATION_FILE), 'utf8')
  const recommendations = await container.recommendations()
  for (let daysAgo = EVALUATED_DAYS - 1; daysAgo >= 0; daysAgo--) {
    const shiftMs = sampleShiftMs(yesterday) - daysAgo * DAY_MS
    const text = bundled.replaceAll(/\d{4}-\d\d-\d\d/g, (day) => dayOf(startOfDay(day) + shiftMs))
    const run = storedRunSchema.parse(JSON.parse(text))
    // All below 1,000 ms, so that the scores stay as they are.
    const models = run.models.map(({ latencyMs, ...model }) => ({
      ...model,
      latencyMs: latencyMs && latencyMs + ((daysAgo * model.rank * 37) % 150),
    }))
    await recommendations.put(run.rankingVersion, sealRun({ ...run, models }))
  }
}

/** How far the sample is moved, so that it ends yesterday: whole days, in milliseconds. */
function sampleShiftMs(yesterday: Day): number {
  return startOfDay(yesterday) - startOfDay(SAMPLE_LAST_DAY)
}

async function auditDemo(container: Container, signal: AbortSignal): Promise<void> {
  const options = { expectedHead: null, payloads: false, jobs: 1, ...SILENT }
  const objects = await container.objectsAuditor()
  const archive = ownArchive({ ledger: await container.ledgerAuditor(), objects }, options)
  const ports = { clock: Date.now, random: Math.random, ...SILENT }
  const { report } = await audit(archive, ports, { sample: null, since: null, signal, ...options })
  await (await container.audits()).record(auditRecord(report, true, Date.now()))
}

async function publishAsOf(asOfDay: Day, container: Container, signal: AbortSignal): Promise<void> {
  const ports = await container.publishPorts(clockOfRun(asOfDay), () => undefined)
  const { report } = await publishYear(ports, {
    once: true,
    dryRun: false,
    allowEmpty: false,
    recordGaps: null,
    retryDelayMs: 0,
    signal,
  })
  signal.throwIfAborted()
  if (report.outcome !== 'published')
    throw new Error(`the demo could not publish ${asOfDay}: ${report.reason}`)
}

/**
 * Returns a clock that starts ten minutes after the midnight that ends `asOfDay`, or earlier if that is in the
 * future.
 */
function clockOfRun(asOfDay: Day): Clock {
  const midnight = startOfDay(asOfDay) + DAY_MS
  const sinceMidnight = Math.min(RUN_AFTER_MIDNIGHT_MS, Math.floor((Date.now() - midnight) / 2))
  const started = performance.now()
  return () => midnight + sinceMidnight + Math.floor(performance.now() - started)
}

function shifted(source: LineSource, shiftMs: number): LineSource {
  return {
    name: source.name,
    async *lines() {
      for await (const lines of source.lines()) yield lines.map((line) => shiftLine(line, shiftMs))
    },
  }
}

/** Moves the day and the times of a row of signals, or the time of an article. */
function shiftLine(line: InputLine, shiftMs: number): InputLine {
  if ('problem' in line) return line
  const row = JSON.parse(line.text) as Partial<Record<'day' | 'publishedAt' | 'fetchedAt', string>>
  if (row.day !== undefined) row.day = dayOf(startOfDay(row.day) + shiftMs)
  for (const name of ['publishedAt', 'fetchedAt'] as const) {
    if (row[name] !== undefined) row[name] = formatInstant(Date.parse(row[name]) + shiftMs)
  }
  return { ...line, text: JSON.stringify(row) }
}

function assetPath(name: string): string {
  return fileURLToPath(new URL(`../../assets/demo/${name}`, import.meta.url))
}
