import type { InStatement } from '@libsql/client'
import { sha256Hex } from '../../domain/digest.ts'
import type { CachedAnswer } from '../../domain/agent/bounds.ts'
import type { State } from '../../domain/ports.ts'
import { DAY_MS } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { Database } from '../sqlite/database.ts'

/** Lifetime of an answer from its storage, regardless of its use. */
const LIFETIME_MS = DAY_MS

/** Limits of the cache; the oldest answers are deleted first. */
export interface CacheBounds {
  entries: number
  /** Total size of all texts. */
  bytes: number
  /** Maximum size of one text; a longer one is not stored. */
  textBytes: number
}

export const CACHE_BOUNDS: CacheBounds = { entries: 2_000, bytes: 16 * 1024 * 1024, textBytes: 64 * 1024 }

/**
 * Creates the cache of chat answers on libSQL.
 *
 * @param onDamage called with the key of a damaged row, which counts as missing
 */
export function libsqlAnswerCache(
  database: Database,
  onDamage: (key: string) => void,
  bounds = CACHE_BOUNDS,
): State['answers'] {
  return {
    get: (key, now) =>
      database.use(async (client) => {
        const { rows } = await client.execute({ sql: SELECT_ANSWER, args: [key, now - LIFETIME_MS] })
        const row = rows[0]
        if (!row) return null
        const answer = parseAnswer(key, row['stored_at'], row['text'], row['digest'])
        if (answer === null) onDamage(key)
        return answer
      }),

    put: (key, { text, storedAt }) =>
      database.use(async (client) => {
        const bytes = Buffer.from(text, 'utf8')
        if (bytes.byteLength > bounds.textBytes) return
        const digest = digestOf(key, storedAt, bytes)
        const stored: InStatement = { sql: UPSERT, args: [key, storedAt, bytes.byteLength, digest, bytes] }
        const old: InStatement = { sql: DELETE_OLD, args: [storedAt - LIFETIME_MS] }
        const excess: InStatement = { sql: DELETE_BEYOND, args: [bounds.bytes, bounds.entries] }
        await client.batch([stored, old, excess], 'write')
      }),
  }
}

/** Returns the answer in a row; null if the row is damaged. */
function parseAnswer(key: string, storedAt: unknown, text: unknown, digest: unknown): CachedAnswer | null {
  if (typeof storedAt !== 'number' || !(text instanceof ArrayBuffer) || !(digest instanceof ArrayBuffer)) {
    return null
  }
  const bytes = new Uint8Array(text)
  if (!digestOf(key, storedAt, bytes).equals(new Uint8Array(digest))) return null
  return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), storedAt }
}

function digestOf(key: string, storedAt: Instant, text: Uint8Array): Buffer {
  return Buffer.from(sha256Hex(`${key} ${storedAt} ${sha256Hex(text)}`), 'hex')
}

// The casts avoid TEXT: the driver ends the process on invalid UTF-8, which a damaged cell of any column may hold.
const SELECT_ANSWER = `
  SELECT CAST(stored_at AS INTEGER) AS stored_at, CAST(digest AS BLOB) AS digest, CAST(text AS BLOB) AS text
  FROM chat_answers WHERE key = ?1 AND stored_at > ?2`

const UPSERT = `
  INSERT INTO chat_answers (key, stored_at, bytes, digest, text) VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT (key) DO UPDATE SET
    stored_at = excluded.stored_at, bytes = excluded.bytes, digest = excluded.digest, text = excluded.text`

const DELETE_OLD = 'DELETE FROM chat_answers WHERE stored_at <= ?1'

// Rows are only sorted if a limit is exceeded, which is rare.
const DELETE_BEYOND = `
  DELETE FROM chat_answers WHERE key IN (
    SELECT key FROM (
      SELECT key, sum(bytes) OVER newest AS total, row_number() OVER newest AS place FROM chat_answers
      WHERE (SELECT sum(bytes) > ?1 OR count(*) > ?2 FROM chat_answers)
      WINDOW newest AS (ORDER BY stored_at DESC, key ROWS UNBOUNDED PRECEDING)
    ) WHERE total > ?1 OR place > ?2)`
