/**
 * Measures the overhead of the whole chat service over direct requests to the same provider in the same run: time to `meta`
 * and to the first delta, memory of an open answer, time from the reset of a client to the close of the provider's
 * connection, time of a cached answer, and time of the admission of a turn.
 *
 *     npm run build && node bench/chat.mjs
 *
 * Needs nothing but Node and Linux. Takes about a minute.
 */
import { once } from 'node:events'
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { database } from '../dist/adapters/sqlite/database.js'
import { libsqlChatLedger } from '../dist/adapters/state/chat-stores.js'
import {
  differences,
  firstLine,
  ms,
  note,
  percentiles,
  plainEnvironment,
  printTable,
  run,
  runBench,
  startChild,
  stopChild,
} from './support.mjs'

const UPSTREAM = fileURLToPath(new URL('provider-upstream.mjs', import.meta.url))
const DASH = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const WARM_UP = 200
const ASKED = 1_000
const RESETS = 200
const HELD = 500
const HELD_RUNS = 5
const CACHED = 500
const ADMISSIONS = 2_000
const RAW_REQUEST = JSON.stringify({ model: 'short', messages: [{ role: 'user', content: 'What is new?' }] })

/** Pause before the memory of a server is measured again, so that it has settled. */
const REST_MS = 2_000

const now = () => performance.timeOrigin + performance.now()

await runBench(async (folder) => {
  const upstream = startChild(process.execPath, [UPSTREAM], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const provider = await firstLine(upstream)
  const short = await startServer(join(folder, 'short'), provider, 'short')
  const hold = await startServer(join(folder, 'hold'), provider, 'hold')
  note(`${ASKED} answers, with the provider directly in turn`)
  const first = await firstDeltas(provider, short)
  note(`${CACHED} answers that are kept`)
  const cached = await keptAnswers(short)
  note(`${RESETS} resets in turn`)
  const resets = await resetsInTurn(upstream, hold)
  const heldRuns = []
  for (let round = 1; round <= HELD_RUNS; round += 1) {
    note(`${HELD} held answers, reset at once: run ${round}`)
    const server = await startServer(join(folder, `hold-${round}`), provider, 'hold')
    heldRuns.push(await heldAnswers(upstream, server))
    await stopChild(server.child)
  }
  const slowest = Math.max(...heldRuns.map(({ together }) => together))
  note(`${ADMISSIONS} admissions`)
  const admissions = await admissionTimes(folder)
  printTable(
    `The chat service: ${ASKED} answers, ${HELD_RUNS} × ${HELD} held ones, ${RESETS} resets, ${CACHED} kept answers, ${ADMISSIONS} admissions`,
    ['measured', 'p50', 'p95', 'p99', 'goal'],
    [
      ['provider directly: request to first delta', ...percentiles(first.raw), ''],
      ['service: request to meta', ...percentiles(first.meta), '20 ms'],
      ['service: request to first delta', ...percentiles(first.service), ''],
      ['service over provider', ...differences(first.service, first.raw), '5 / 10 / 25 ms'],
      ['kept answer: request to end', ...percentiles(cached), 'p95 15 ms'],
      ['reset to the provider’s connection closed', ...percentiles(resets), 'p99 50 ms'],
      [`${HELD} resets at once to the last closed, at worst`, ms(slowest), '', '', '2,000 ms'],
      [
        'memory of a held answer, each run',
        heldRuns.map(({ perStream }) => (perStream / 1024).toFixed(1)).join(', '),
        '',
        '',
        '96 KiB',
      ],
      ['admission of a turn', ...percentiles(admissions), 'p99 5 ms'],
    ],
  )
})

/** A server over a small feed of today, without limits that would be in the way. */
async function startServer(dataDir, provider, model) {
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'signals.ndjson'), signals())
  for (const args of [['import', 'signals', join(dataDir, 'signals.ndjson')], ['snapshot']]) {
    await run(process.execPath, [DASH, ...args, '--quiet', '--data-dir', dataDir], {
      cwd: dataDir,
      env: plainEnvironment(),
    })
  }
  const env = {
    ...plainEnvironment(),
    DASH_LOG_LEVEL: 'info',
    DASH_SESSION_SECRET: 'a secret of the bench, of thirty-two bytes',
    OPENAI_BASE_URL: `${provider}/v1`,
    DASH_CHAT_MODEL: model,
    DASH_CHAT_MESSAGES_PER_SESSION: '1000000',
    DASH_CHAT_MESSAGES_PER_DAY: '1000000',
    DASH_CHAT_BURST_PER_MINUTE: '1000000',
    DASH_CHAT_MIN_GAP_MS: '0',
    DASH_CHAT_MAX_STREAMS: '100000',
    DASH_CHAT_IDLE_MS: '600000',
    DASH_CHAT_TURN_MS: '600000',
    // One address has 256 connections; each of a trusted proxy stands for itself.
    DASH_TRUSTED_PROXIES: '127.0.0.1',
  }
  const child = startChild(
    process.execPath,
    [DASH, 'serve', '--port', '0', '--data-dir', dataDir, '--json'],
    { cwd: dataDir, env, stdio: ['ignore', 'pipe', openSync(join(dataDir, 'log'), 'w')] },
  )
  const { url } = JSON.parse(await firstLine(child))
  const answer = await fetch(`${url}/api/agent/session`, { method: 'POST', headers: { origin: url } })
  const { sessionToken } = await answer.json()
  return { url, port: Number(new URL(url).port), token: sessionToken, child }
}

