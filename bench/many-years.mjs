/** Archives of many years, written with the adapters of the built program. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fileObjects } from '../dist/adapters/objects/open.js'
import { libsqlLedger, yearReader } from '../dist/adapters/ledger/ledger.js'
import { database } from '../dist/adapters/sqlite/database.js'
import { addDays, startOfDay } from '../dist/domain/time.js'
import { GENESIS_LEAF, sealEntry } from '../dist/domain/year/chain.js'
import { coverageOf, rankYear } from '../dist/domain/year/rank.js'
import { sealYear } from '../dist/domain/year/envelope.js'
import { windowEnding } from '../dist/domain/year/ledger.js'

/** Opens the stores of a data folder. @param {string} folder */
export function openArchive(folder) {
  mkdirSync(join(folder, 'objects'), { recursive: true })
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

/**
 * Fills an archive with an entry a day: a publication every 50 days, else a gap.
 *
 * @param {{ ledger: any, objects: any }} stores
 * @param {string} firstDay
 * @param {number} entries
 */
export async function fillYears({ ledger, objects }, firstDay, entries) {
  const grant = await ledger.takeLease(
    { name: 'bench', process: null },
    0,
    Number.MAX_SAFE_INTEGER,
    () => true,
  )
  let previousLeaf = GENESIS_LEAF
  for (let number = 0; number < entries; number += 1) {
    const asOfDay = addDays(firstDay, number)
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
  await objects.putHead({ seq: entries, leaf: previousLeaf, time: 0 })
}
