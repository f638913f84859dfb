/**
 * Measures the time of searches and the blocks of the server's event loop: thousands of queries drawn from the whole real
 * data set, sent to a running `dash serve` over HTTP.
 *
 *     npm run build && DASH_BENCH_DATA=FOLDER node bench/search.mjs [QUESTIONS]
 *
 * FOLDER holds the data set's *.ndjson.gz files. QUESTIONS (default 3000) is how many searches are asked; of each other
 * kind a third. Goals, at the 95th percentile: search 30 ms, similar items 80 ms, trends 50 ms; loop never over 20 ms.
 */
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importAndOpen } from './search-data.mjs'
import { sample, seeded } from './retrieval/truth.mjs'
import { firstLine, grouped, note, printTable, runBench, startChild, stopChild } from './support.mjs'

const QUESTIONS = Number(process.argv[2] ?? 3_000)
const SEED = 20_260_302
const WARM_UP = 50
const DASH = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const REPORT_LOOP = fileURLToPath(new URL('report-loop.mjs', import.meta.url))

await runBench(async (folder) => {
  const { items, dataDir, close, report } = await importAndOpen(folder)
  await close()
  const random = seeded(SEED)
  const kinds = { ...searches(items, random), ...others(items, random) }
  const log = openSync(join(folder, 'serve.log'), 'w')
  const asked = startServer('asked', folder, dataDir, log)
  const idle = startServer('idle', folder, dataDir, log)
  const { url } = JSON.parse(await firstLine(asked.child))
  await firstLine(idle.child)
  for (const paths of Object.values(kinds)) for (const path of paths.slice(0, WARM_UP)) await ask(url, path)
  for (const { child } of [asked, idle]) child.kill('SIGUSR2')
  const measured = {}
  for (const [kind, paths] of Object.entries(kinds)) {
    measured[kind] = []
    for (const path of paths) measured[kind].push(await ask(url, path))
    note(kind)
  }
  const loops = []
  for (const { child, loopFile } of [asked, idle]) {
    await stopChild(child)
    loops.push(JSON.parse(readFileSync(loopFile, 'utf8')))
  }
  closeSync(log)
  print(report, measured, ...loops)
})

/** A server that writes how long it held its event loop; the idle one shows what is the machine's doing. */
function startServer(name, folder, dataDir, log) {
  const loopFile = join(folder, `loop-${name}.json`)
  const child = startChild(
    process.execPath,
    ['--import', REPORT_LOOP, DASH, 'serve', '--port', '0', '--data-dir', dataDir, '--json'],
    {
      env: { PATH: process.env.PATH, DASH_LOG_LEVEL: 'error', BENCH_LOOP_FILE: loopFile },
      stdio: ['ignore', 'pipe', log],
    },
  )
  return { child, loopFile }
}

/** Searches of five kinds, words by how often they occur. */
function searches(items, random) {
  const counts = new Map()
  for (const { title } of items) {
    for (const word of new Set(title.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? [])) {
      counts.set(word, (counts.get(word) ?? 0) + 1)
    }
  }
  const byCount = [...counts].sort((a, b) => b[1] - a[1]).map(([word]) => word)
  const common = byCount.slice(0, 200)
  const any = byCount.slice(200, 20_000)
  const titles = items.filter(({ title }) => title.split(/\s+/).length >= 4)
  const pick = (words) => words[Math.floor(random() * words.length)]
  const share = Math.ceil(QUESTIONS / 6)
  const make = (text) => Array.from({ length: share }, () => pathTo('/api/search', text()))
  const wordsOfTitle = () => sample(titles, 1, random)[0].title.split(/\s+/)
  return {
    'search: 1 to 3 of the 200 commonest words': make(() => ({
      q: Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(common)).join(' '),
    })),
    'search: a rarer word': make(() => ({ q: pick(any) })),
    'search: a whole title': make(() => ({ q: wordsOfTitle().join(' ') })),
    'search: a beginning of 2 to 4 letters': make(() => ({
      q: `${pick(any).slice(0, 2 + Math.floor(random() * 3))}*`,
    })),
    'search: a phrase of two words': make(() => ({ q: `"${wordsOfTitle().slice(1, 3).join(' ')}"` })),
    'search: words, one source, one year': make(() => ({
      q: `${pick(common)} ${pick(any)}`,
      source: pick(['hn', 'lobsters', 'lesswrong']),
      from: '2021-01-01',
      to: '2021-12-31',
    })),
  }
}

function others(items, random) {
  const count = Math.ceil(QUESTIONS / 3)
  const keys = (name) => sample(items, count, random).map(({ key }) => pathTo(name, { key }))
  const words = sample(items, count, random).map(({ title }) => sample(title.split(/\s+/), 1, random)[0])
  return {
    'similar items': keys('/api/similar'),
    'trend of an item': keys('/api/trend'),
    'trend of a term': words.map((term) => pathTo('/api/trend', { term })),
  }
}

function pathTo(name, params) {
  return `${name}?${new URLSearchParams(params)}`
}

/** @returns {Promise<number>} milliseconds to the last byte */
async function ask(url, what) {
  const startedAt = performance.now()
  const response = await fetch(`${url}${what}`)
  const body = await response.text()
  if (response.status !== 200) throw new Error(`${what}: ${response.status} ${body}`)
  return performance.now() - startedAt
}

function print(report, measured, loop, idle) {
  const ms = (value) => `${value.toFixed(1)} ms`
  const row = (name, times) => {
    const sorted = [...times].sort((a, b) => a - b)
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
    return [name, sorted.length, ms(at(0.5)), ms(at(0.95)), ms(sorted.at(-1))]
  }
  const all = Object.entries(measured)
  const search = all.filter(([kind]) => kind.startsWith('search')).flatMap(([, times]) => times)
  printTable(
    `Questions over HTTP, ${grouped(report.rows)} rows`,
    ['what', 'asked', 'median', '95th percentile', 'longest'],
    [row('**search**', search), ...all.map(([kind, times]) => row(kind, times))],
  )
  console.log(
    `\nEvent loop of the server meanwhile: p99 ${ms(loop.p99)}, longest ${ms(loop.max)} (above the timer's 1 ms); of a server that nobody asked: p99 ${ms(idle.p99)}, longest ${ms(idle.max)}`,
  )
}
