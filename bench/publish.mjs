/**
 * Measures time and memory of a publication by `dash publish-year`, and their growth with the number of stored
 * signals: of the same 40,000 events once about 500,000 and once about 1,000,000 daily signals of
 * the last year are stored. A day is published once, so each of the three rounds works on a fresh copy of the data
 * folder, the two taking turns. The peer, in the same run on the same databases, only reads the window with
 * the query one would write first: a join with the greatest day of each event (naive-window.mjs).
 *
 *     npm run build && node bench/publish.mjs
 *
 * Linux only (peak memory is read from /proc); no package needed. Takes several minutes and about 2 GB of
 * temporary disk.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, createWriteStream, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import {
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
const EVENTS = 40_000
const NAIVE_WINDOW = fileURLToPath(new URL('naive-window.mjs', import.meta.url))

/** An event is observed on up to this many days, beginning with the day it is published. */
const OBSERVED_DAYS = 26
const WINDOW_DAYS = 365
const DAY_MS = 86_400_000

/** Shares of the events, in twentieths. */
const SOURCES = Object.entries({
  hn: 9,
  lobsters: 4,
  lesswrong: 3,
  'hype:github': 1,
  'hype:huggingface': 1,
  'hype:reddit': 1,
  'hype:replicate': 1,
}).flatMap(([source, share]) => Array(share).fill(source))

/** Both observe every event last on the same day, so that they make the same publication. */
const YEARS = [
  { name: 'half', signals: (EVENTS * OBSERVED_DAYS) / 2, everyDays: 2 },
  { name: 'whole', signals: EVENTS * OBSERVED_DAYS, everyDays: 1 },
]

await runBench(async (folder) => {
  for (const year of YEARS) await fill(year, folder)
  const runs = { half: [], whole: [] }
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const { name } of YEARS) {
      runs[name].push(await publishCopy(name, folder))
      const { dash, naive } = runs[name].at(-1)
      note(`round ${round}, ${name}: ${seconds(dash.wallMs)}, peer ${seconds(naive.wallMs)}`)
    }
  }
  printResult(runs.half, runs.whole)
})

/** Imports a synthetic year through the product. */
async function fill({ name, signals, everyDays }, folder) {
  const file = join(folder, `${name}.ndjson`)
  await pipeline(Readable.from(yearOfSignals(everyDays)), createWriteStream(file))
  const { report, wallMs } = await runDash(
    ['import', 'signals', file, '--data-dir', join(folder, name)],
    folder,
  )
  rmSync(file)
  if (report.inserted !== signals) throw new Error(`${report.inserted} of ${signals} signals were imported`)
  note(`${name}: imported in ${seconds(wallMs)}`)
}

/** The signals of every event in order of days, as they would have come in; one text a day. */
function* yearOfSignals(everyDays) {
  const firstDayAt = (Math.floor(Date.now() / DAY_MS) - WINDOW_DAYS) * DAY_MS
  for (let day = 0; day < WINDOW_DAYS; day += 1) {
    let text = ''
    for (let event = 0; event < EVENTS; event += 1) {
      const age = day - publicationDay(event)
      const observed = age >= 0 && age < OBSERVED_DAYS && (OBSERVED_DAYS - 1 - age) % everyDays === 0
      if (observed) text += `${JSON.stringify(signal(event, age, firstDayAt))}\n`
    }
    yield text
  }
}

/** Spread evenly, and early enough for every observation to fall into the window. */
function publicationDay(event) {
  return scattered(event) % (WINDOW_DAYS - OBSERVED_DAYS + 1)
}

function signal(event, age, firstDayAt) {
  const source = SOURCES[event % SOURCES.length]
  const publishedAt = firstDayAt + publicationDay(event) * DAY_MS + (scattered(event + 1) % DAY_MS)
  const final = 1 + Math.floor(2000 / (1 + (scattered(event + 2) % 1000)))
  return {
    source,
    sourceId: `${30_000_000 + event}`,
    day: new Date(firstDayAt + (publicationDay(event) + age) * DAY_MS).toISOString().slice(0, 10),
    title: `Event ${event}, one of those that a year of news is made of`,
    url: `https://site-${event % 997}.example/articles/${event}/one-of-those-that-a-year-is-made-of`,
    points: final * (age + 1),
    comments: source.startsWith('hype:') ? null : scattered(event + 3) % 300,
    publishedAt: new Date(publishedAt).toISOString(),
    titleProvenance: `${source}:bench`,
  }
}

/** The same unordered number for the same event (Knuth's multiplicative hash). */
function scattered(event) {
  return (Math.imul(event + 1, 2_654_435_761) >>> 0) >>> 4
}

async function publishCopy(name, folder) {
  const copy = join(folder, 'copy')
  cpSync(join(folder, name), copy, { recursive: true })
  // Pending writes of the copy must not count towards the first fsync of the publisher.
  execFileSync('sync')
  const dash = await runDash(['publish-year', '--once', '--data-dir', copy], folder)
  const { asOfDay, coverage } = dash.report
  const naive = await measureNode([NAIVE_WINDOW, join(copy, 'feed.db'), asOfDay], folder)
  rmSync(copy, { recursive: true })
  const eligible = Object.values(coverage.sources).reduce(
    (sum, { eligibleEvents }) => sum + eligibleEvents,
    0,
  )
  if (eligible !== EVENTS || Number(naive.stdout) !== EVENTS) {
    throw new Error(`dash found ${eligible} eligible events, its peer ${naive.stdout}, of ${EVENTS}`)
  }
  return { dash, naive }
}

function printResult(half, whole) {
  const [halfSignals, wholeSignals] = YEARS.map(({ signals }) => grouped(signals))
  const wall = (runs, who) => median(runs.map((run) => run[who].wallMs))
  const row = (what, who, runs, goal) => [
    what,
    seconds(wall(runs, who)),
    megabytes(median(runs.map((run) => run[who].peakBytes))),
    goal,
    runs.map((run) => seconds(run[who].wallMs)).join(', '),
  ]
  const ratio = (what, who, goal) => [what, (wall(whole, who) / wall(half, who)).toFixed(2), '', goal, '']
  printTable(
    `Publishing a Year of ${grouped(EVENTS)} events, median of ${ROUNDS}`,
    ['what', 'wall time', 'peak memory', 'goal', 'rounds'],
    [
      row(`dash, ${halfSignals} signals`, 'dash', half, ''),
      row(`dash, ${wholeSignals} signals`, 'dash', whole, 'under 5 s and 300 MB'),
      ratio('dash, all to half of them', 'dash', 'at most 1.15'),
      row(`peer reads only, ${halfSignals} signals`, 'naive', half, ''),
      row(`peer reads only, ${wholeSignals} signals`, 'naive', whole, ''),
      ratio('peer, all to half of them', 'naive', ''),
    ],
  )
}
