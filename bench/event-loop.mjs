/**
 * Measures the longest block of the event loop of the server in the worst case: a ledger of ten years (3,650 entries) that
 * every request proves again because it was touched just before, and a 250 KB object each.
 *
 * Run: `npm run build && node bench/event-loop.mjs`. Needs nothing but Node. Goal: no block over 50 ms.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { pathToFileURL } from 'node:url'
import { fileObjects } from '../dist/adapters/objects/open.js'
import { libsqlLedger, yearReader } from '../dist/adapters/ledger/ledger.js'
import { database } from '../dist/adapters/sqlite/database.js'
import { addDays, startOfDay } from '../dist/domain/time.js'
import { GENESIS_LEAF, sealEntry } from '../dist/domain/year/chain.js'
import { coverageOf } from '../dist/domain/year/rank.js'
import { sealYear } from '../dist/domain/year/envelope.js'
import { rankYear } from '../dist/domain/year/rank.js'
import { windowEnding } from '../dist/domain/year/ledger.js'
import { createApp } from '../dist/server/app.js'

const ENTRIES = 3_650
const FIRST_DAY = '2016-01-01'
const REQUESTS = 200

function openArchive(folder) {
  mkdirSync(join(folder, 'objects'))
  const url = pathToFileURL(join(folder, 'ledger.db')).href
  const opened = database({
    location: { url, authToken: null },
    store: 'ledger',
    nativeBusyMs: 10,
    retryMs: 2_000,
  })
  const ledger = libsqlLedger(opened)
  const objects = fileObjects(join(folder, 'objects'))
  return { opened, ledger, objects, year: yearReader(ledger, objects) }
}

/** A publication of about 250 KB; the same ranking for every day. */
function sealDay(asOfDay, publishedAt) {
  const window = windowEnding(asOfDay)
  const events = ['hn', 'lobsters', 'lesswrong'].flatMap((source) =>
    Array.from({ length: 120 }, (_, index) => ({
      source,
      sourceId: `${source}${index}`,
      title: `${source} ${index} `.padEnd(150, 'a title of some length '),
      url: `https://example.org/${source}/${index}/`.padEnd(150, 'path/'),
      points: index,
      comments: index,
      publishedAt: window.windowStart + index,
      titleProvenance: `${source}:bench`,
    })),
  )
  const { year } = rankYear(events, new Map())
  return sealYear(window, year, coverageOf(window, [], year), publishedAt, publishedAt)
}

async function fill({ ledger, objects }) {
  const grant = await ledger.takeLease(
    { name: 'bench', process: null },
    0,
    Number.MAX_SAFE_INTEGER,
    () => true,
  )
  let previousLeaf = GENESIS_LEAF
  for (let number = 0; number < ENTRIES; number += 1) {
    const asOfDay = addDays(FIRST_DAY, number)
    const publishedAt = startOfDay(addDays(asOfDay, 1)) + 600_000
    const gap = { kind: 'gap', asOfDay, reason: 'missed', attempts: 0 }
    const sealed = number % 50 === 0 ? sealDay(asOfDay, publishedAt) : null
    if (sealed) await objects.put(sealed.manifest.sha256, sealed.bytes)
    const content = sealed ? { kind: 'publication', manifest: sealed.manifest } : gap
    const row = sealEntry(content, number + 1, publishedAt, previousLeaf)
    const refused = await ledger.append(row, {
      token: grant.token,
      clock: () => publishedAt,
      withinMs: 60_000,
    })
    if (refused) throw new Error(`entry ${row.seq}: ${refused}`)
    previousLeaf = row.leaf
  }
  await objects.putHead({ seq: ENTRIES, leaf: previousLeaf, time: 0 })
}

async function measure(stores, folder) {
  const log = { info() {}, warn() {}, error: (fields, text) => console.error(text, fields) }
  const app = createApp({
    ...stores,
    search: { by: () => ({}) },
    trustedProxies: [],
    requests: { routed() {} },
    baseUrl: () => 'http://bench',
    agent: { routes: [] },
    widgetUrl: null,
    clock: Date.now,
    log,
    checks: {},
    isDraining: () => false,
    demo: false,
  })
  const delays = monitorEventLoopDelay({ resolution: 1 })
  const started = performance.now()
  delays.enable()
  for (let number = 0; number < REQUESTS; number += 1) {
    const now = new Date()
    utimesSync(join(folder, 'ledger.db'), now, now)
    const at = `${addDays(FIRST_DAY, 60 + ((number * 50) % (ENTRIES - 60)))}T12:00:00Z`
    const response = await app.request(`http://bench/api/feed/history?sort=year&at=${at}`)
    if (response.status !== 200) throw new Error(`${at}: ${response.status} ${await response.text()}`)
    await response.arrayBuffer()
    await new Promise((resolve) => setImmediate(resolve))
  }
  delays.disable()
  const ms = (nanoseconds) => (nanoseconds / 1e6).toFixed(1)
  console.log(
    `| requests, each proving ${ENTRIES} entries | time each | median delay | p99 delay | longest delay |`,
  )
  console.log('| --- | --- | --- | --- | --- |')
  const each = ((performance.now() - started) / REQUESTS).toFixed(1)
  const figures = [delays.percentile(50), delays.percentile(99), delays.max].map((value) => `${ms(value)} ms`)
  console.log(`| ${REQUESTS} | ${each} ms | ${figures.join(' | ')} |`)
}

const folder = mkdtempSync(join(tmpdir(), 'dash-bench-'))
try {
  const stores = openArchive(folder)
  await fill(stores)
  if (readdirSync(join(folder, 'objects', 'heads')).length !== 1) throw new Error('no head was written')
  await measure(stores, folder)
  stores.opened.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