function signals() {
  const at = new Date(Date.now() - 3_600_000).toISOString()
  const rows = Array.from({ length: 300 }, (_, index) => ({
    source: 'hn',
    sourceId: String(index + 1),
    day: at.slice(0, 10),
    title: `A title of about the usual length, number ${index + 1}`,
    url: `https://example.org/${index + 1}`,
    points: 1_000 - index,
    comments: index,
    publishedAt: at,
    titleProvenance: 'hn:bench',
  }))
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('')
}

function question(text) {
  return JSON.stringify({ messages: [{ role: 'user', content: text }] })
}

/** Both in turn, so that other work on the machine falls on both. */
async function firstDeltas(provider, server) {
  const agent = new Agent({ keepAlive: true })
  const times = { raw: [], service: [], meta: [] }
  for (let asked = 0; asked < WARM_UP + ASKED; asked += 1) {
    const raw = await stream(`${provider}/v1/chat/completions`, agent, {}, RAW_REQUEST)
    const service = await chat(server, agent, question(`What is new? ${asked}`))
    if (asked < WARM_UP) continue
    times.raw.push(raw.at('"content"'))
    times.service.push(service.at('event: delta'))
    times.meta.push(service.at('event: meta'))
  }
  agent.destroy()
  return times
}

async function keptAnswers(server) {
  const agent = new Agent({ keepAlive: true })
  const times = []
  await chat(server, agent, question('What is kept?'))
  for (let asked = 0; asked < CACHED; asked += 1) {
    const answer = await chat(server, agent, question('What is kept?'))
    if (!answer.text.includes('"cached":true}')) throw new Error(`not kept: ${answer.text}`)
    times.push(answer.tookMs)
  }
  agent.destroy()
  return times
}

function chat({ url, token }, agent, body) {
  const headers = { origin: url, 'x-agent-session': token }
  return stream(`${url}/api/agent/chat`, agent, headers, body)
}

/** A whole answer, and when what of it came, in milliseconds from the request on. */
function stream(url, agent, headers, body) {
  return new Promise((resolve, reject) => {
    const chunks = []
    let text = ''
    const sent = request(
      url,
      { method: 'POST', agent, headers: { ...headers, 'content-length': Buffer.byteLength(body) } },
      (response) => {
        response.setEncoding('utf8')
        response.on('data', (chunk) => {
          text += chunk
          chunks.push({ ms: performance.now() - startedAt, length: text.length })
        })
        response.once('error', reject)
        response.once('end', () => {
          if (response.statusCode !== 200) return reject(new Error(`${response.statusCode} ${text}`))
          const at = (part) => {
            const index = text.indexOf(part)
            if (index < 0) throw new Error(`no ${part} in ${text}`)
            return chunks.find(({ length }) => length > index).ms
          }
          resolve({ text, at, tookMs: performance.now() - startedAt })
        })
      },
    )
    sent.once('error', reject)
    const startedAt = performance.now()
    sent.end(body)
  })
}

