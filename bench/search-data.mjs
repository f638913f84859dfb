/** The real data set, imported and indexed by the built program, and the search over it. */
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'
import { openFeedSearch } from '../dist/adapters/feed/feed-search.js'
import { database } from '../dist/adapters/sqlite/database.js'
import { saveKey } from '../dist/domain/feed/source.js'
import { dataFolder, grouped, note, runDash, seconds } from './support.mjs'

/**
 * @param {string} folder a temporary folder
 * @returns {Promise<{dataDir: string, url: string, report: any, items: any[], search: any, close: () => Promise<void>}>}
 */
export async function importAndOpen(folder) {
  const data = dataFolder()
  const files = readdirSync(data)
    .filter((name) => name.endsWith('.ndjson.gz'))
    .map((name) => join(data, name))
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  const { report, wallMs } = await runDash(
    ['import', 'signals', ...files, '--on-error', 'skip', '--data-dir', dataDir],
    folder,
  )
  note(`${grouped(report.rows)} rows imported and indexed: ${seconds(wallMs)}`)
  const url = pathToFileURL(join(dataDir, 'feed.db')).href
  const location = { url, authToken: null }
  const opened = database({
    location,
    store: 'feed',
    nativeBusyMs: 10,
    retryMs: 2_000,
  })
  const shared = openFeedSearch({
    location,
    database: opened,
    timeoutMs: 10_000,
  })
  return {
    dataDir,
    url,
    report,
    search: shared.by({ group: 'others', signal: null }),
    items: await readItems(url),
    async close() {
      await shared.close()
      opened.close()
    },
  }
}

/** Every event at the values of its latest signal, read past the index. @param {string} url */
async function readItems(url) {
  const client = createClient({ url, timeout: 5_000, concurrency: 1 })
  const { rows } = await client.execute(
    'SELECT source, source_id, max(day) AS day, title, url, points FROM signals GROUP BY source, source_id',
  )
  client.close()
  return rows.map(({ source, source_id: sourceId, day, title, url: link, points }) => ({
    key: saveKey(source, sourceId),
    source,
    day,
    title,
    url: link,
    points,
  }))
}
