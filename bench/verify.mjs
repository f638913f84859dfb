/**
 * Measures how fast `dash verify-archive` reads an archive of eleven years and one of 33, beside `sha256sum` on the same
 * object files in the same run: with two processes (`xargs -P2`) and with one. The audit does more than the digests: both ledgers, the
 * chain, every head, the selection, the identity of every envelope; with `--payloads` also every payload's schema. The
 * contenders take turns, and the median counts; all files are in the page cache.
 *
 *     npm run build && node bench/verify.mjs
 *     PUBLICATIONS=2000 node bench/verify.mjs   # one archive of another size
 *
 * Linux with coreutils and findutils. Takes about five minutes and 3 GB of temporary disk.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Container } from '../dist/cli/container.js'
import { readConfig } from '../dist/cli/settings/read-config.js'
import { prepareFolders } from '../dist/cli/data-folder.js'
import { addDays, dayOf } from '../dist/domain/time.js'
import { objectPath } from '../dist/domain/year/examine.js'
import { GENESIS_LEAF, sealEntry } from '../dist/domain/year/chain.js'
import { coverageOf } from '../dist/domain/year/rank.js'
import { sealYear } from '../dist/domain/year/envelope.js'
import { formatHead } from '../dist/domain/year/ledger.js'
import { rankYear } from '../dist/domain/year/rank.js'
import { windowEnding } from '../dist/domain/year/ledger.js'
import { grouped, median, megabytes, note, printTable, run, runBench, runDash, seconds } from './support.mjs'

const ROUNDS = 5
const SIZES = process.env.PUBLICATIONS ? [Number(process.env.PUBLICATIONS)] : [4_000, 12_000]
const LAST_DAY = '2026-03-01'
const EVENTS_PER_SOURCE = 150
const RUN_AFTER_MIDNIGHT_MS = 600_000

/** As a share of the throughput of `xargs -P2 sha256sum`. */
const GOAL = 1.3

await runBench(async (folder) => {
  for (const publications of SIZES) await compare(join(folder, String(publications)), publications)
})

async function compare(folder, publications) {
  const dataDir = join(folder, 'data')
  const bytes = await fill(dataDir, publications)
  note(`${grouped(publications)} publications, ${megabytes(bytes)}`)
  const objects = join(dataDir, 'objects', 'sha256')
  const contenders = [
    { name: 'xargs -P2 sha256sum', measure: () => digest(objects, 2) },
    { name: 'xargs -P1 sha256sum', measure: () => digest(objects, 1) },
    { name: 'dash verify-archive', measure: () => verify(dataDir, publications, []) },
    { name: 'dash verify-archive --payloads', measure: () => verify(dataDir, publications, ['--payloads']) },
  ]
  const times = contenders.map(() => [])
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [place, { name, measure }] of contenders.entries()) {
      const wallMs = await measure()
      // The first round fills the page cache.
      if (round > 0) times[place].push(wallMs)
      note(`round ${round}, ${name}: ${seconds(wallMs)}`)
    }
  }
  rmSync(folder, { recursive: true })
  printResult(contenders, times, publications, bytes)
}

async function digest(objects, processes) {
  const startedAt = performance.now()
  await run('sh', ['-c', `find "$0" -type f | xargs -P${processes} -n 64 sha256sum >/dev/null`, objects])
  return performance.now() - startedAt
}

async function verify(dataDir, publications, flags) {
  const { report, wallMs } = await runDash(['verify-archive', '--data-dir', dataDir, ...flags], dataDir)
  if (!report.ok || report.objects !== publications)
    throw new Error(`the audit reported ${JSON.stringify(report)}`)
  return wallMs
}

function printResult(contenders, times, publications, bytes) {
  const peer = median(times[0])
  printTable(
    `An audit of ${grouped(publications)} publications, ${megabytes(bytes)}: median of ${ROUNDS} rounds, goal ${GOAL} of xargs -P2 sha256sum`,
    ['contender', 'time', 'MB/s', 'of xargs -P2', 'rounds'],
    contenders.map(({ name }, place) => {
      const wallMs = median(times[place])
      return [
        name,
        seconds(wallMs),
        grouped(bytes / 1e3 / wallMs),
        (peer / wallMs).toFixed(2),
        times[place].map((ms) => seconds(ms)).join(', '),
      ]
    }),
  )
}

/** An archive as publishers leave it, written by the product's own sealing and ledger. */
async function fill(dataDir, publications) {
  const config = readConfig({ dataDir }, {}, dataDir)
  prepareFolders(config, true)
  const container = new Container({ config, version: '0' })
  const ledger = await container.ledger()
  const rows = []
  let bytes = 0
  for (let place = 0; place < publications; place += 1) {
    const sealed = publicationOf(addDays(LAST_DAY, place - publications + 1))
    const { manifest } = sealed
    const content = { kind: 'publication', manifest }
    const row = sealEntry(content, place + 1, manifest.publishedAt, rows.at(-1)?.leaf ?? GENESIS_LEAF)
    rows.push(row)
    bytes += manifest.byteSize
    write(join(dataDir, 'objects', objectPath(manifest.sha256)), sealed.bytes)
    const head = formatHead({ seq: row.seq, leaf: row.leaf, time: manifest.publishedAt })
    write(join(dataDir, 'objects', 'heads', String(row.seq)), head)
  }
  const lease = await ledger.takeLease({ name: 'bench', process: null }, Date.now(), 600_000, () => false)
  const nothing = { rows: [], legacy: [], founding: null }
  const guard = { token: lease.token, now: Date.now() }
  const refusal = await ledger.adopt({ ...nothing, rows }, [], nothing, guard)
  await ledger.releaseLease(lease.token)
  await container.close()
  if (refusal !== null) throw new Error(`the ledger refused the rows: ${refusal}`)
  return bytes
}

function write(path, bytes) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
}

function publicationOf(asOfDay) {
  const window = windowEnding(asOfDay)
  const events = ['hn', 'lobsters', 'lesswrong'].flatMap((source) => eventsOf(source, window))
  const outcome = rankYear(events, new Map())
  if (outcome.do !== 'ranked') throw new Error('the made-up events lack titles')
  const publishedAt = window.windowEnd + RUN_AFTER_MIDNIGHT_MS
  const coverage = coverageOf(window, [], outcome.year)
  return sealYear(window, outcome.year, coverage, publishedAt, publishedAt)
}

function eventsOf(source, { asOfDay, windowStart }) {
  return Array.from({ length: EVENTS_PER_SOURCE }, (_, index) => ({
    source,
    sourceId: String(40_000_000 + index),
    title: `What ${source} talked about in entry ${index}, long enough for a title as people write it on ${asOfDay}`,
    url: `https://example.org/${source}/${dayOf(windowStart)}/an-article-with-a-readable-name-${index}.html`,
    points: 2_000 - index,
    comments: index,
    publishedAt: windowStart + index * 3_600_000,
    titleProvenance: `${source}:bench`,
  }))
}
