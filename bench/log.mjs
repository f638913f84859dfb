/**
 * Measures the signed log at two ages, 100 entries and ten years (3,650): `dash publish-year` of one day with and without
 * a key, and requests to the log of `dash serve`. The peers, in the same run: publishing without a key, and the history
 * of the same server. Medians of several rounds, taking turns.
 *
 *     npm run build && node bench/log.mjs
 *
 * Linux only (peak memory is read from /proc); no package needed.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { addDays, dayOf } from '../dist/domain/time.js'
import { fillYears, openArchive } from './many-years.mjs'
import {
  median,
  ms,
  note,
  percentilesOf,
  printTable,
  runBench,
  runDash,
  seconds,
  startDash,
} from './support.mjs'

const AGES = [100, 3_650]
const ROUNDS = 5
const REQUESTS = 300
const SIGNALS = 300

await runBench(async (folder) => {
  const yesterday = addDays(dayOf(Date.now()), -1)
  const rows = []
  for (const entries of AGES) {
    const archive = await makeArchive(folder, entries, yesterday)
    const times = { key: [], none: [] }
    for (let round = 1; round <= ROUNDS; round += 1)
      for (const kind of ['none', 'key']) times[kind].push(await publishCopy(archive, kind === 'key'))
    note(`${entries} entries: published`)
    const requests = await measureRequests(archive)
    rows.push([entries, seconds(median(times.none)), seconds(median(times.key)), ...requests])
  }
  printTable(
    `The signed log, medians: publish-year of one day (${ROUNDS} rounds), ${REQUESTS} requests one after another`,
    [
      'entries',
      'publish, no key',
      'publish, key',
      'history',
      'checkpoint',
      'tile of hashes',
      'bundle',
      'proof',
    ],
    rows,
  )
})

/** An archive up to the day before yesterday, signed, with signals of yesterday. */
async function makeArchive(folder, entries, yesterday) {
  const dataDir = join(folder, `${entries}`)
  const env = { DASH_BASE_URL: 'https://bench.example', DASH_LOG_KEY_FILE: join(folder, `${entries}.key`) }
  const file = join(folder, 'signals.ndjson')
  writeFileSync(file, signalsOf(yesterday))
  await runDash(['import', 'signals', file, '--data-dir', dataDir], folder)
  const stores = openArchive(dataDir)
  await fillYears(stores, addDays(yesterday, -entries), entries)
  stores.opened.close()
  await runDash(['log-key', 'new'], folder, env)
  await runDash(['checkpoint', '--data-dir', dataDir], folder, env)
  return { folder, dataDir, env, entries }
}

function signalsOf(day) {
  const lines = Array.from({ length: SIGNALS }, (_, index) =>
    JSON.stringify({
      source: ['hn', 'lobsters', 'lesswrong'][index % 3],
      sourceId: `${index}`,
      day,
      title: `Story ${index} of the last day`,
      url: `https://example.org/${index}`,
      points: index,
      comments: index,
      publishedAt: `${day}T00:00:00Z`,
      titleProvenance: `${['hn', 'lobsters', 'lesswrong'][index % 3]}:bench`,
    }),
  )
  return `${lines.join('\n')}\n`
}

async function publishCopy({ folder, dataDir, env }, hasKey) {
  const copy = join(folder, 'copy')
  cpSync(dataDir, copy, { recursive: true })
  // The record of a copied key must end where the copy ends.
  const { DASH_LOG_KEY_FILE: key } = env
  cpSync(key, `${copy}.key`)
  cpSync(`${key}.signed`, `${copy}.key.signed`)
  execFileSync('sync')
  const settings = hasKey ? { ...env, DASH_LOG_KEY_FILE: `${copy}.key` } : {}
  const { report, wallMs } = await runDash(['publish-year', '--once', '--data-dir', copy], folder, settings)
  if (report.outcome !== 'published') throw new Error(`the day was not published: ${report.reason}`)
  for (const path of [copy, `${copy}.key`, `${copy}.key.signed`])
    rmSync(path, { recursive: true, force: true })
  return wallMs
}

/** Medians of requests to a server of the archive. */
async function measureRequests({ dataDir, entries }) {
  const base = await startDash(dataDir, { logLevel: 'error', logFile: 2 })
  const width = entries % 256
  const tile = String(Math.floor(entries / 256)).padStart(3, '0')
  const paths = [
    '/api/feed/history?sort=year',
    '/tlog/year/checkpoint',
    `/tlog/year/tile/0/${tile}.p/${width}`,
    `/tlog/year/tile/entries/${tile}.p/${width}`,
    '/tlog/year/proof',
  ]
  const times = paths.map(() => [])
  for (let round = 0; round < REQUESTS; round += 1)
    for (const [index, path] of paths.entries()) {
      const startedAt = performance.now()
      const response = await fetch(`${base}${path}`)
      await response.arrayBuffer()
      if (response.status !== 200) throw new Error(`${path}: ${response.status}`)
      times[index].push(performance.now() - startedAt)
    }
  return times.map((each) => ms(percentilesOf(each)[0]))
}
