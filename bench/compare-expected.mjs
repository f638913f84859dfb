/**
 * Not a timing: holds the product's ranking to the references of the real data set, and explains every
 * difference.
 *
 * Each reference names the 100 best events of one data file on one as-of day, computed apart from the
 * product. Here the same file is imported by the command line into its own data folder, the window is read
 * and ranked by the product's own code, and the lists are compared in order, ids, points and comments. Files
 * that are one late reading (hn-final, lobsters-final, lesswrong) are placed first: each row's `day` becomes
 * the UTC day of its `publishedAt`, a synthetic observation day. Titles are vouched for as the data set's own
 * notes say.
 *
 * Hype references are in order of points, the product's hype column in order of the percentile inside a
 * cohort. Alone in its column a cohort has the same order under both. Among equal points the product goes on
 * with the id, as the references do, since no row of their hype files has comments. `hype:hf-papers` is no
 * ranked cohort; its events are read as they are and then ranked under the name of a cohort that is, which
 * shows the same order of points.
 *
 *     npm run build && DASH_BENCH_DATA=FOLDER node bench/compare-expected.mjs
 *
 * Exits with 1 when a difference stays unexplained. FOLDER holds the data set's *.ndjson.gz files and its
 * folder `expected`. No package needed.
 */
import { createReadStream, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { createGunzip } from 'node:zlib'
import { libsqlFeed } from '../dist/adapters/feed/feed.js'
import { database } from '../dist/adapters/sqlite/database.js'
import { isRankedProvider } from '../dist/domain/feed/source.js'
import { rankYear } from '../dist/domain/year/rank.js'
import { windowEnding } from '../dist/domain/year/ledger.js'
import { dataFolder, grouped, note, printTable, runBench, runDash } from './support.mjs'

/** By the beginning of a reference's name: its data file and how the titles of that file are vouched for. */
const REFERENCES = {
  'hn-final': { file: 'hn-final-top10', provenance: 'hn:page-archive', placed: true },
  'hn-frontpage': { file: 'hn-frontpage-2020-11-06_2021-11-07', provenance: 'hn:page-archive' },
  'hn-top30': { file: 'hn-top30-2024-07-19_2025-07-31', provenance: 'hn:page-archive' },
  'lobsters-daily': { file: 'lobsters-daily-2022-11-14_2024-03-15', provenance: 'lobsters:json-archive' },
  'lobsters-final': { file: 'lobsters-final', provenance: 'lobsters:json-archive', placed: true },
  lesswrong: { file: 'lesswrong-final', provenance: 'lesswrong:graphql-archive', placed: true },
  'hype-github': {
    file: 'hype-github-newrepos-2025-09-19_2025-12-31',
    provenance: 'hype:github:listing-archive',
  },
  'hype-replicate': {
    file: 'hype-replicate-2024-08-01_2025-07-31',
    provenance: 'hype:replicate:listing-archive',
  },
  'hype-hfpapers': {
    file: 'hype-hfpapers-2025-04-25_2025-12-31',
    provenance: 'hype:hf-papers:listing-archive',
  },
}

/** Marks a finding that a bad row does not account for; any makes the bench fail. */
const UNEXPLAINED = 'UNEXPLAINED'

/** A cohort the product ranks, lent to one it does not. */
const LENT_SOURCE = 'hype:huggingface'

await runBench(async (folder) => {
  const data = dataFolder()
  const results = []
  for (const name of readdirSync(join(data, 'expected')).sort()) {
    const reference = name.replace(/\.json$/, '')
    const settings = REFERENCES[reference.split('_')[0]]
    if (settings) results.push(await compare(reference, settings, data, folder))
    else results.push([reference, '', '', '', skipReason(reference)])
    note(`${reference}: ${results.at(-1).slice(1).join('; ')}`)
  }
  printTable(
    'The product against the reference top 100 of the real data set',
    [
      'reference',
      'data file',
      'eligible, ours / reference',
      'equal positions',
      'differences and their reasons',
    ],
    results,
  )
  if (results.some((cells) => cells.at(-1).includes(UNEXPLAINED))) process.exitCode = 1
})

function skipReason(reference) {
  return reference.startsWith('github-top100-star-gain')
    ? 'skipped: it lists gains of stars between two days, which the product does not rank'
    : `${UNEXPLAINED}: no data file is known for it`
}

async function compare(reference, { file, provenance, placed = false }, data, folder) {
  const expected = JSON.parse(readFileSync(join(data, 'expected', `${reference}.json`), 'utf8'))
  const source = join(data, `${file}.ndjson.gz`)
  const rows = await readRows(source)
  const input = placed ? placedCopy(rows, join(folder, `${reference}.ndjson`)) : source
  const dataDir = join(folder, reference)
  const options = ['--on-error', 'skip', '--title-provenance', provenance, '--data-dir', dataDir]
  const { report } = await runDash(['import', 'signals', input, ...options], folder)
  const ours = await rank(dataDir, expected.asOfDay)
  const badRows = new Map(report.errors.map(({ line, reason }) => [line, reason]))
  const findings = explain(ours, expected, { rows, badRows, placed })
  return [
    reference,
    `${basename(source)}${placed ? ', days placed' : ''}`,
    `${grouped(ours.eligible.size)} / ${grouped(expected.eligible)}`,
    `${expected.top.filter((item, index) => sameItem(item, ours.top[index])).length} of ${expected.top.length}`,
    [...ours.remarks, ...findings].join('; ') || 'none',
  ]
}

/** @returns {Promise<any[]>} the rows of a data file, in the order of its lines */
async function readRows(file) {
  const rows = []
  for await (const line of createInterface({ input: createReadStream(file).pipe(createGunzip()) })) {
    rows.push(JSON.parse(line))
  }
  return rows
}

/** The rows with the UTC day of their publication as the day of observation. */
function placedCopy(rows, path) {
  const lines = rows.map((row) => `${JSON.stringify({ ...row, day: placedDay(row) })}\n`)
  writeFileSync(path, lines.join(''))
  return path
}

function placedDay({ publishedAt }) {
  return new Date(publishedAt).toISOString().slice(0, 10)
}

/** The product's own reading and ranking of the window, without publishing. */
async function rank(dataDir, asOfDay) {
  const store = database({
    location: { url: pathToFileURL(join(dataDir, 'feed.db')).href, authToken: null },
    store: 'feed',
    nativeBusyMs: 0,
    retryMs: 0,
  })
  try {
    const { events } = await libsqlFeed(store).readWindow(windowEnding(asOfDay))
    const year = ranked(events)
    const [source] = new Set(events.map((event) => event.source))
    const eligible = new Set(events.map(({ sourceId }) => sourceId))
    const provider = source.replace('hype:', '')
    if (!source.startsWith('hype:')) return { top: year.columns[source], eligible, remarks: [] }
    if (isRankedProvider(provider)) return { top: year.hype, eligible, remarks: [] }
    const [excluded] = year.excludedCohorts
    const lent = ranked(events.map((event) => ({ ...event, source: LENT_SOURCE })))
    const remark = `ranked under the name of ${LENT_SOURCE}: the product itself leaves ${source} out (${excluded.eligibleEvents} events in excludedCohorts)`
    return { top: lent.hype, eligible, remarks: [remark] }
  } finally {
    store.close()
  }
}

function ranked(events) {
  const outcome = rankYear(events, new Map())
  if (outcome.do !== 'ranked') throw new Error(`${outcome.events.length} titles are not vouched for`)
  return outcome.year
}

function sameItem([id, points, comments], item) {
  return item?.event.sourceId === id && item.event.points === points && item.event.comments === comments
}

/**
 * One sentence for every event that only one side has, that has other values, or whose place differs by more
 * than the events before it explain.
 */
function explain(ours, expected, input) {
  const findings = []
  const reference = referenceEvents(input, expected.asOfDay)
  if (reference.size !== expected.eligible) {
    findings.push(`${UNEXPLAINED}: the rule of the reference gives ${reference.size} eligible events`)
  }
  const leftOut = [...reference].filter(([id]) => !ours.eligible.has(id))
  for (const [id, { line }] of leftOut)
    findings.push(`${label(id)} is not eligible: ${reasonOf(line, input)}`)
  for (const id of ours.eligible) {
    if (!reference.has(id)) findings.push(`${UNEXPLAINED}: ${label(id)} is eligible for the product alone`)
  }
  const place = new Map(ours.top.map((item, index) => [item.event.sourceId, index]))
  for (const item of expected.top) {
    const found = ours.top[place.get(item[0])]
    if (found && !sameItem(item, found)) {
      const { points, comments } = found.event
      const why = reasonOf(reference.get(item[0])?.line, input)
      findings.push(
        `${label(item[0])} has ${points} points, ${comments} comments, not ${item[1]}, ${item[2]}: ${why}`,
      )
    }
  }
  return [...findings, ...explainPlaces(ours.top, expected.top, new Set(leftOut.map(([id]) => id)))]
}

/** Differences of membership and order that the events left out, each named already, do not explain. */
function explainPlaces(ours, expected, leftOut) {
  const findings = []
  const ids = ours.map((item) => item.event.sourceId)
  const wanted = expected.map(([id]) => id)
  const gone = wanted.filter((id) => !ids.includes(id))
  for (const missing of gone.filter((id) => !leftOut.has(id))) {
    findings.push(`${UNEXPLAINED}: ${label(missing)} is missing`)
  }
  const risen = ids.filter((id) => !wanted.includes(id))
  if (risen.length > 0) {
    const because = gone.every((id) => leftOut.has(id)) && gone.length === risen.length
    const what = because ? 'moved up into their places' : `${UNEXPLAINED}: in the list of the product alone`
    findings.push(`${what}: ${risen.map(label).join(', ')}`)
  }
  const common = ids.filter((id) => wanted.includes(id))
  const swapped = wanted.filter((id) => ids.includes(id)).filter((id, index) => id !== common[index])
  if (swapped.length > 0) findings.push(`${UNEXPLAINED}: in another order: ${swapped.map(label).join(', ')}`)
  return findings
}

/**
 * The events the reference's own rule finds in the file, bad rows included, with the line of each.
 *
 * @returns {Map<string, { line: number, row: any }>}
 */
function referenceEvents({ rows, placed }, asOfDay) {
  const { windowStart, windowEnd } = windowEnding(asOfDay)
  const latest = new Map()
  for (const [index, row] of rows.entries()) {
    const known = latest.get(row.sourceId)
    if (!placed && row.day > asOfDay) continue
    if (!known || row.day > known.row.day) latest.set(row.sourceId, { line: index + 1, row })
  }
  const eligible = [...latest].filter(([, { row }]) => {
    const at = Date.parse(row.publishedAt)
    return row.points !== null && at >= windowStart && at < windowEnd
  })
  return new Map(eligible)
}

function reasonOf(line, { rows, badRows }) {
  const reason = badRows.get(line)
  if (reason === undefined) return UNEXPLAINED
  const { day, points, url } = rows[line - 1]
  return `its row of ${day} (line ${line}, ${points} points, ${url ?? 'no link'}) is bad: ${reason}`
}

function label(id) {
  return id === '' ? 'the event without an id' : `\`${id}\``
}
