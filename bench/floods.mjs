/**
 * Measures what honest clients notice while one address floods the server: the latency of the history, of a new connection
 * and of the flooded route itself, before each flood and during it, and the largest memory of the server. The peer is the
 * same server without the flood.
 *
 *     npm run build && node bench/floods.mjs [NAME …]
 *
 * All traffic stays on loopback, whose addresses stand for clients. Takes about three minutes.
 */
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { fillArchive } from './archive-data.mjs'
import {
  freePort,
  megabytes,
  ms,
  note,
  percentilesOf,
  plainEnvironment,
  printTable,
  run,
  runBench,
  startChild,
  firstLine,
} from './support.mjs'

const DASH = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const PUBLICATIONS = 420
const SECONDS = 8
const PROBE_MS = 25
const HONEST = '127.0.0.9'
const DAY_MS = 86_400_000
const BRACKETS = '[],'.repeat(1_000_000)

/** Each flood: sockets of one address, or of several, and what a socket requests; `route` is the same for the honest client. */
const FLOODS = {
  history: { sockets: 256, path: () => '/api/feed/history?sort=year' },
  session: { sockets: 150, method: 'POST', path: () => '/api/agent/session', reconnecting: 106 },
  pages: { sockets: 256, path: (n) => `/?sort=year&q=word${n}` },
  year: { sockets: 256, path: (n) => `/?sort=year&at=2026-02-${10 + (n % 18)}T12:00:00.000Z&minPoints=${n}` },
  rows: { sockets: 256, path: (n) => `/year/rows?at=2026-02-${10 + (n % 18)}T12:00:00.000Z` },
  rss: { sockets: 256, path: (n) => `/api/feed/history/rss?q=entry+${n}` },
  atom: { sockets: 256, path: (n) => `/api/feed/history/atom?top=100&minPoints=${n}` },
  rule: { sockets: 256, path: (n) => `/api/feed?q=story+${n}` },
  ranks: {
    sockets: 256,
    path: (n) => `/api/feed/history/ranks?count=90&at=2026-02-${10 + (n % 18)}T12:00:00.000Z`,
  },
  chart: {
    sockets: 256,
    path: (n) => `/charts/item.svg?key=hn-${40_000_000 + (n % 150)}&count=90`,
  },
  proof: { sockets: 256, path: (n) => `/tlog/year/proof?at=2026-02-${10 + (n % 18)}T12:00:00Z` },
  proofs: { sockets: 256, path: (n) => `/tlog/year/proof?until=next&at=2026-02-${10 + (n % 18)}T12:00:00Z` },
  models: { sockets: 256, path: (n) => `/api/free-llm/top-models?minContext=${n}` },
  changes: { sockets: 256, path: () => '/api/free-llm/changes.json' },
  docs: { sockets: 256, path: (n) => `/docs?x=${n}` },
  search: {
    sockets: 64,
    addresses: 16,
    path: (n) => `/api/search?q=story+${n}+with+many+common+words+abo*&limit=100`,
  },
  v1: {
    sockets: 50,
    method: 'POST',
    path: () => '/v1/chat/completions',
    headers: { authorization: 'Bearer sk-made-up', 'content-type': 'application/json' },
    body: `{"model":"auto","messages":[${BRACKETS}[]]}`,
    honestBody: '{"model":"auto","messages":[{"role":"user","content":"hello"}]}',
  },
  mcp: {
    sockets: 256,
    method: 'POST',
    path: () => '/mcp',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_items","arguments":{"query":"story"}}}',
  },
}

/** @returns {Promise<{ ms: number, status: number | string }>} */
function ask(base, { path, method = 'GET', headers = {}, body }, agent, localAddress) {
  const startedAt = performance.now()
  return new Promise((resolve) => {
    const done = (status) => resolve({ ms: performance.now() - startedAt, status })
    const sent = request(base + path, { method, headers, agent, localAddress }, (response) => {
      response.on('error', () => done('cut'))
      response.on('end', () => done(response.statusCode))
      response.resume()
    })
    sent.on('error', ({ code }) => done(code))
    sent.end(body)
  })
}

if (isMainThread) await runBench(measure)
else await flood(workerData)

async function flood({ base, name }) {
  const { sockets, addresses = 1, reconnecting = 0, path, ...options } = FLOODS[name]
  const headers = { origin: base, ...options.headers }
  const statuses = {}
  const over = new AbortController()
  let count = 0
  const client = async (index, keepAlive) => {
    const localAddress = `127.0.1.${1 + (index % addresses)}`
    const agent = new Agent({ keepAlive, maxSockets: 1 })
    while (!over.signal.aborted) {
      count += 1
      const { status } = await ask(base, { ...options, headers, path: path(count) }, agent, localAddress)
      statuses[status] = (statuses[status] ?? 0) + 1
      if (typeof status === 'string') await sleep(50)
    }
    agent.destroy()
  }
  parentPort.once('message', () => over.abort())
  const clients = Array.from({ length: sockets + reconnecting }, (_, index) => client(index, index < sockets))
  await Promise.race([Promise.all(clients), new Promise((resolve) => parentPort.once('message', resolve))])
  parentPort.postMessage(statuses)
  setTimeout(() => process.exit(), 500)
}

