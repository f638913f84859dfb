/**
 * Measures how fast the server replays one publication of about 250 KB, beside two peers on the same machine in the
 * same run: nginx (one worker, sendfile, no log) serving the same bytes as a file, and a bare `node:http`
 * server with the bytes in memory. Each gets requests for the whole publication (200) and conditional ones with its
 * current entity tag (304), on loopback, by wrk with one thread and 16 connections; the servers take turns,
 * and the median counts. dash is measured as operators run it, logging every request to a file, and once more
 * without a log.
 *
 *     npm run build && node bench/history.mjs
 *
 * Needs the Debian packages nginx-light and wrk. Takes about two minutes.
 */
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  firstLine,
  freePort,
  grouped,
  median,
  note,
  printTable,
  publishSyntheticYear,
  run,
  runBench,
  startChild,
  startDash,
} from './support.mjs'

const BARE_SERVER = fileURLToPath(new URL('bare-server.mjs', import.meta.url))

const ROUNDS = 3
const SECONDS = 4
const CONNECTIONS = 16
const WARM_UP_SECONDS = 1

/** The ledger is read anew on every request until its last change is this old. */
const SETTLED_MS = 3_000

const HISTORY = '/api/feed/history?sort=year'

/** Goals, as shares of nginx's requests per second. */
const GOALS = { 200: 0.35, 304: 0.15 }

await runBench(async (folder) => {
  const dataDir = join(folder, 'data')
  await publishSyntheticYear(folder, dataDir)
  await sleep(SETTLED_MS)
  const contenders = await startContenders(folder, dataDir)
  for (const contender of contenders) await prepare(contender, contenders[0].bytes)
  const measured = await measureAll(contenders)
  requireLog(join(folder, 'dash.log'))
  printTable(
    `History of a ${grouped(contenders[0].bytes.byteLength)}-byte publication: requests a second, ` +
      `wrk -t1 -c${CONNECTIONS} -d${SECONDS}s, median of ${ROUNDS}`,
    ['server', 'answer', 'requests/s', 'of nginx', 'goal', 'p99', 'rounds'],
    tableRows(contenders, measured),
  )
})

/**
 * Starts every server; the first one's bytes are what all must answer with.
 *
 * @returns {Promise<{ name: string, url: string, bytes?: Buffer, etag?: string }[]>}
 */
