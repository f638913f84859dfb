/**
 * Turns random bits of a real archive over, one at a time, and holds the audit and the server to their promises: every
 * flip that changes a row or an object is reported, and the server gives the right bytes or a 503, never others, never
 * an older publication, and never dies.
 *
 *     npm run build && node scripts/attacks/bit-flips.mjs [--flips 20000] [--seed 1] [--days 30] [--workers 2] [--json]
 *
 * The archive is made from the bundled sample, or from the same files in full in the folder DASH_BENCH_DATA. Half of
 * the flips fall on the ledger's file, half on the objects, everywhere alike. What a flip changed is decided by a plain
 * reading that has nothing of dash in it (read-plainly.mjs). One worker a core, unless told otherwise; one that dies is counted and replaced.
 */
import { fork } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { lineFile } from '../../dist/adapters/input.js'
import { Container } from '../../dist/cli/container.js'
import { readConfig } from '../../dist/cli/settings/read-config.js'
import { prepareFolders } from '../../dist/cli/data-folder.js'
import { addDays, DAY_MS, startOfDay } from '../../dist/domain/time.js'
import { importSignals } from '../../dist/jobs/import-lines.js'
import { publishYear } from '../../dist/jobs/publish-year.js'

const WORKER = fileURLToPath(new URL('bit-flips-worker.mjs', import.meta.url))

/** A flip that takes longer hangs, which is a death too. */
const FLIP_MS = 60_000

/** Flips a worker makes before a new one takes its place: the driver keeps a descriptor for every closed client. */
const FLIPS_A_WORKER = 250

/** The files that make the archive, with the last day they observe (assets/demo/SOURCES.md). */
const LAST_DAY = '2021-11-07'
const SOURCES = {
  hn: /^hn-frontpage.*\.gz$/,
  lobsters: /^lobsters-final.*\.gz$/,
  lesswrong: /^lesswrong-final.*\.gz$/,
}

const { values } = parseArgs({
  options: {
    flips: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    days: { type: 'string', default: '30' },
    workers: { type: 'string', default: String(availableParallelism()) },
    json: { type: 'boolean', default: false },
  },
})

const root = mkdtempSync(join(tmpdir(), 'dash-flips-'))
const children = new Set()
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(root, { recursive: true, force: true })
})

const attacked = await attack(
  Number(values.flips),
  Number(values.seed),
  Number(values.days),
  Number(values.workers),
)
if (values.json) console.log(JSON.stringify(attacked))
else printCounts(attacked)
const bad =
  attacked.missed + attacked.wrong + attacked.older + attacked.deaths + attacked.wrote + attacked.auditFaults
process.exitCode = bad > 0 ? 1 : 0

async function attack(flips, seed, days, workers) {
  const archive = join(root, 'archive')
  const publications = await makeArchive(archive, days)
  const targets = targetsIn(archive)
  const next = flipsOf(targets, flips, randomNumbers(seed))
  const counts = {
    seed,
    days,
    ledgerBytes: targets.ledger.bytes,
    objectBytes: targets.objectBytes,
    ...nothing(),
  }
  const startedAt = performance.now()
  await Promise.all(
    Array.from({ length: workers }, (_, number) => runWorker(number, archive, publications, next, counts)),
  )
  return { ...counts, seconds: Math.round((performance.now() - startedAt) / 1000) }
}

function nothing() {
  const side = () => ({
    flips: 0,
    changed: 0,
    unreadable: 0,
    unchanged: 0,
    reported: 0,
    reportedUnchanged: 0,
  })
  return {
    ledger: side(),
    objects: side(),
    missed: 0,
    auditFaults: 0,
    right: 0,
    unavailable: 0,
    wrong: 0,
    older: 0,
    wrote: 0,
    deaths: 0,
    cases: [],
  }
}

