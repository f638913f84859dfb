/**
 * Measures time and memory of `dash import signals` for a whole data set, and the time of the same import
 * again, which changes nothing. The peer, in the same run, puts the same lines into a plain table with an FTS5
 * index of the titles with the same driver, and checks nothing (plain-insert.mjs). Three rounds, taking turns; the median counts.
 *
 *     npm run build && DASH_BENCH_DATA=FOLDER node bench/import.mjs
 *
 * FOLDER holds the data set's *.ndjson.gz files. Linux only (peak memory is read from /proc); no package
 * needed.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  dataFolder,
  grouped,
  measureNode,
  median,
  megabytes,
  note,
  printTable,
  runBench,
  runDash,
  seconds,
} from './support.mjs'

const ROUNDS = 3
const PLAIN_INSERT = fileURLToPath(new URL('plain-insert.mjs', import.meta.url))

await runBench(async (folder) => {
  const data = dataFolder()
  const files = readdirSync(data)
    .filter((name) => name.endsWith('.ndjson.gz'))
    .map((name) => join(data, name))
  const measured = { first: [], again: [], plain: [] }
  for (let round = 1; round <= ROUNDS; round += 1) {
    const dataDir = join(folder, `round-${round}`)
    mkdirSync(dataDir)
    measured.first.push(await importOnce(files, dataDir, folder))
    measured.again.push(await importOnce(files, dataDir, folder))
    measured.plain.push(await insertPlainly(files, join(dataDir, 'plain.db'), folder))
    rmSync(dataDir, { recursive: true })
    note(
      `round ${round}: ${Object.values(measured)
        .map((runs) => seconds(runs.at(-1).wallMs))
        .join(', ')}`,
    )
  }
  printResult(files.length, measured)
})

async function importOnce(files, dataDir, folder) {
  const { report, ...measured } = await runDash(
    ['import', 'signals', ...files, '--on-error', 'skip', '--data-dir', dataDir],
    folder,
  )
  return { ...measured, report, rows: report.rows }
}

async function insertPlainly(files, database, folder) {
  const { stdout, ...measured } = await measureNode([PLAIN_INSERT, database, ...files], folder)
  return { ...measured, rows: Number(stdout) }
}

function printResult(files, { first, again, plain }) {
  const [{ rows }] = first
  if (rows !== plain[0].rows) throw new Error(`dash read ${rows} rows, its peer ${plain[0].rows}`)
  const peerMs = median(plain.map(({ wallMs }) => wallMs))
  const row = (name, runs) => {
    const wallMs = median(runs.map((run) => run.wallMs))
    return [
      name,
      seconds(wallMs),
      grouped(rows / (wallMs / 1000)),
      (wallMs / peerMs).toFixed(2),
      megabytes(median(runs.map(({ peakBytes }) => peakBytes))),
      runs[0].report ? describe(runs[0].report) : 'every row, unchecked',
      runs.map((run) => seconds(run.wallMs)).join(', '),
    ]
  }
  printTable(
    `Import of ${grouped(rows)} rows in ${files} files, median of ${ROUNDS}`,
    ['what', 'wall time', 'rows/s', 'of peer', 'peak memory', 'outcome', 'rounds'],
    [
      row('dash, into a new folder', first),
      row('dash, the same again', again),
      row('peer: plain table with FTS5, no checks', plain),
    ],
  )
}

function describe({ inserted, replaced, unchanged, skipped, unknownSources }) {
  const unknown = Object.values(unknownSources).reduce((sum, count) => sum + count, 0)
  return (
    `${grouped(inserted)} inserted, ${grouped(replaced)} replaced, ${grouped(unchanged)} unchanged, ` +
    `${skipped} skipped, ${grouped(unknown)} of unknown sources`
  )
}
