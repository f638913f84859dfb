/**
 * Rebuilds the bundled demo sample, `assets/demo/*.ndjson.gz`, from the benchmark data set.
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
import { DEMO_ARTICLES } from './demo-articles.mjs'

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
 * @property {string} [titleProvenance] of every row of the sample
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

/**
 * Final points with which a story is kept, by source and time of publication. The top 100 of the Year and of the last 30
 * days need more, and the last 24 hours and 7 days are whole.
 */
const KEPT = [
  { from: '2021-10-30', points: { hn: -Infinity, lobsters: -Infinity, lesswrong: -Infinity } },
  { from: '2021-10-06', points: { hn: 120, lobsters: 12, lesswrong: 10 } },
  { from: FIRST_DAY, points: { hn: 420, lobsters: 42, lesswrong: 95 } },
]
/** From here on every reading of a kept story is kept. */
const DAILY_FROM = '2021-10-01'
/** Final points with which a Hacker News story keeps its readings of all days. */
const HN_ALL_READINGS_POINTS = 600
/** Last day of the hype files, which becomes the last day of the sample. */
const HYPE_LAST_DAY = '2025-12-31'
const PAPERS_FROM = '2025-11-01'
const PAPERS_MIN_POINTS = 25
const MAX_ROWS = 12_000
const MAX_BYTES = 1_000_000

/** Items whose text is bundled stay, whatever their points are. */
const KEYS_WITH_TEXT = new Set(DEMO_ARTICLES.map(({ key }) => key))

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
    reduce: (rows) => placed('lobsters', rows).filter(isKept),
  },
  {
    source: 'lesswrong',
    from: 'lesswrong-final.ndjson.gz',
    to: 'lesswrong-final.ndjson.gz',
    titleProvenance: 'lesswrong:graphql-archive',
    reduce: (rows) => placed('lesswrong', rows).filter(isKept),
  },
  {
    source: 'hype:github',
    from: 'hype-github-newrepos-2025-09-19_2025-12-31.ndjson.gz',
    to: 'hype-github.ndjson.gz',
    titleProvenance: 'hype:github:listing-archive',
    reduce: (rows) => rows.map(movedToSample),
  },
  {
    source: 'hype:huggingface',
    from: 'hype-hfpapers-2025-04-25_2025-12-31.ndjson.gz',
    to: 'hype-huggingface.ndjson.gz',
    titleProvenance: 'hype:huggingface:listing-archive',
    reduce: (rows) =>
      rows
        .filter(({ day, points }) => day >= PAPERS_FROM && points >= PAPERS_MIN_POINTS)
        .map((row) =>
          movedToSample({ ...row, source: 'hype:huggingface', sourceId: `papers/${row.sourceId}` }),
        ),
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

  console.table(
    samples.map(({ origin, rows, bytes }) => ({
      file: origin.to,
      rows: rows.length,
      events: new Set(rows.map((row) => row.sourceId)).size,
      bytes: bytes.length,
    })),
  )
}

/**
 * @param {Origin} origin
 * @param {string} folder
 */
function buildSample(origin, folder) {
  const read = readRows(join(folder, origin.from)).filter(isUsable)
  const kept = origin.reduce(read).filter((row) => isInRange(row.day) && isInRange(dayOf(row.publishedAt)))
  if (!origin.source.startsWith('hype:')) requireSameTops(kept, placed(origin.source, read))
  const rows = kept
    .toSorted((a, b) => byCodeUnit(a.day, b.day) || byCodeUnit(a.sourceId, b.sourceId))
    .map((row) => signalOf(row, origin.titleProvenance))
  return { origin, rows, bytes: gzipped(rows) }
}

/**
 * Of the stories that are kept: all readings of the best, of the others those from DAILY_FROM on and the last before it.
 *
 * @param {Row[]} rows
 */
