/**
 * The least an import with an index can do: lines of gzip files into one plain table, 5,000 a statement through
 * `json_each`, and their titles into an FTS5 table, with no validation and no key. The peer of the import bench.
 *
 *     node bench/plain-insert.mjs DATABASE FILE.ndjson.gz…    prints the number of rows
 */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { createGunzip } from 'node:zlib'
import { createClient } from '@libsql/client'

const ROWS_A_STATEMENT = 5_000
const COLUMNS = ['source', 'sourceId', 'day', 'title', 'url', 'points', 'comments', 'publishedAt']

const INSERT = `INSERT INTO rows SELECT ${COLUMNS.map((name) => `value ->> '${name}'`).join(', ')} FROM json_each(?)`

const INDEX = 'INSERT INTO words (rowid, title) SELECT rowid, title FROM rows WHERE rowid > ?'

const [path, ...files] = process.argv.slice(2)
const client = createClient({ url: pathToFileURL(path).href, concurrency: 1 })
await client.execute(`CREATE TABLE rows (${COLUMNS.join(', ')})`)
await client.execute(
  "CREATE VIRTUAL TABLE words USING fts5 (title, content = '', tokenize = 'unicode61 remove_diacritics 0')",
)
let inserted = 0
for (const file of files) {
  let batch = []
  for await (const line of createInterface({ input: createReadStream(file).pipe(createGunzip()) })) {
    if (batch.push(line) === ROWS_A_STATEMENT) batch = await insert(batch)
  }
  await insert(batch)
}
const { rows } = await client.execute('SELECT count(*) FROM rows')
console.log(rows[0][0])
client.close()

/** @returns {Promise<string[]>} the next, empty batch */
async function insert(batch) {
  const lines = { sql: INSERT, args: [`[${batch.join(',')}]`] }
  await client.batch([lines, { sql: INDEX, args: [inserted] }], 'write')
  inserted += batch.length
  // The driver frees a statement's memory only after a turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve))
  return []
}