/** An answer whose first delta has come and that never ends. */
async function held(server, text) {
  const socket = connect(server.port, '127.0.0.1')
  socket.on('error', () => undefined)
  const body = question(text)
  socket.write(
    `POST /api/agent/chat HTTP/1.1\r\nHost: bench\r\nOrigin: ${server.url}\r\nX-Agent-Session: ${server.token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  let received = ''
  while (!received.includes('event: delta')) {
    const [chunk] = await once(socket, 'data')
    received += chunk.toString()
  }
  return socket
}

function closings(upstream, count) {
  return new Promise((resolve) => {
    const times = []
    const listen = ({ closedAt }) => {
      times.push(closedAt)
      if (times.length < count) return
      upstream.off('message', listen)
      resolve(times)
    }
    upstream.on('message', listen)
  })
}

async function resetsInTurn(upstream, server) {
  const times = []
  for (let reset = 0; reset < RESETS; reset += 1) {
    const socket = await held(server, `Hold ${reset}`)
    const closed = closings(upstream, 1)
    const resetAt = now()
    socket.resetAndDestroy()
    const [closedAt] = await closed
    times.push(closedAt - resetAt)
  }
  return times
}

async function heldAnswers(upstream, server) {
  await pause(REST_MS)
  const before = memoryOf(server.child.pid)
  const sockets = []
  while (sockets.length < HELD) {
    const batch = Array.from({ length: 50 }, (_, index) => held(server, `Held ${sockets.length + index}`))
    sockets.push(...(await Promise.all(batch)))
  }
  await pause(REST_MS)
  const perStream = (memoryOf(server.child.pid) - before) / HELD
  const closed = closings(upstream, HELD)
  const resetAt = now()
  for (const socket of sockets) socket.resetAndDestroy()
  const together = Math.max(...(await closed)) - resetAt
  return { perStream, together }
}

function memoryOf(pid) {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(kilobytes) * 1024
}

async function admissionTimes(folder) {
  const state = database({
    location: { url: pathToFileURL(join(folder, 'state.db')).href, authToken: null },
    store: 'state',
    nativeBusyMs: 10,
    retryMs: 2_000,
    fast: true,
  })
  const ledger = libsqlChatLedger(state)
  const times = []
  const many = 1_000_000
  const limits = {
    messagesPerSession: many,
    messagesPerDay: many,
    burstPerMinute: many,
    minGapMs: 0,
    maxOpenTurns: many,
    budgetPerDay: 1e12,
    budgetShare: 200_000,
  }
  for (let turn = 0; turn < WARM_UP + ADMISSIONS; turn += 1) {
    const at = Date.now()
    const claim = {
      session: `session ${turn % 100}`,
      sessionEndsAt: at + 1_000_000,
      address: `address ${turn % 500}`,
      network: `network ${turn % 50}`,
      key: null,
      formerAddress: null,
      server: 'bench',
      now: at,
      day: new Date(at).toISOString().slice(0, 10),
      firstCall: { withTools: 100, withoutTools: 10 },
      shortestCall: { withTools: 100, withoutTools: 10 },
      requestsPerAddress: null,
      leaseMs: 1_000_000,
      limits,
    }
    const startedAt = performance.now()
    const admission = await ledger.admit(claim)
    if (turn >= WARM_UP) times.push(performance.now() - startedAt)
    if (!admission.admitted) throw new Error('a turn of the bench was refused')
    await ledger.settle(admission.turn, 10, at)
  }
  state.close()
  return times
}