function thinned(rows) {
  return [...byEvent(rows).values()].flatMap((readings) => {
    readings.sort((a, b) => byCodeUnit(a.day, b.day))
    const last = /** @type {Row} */ (readings.at(-1))
    if (!isKept(last)) return []
    if (last.points >= HN_ALL_READINGS_POINTS) return readings
    const firstDaily = readings.findIndex((row) => row.day >= DAILY_FROM)
    return readings.slice(firstDaily === -1 ? -1 : Math.max(0, firstDaily - 1))
  })
}

/**
 * All rows on the days of the sample. A single late reading gets the day of publication as its (synthetic) day of
 * observation.
 *
 * @param {string} source
 * @param {Row[]} rows
 */
function placed(source, rows) {
  return source === 'hn' ? rows : rows.map((row) => ({ ...row, day: dayOf(row.publishedAt) }))
}

/** @param {Row} row the last reading of a news story */
function isKept({ source, sourceId, points, publishedAt }) {
  const kept = KEPT.find(({ from }) => publishedAt >= from)
  const minimum = kept?.points[/** @type {keyof (typeof KEPT)[number]['points']} */ (source)] ?? Infinity
  return points >= minimum || KEYS_WITH_TEXT.has(`${source}-${sourceId}`)
}

/**
 * Moves a hype row by whole days, so that its file ends with the sample.
 *
 * @param {Row} row
 * @returns {Row}
 */
function movedToSample(row) {
  const shiftMs = Date.parse(LAST_DAY) - Date.parse(HYPE_LAST_DAY)
  const publishedAt = new Date(Date.parse(row.publishedAt) + shiftMs).toISOString()
  return { ...row, day: dayOf(new Date(Date.parse(row.day) + shiftMs).toISOString()), publishedAt }
}

/**
 * The events of the window ending with `asOfDay`, best first (decisions.md, part 3, rules 1 to 3).
 *
 * @param {Row[]} rows
 * @param {string} asOfDay
 * @param {number} [days]
 */
function topEvents(rows, asOfDay, days = WINDOW_DAYS) {
  const firstDay = dayPlus(asOfDay, 1 - days)
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
 * @param {string} titleProvenance
 * @returns {Row}
 */
function signalOf(row, titleProvenance) {
  const { source, sourceId, day, title, url, points, comments, publishedAt } = row
  return { source, sourceId, day, title, url, points, comments, publishedAt, titleProvenance }
}

/**
 * True when the import would take the row and the ranking could use it.
 *
 * @param {Row} row
 */
function isUsable(row) {
  return (
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
    if (!seen.has(day)) throw new Error(`no Hacker News row on ${day}: lower the points of KEPT`)
  }
}

/**
 * What was left out may be in none of the top lists of the last 30 days: of the Year on each, and of the live periods on
 * the last.
 *
 * @param {Row[]} kept
 * @param {Row[]} all
 */
function requireSameTops(kept, all) {
  const lists = [1, 7, 30].map((days) => ({ asOfDay: LAST_DAY, days }))
  for (let ago = 0; ago < 30; ago += 1) lists.push({ asOfDay: dayPlus(LAST_DAY, -ago), days: WINDOW_DAYS })
  for (const { asOfDay, days } of lists) {
    /** @param {Row[]} rows */
    const keysOf = (rows) =>
      topEvents(rows, asOfDay, days)
        .slice(0, 100)
        .map((row) => `${row.sourceId} ${row.points}`)
    const [found, expected] = [keysOf(kept), keysOf(all)]
    const place = expected.findIndex((key, index) => key !== found[index])
    if (place !== -1)
      throw new Error(
        `${asOfDay}, ${days} days: place ${place + 1} is ${found[place]}, without the cut ${expected[place]}`,
      )
  }
}

/** @param {{ rows: Row[], bytes: Uint8Array }[]} samples */
function requireLimits(samples) {
  const rows = samples.reduce((sum, sample) => sum + sample.rows.length, 0)
  const bytes = samples.reduce((sum, sample) => sum + sample.bytes.length, 0)
  if (rows > MAX_ROWS || bytes > MAX_BYTES) {
    throw new Error(
      `${rows} rows in ${bytes} bytes: at most ${MAX_ROWS} in ${MAX_BYTES}, raise the points of KEPT`,
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
