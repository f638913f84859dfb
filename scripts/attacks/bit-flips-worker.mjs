/**
 * One worker of `bit-flips.mjs`: on a copy of the archive that is its own, it turns one bit over where it stands, looks
 * at what that did in three ways (a plain reading, the audit, the server), and turns it back.
 */
import { fork } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { openObjects } from '../../dist/adapters/objects/objects.js'
import { libsqlLedger, yearReader } from '../../dist/adapters/ledger/ledger.js'
import { database } from '../../dist/adapters/sqlite/database.js'
import { Container } from '../../dist/cli/container.js'
import { readConfig } from '../../dist/cli/settings/read-config.js'
import { formatInstant } from '../../dist/domain/time.js'
import { audit as auditArchive } from '../../dist/jobs/archive/audit.js'
import { ownArchive } from '../../dist/jobs/archive/archives.js'
import { createApp } from '../../dist/server/app.js'

const PLAIN_READER = fileURLToPath(new URL('read-plainly.mjs', import.meta.url))

/** A plain reading that takes longer hangs. */
const PLAIN_READING_MS = 30_000

const [folder, statusFile] = process.argv.slice(2)
const ledgerPath = join(folder, 'ledger.db')
const objectsPath = join(folder, 'objects')
const ledgerBytes = readFileSync(ledgerPath)
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** A file clock ahead of the real one lets every proof settle at once, so that the server's memory is met too. */
const settledClock = () => Date.now() + 60_000

let plainReader = null
let publications = []
let soundRows = ''
let standing = null

for (const file of readdirSync(objectsPath, { recursive: true, withFileTypes: true })) {
  if (file.isFile()) chmodSync(join(file.parentPath, file.name), 0o644)
}

process.on('message', (message) => void reply(message))
process.on('disconnect', () => process.exit())

/** The first message names the publications, every other one a flip. */
async function reply(message) {
  if (message.publications) {
    publications = message.publications.map((each) => ({
      ...each,
      bytes: readFileSync(join(folder, each.path)),
    }))
    soundRows = (await readPlainly()).rows
    const audit = await runAudit()
    process.send({ ready: soundRows !== undefined && audit === 'clean', audit })
    return
  }
  process.send(await tryFlip(message))
}

/** @returns what the flip changed, what the audit said, and what each answer of the server was */
async function tryFlip(flip) {
  const inLedger = flip.file === 'ledger.db'
  const questions = questionsAbout(flip)
  const warm = await warmServer(inLedger)
  for (const question of questions) await ask(warm, question)
  toggle(flip)
  const outcome = {}
  try {
    note('plain reading')
    outcome.changed = inLedger ? await changeOfRows() : 'object'
    note('audit')
    outcome.audit = await runAudit()
    note('server')
    outcome.answers = []
    for (const question of questions) outcome.answers.push(await ask(warm, question))
    const fresh = openServer(Date.now)
    for (const question of questions) outcome.answers.push(await ask(fresh, question))
    await fresh.close()
    note('comparison')
    outcome.wrote = inLedger && !isAsFlipped(flip)
  } finally {
    if (inLedger) {
      await warm.close()
      standing = null
      restoreLedger()
    } else toggle(flip)
  }
  return outcome
}

/** The instants a flip may matter for: the publication it hit, any other, and now. */
function questionsAbout({ file, other }) {
  const own = publications.findIndex(({ path }) => path === file)
  const places = new Set([own < 0 ? other % publications.length : own, publications.length - 1])
  return [...places].map((place) => ({ place, at: publications[place].publishedAt }))
}

/** A server that has proved and kept what it is asked for; one that has read a damaged ledger is not used again. */
async function warmServer(anew) {
  if (anew || standing === null) {
    await standing?.close()
    standing = openServer(settledClock)
  }
  return standing
}

