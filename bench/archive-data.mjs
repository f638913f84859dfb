import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Container } from '../dist/cli/container.js'
import { readConfig } from '../dist/cli/settings/read-config.js'
import { prepareFolders } from '../dist/cli/data-folder.js'
import { addDays, dayOf } from '../dist/domain/time.js'
import { objectPath } from '../dist/domain/year/examine.js'
import { GENESIS_LEAF, sealEntry } from '../dist/domain/year/chain.js'
import { coverageOf } from '../dist/domain/year/rank.js'
import { yearSealer } from '../dist/domain/year/envelope.js'
import { formatHead } from '../dist/domain/year/ledger.js'
import { rankYear } from '../dist/domain/year/rank.js'
import { windowEnding } from '../dist/domain/year/ledger.js'

const EVENTS_PER_SOURCE = 150
const RUN_AFTER_MIDNIGHT_MS = 600_000

/**
 * Writes an archive as publishers leave it, by the product's own sealing and ledger.
 *
 * @param {string} dataDir
 * @param {number} publications one a day, the last one of `lastDay`
 * @param {string} lastDay
 * @returns {Promise<number>} bytes of all publications
 */
export async function fillArchive(dataDir, publications, lastDay) {
  const config = readConfig({ dataDir }, {}, dataDir)
  prepareFolders(config, true)
  const container = new Container({ config, version: '0' })
  const ledger = await container.ledger()
  const rows = []
  let bytes = 0
  for (let place = 0; place < publications; place += 1) {
    const sealed = publicationOf(addDays(lastDay, place - publications + 1))
    const { manifest } = sealed
    const content = { kind: 'publication', manifest }
    const row = sealEntry(content, place + 1, manifest.publishedAt, rows.at(-1)?.leaf ?? GENESIS_LEAF)
    rows.push(row)
    bytes += manifest.byteSize
    write(join(dataDir, 'objects', objectPath(manifest.sha256)), sealed.bytes)
    const head = formatHead({ seq: row.seq, leaf: row.leaf, time: manifest.publishedAt })
    write(join(dataDir, 'objects', 'heads', String(row.seq)), head)
  }
  const lease = await ledger.takeLease({ name: 'bench', process: null }, Date.now(), 600_000, () => false)
  const nothing = { rows: [], legacy: [], founding: null }
  const guard = { token: lease.token, now: Date.now() }
  const refusal = await ledger.adopt({ ...nothing, rows }, [], nothing, guard)
  await ledger.releaseLease(lease.token)
  await container.close()
  if (refusal !== null) throw new Error(`the ledger refused the rows: ${refusal}`)
  return bytes
}

function write(path, bytes) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
}

function publicationOf(asOfDay) {
  const window = windowEnding(asOfDay)
  const events = ['hn', 'lobsters', 'lesswrong'].flatMap((source) => eventsOf(source, window))
  const outcome = rankYear(events, new Map())
  if (outcome.do !== 'ranked') throw new Error('the made-up events lack titles')
  const publishedAt = window.windowEnd + RUN_AFTER_MIDNIGHT_MS
  const coverage = coverageOf(window, [], outcome.year)
  return yearSealer(window, outcome.year, coverage, publishedAt)(publishedAt)
}

function eventsOf(source, { asOfDay, windowStart }) {
  return Array.from({ length: EVENTS_PER_SOURCE }, (_, index) => ({
    source,
    sourceId: String(40_000_000 + index),
    title: `What ${source} talked about in entry ${index}, long enough for a title as people write it on ${asOfDay}`,
    url: `https://example.org/${source}/${dayOf(windowStart)}/an-article-with-a-readable-name-${index}.html`,
    points: 2_000 - index,
    comments: index,
    publishedAt: windowStart + index * 3_600_000,
    titleProvenance: `${source}:bench`,
  }))
}