/** Latencies of an honest client, which sends one request of each kind after another. */
async function probe(base, name, milliseconds) {
  const { path, method, headers, body, honestBody = body } = FLOODS[name]
  const agents = Array.from({ length: 2 }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  const kinds = {
    history: [{ path: '/api/feed/history?sort=year' }, agents[0]],
    connection: [{ path: '/healthz' }, false],
    same: [null, agents[1]],
  }
  const found = { history: [], connection: [], same: [], statuses: {} }
  const until = performance.now() + milliseconds
  await Promise.all(
    Object.entries(kinds).map(async ([kind, [fixed, agent]]) => {
      for (let count = 0; performance.now() < until; count += 1) {
        const wanted = fixed ?? {
          path: path(100_000 + count),
          method,
          headers: { origin: base, ...headers },
          body: honestBody,
        }
        const { ms: took, status } = await ask(base, wanted, agent, HONEST)
        found[kind].push(took)
        if (kind === 'same') found.statuses[status] = (found.statuses[status] ?? 0) + 1
        await sleep(PROBE_MS)
      }
    }),
  )
  for (const agent of agents) agent.destroy()
  return found
}

async function measure(folder) {
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  note(`filling an archive of ${PUBLICATIONS} publications`)
  await fillArchive(dataDir, PUBLICATIONS, '2026-03-01')
  writeFileSync(join(folder, 'signals.ndjson'), signals())
  const key = join(folder, 'log.key')
  for (const args of [
    ['import', 'signals', join(folder, 'signals.ndjson')],
    ['snapshot'],
    ['log-key', 'new', key],
    ['checkpoint'],
  ])
    await run(process.execPath, [DASH, ...args, '--quiet', '--data-dir', dataDir], {
      cwd: folder,
      env: {
        ...plainEnvironment(),
        DASH_LOG_ORIGIN: 'bench.example/tlog/year',
        ...(args[0] === 'checkpoint' && { DASH_LOG_KEY_FILE: key }),
      },
    })
  const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(FLOODS)
  const rows = []
  for (const name of names) {
    const { url, pid } = await startServer(dataDir, folder)
    await probe(url, name, 1_000)
    const before = await probe(url, name, 2_000)
    const worker = new Worker(new URL(import.meta.url), { workerData: { base: url, name } })
    const exited = new Promise((resolve) => worker.once('exit', resolve))
    await sleep(1_000)
    const during = await probe(url, name, SECONDS * 1_000)
    const statuses = new Promise((resolve) => worker.once('message', resolve))
    worker.postMessage('end')
    const flooded = await statuses
    await exited
    const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
    process.kill(pid)
    const p95 = (kind) => [before, during].map((found) => ms(percentilesOf(found[kind])[1])).join(' → ')
    rows.push([
      name,
      p95('history'),
      p95('connection'),
      p95('same'),
      JSON.stringify(during.statuses),
      JSON.stringify(flooded),
      megabytes(peak),
    ])
    note(rows.at(-1).join(' | '))
  }
  printTable(
    `p95 for an honest client before → during ${SECONDS} s of each flood of one address (16 addresses for search)`,
    ['flood', 'history', 'new connection', 'same route', 'its statuses', 'statuses of the flood', 'memory'],
    rows,
  )
}

async function startServer(dataDir, folder) {
  const env = {
    ...plainEnvironment(),
    DASH_LOG_LEVEL: 'warn',
    DASH_V1: '1',
    DASH_MCP_REQUESTS_PER_MINUTE: '100000',
    DASH_SESSION_SECRET: 'a secret of the bench, of thirty-two bytes',
    OPENAI_BASE_URL: `http://127.0.0.1:${await freePort()}/v1`,
    DASH_CHAT_MODEL: 'bench',
  }
  const log = openSync(join(folder, 'log'), 'w')
  const args = [DASH, 'serve', '--port', '0', '--data-dir', dataDir, '--json']
  const child = startChild(process.execPath, args, { cwd: dataDir, env, stdio: ['ignore', 'pipe', log] })
  return { url: JSON.parse(await firstLine(child)).url, pid: child.pid }
}

function signals() {
  const day = Math.floor(Date.now() / DAY_MS) * DAY_MS
  return Array.from({ length: 20_000 }, (_, index) => {
    const publishedAt = new Date(day - index * 60_000).toISOString()
    const title = `story ${index} with many common words about subject ${index % 97}`
    return `${JSON.stringify({ source: 'hn', sourceId: String(index), day: publishedAt.slice(0, 10), title, url: `https://example.org/${index}`, points: index % 500, comments: index % 90, publishedAt })}\n`
  }).join('')
}
