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
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fillArchive } from './archive-data.mjs'
import { grouped, median, megabytes, note, printTable, run, runBench, runDash, seconds } from './support.mjs'

const ROUNDS = 5
const SIZES = process.env.PUBLICATIONS ? [Number(process.env.PUBLICATIONS)] : [4_000, 12_000]
const LAST_DAY = '2026-03-01'

/** As a share of the throughput of `xargs -P2 sha256sum`. */
const GOAL = 1.7

await runBench(async (folder) => {
  for (const publications of SIZES) await compare(join(folder, String(publications)), publications)
})

async function compare(folder, publications) {
  const dataDir = join(folder, 'data')
  const bytes = await fillArchive(dataDir, publications, LAST_DAY)
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