/** Publishes the last days of the sample by the real job at the times it would have run. */
async function makeArchive(folder, days) {
  const config = readConfig({ dataDir: folder }, {}, root)
  prepareFolders(config, true)
  const container = new Container({ config, version: '0' })
  try {
    await importAll(await container.feed())
    for (let daysAgo = days - 1; daysAgo >= 0; daysAgo -= 1)
      await publish(addDays(LAST_DAY, -daysAgo), container)
    const { proved } = await (await container.year()).read()
    return proved.timeline.map(({ manifest: { sha256, publishedAt } }) => ({
      publishedAt,
      path: join('objects', 'sha256', sha256.slice(0, 2), sha256),
    }))
  } finally {
    await container.close()
    for (const file of readdirSync(folder)) if (file.startsWith('feed.db')) rmSync(join(folder, file))
  }
}

async function importAll(feed) {
  const folder =
    process.env['DASH_BENCH_DATA'] ?? fileURLToPath(new URL('../../assets/demo', import.meta.url))
  for (const [source, pattern] of Object.entries(SOURCES)) {
    const names = readdirSync(folder).filter((name) => pattern.test(name))
    if (names.length === 0) throw new Error(`${folder} has no file of ${source}`)
    const inputs = names.map((name) => lineFile(join(folder, name), name))
    const report = await importSignals({ feed, onProgress() {} }, inputs, {
      onError: 'skip',
      titleProvenance: `${source}:sample`,
      signal: new AbortController().signal,
    })
    if (report.inserted === 0) throw new Error(`${names.join(', ')}: ${report.errors[0]?.reason}`)
  }
}

async function publish(asOfDay, container) {
  const startsAt = startOfDay(asOfDay) + DAY_MS + 600_000
  const started = performance.now()
  const clock = () => startsAt + Math.floor(performance.now() - started)
  const ports = await container.publishPorts(clock, () => undefined)
  const options = {
    once: true,
    dryRun: false,
    recordGaps: null,
    retryDelayMs: 0,
    signal: new AbortController().signal,
  }
  const { report } = await publishYear(ports, options)
  if (report.outcome !== 'published') throw new Error(`${asOfDay} was not published: ${report.reason}`)
}

