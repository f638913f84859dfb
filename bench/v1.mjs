/**
 * Measures `/v1` of a server process: the time to the first chunk and to the end of a stream, over the same call sent
 * directly, one at a time over connections that are kept; the memory of held streams; and the time from the reset of a
 * client to the close of the upstream connection.
 *
 *     npm run build && node bench/v1.mjs
 *
 * Needs nothing but Node. Each call has another client address, given by a trusted proxy, because an address has 60
 * requests a minute. A server holds 100 streams, which no setting raises, so that 500 are held by five servers.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { fileObjects } from '../dist/adapters/objects/open.js'
import { seedRun } from '../dist/domain/models/seed.js'
import { sealRun } from '../dist/domain/models/stored-run.js'
import {
  differences,
  firstLine,
  percentiles,
  plainEnvironment,
  printTable,
  runBench,
  startChild,
} from './support.mjs'

const UPSTREAM = fileURLToPath(new URL('provider-upstream.mjs', import.meta.url))
const DASH = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const WARM_UP = 300
const SENT = 2_000
const ABORTS = 200
const SERVERS = 5
const HELD_EACH = 100

/** Pause before memory is measured, in milliseconds, so that it has settled. */
const SETTLE_MS = 2_000

/** Client addresses used so far. */
let addresses = 0

const now = () => performance.timeOrigin + performance.now()

await runBench(async (folder) => {
  const upstream = startChild(process.execPath, [UPSTREAM], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const direct = await firstLine(upstream)
  const dash = await startServer(join(folder, 'one'), direct)
  const times = await overhead(direct, dash.url)
  const aborts = await abortsInTurn(upstream, dash.url)
  const perStream = await memoryOfHeld(folder, direct)
  printTable(
    `/v1 over a direct call: ${SENT} streams, ${ABORTS} aborts, ${SERVERS * HELD_EACH} streams held by ${SERVERS} servers`,
    ['measured', 'p50', 'p95', 'p99', 'goal'],
    [
      ['direct: first chunk', ...percentiles(times.direct.first), ''],
      ['/v1: first chunk', ...percentiles(times.dash.first), ''],
      ['overhead to the first chunk', ...differences(times.dash.first, times.direct.first), '2 / 6 ms'],
      ['overhead to the end', ...differences(times.dash.end, times.direct.end), '2 / 6 ms'],
      ['abort to the upstream closed', ...percentiles(aborts), ''],
      ['memory of a held stream', `${(perStream / 1024).toFixed(1)} KiB`, '', '', ''],
    ],
  )
})

/** A server with a ranking in a new data folder. */
async function startServer(folder, upstream) {
  mkdirSync(join(folder, 'objects'), { recursive: true })
  const run = { ...seedRun(), source: 'openrouter-models-api' }
  await fileObjects(join(folder, 'objects')).recommendations.put(run.rankingVersion, sealRun(run))
  const env = {
    ...plainEnvironment(),
    DASH_V1: '1',
    OPENROUTER_BASE_URL: `${upstream}/v1`,
    DASH_TRUSTED_PROXIES: '127.0.0.1',
    DASH_LOG_LEVEL: 'silent',
  }
  const args = [DASH, 'serve', '--port', '0', '--data-dir', folder, '--json']
  const child = startChild(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
  return { url: JSON.parse(await firstLine(child)).url, pid: child.pid }
}

/** An address that no call had before. */
function nextAddress() {
  addresses += 1
  return `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`
}

/** Sends a completion; resolves with its response. */
function send(url, content, agent) {
  const body = JSON.stringify({ model: 'auto', stream: true, messages: [{ role: 'user', content }] })
  const headers = {
    authorization: 'Bearer bench',
    'x-forwarded-for': nextAddress(),
    'content-type': 'application/json',
  }
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/v1/chat/completions`, { method: 'POST', agent, headers }, (response) => {
      if (response.statusCode === 200) resolve({ sent, response })
      else reject(new Error(`status ${response.statusCode}`))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Times to the first chunk and to the end of one stream. */
async function stream(url, agent) {
  const startedAt = performance.now()
  const { response } = await send(url, 'What is new? '.repeat(100), agent)
  let first = null
  for await (const _chunk of response) first ??= performance.now() - startedAt
  return { first, end: performance.now() - startedAt }
}

/** Both in turn, so that other work on the machine falls on both. */
async function overhead(direct, dash) {
  const agent = new Agent({ keepAlive: true })
  const times = { direct: { first: [], end: [] }, dash: { first: [], end: [] } }
  for (let round = 0; round < WARM_UP + SENT; round += 1) {
    for (const [name, url] of Object.entries({ direct, dash })) {
      const { first, end } = await stream(url, agent)
      if (round < WARM_UP) continue
      times[name].first.push(first)
      times[name].end.push(end)
    }
  }
  agent.destroy()
  return times
}

/** A stream of which the first chunk has come. */
async function hold(url) {
  const { sent, response } = await send(url, 'hold', new Agent())
  sent.on('error', () => undefined)
  response.on('error', () => undefined)
  await new Promise((resolve) => response.once('data', resolve))
  return sent
}

async function abortsInTurn(upstream, url) {
  const times = []
  for (let round = 0; round < ABORTS; round += 1) {
    const sent = await hold(url)
    const closed = new Promise((resolve) => upstream.once('message', ({ closedAt }) => resolve(closedAt)))
    const startedAt = now()
    sent.destroy()
    times.push((await closed) - startedAt)
  }
  return times
}

/** Bytes of memory for each stream, in servers that have passed on as many before; all are held at once. */
async function memoryOfHeld(folder, upstream) {
  const servers = []
  for (let count = 0; count < SERVERS; count += 1) {
    servers.push(await startServer(join(folder, `held-${count}`), upstream))
  }
  for (const { url } of servers) {
    const warm = await holdAll(url)
    for (const sent of warm) sent.destroy()
  }
  await pause(SETTLE_MS)
  const before = sum(servers.map(({ pid }) => memoryOf(pid)))
  const held = []
  for (const { url } of servers) held.push(...(await holdAll(url)))
  await pause(SETTLE_MS)
  const after = sum(servers.map(({ pid }) => memoryOf(pid)))
  for (const sent of held) sent.destroy()
  return (after - before) / held.length
}

async function holdAll(url) {
  const held = []
  for (let count = 0; count < HELD_EACH; count += 1) held.push(await hold(url))
  return held
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0)
}

function memoryOf(pid) {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(kilobytes) * 1024
}
