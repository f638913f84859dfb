/**
 * Measures the first chart and the first ranks of 73 publications of 250 KB, which nothing has read before: the time of the
 * first request and of the next one, and the longest block of the event loop meanwhile.
 *
 * Run: `npm run build && node bench/charts.mjs`. Needs nothing but Node. Goal: no block over 50 ms.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApp } from '../dist/server/app.js'
import { fillYears, openArchive } from './many-years.mjs'

const ENTRIES = 3_650
const FIRST_DAY = '2016-01-01'
const ROUNDS = 5
const PATHS = ['/charts/year.svg?count=90', '/api/feed/history/ranks?count=90']

/** A ledger is proved for each request until its last change is this old. */
const SETTLED_MS = 3_000

function openApp(stores) {
  return createApp({
    ...stores,
    search: { by: () => ({}) },
    trustedProxies: [],
    baseUrl: () => 'http://bench',
    agent: { routes: [] },
    widgetUrl: null,
    embedOrigins: [],
    clock: Date.now,
    log: { info() {}, warn() {}, error: (fields, text) => console.error(text, fields) },
    checks: {},
    isDraining: () => false,
    demo: false,
  })
}

async function timeOf(app, path) {
  const started = performance.now()
  const response = await app.request(`http://bench${path}`)
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  await response.arrayBuffer()
  return performance.now() - started
}

/** @returns {Promise<number[]>} milliseconds of the first request and of the next one, and of the longest delay */
async function measure(stores, path) {
  const app = openApp(stores)
  // Proves the ledger, which event-loop.mjs measures.
  await timeOf(app, '/api/feed/history/index')
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  await sleep(SETTLED_MS)
  delays.reset()
  const times = [await timeOf(app, path), await timeOf(app, path)]
  await sleep(1)
  delays.disable()
  return [...times, delays.max / 1e6]
}

const folder = mkdtempSync(join(tmpdir(), 'dash-bench-'))
try {
  const stores = openArchive(folder)
  await fillYears(stores, FIRST_DAY, ENTRIES)
  console.log('| request, the worst of 5 rounds | first | next | longest delay |')
  console.log('| --- | --- | --- | --- |')
  for (const path of PATHS) {
    const rounds = []
    for (let round = 0; round < ROUNDS; round += 1) rounds.push(await measure(stores, path))
    const worst = [0, 1, 2].map((index) => Math.max(...rounds.map((values) => values[index])))
    console.log(`| \`${path}\` | ${worst.map((value) => `${value.toFixed(1)} ms`).join(' | ')} |`)
  }
  stores.opened.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