async function startContenders(folder, dataDir) {
  const dash = await startDash(dataDir, {
    logLevel: 'info',
    logFile: openSync(join(folder, 'dash.log'), 'a'),
  })
  const silent = await startDash(dataDir, {
    logLevel: 'silent',
    logFile: openSync(join(folder, 'silent.log'), 'a'),
  })
  const answer = await fetch(`${dash}${HISTORY}`)
  if (answer.status !== 200) throw new Error(`dash answered ${answer.status}: ${await answer.text()}`)
  const bytes = Buffer.from(await answer.arrayBuffer())
  const site = join(folder, 'site')
  mkdirSync(site)
  writeFileSync(join(site, 'year.json'), bytes)
  const bare = startChild(
    process.execPath,
    [BARE_SERVER, join(site, 'year.json'), answer.headers.get('etag')],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  return [
    { name: 'dash, log to a file', url: `${dash}${HISTORY}`, bytes },
    { name: 'dash, no log', url: `${silent}${HISTORY}` },
    { name: 'nginx', url: `${await startNginx(folder, site)}/year.json` },
    { name: 'bare node:http', url: await firstLine(bare) },
  ]
}

async function startNginx(folder, site) {
  const port = await freePort()
  const config = join(folder, 'nginx.conf')
  writeFileSync(config, nginxConfig(folder, site, port))
  const errors = openSync(join(folder, 'nginx.out'), 'a')
  const child = startChild('nginx', ['-e', 'stderr', '-p', folder, '-c', config], {
    stdio: ['ignore', errors, errors],
  })
  child.once('error', (error) =>
    note(`nginx cannot be started (${error.message}); install the package nginx-light`),
  )
  for (let tries = 1; ; tries += 1) {
    const ready = await fetch(`http://127.0.0.1:${port}/year.json`).then(
      (response) => response.arrayBuffer().then(() => response.ok),
      () => false,
    )
    if (ready) return `http://127.0.0.1:${port}`
    if (tries === 50)
      throw new Error(`nginx does not answer: ${readFileSync(join(folder, 'nginx.out'), 'utf8')}`)
    await sleep(100)
  }
}

/** Started by root, the worker must stay root to enter a private temporary folder. */
function nginxConfig(folder, site, port) {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `daemon off;
${process.getuid() === 0 ? 'user root;' : ''}
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr warn;
events { worker_connections 256; }
http {
${temporary.map((name) => `  ${name}_temp_path ${folder}/${name};`).join('\n')}
  types { application/json json; }
  access_log off;
  sendfile on;
  tcp_nopush on;
  etag on;
  keepalive_requests 1000000000;
  server {
    listen 127.0.0.1:${port};
    root ${site};
  }
}
`
}

/** Checks that a server gives the very bytes and knows its own entity tag, then warms it up. */
async function prepare(contender, bytes) {
  const full = await fetch(contender.url)
  contender.etag = full.headers.get('etag')
  const body = Buffer.from(await full.arrayBuffer())
  if (full.status !== 200 || !body.equals(bytes)) throw new Error(`${contender.name} gives other bytes`)
  const conditional = await fetch(contender.url, { headers: { 'if-none-match': contender.etag } })
  if (conditional.status !== 304)
    throw new Error(`${contender.name} answers ${conditional.status} instead of 304`)
  for (const status of [200, 304]) await wrk(contender, status, WARM_UP_SECONDS)
}

/** @returns {Promise<Map<string, { perSecond: number, p99: string }[]>>} by name and status */
async function measureAll(contenders) {
  const measured = new Map()
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const status of [200, 304]) {
      for (const contender of contenders) {
        const result = await wrk(contender, status, SECONDS)
        const key = `${contender.name} ${status}`
        measured.set(key, [...(measured.get(key) ?? []), result])
        note(`round ${round}, ${key}: ${grouped(result.perSecond)} requests/s`)
      }
    }
  }
  return measured
}

/** A dash that had not logged would have been measured as what it is not. */
function requireLog(file) {
  if (!readFileSync(file).includes('"path":"/api/feed/history"')) throw new Error('dash logged no request')
}

async function wrk({ name, url, etag }, status, duration) {
  const conditional = status === 304 ? ['-H', `If-None-Match: ${etag}`] : []
  const output = await run('wrk', [
    '-t1',
    `-c${CONNECTIONS}`,
    `-d${duration}s`,
    '--latency',
    ...conditional,
    url,
  ])
  if (/Non-2xx|Socket errors/.test(output)) throw new Error(`${name} failed under load:\n${output}`)
  const [, perSecond] = /Requests\/sec:\s+([\d.]+)/.exec(output) ?? []
  const [, p99] = /99%\s+(\S+)/.exec(output) ?? []
  return { perSecond: Number(perSecond), p99 }
}

function tableRows(contenders, measured) {
  const medianOf = (name, status) =>
    median(measured.get(`${name} ${status}`).map(({ perSecond }) => perSecond))
  return [200, 304].flatMap((status) =>
    contenders.map(({ name }) => {
      const rounds = measured.get(`${name} ${status}`)
      const perSecond = medianOf(name, status)
      return [
        name,
        status,
        grouped(perSecond),
        (perSecond / medianOf('nginx', status)).toFixed(3),
        name.startsWith('dash') ? `at least ${GOALS[status]}` : '',
        rounds.find((result) => result.perSecond === perSecond)?.p99 ?? '',
        rounds.map((result) => grouped(result.perSecond)).join(', '),
      ]
    }),
  )
}
