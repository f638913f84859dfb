/**
 * Measures how fast the server serves its page to 32 clients on keep-alive connections, alone and with readers of the
 * history, whose latency is measured too: with the same query for every request, with a new valid query for each, and
 * with a new address for each besides. The peer is a bare
 * `node:http` server with the bytes of the same page in memory, under the same load in the same run.
 *
 *     npm run build && node bench/pages.mjs
 *
 * Needs the Debian package wrk. Takes about four minutes.
 */
import { openSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  firstLine,
  grouped,
  median,
  ms,
  note,
  percentilesOf,
  printTable,
  publishSyntheticYear,
  run,
  runBench,
  runDash,
  startChild,
  startDash,
} from './support.mjs'

const BARE_SERVER = fileURLToPath(new URL('bare-server.mjs', import.meta.url))

const CLIENTS = 32
const SECONDS = 4
const ROUNDS = 3

/** Readers of the history, each with one request at a time. */
const READERS = 2

/** Everything is proved for each request until the last change of the archive is this old. */
const SETTLED_MS = 3_000

/** The longest that waiting pages take. */
const DRAIN_MS = 4_000

const HISTORY = '/api/feed/history?sort=year'

/** The 95th percentiles of `/` and of a new query of it, and of the history beside any load of pages. */
const GOAL = '`/` at most 50 ms, history 10 ms'

const NO_LOAD = { perSecond: 0, refused: 0, broken: 0, latencies: [0, 0, 0] }

const sameQuery = `path = function() return "/" end`

const newWords = `path = function(n) return "/?q=bench" .. os.time() .. "x" .. n end`

const newModel = `path = function(n) return "/models?model=bench/" .. os.time() .. "-" .. n .. ":free" end`

/** A millisecond of the time since the publication for each request. */
const newTime = `local start = os.time()
path = function(n)
  local day = os.date("!%Y-%m-%dT%H:%M:%S", start + math.floor(n / 1000))
  return "/?sort=year&at=" .. day .. string.format(".%03dZ", n % 1000)
end`

const newAddress = `${newTime}
address = function(n) return "10." .. math.floor(n / 65536) % 256 .. "." .. math.floor(n / 256) % 256 .. "." .. n % 256 end`

const LOAD = `local n = 0
request = function()
  n = n + 1
  if address then wrk.headers["X-Forwarded-For"] = address(n) end
  return wrk.format("GET", path(n))
end
done = function(summary, latency)
  io.write(string.format(
    '\\n{"perSecond":%f,"refused":%d,"broken":%d,"latencies":[%f,%f,%f]}\\n',
    summary.requests / summary.duration * 1e6, summary.errors.status,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(95) / 1000, latency:percentile(99) / 1000))
end
`

await runBench(async (folder) => {
  const dataDir = join(folder, 'data')
  await publishSyntheticYear(folder, dataDir)
  await runDash(['snapshot', '--data-dir', dataDir], folder)
  await sleep(SETTLED_MS)
  const log = openSync(join(folder, 'dash.log'), 'a')
  const env = { DASH_TRUSTED_PROXIES: '127.0.0.0/8' }
  const dash = await startDash(dataDir, { logLevel: 'info', logFile: log, env })
  const page = await fetch(`${dash}/`)
  if (page.status !== 200) throw new Error(`/ is a ${page.status}`)
  writeFileSync(join(folder, 'page.html'), Buffer.from(await page.arrayBuffer()))
  const peer = await startPeer(join(folder, 'page.html'))
  const all = loads(dash, peer)
  const rounds = all.map(() => [])
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const [index, load] of all.entries()) {
      rounds[index].push(await measure(folder, load))
      note(
        `round ${round}, ${load.name}: ${rounds[index]
          .at(-1)
          .map((value) => value.toFixed(2))
          .join(', ')}`,
      )
    }
  }
  const history = ['history p50', 'history p95', 'history p99', 'goals of p95']
  printTable(
    `Pages: wrk -t1 -c${CLIENTS} -d${SECONDS}s, and the history read by ${READERS} meanwhile, medians of ${ROUNDS}`,
    ['load', 'requests/s', 'refused of them', 'p50', 'p95', 'p99', ...history],
    all.map((load, index) => rowOf(load, rounds[index])),
  )
})

async function startPeer(file) {
  const bare = startChild(process.execPath, [BARE_SERVER, file, '"page"'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return firstLine(bare)
}

/** Requests for each server; the bare server serves its one file instead of the history. */
function loads(dash, peer) {
  const history = `${dash}${HISTORY}`
  return [
    { name: 'dash, no load', url: null, history },
    { name: 'dash, `/`', url: dash, script: sameQuery, history },
    { name: 'dash, `/?q=` new each time, no reader', url: dash, script: newWords },
    { name: 'dash, `/?q=` new each time', url: dash, script: newWords, history },
    { name: 'dash, `/models?model=` new each time', url: dash, script: newModel, history },
    { name: 'dash, `/?sort=year&at=` new each time', url: dash, script: newTime, history },
    { name: 'dash, the same, each from a new address', url: dash, script: newAddress, history },
    { name: 'bare node:http, no load', url: null, history: peer },
    { name: 'bare node:http, the bytes of `/`', url: peer, script: sameQuery, history: peer },
  ]
}

/** @returns {Promise<number[]>} requests and refusals a second, percentiles of the load and of the history */
async function measure(folder, { name, url, script, history }) {
  const stop = new AbortController()
  const readers = history === undefined ? [] : Array.from({ length: READERS }, () => history)
  const reading = Promise.all(readers.map((address) => readOn(address, stop.signal)))
  const load = url === null ? await sleep(SECONDS * 1000, NO_LOAD) : await wrk(folder, url, script)
  stop.abort()
  const times = (await reading).flat()
  // Pages that the last clients left waiting.
  await sleep(DRAIN_MS)
  if (load.broken > 0) throw new Error(`${name}: ${load.broken} requests got no response`)
  return [
    load.perSecond,
    load.refused / SECONDS,
    ...load.latencies,
    ...(times.length > 0 ? percentilesOf(times) : []),
  ]
}

function rowOf({ name, url }, rounds) {
  const [perSecond, refused, ...times] = rounds[0].map((_, index) =>
    median(rounds.map((values) => values[index])),
  )
  const load =
    url === null ? ['', '', '', '', ''] : [grouped(perSecond), grouped(refused), ...times.slice(0, 3).map(ms)]
  const history = times.length > 3 ? times.slice(3).map(ms) : ['', '', '']
  return [name, ...load, ...history, url !== null && name.startsWith('dash') ? GOAL : '']
}

async function wrk(folder, url, script) {
  const file = join(folder, 'load.lua')
  writeFileSync(file, `${script}\n${LOAD}`)
  const output = await run('wrk', [
    '-t1',
    `-c${CLIENTS}`,
    `-d${SECONDS}s`,
    '--timeout',
    '10s',
    '-s',
    file,
    url,
  ])
  return JSON.parse(output.trim().split('\n').at(-1))
}

/** Reads one address again and again; the milliseconds of each reading. */
async function readOn(url, signal) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const times = []
  while (!signal.aborted) {
    const startedAt = performance.now()
    const status = await read(url, agent)
    if (status !== 200) throw new Error(`${url} is a ${status}`)
    times.push(performance.now() - startedAt)
  }
  agent.destroy()
  return times
}

function read(url, agent) {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      response
        .on('end', () => resolve(response.statusCode))
        .on('error', reject)
        .resume()
    }).on('error', reject)
  })
}
