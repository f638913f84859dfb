/**
 * Rebuilds the bundled demo sample, `assets/demo/{*.ndjson.gz,titles.json}`, from the benchmark data set.
 *
 *     DASH_BENCH_DATA=<folder of the data set> node scripts/build-demo-sample.mjs
 *
 * The same input gives the same rows, in the same order; on one Node version it also gives the same bytes.
 * `assets/demo/SOURCES.md` describes the selection and the licences of the sources.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'

/**
 * @typedef {object} Row one observation of one event on one UTC day (decisions.md, part 2)
 * @property {string} source
 * @property {string} sourceId
 * @property {string} day
 * @property {string} title
 * @property {string | null} url
 * @property {number} points
 * @property {number | null} comments
 * @property {string} publishedAt
 * @property {string} [titleProvenance]
 *
 * @typedef {object} Origin one file of the data set and the file of the sample made from it
 * @property {string} source
 * @property {string} from
 * @property {string} to
 * @property {string} titleProvenance
 * @property {(rows: Row[]) => Row[]} reduce places rows on their day and leaves out what the demo can do without
 */

const FIRST_DAY = '2020-11-06'
const LAST_DAY = '2021-11-07'
const WINDOW_DAYS = 365

/** From here on every daily reading of a Hacker News story is kept, before it only the last one. */
const DAILY_FROM = '2021-10-01'
/** The lowest number of final points with which the sample stays below both limits. */
const HN_MIN_POINTS = 127
const MAX_ROWS = 25_000
const MAX_BYTES = 1_900_000

/** Places in its source's top list (last window of the sample) of the events whose title nobody vouches for. */
const UNVERIFIED_RANKS = [5, 17]

/** @type {Origin[]} */
const ORIGINS = [
  {
    source: 'hn',
    from: 'hn-frontpage-2020-11-06_2021-11-07.ndjson.gz',
    to: 'hn-frontpage.ndjson.gz',
    titleProvenance: 'hn:page-archive',
    reduce: thinned,
  },
  {
    source: 'lobsters',
    from: 'lobsters-final.ndjson.gz',
    to: 'lobsters-final.ndjson.gz',
    titleProvenance: 'lobsters:json-archive',
    reduce: placedOnPublicationDay,
  },
  {
    source: 'lesswrong',
    from: 'lesswrong-final.ndjson.gz',
    to: 'lesswrong-final.ndjson.gz',
    titleProvenance: 'lesswrong:graphql-archive',
    reduce: placedOnPublicationDay,
  },
]

/** @param {string | undefined} folder the data set */
function main(folder) {
  if (!folder) throw new Error('DASH_BENCH_DATA must name the folder of the benchmark data set')
  const samples = ORIGINS.map((origin) => buildSample(origin, folder))
  requireEveryDay(samples.flatMap(({ origin, rows }) => (origin.source === 'hn' ? rows : [])))
  requireLimits(samples)

  const target = fileURLToPath(new URL('../assets/demo', import.meta.url))
  mkdirSync(target, { recursive: true })
  for (const { origin, bytes } of samples) writeFileSync(join(target, origin.to), bytes)
  const bySource = Object.fromEntries(samples.map(({ origin, titles }) => [origin.source, titles]))
  writeFileSync(join(target, 'titles.json'), `${JSON.stringify(bySource, null, 2)}\n`)

  console.table(
    samples.map(({ origin, rows, bytes, titles }) => ({
      file: origin.to,
      rows: rows.length,
      events: new Set(rows.map((row) => row.sourceId)).size,
      bytes: bytes.length,
      'without provenance': Object.keys(titles).join(' '),
    })),
  )
}

/**
 * @param {Origin} origin
 * @param {string} folder
 */
function buildSample(origin, folder) {
  const read = readRows(join(folder, origin.from)).filter((row) => isUsable(row, origin.source))
  const kept = origin.reduce(read).filter((row) => isInRange(row.day) && isInRange(dayOf(row.publishedAt)))
  const top = topEvents(kept, LAST_DAY)
  const unverified = UNVERIFIED_RANKS.map((rank) => /** @type {Row} */ (top[rank - 1]))
  const titles = Object.fromEntries(unverified.map((row) => [row.sourceId, row.title]))
  const rows = kept
    .toSorted((a, b) => byCodeUnit(a.day, b.day) || byCodeUnit(a.sourceId, b.sourceId))
    .map((row) => signalOf(row, Object.hasOwn(titles, row.sourceId) ? undefined : origin.titleProvenance))
  return { origin, rows, titles, bytes: gzipped(rows) }
}

/**
 * Every reading from DAILY_FROM on and the last one before it, of the stories with enough points in the end.
 *
 * @param {Row[]} rows
 */
