/**
 * Measures the overhead of the provider adapter over the raw stream of the same provider in the same run: the time to
 * the first delta, one request at a time over a connection that is kept; how long after an abort the provider's
 * connection is closed, one at a time and 1,000 at once; and how long the event loop is held while a line of 200 MiB
 * without an end arrives.
 *
 *     npm run build && node bench/provider.mjs
 *
 * Needs nothing but Node. Takes about half a minute.
 */
import { Agent, request } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { openChatModel } from '../dist/adapters/provider/chat-model.js'
import {
  differences,
  firstLine,
  ms,
  note,
  percentiles,
  printTable,
  runBench,
  startChild,
} from './support.mjs'

const UPSTREAM = fileURLToPath(new URL('provider-upstream.mjs', import.meta.url))
const WARM_UP = 200
const ASKED = 2_000
const ABORTS = 300
const AT_ONCE = 1_000
const LINES = 20

const LIVING = new AbortController().signal
const CALL = {
  instructions: 'You answer questions about a feed.',
  input: [{ role: 'user', content: 'What is new? '.repeat(100) }],
  rounds: [],
  tools: [],
  maxOutputTokens: 1_000,
}

const now = () => performance.timeOrigin + performance.now()

await runBench(async () => {
  const child = startChild(process.execPath, [UPSTREAM], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const url = await firstLine(child)
  const models = Object.fromEntries(['short', 'hold', 'line'].map((model) => [model, open(url, model)]))
  try {
    const first = await firstDeltas(url, models.short)
    const aborts = await abortsInTurn(child, models.hold)
    const together = await abortsAtOnce(child, models.hold)
    const lines = []
    for (let round = 0; round < LINES; round += 1) lines.push(await longLine(models.line))
    printTable(
      `The provider adapter: ${ASKED} answers, ${ABORTS} aborts in turn, ${AT_ONCE} aborts at once, ${LINES} lines of 200 MiB`,
      ['measured', 'p50', 'p95', 'p99', 'goal'],
      [
        ['raw: request to first delta', ...percentiles(first.raw), ''],
        ['adapter: request to first delta', ...percentiles(first.adapter), ''],
        ['adapter over raw', ...differences(first.adapter, first.raw), '5 / 10 / 25 ms'],
        ['abort to the connection closed', ...percentiles(aborts), 'p99 50 ms'],
        [`${AT_ONCE} aborts to the last closed`, ms(together), '', '', '2,000 ms'],
        ['200 MiB line: until it is cut', ...percentiles(lines.map(({ tookMs }) => tookMs)), ''],
        [
          '200 MiB line: longest hold of the event loop',
          ...percentiles(lines.map(({ heldMs }) => heldMs)),
          '50 ms',
        ],
      ],
    )
  } finally {
    await Promise.all(Object.values(models).map((model) => model.close()))
  }
})

function open(url, model) {
  return openChatModel({
    base: `${url}/v1`,
    key: 'bench',
    userAgent: 'dash/bench',
    model,
    api: 'responses',
    firstEventMs: 60_000,
    idleMs: 60_000,
  })
}

/** Both in turn, so that other work on the machine falls on both. */
async function firstDeltas(url, model) {
  const agent = new Agent({ keepAlive: true })
  const times = { raw: [], adapter: [] }
  for (let round = 0; round < WARM_UP + ASKED; round += 1) {
    const [raw, adapter] = [await rawFirstDelta(url, agent), await adapterFirstDelta(model)]
    if (round < WARM_UP) continue
    times.raw.push(raw)
    times.adapter.push(adapter)
  }
  agent.destroy()
  return times
}

/** The least a client can do: the bytes of the first delta, unparsed. */
function rawFirstDelta(url, agent) {
  const body = JSON.stringify({ model: 'short', input: CALL.input, stream: true })
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    let firstAt = null
    const sent = request(`${url}/v1/responses`, { method: 'POST', agent }, (response) => {
      response.on('data', (chunk) => {
        if (firstAt === null && chunk.includes('output_text.delta')) firstAt = performance.now()
      })
      response.once('end', () => resolve(firstAt - startedAt))
    })
    sent.once('error', reject)
    sent.end(body)
  })
}

async function adapterFirstDelta(model) {
  const startedAt = performance.now()
  let firstAt = null
  for await (const event of model.ask(CALL, LIVING)) {
    if (event.kind === 'failed') throw new Error(`${event.error} ${event.code}`)
    if (event.kind === 'text') firstAt ??= performance.now()
  }
  return firstAt - startedAt
}

/** A held answer, of which the first delta has come. */
async function hold(model) {
  const abort = new AbortController()
  const events = model.ask(CALL, abort.signal)[Symbol.asyncIterator]()
  const { value } = await events.next()
  if (value?.kind !== 'text') throw new Error(`no text but ${JSON.stringify(value)}`)
  const ended = events.next().catch(() => undefined)
  return { abort, ended }
}

async function abortsInTurn(child, model) {
  const times = []
  for (let round = 0; round < ABORTS; round += 1) {
    const { abort, ended } = await hold(model)
    const closed = closings(child, 1)
    const startedAt = now()
    abort.abort()
    times.push((await closed) - startedAt)
    await ended
  }
  return times
}

async function abortsAtOnce(child, model) {
  const held = []
  for (let round = 0; round < AT_ONCE; round += 1) held.push(await hold(model))
  note(`${AT_ONCE} answers are held`)
  const closed = closings(child, AT_ONCE)
  const startedAt = now()
  for (const { abort } of held) abort.abort()
  const lastAt = await closed
  await Promise.all(held.map(({ ended }) => ended))
  return lastAt - startedAt
}

/** When the last of so many answers was closed. */
function closings(child, count) {
  return new Promise((resolve) => {
    let left = count
    const onMessage = ({ closedAt }) => {
      left -= 1
      if (left > 0) return
      child.off('message', onMessage)
      resolve(closedAt)
    }
    child.on('message', onMessage)
  })
}

async function longLine(model) {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const startedAt = performance.now()
  for await (const event of model.ask(CALL, LIVING)) {
    if (event.code !== 'invalid_stream') throw new Error(`ended with ${JSON.stringify(event)}`)
  }
  const tookMs = performance.now() - startedAt
  delay.disable()
  return { tookMs, heldMs: delay.max / 1e6 }
}
