/**
 * Reads the ledgers of a database file in the plainest way there is, for `bit-flips.mjs`: every cell of every row as
 * its type and its bytes in hexadecimal, with nothing of dash in between. Runs as a child, because the driver may end
 * the process on a damaged file. Each message is a path; the answer is a digest over all rows, or why there is none.
 */
import { createHash } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import { createClient } from '@libsql/client'

const TABLES = {
  entries: `seq, kind, recorded_at, as_of_day, publication_id, algorithm_version, schema_version, envelope_kind,
    window_start, window_end, generated_at, published_at, sha256, byte_size, reason, attempts, legacy_rows,
    legacy_digest, previous_leaf, leaf`,
  legacy_publications: `position, publication_id, algorithm_version, schema_version, envelope_kind, as_of_day,
    window_start, window_end, generated_at, published_at, sha256, byte_size`,
}

/** The driver keeps a descriptor for every client that was closed; a new child begins with none. */
const READINGS = 500

let readings = 0

process.on('message', (path) => void answer(path))

async function answer(path) {
  process.send(await read(path))
  readings += 1
  if (readings === READINGS) process.disconnect()
}

async function read(path) {
  const client = createClient({ url: pathToFileURL(path).href })
  const digest = createHash('sha256')
  try {
    await client.execute('PRAGMA query_only = ON')
    for (const [table, columns] of Object.entries(TABLES)) {
      const cells = columns.split(',').map((column) => `typeof(${column}) || ':' || hex(${column})`)
      const { rows } = await client.execute(
        `SELECT ${cells.join(', ')} FROM ${table} NOT INDEXED ORDER BY rowid`,
      )
      digest.update(`${table} ${rows.length}\n`)
      for (const row of rows) digest.update(`${JSON.stringify(Array.from(row))}\n`)
    }
    return { rows: digest.digest('hex') }
  } catch (error) {
    return { unreadable: String(error.code ?? error.message) }
  } finally {
    client.close()
  }
}