function thinned(rows) {
  return [...byEvent(rows).values()].flatMap((readings) => {
    readings.sort((a, b) => byCodeUnit(a.day, b.day))
    const last = /** @type {Row} */ (readings.at(-1))
    if (last.points < HN_MIN_POINTS) return []
    const firstDaily = readings.findIndex((row) => row.day >= DAILY_FROM)
    return readings.slice(firstDaily === -1 ? -1 : Math.max(0, firstDaily - 1))
  })
}

/**
 * A single late reading gets the day of publication as its (synthetic) day of observation.
 *
 * @param {Row[]} rows
 */
function placedOnPublicationDay(rows) {
  return rows.map((row) => ({ ...row, day: dayOf(row.publishedAt) }))
}

/**
 * The events of the window ending with `asOfDay`, best first (decisions.md, part 3, rules 1 to 3).
 *
 * @param {Row[]} rows
 * @param {string} asOfDay
 */
function topEvents(rows, asOfDay) {
  const firstDay = dayPlus(asOfDay, 1 - WINDOW_DAYS)
  const latest = [...byEvent(rows.filter((row) => row.day <= asOfDay)).values()].map((readings) =>
    readings.reduce((best, row) => (row.day > best.day ? row : best)),
  )
  return latest
    .filter((row) => dayOf(row.publishedAt) >= firstDay && dayOf(row.publishedAt) <= asOfDay)
    .toSorted(
      (a, b) =>
        b.points - a.points || (b.comments ?? 0) - (a.comments ?? 0) || byCodeUnit(a.sourceId, b.sourceId),
    )
}

/**
 * Only what the import format knows, in its order.
 *
 * @param {Row} row
 * @param {string | undefined} titleProvenance
 * @returns {Row}
 */
function signalOf(row, titleProvenance) {
  const { source, sourceId, day, title, url, points, comments, publishedAt } = row
  const values = { source, sourceId, day, title, url, points, comments, publishedAt }
  return titleProvenance === undefined ? values : { ...values, titleProvenance }
}

/**
 * True when the import would take the row and the ranking could use it.
 *
 * @param {Row} row
 * @param {string} source
 */
function isUsable(row, source) {
  return (
    row.source === source &&
    row.sourceId !== '' &&
    row.title.trim() !== '' &&
    row.title.isWellFormed() &&
    (row.url === null || isHttpUrl(row.url)) &&
    Number.isInteger(row.points) &&
    (row.comments === null || Number.isInteger(row.comments)) &&
    !Number.isNaN(Date.parse(row.publishedAt))
  )
}

/**
 * @param {string} file
 * @returns {Row[]}
 */
function readRows(file) {
  const lines = gunzipSync(readFileSync(file)).toString('utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line))
}

/**
 * NDJSON in a gzip member without a time and without the name of the operating system (byte 9: unknown).
 *
 * @param {Row[]} rows
 */
function gzipped(rows) {
  const bytes = gzipSync(rows.map((row) => `${JSON.stringify(row)}\n`).join(''), { level: 9 })
  bytes[9] = 255
  return bytes
}

/** @param {Row[]} rows */
function byEvent(rows) {
  /** @type {Map<string, Row[]>} */
  const events = new Map()
  for (const row of rows) {
    const readings = events.get(row.sourceId)
    if (readings) readings.push(row)
    else events.set(row.sourceId, [row])
  }
  return events
}

/** @param {Row[]} hnRows */
function requireEveryDay(hnRows) {
  const seen = new Set(hnRows.map((row) => row.day))
  for (let day = FIRST_DAY; day <= LAST_DAY; day = dayPlus(day, 1)) {
    if (!seen.has(day)) throw new Error(`no Hacker News row on ${day}: lower HN_MIN_POINTS`)
  }
}

/** @param {{ rows: Row[], bytes: Uint8Array }[]} samples */
function requireLimits(samples) {
  const rows = samples.reduce((sum, sample) => sum + sample.rows.length, 0)
  const bytes = samples.reduce((sum, sample) => sum + sample.bytes.length, 0)
  if (rows > MAX_ROWS || bytes > MAX_BYTES) {
    throw new Error(
      `${rows} rows in ${bytes} bytes: at most ${MAX_ROWS} in ${MAX_BYTES}, raise HN_MIN_POINTS`,
    )
  }
}

/** @param {string} day */
const isInRange = (day) => day >= FIRST_DAY && day <= LAST_DAY

/** @param {string} instant */
const dayOf = (instant) => new Date(instant).toISOString().slice(0, 10)

/**
 * @param {string} day
 * @param {number} count
 */
const dayPlus = (day, count) => dayOf(new Date(Date.parse(day) + count * 86_400_000).toISOString())

/**
 * @param {string} a
 * @param {string} b
 */
const byCodeUnit = (a, b) => (a < b ? -1 : a > b ? 1 : 0)

main(process.env['DASH_BENCH_DATA'])

/** The constructor is asked: `URL.canParse` refuses some valid hosts on Node 20 and 22. */
function isHttpUrl(text) {
  try {
    return /^https?:$/.test(new URL(text).protocol)
  } catch {
    return false
  }
}
