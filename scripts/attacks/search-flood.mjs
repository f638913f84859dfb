/**
 * Floods the search of a running `dash serve` in four ways while one honest client keeps asking, and prints what that
 * client got. The attackers and the honest client come from different addresses, told by a trusted proxy's header.
 *
 *     npm run build && node scripts/attacks/search-flood.mjs --data-dir FOLDER [--seconds 10] [--dash dist/cli/main.js]
 *
 * FOLDER is a data folder with an indexed feed; it gains a state database.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string' },
    seconds: { type: 'string', default: '10' },
    dash: { type: 'string', default: fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url)) },
  },
})
const DURATION_MS = Number(values.seconds) * 1_000
const HONEST = '198.51.100.7'
const ATTACKER = '203.0.113.9'
const WORDS =
  'the of a to in for and how is on with new from why you show ask data rust linux web code'.split(' ')
/** Of the commonest word of one letter: 490 fit into a query, 99 into a call of a tool. */
const phraseOf = (count) => `"${Array.from({ length: count }, () => 'a').join(' ')}"`

let asked = 0
const words = (count) =>
  Array.from({ length: count }, (_, at) => WORDS[((asked += 1) * 7 + at * 3) % WORDS.length]).join(' ')

/** One request; its status, its time in ms, and its body. */
async function ask(url, { agent, from, method = 'GET', headers = {}, body } = {}) {
  const startedAt = performance.now()
  const sent = request(url, { agent, method, headers: { 'x-forwarded-for': from, ...headers } })
  sent.end(body)
  const [response] = await once(sent, 'response')
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk
  return { status: response.statusCode, ms: performance.now() - startedAt, text }
}

/** Requests of the attackers, by the name of the attack. */
const ATTACKS = {
  words: (url, options) => search(url, words(2), { ...options, from: ATTACKER }),
  phrase: (url, options) => search(url, phraseOf(490), { ...options, from: ATTACKER }),
  network: (url, { at, ...options }) =>
    search(url, words(2), { ...options, from: `2001:db8:7:${at.toString(16)}::1` }),
  mcp: (url, options) => mcp(url, words(2), options),
  'mcp-phrase': (url, options) => mcp(url, phraseOf(99), options),
}