function openServer(fileClock) {
  const store = database({
    location: { url: pathToFileURL(ledgerPath).href, authToken: null },
    store: 'ledger',
    nativeBusyMs: 10,
    retryMs: 100,
  })
  const ledger = libsqlLedger(store, fileClock)
  const objects = openObjects({ kind: 'file', path: objectsPath }, fileClock)
  const app = createApp({
    ledger,
    objects,
    year: yearReader(ledger, objects),
    search: { by: () => null },
    trustedProxies: [],
    agent: { routes: [] },
    widgetUrl: null,
    embedOrigins: [],
    baseUrl: () => 'http://dash.test',
    clock: Date.now,
    log: silent,
    checks: {},
    isDraining: () => false,
    demo: false,
  })
  return {
    app,
    async close() {
      store.close()
      await objects.close()
    },
  }
}

async function ask({ app }, { place, at }) {
  const response = await app.request(`http://dash.test/api/feed/history?sort=year&at=${formatInstant(at)}`)
  const bytes = Buffer.from(await response.arrayBuffer())
  if (response.status === 503) return '503'
  if (response.status !== 200) return 'wrong'
  if (bytes.equals(publications[place].bytes)) return 'right'
  return publications.slice(0, place).some((older) => bytes.equals(older.bytes)) ? 'older' : 'wrong'
}

async function runAudit() {
  const config = readConfig({ dataDir: folder }, {}, folder)
  const container = new Container({ config, version: '0' })
  const unheard = { onProgress() {}, onNote() {} }
  const options = { expectedHead: null, payloads: false, isWhole: true, jobs: 1, ...unheard }
  const ledger = await container.ledgerAuditor()
  const objects = await container.objectsAuditor(options)
  const ports = { clock: Date.now, random: Math.random, ...unheard }
  const { signal } = new AbortController()
  const run = { ...options, sample: null, since: null, signal }
  const { report, cause } = await auditArchive(ownArchive({ ledger, objects }, options), ports, run)
  await container.close()
  if (report.ok) return report.findings.length === 0 ? 'clean' : 'note'
  return report.findings.length > 0 ? 'finding' : `ended early: ${String(cause)}`
}

async function changeOfRows() {
  const read = await readPlainly()
  if (read.rows === soundRows) return 'nothing'
  return read.rows === undefined ? 'rows unreadable' : 'row'
}

/** @returns {Promise<{ rows?: string }>} the digest of all rows; none when they cannot be read or the reader died */
function readPlainly() {
  return new Promise((resolve) => {
    const reader = plainReader ?? fork(PLAIN_READER, { serialization: 'advanced', stdio: 'ignore' })
    plainReader = reader
    const done = (answer) => {
      clearTimeout(deadline)
      reader.removeAllListeners()
      if (!reader.connected) plainReader = null
      resolve(answer)
    }
    const deadline = setTimeout(() => reader.kill('SIGKILL'), PLAIN_READING_MS)
    reader.once('exit', () => {
      plainReader = null
      done({})
    })
    reader.once('disconnect', () => (plainReader = null))
    reader.once('message', done)
    reader.send(ledgerPath, () => undefined)
  })
}

function toggle({ file, offset, bit }) {
  const handle = openSync(join(folder, file), 'r+')
  const byte = Buffer.alloc(1)
  readSync(handle, byte, 0, 1, offset)
  byte[0] ^= 1 << bit
  writeSync(handle, byte, 0, 1, offset)
  closeSync(handle)
}

/** Reading must not write: neither the audit nor the server may mend, migrate or roll back a damaged ledger. */
function isAsFlipped({ offset, bit }) {
  const expected = Buffer.from(ledgerBytes)
  expected[offset] ^= 1 << bit
  return readFileSync(ledgerPath).equals(expected) && !existsSync(`${ledgerPath}-journal`)
}

function restoreLedger() {
  for (const suffix of ['-journal', '-wal', '-shm']) rmSync(ledgerPath + suffix, { force: true })
  writeFileSync(ledgerPath, ledgerBytes)
}

/** Records the current step, for the report if the worker dies. */
function note(step) {
  writeFileSync(statusFile, step)
}
