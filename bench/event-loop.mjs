/**
 * Measures the longest block of the event loop of the server in the worst case: a ledger of ten years (3,650 entries) that
 * every request proves again because it was touched just before, and a 250 KB object each.
 *
 * Run: `npm run build && node bench/event-loop.mjs`. Needs nothing but Node. Goal: no block over 50 ms.
 */
import { mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { addDays } from '../dist/domain/time.js'
import { createApp } from '../dist/server/app.js'
import { fillYears, openArchive } from './many-years.mjs'

const ENTRIES = 3_650
const FIRST_DAY = '2016-01-01'
const REQUESTS = 200

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
    embedOrigins: [],
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
  await fillYears(stores, FIRST_DAY, ENTRIES)
  if (readdirSync(join(folder, 'objects', 'heads')).length !== 1) throw new Error('no head was written')
  await measure(stores, folder)
  stores.opened.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