/** Connections that each ask again as soon as they have a response, until the thread is told to stop. */
async function attack({ url, name, connections }) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const statuses = new Map()
  const stopped = new AbortController()
  const lane = async (at) => {
    while (!stopped.signal.aborted) {
      const status = await ATTACKS[name](url, { agent, at }).then(
        (response) => response.status,
        (error) => pause(10, error.code ?? error.message),
      )
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  parentPort.once('message', () => stopped.abort())
  await Promise.all(Array.from({ length: connections }, (_, at) => lane(at)))
  agent.destroy()
  parentPort.postMessage(statuses)
}

/** Starts attackers in a thread, so that they do not delay the honest client; returns how to end them. */
async function flood(url, name, connections) {
  const thread = new Worker(new URL(import.meta.url), {
    workerData: { url, name, connections },
    argv: process.argv.slice(2),
  })
  await once(thread, 'online')
  return async () => {
    thread.postMessage('stop')
    const [statuses] = await once(thread, 'message')
    return statuses
  }
}

/** Asks every 200 ms, whether or not the responses before have come. */
async function honest(next) {
  const until = performance.now() + DURATION_MS
  const open = []
  while (performance.now() < until) {
    open.push(next().catch((error) => ({ status: error.code ?? error.message, ms: Number.NaN })))
    await pause(200)
  }
  return Promise.all(open)
}

function report(name, responses, attackers) {
  const count = (all) => [...all].map(([status, times]) => `${status}: ${times}`).join(', ')
  const statuses = new Map()
  for (const { status } of responses) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  const times = responses.map(({ ms }) => ms).sort((a, b) => a - b)
  const at = (share) =>
    `${Math.round(times[Math.min(times.length - 1, Math.floor(times.length * share))])} ms`
  console.log(`${name}\n  honest: ${count(statuses)}; p50 ${at(0.5)}, p95 ${at(0.95)}, longest ${at(1)}`)
  console.log(`  attackers: ${attackers ? count(attackers) : 'none'}`)
}

/** A model that calls the search tool once in each turn and then answers. */
async function scriptedProvider() {
  const server = createServer((incoming, response) => void complete(incoming, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

async function complete(incoming, response) {
  let text = ''
  for await (const chunk of incoming) text += chunk
  const hasResult = JSON.parse(text).messages.some(({ role }) => role === 'tool')
  const call = { query: words(2), sources: null, from: null, to: null, limit: 5 }
  const tool = { name: 'search_items', arguments: JSON.stringify(call) }
  const delta = hasResult
    ? { content: 'Done.' }
    : { tool_calls: [{ index: 0, id: 'c1', type: 'function', function: tool }] }
  const send = (value) =>
    response.write(`data: ${JSON.stringify({ id: 'x', model: 'scripted', ...value })}\n\n`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  send({ choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason: null }] })
  send({ choices: [{ index: 0, delta: {}, finish_reason: hasResult ? 'stop' : 'tool_calls' }] })
  send({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 } })
  response.end('data: [DONE]\n\n')
}

/** One turn of the chat; its time is that from the start of the tool to its end, and its status whether data came. */
async function chatTurn(url) {
  const json = { 'content-type': 'application/json', origin: url }
  const session = await ask(`${url}/api/agent/session`, { method: 'POST', from: HONEST, headers: json })
  const headers = {
    ...json,
    'x-agent-session': JSON.parse(session.text).sessionToken,
    'x-forwarded-for': HONEST,
  }
  const sent = request(`${url}/api/agent/chat`, { method: 'POST', headers })
  sent.end(JSON.stringify({ messages: [{ role: 'user', content: `question ${performance.now()}` }] }))
  const [response] = await once(sent, 'response')
  const times = {}
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk
    for (const status of ['start', 'done'])
      if (text.includes(`"status":"${status}"`)) times[status] ??= performance.now()
  }
  const end = /event: (done|error)/.exec(text)?.[1] ?? `${response.statusCode} ${text.slice(0, 60)}`
  return { status: end, ms: (times.done ?? Number.NaN) - (times.start ?? Number.NaN) }
}

const search = (url, q, options) => ask(`${url}/api/search?${new URLSearchParams({ q })}`, options)

function mcp(url, query, { agent }) {
  const given = { query, sources: null, from: null, to: null, limit: 20 }
  const params = { name: 'search_items', arguments: given }
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  return ask(`${url}/mcp`, { agent, from: ATTACKER, method: 'POST', headers, body })
}

async function run() {
  const provider = await scriptedProvider()
  const child = spawn(
    process.execPath,
    [values.dash, 'serve', '--port', '0', '--data-dir', values['data-dir'], '--json'],
    {
      env: {
        PATH: process.env.PATH,
        DASH_LOG_LEVEL: 'silent',
        DASH_TRUSTED_PROXIES: '127.0.0.1/32',
        DASH_MCP_REQUESTS_PER_MINUTE: '1000000',
        DASH_SESSION_SECRET: 'x'.repeat(40),
        OPENAI_BASE_URL: `http://127.0.0.1:${provider.address().port}/v1`,
        DASH_CHAT_MODEL: 'scripted',
        DASH_CHAT_API: 'chat',
        DASH_CHAT_PRICE_INPUT: '0',
        DASH_CHAT_PRICE_CACHED: '0',
        DASH_CHAT_PRICE_OUTPUT: '0',
        DASH_CHAT_MIN_GAP_MS: '0',
        DASH_CHAT_BURST_PER_MINUTE: '100000',
        DASH_CHAT_MESSAGES_PER_DAY: '100000',
      },
      // Where no env file is.
      cwd: values['data-dir'],
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  try {
    const [line] = await Promise.race([
      once(createInterface({ input: child.stdout }), 'line'),
      once(child, 'exit'),
    ])
    if (typeof line !== 'string') throw new Error(`the server ended with ${line}`)
    const { url } = JSON.parse(line)
    const searching = () => honest(() => search(url, words(2), { from: HONEST }))
    const chatting = () => honest(() => chatTurn(url))
    const scenarios = [
      ['the search, unattacked', searching],
      ['64 connections of one address, ordinary queries', searching, 'words', 64],
      ['3 connections, a phrase of 490 words', searching, 'phrase', 3],
      ['64 connections of 64 addresses in one IPv6 /48, ordinary queries', searching, 'network', 64],
      ["the chat's search tool, unattacked", chatting],
      ["the chat's search tool, one MCP client with 16 connections", chatting, 'mcp', 16],
      [
        "the chat's search tool, one MCP client with 16 connections, phrases of 99 words",
        chatting,
        'mcp-phrase',
        16,
      ],
    ]
    for (const [name, measured, attackers, connections] of scenarios) {
      const stop = attackers && (await flood(url, attackers, connections))
      if (stop) await pause(1_000)
      report(name, await measured(), await stop?.())
    }
  } finally {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
    provider.close()
  }
}

await (isMainThread ? run() : attack(workerData))