function targetsIn(folder) {
  const sizeOf = (file) => statSync(join(folder, file)).size
  const objects = readdirSync(join(folder, 'objects', 'sha256'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
    .map((file) => ({ file, bytes: sizeOf(file) }))
  const objectBytes = objects.reduce((sum, { bytes }) => sum + bytes, 0)
  return { ledger: { file: 'ledger.db', bytes: sizeOf('ledger.db') }, objects, objectBytes }
}

/** Flips in a fixed order for a seed, whoever takes them; null when there are no more. */
function flipsOf({ ledger, objects, objectBytes }, total, random) {
  const below = (limit) => Math.floor(random() * limit)
  let number = 0
  return () => {
    if (number === total) return null
    number += 1
    const [bit, other] = [below(8), below(1_000_000)]
    if (number % 2 === 1) return { number, file: ledger.file, offset: below(ledger.bytes), bit, other }
    let offset = below(objectBytes)
    for (const { file, bytes } of objects) {
      if (offset < bytes) return { number, file, offset, bit, other }
      offset -= bytes
    }
    throw new Error('an offset beyond every object')
  }
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomNumbers(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

async function runWorker(number, archive, publications, next, counts) {
  const folder = join(root, `copy-${number}`)
  const statusFile = join(root, `status-${number}`)
  let worker = null
  let made = 0
  for (let flip = next(); flip !== null; flip = next()) {
    if (worker === null || made === FLIPS_A_WORKER) {
      if (worker) await stop(worker)
      worker = await start(folder, statusFile, archive, publications)
      made = 0
    }
    made += 1
    const outcome = await answerOf(worker, flip)
    if (outcome === null) {
      counts.deaths += 1
      counts.cases.push({ ...flip, died: readFileSync(statusFile, 'utf8') })
      await stop(worker)
      worker = null
    } else count(counts, flip, outcome)
    if (!values.json && flip.number % 500 === 0)
      console.error(`${flip.number} flips, ${counts.missed} missed`)
  }
  if (worker) await stop(worker)
}

async function start(folder, statusFile, archive, publications) {
  rmSync(folder, { recursive: true, force: true })
  cpSync(archive, folder, { recursive: true })
  writeFileSync(statusFile, 'start')
  const worker = fork(WORKER, [folder, statusFile], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  children.add(worker)
  worker.once('exit', () => children.delete(worker))
  const begun = await answerOf(worker, { publications })
  if (!begun?.ready) throw new Error(`the undamaged archive is not sound: ${begun?.audit}`)
  return worker
}

/** @returns null when the worker died or hung */
function answerOf(worker, message) {
  return new Promise((resolve) => {
    const done = (answer) => {
      clearTimeout(deadline)
      worker.off('exit', died)
      worker.off('message', done)
      resolve(answer)
    }
    const died = () => done(null)
    const deadline = setTimeout(() => worker.kill('SIGKILL'), FLIP_MS)
    worker.once('exit', died)
    worker.once('message', done)
    worker.send(message, () => undefined)
  })
}

async function stop(worker) {
  if (worker.exitCode !== null || worker.signalCode !== null) return
  const exited = new Promise((resolve) => worker.once('exit', resolve))
  if (worker.connected) worker.disconnect()
  await exited
}

function count(counts, flip, { changed, audit, answers, wrote }) {
  const side = flip.file === 'ledger.db' ? counts.ledger : counts.objects
  const reported = audit !== 'clean' && audit !== 'note'
  const harmful = changed !== 'nothing'
  side.flips += 1
  if (changed === 'nothing') side.unchanged += 1
  else if (changed === 'rows unreadable') side.unreadable += 1
  else side.changed += 1
  if (audit.startsWith('ended early')) counts.auditFaults += 1
  if (harmful && reported) side.reported += 1
  if (!harmful && reported) side.reportedUnchanged += 1
  if (harmful && !reported) counts.missed += 1
  if (wrote) counts.wrote += 1
  for (const answer of answers) counts[answer === '503' ? 'unavailable' : answer] += 1
  const noteworthy = (harmful && !reported) || wrote || audit.startsWith('ended early')
  if (noteworthy || answers.includes('wrong') || answers.includes('older')) {
    counts.cases.push({ ...flip, changed, audit, answers, wrote })
  }
}

function printCounts({ ledger, objects, cases, ...counts }) {
  const grouped = (number) => number.toLocaleString('en-US')
  const row = (...cells) => console.log(`| ${cells.join(' | ')} |`)
  console.log(`seed ${counts.seed}, ${counts.days} days, ${counts.seconds} s`)
  row('flips on', 'bytes', 'flips', 'changed it', 'unreadable', 'no row changed', 'reported', 'missed')
  row('---', '--:', '--:', '--:', '--:', '--:', '--:', '--:')
  const missed = (side) => side.changed + side.unreadable - side.reported
  const cells = ({ flips, changed, unreadable, unchanged, reported }) => [
    flips,
    changed,
    unreadable,
    unchanged,
    reported,
  ]
  row('the ledger’s file', ...[counts.ledgerBytes, ...cells(ledger), missed(ledger)].map(grouped))
  row('the objects', ...[counts.objectBytes, ...cells(objects), missed(objects)].map(grouped))
  console.log()
  const { right, unavailable, wrong, older, deaths, wrote, auditFaults } = counts
  row(
    'server: 200, right bytes',
    '503',
    'wrong bytes',
    'older bytes',
    'deaths',
    'ledger written to',
    'audit faults',
  )
  row('--:', '--:', '--:', '--:', '--:', '--:', '--:')
  row(...[right, unavailable, wrong, older, deaths, wrote, auditFaults].map(grouped))
  console.log(`\nreported although no row changed: ${grouped(ledger.reportedUnchanged)}`)
  for (const each of cases.slice(0, 50)) console.log(JSON.stringify(each))
}
