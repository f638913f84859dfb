/**
 * Audits hosts that send hostile bodies with `dash verify-archive --url` and prints the peak memory of each audit.
 *
 * usage: node scripts/attacks/hostile-host.mjs [--only NAME] [--dash dist/cli/main.js]
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const MIB = 1024 * 1024
const START = Date.UTC(2026, 0, 1)
const DAY_MS = 86_400_000

const { values: flags } = parseArgs({
  options: { only: { type: 'string' }, dash: { type: 'string', default: 'dist/cli/main.js' } },
})

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')

/** Repeats `piece` up to about `size` bytes, between a beginning and an end. */
const filled = (size, piece, first = '', last = '') =>
  Buffer.from(first + piece.repeat(Math.floor((size - first.length - last.length) / piece.length)) + last)

/** A sound ledger of publications that all have the same body, as far as its entries tell. */
function ledgerOf(count, body, id = 'p') {
  const lines = []
  let leaf = '0'.repeat(64)
  const digest = sha256(body)
  for (let seq = 1; seq <= count; seq += 1) {
    const at = START + seq * DAY_MS
    const identity = [at, '2026-01-01', id, 'top-year-v2', 2, 'k', START, START, START, at]
    const columns = [leaf, seq, 'publication', ...identity, digest, body.byteLength, null, null, null, null]
    lines.push(JSON.stringify(['dash-year-ledger/1', ...columns]))
    leaf = sha256(lines.at(-1))
  }
  const head = JSON.stringify({ seq: count, leaf, time: new Date(START + count * DAY_MS).toISOString() })
  return { ledger: Buffer.from(lines.map((line) => `${line}\n`).join('')), head: Buffer.from(`${head}\n`) }
}

const SMALL = ledgerOf(3, Buffer.from('{}'))
const publications = (body) => ({ ...ledgerOf(12, body), object: body })
const legacyLine = (n) => `[${n},"a","b",1,"c","d",1,1,1,${START + n},"${sha256('x')}",1]\n`

const HOSTS = {
  'head of 64 MB': () => ({ ...SMALL, head: filled(63 * MIB, '{},', '[', '{}]') }),
  'ledger of 64 MB of newlines': () => ({ ...SMALL, ledger: filled(63 * MIB, '\n') }),
  'ledger of 16 MB of newlines': () => ({ ...SMALL, ledger: filled(15.9 * MIB, '\n') }),
  'ledger of one line': () => ({ ...SMALL, ledger: filled(15.9 * MIB, '{},', '[', '{}]\n') }),
  'ledger of 40,000 publications': () => ledgerOf(40_000, Buffer.from('{}')),
  'ledger of long publication ids': () => ledgerOf(2_200, Buffer.from('{}'), 'p'.repeat(7_000)),
  'ledger in chunks of one byte': () => ({ ...SMALL, ledger: filled(6 * MIB, 'x'), drip: true }),
  'legacy ledger of 64 MB': () => ({ ...SMALL, legacy: filled(63 * MIB, legacyLine(1)) }),
  'legacy ledger of 50,000 rows': () => ({
    ...SMALL,
    legacy: Buffer.from(Array.from({ length: 50_000 }, (_, index) => legacyLine(index + 1)).join('')),
  }),
  'publications of 63 MB': () => publications(filled(63 * MIB, '{},', '{"a":[', '{}]}')),
  'publications of 4 MB': () => publications(filled(3.9 * MIB, '{},', '{"a":[', '{}]}')),
  'publications of 4 MB of nested lists': () =>
    publications(Buffer.from(`{"a":${'['.repeat(1.9 * MIB)}${']'.repeat(1.9 * MIB)}}`)),
  'refusals of 63 MB': () => ({ ...SMALL, object: filled(63 * MIB, '{},', '[', '{}]'), status: 503 }),
}

function bodyOf(host, path) {
  if (path.endsWith('/head')) return host.head
  if (path.endsWith('/ledger')) return host.ledger
  return path.endsWith('/legacy') ? (host.legacy ?? Buffer.alloc(0)) : (host.object ?? Buffer.from('{}'))
}

async function serve(host) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://host')
    const body = bodyOf(host, pathname)
    const isObject = pathname.endsWith('/history')
    response.writeHead(isObject ? (host.status ?? 200) : 200, { etag: `"${sha256(body)}"` })
    if (!host.drip || !pathname.endsWith('/ledger')) return response.end(body)
    const piece = Buffer.from('1\r\nx\r\n'.repeat(10_000))
    let left = body.byteLength / 10_000
    response.flushHeaders()
    const more = () => {
      while (left-- > 0) if (!response.socket?.write(piece)) return response.socket?.once('drain', more)
      response.socket?.end('0\r\n\r\n')
    }
    more()
  })
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => server.closeAllConnections() ?? server.close(),
  }
}

function audit(url, folder) {
  const usage = join(folder, 'usage')
  const node = [
    'timeout',
    '-s',
    'KILL',
    '120',
    process.execPath,
    resolve(flags.dash),
    'verify-archive',
    '--url',
    url,
    '--json',
  ]
  return new Promise((done) => {
    const options = { cwd: folder, maxBuffer: 1024 * MIB }
    execFile('/usr/bin/time', ['-f', '%M', '-o', usage, ...node], options, (error, stdout) => {
      const peak = Number(readFileSync(usage, 'utf8').trim().split('\n').at(-1)) / 1024
      done({ code: error?.code ?? 0, peak, output: stdout.length / MIB })
    })
  })
}

for (const [name, make] of Object.entries(HOSTS)) {
  if (flags.only && !name.includes(flags.only)) continue
  const folder = mkdtempSync(join(tmpdir(), 'dash-hostile-'))
  const host = await serve(make())
  const { code, peak, output } = await audit(host.url, folder)
  host.close()
  rmSync(folder, { recursive: true })
  console.log(
    `${name.padEnd(38)} exit ${code}  ${peak.toFixed(0).padStart(5)} MB peak  ${output.toFixed(1)} MB output`,
  )
}
