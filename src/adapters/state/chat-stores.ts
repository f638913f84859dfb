import { randomBytes } from 'node:crypto'
import type { Value } from '@libsql/client'
import type { CachedAnswer } from '../../domain/agent/bounds.ts'
import { keyCaller } from '../../domain/agent/credentials.ts'
import { sha256Hex } from '../../domain/digest.ts'
import type { State } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import { DAY_MS } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { Database } from '../sqlite/database.ts'
import { insertRow, selectRows, upsertRow } from '../sqlite/rows.ts'
import { admitTurn, extendTurn, forgetStatements, sweepStatements } from './admission.ts'
import { chatKeys } from './schema.ts'

const SALT_BYTES = 32
const TURN_ID_BYTES = 16

export function libsqlChatLedger(database: Database): State['chat'] {
  const salt: State['chat']['salt'] = async (day) => {
    const { rows } = await database.execute({ sql: SELECT_SALT, args: [day] })
    return rows[0] ? parseSalt(rows[0][0]) : null
  }
  return {
    salt,
    async makeSalt(day) {
      const stored = await salt(day)
      if (stored !== null) return stored
      const [, selected] = await database.batch([
        insertRow('chat_salts', { day, salt: randomBytes(SALT_BYTES) }, 'ON CONFLICT DO NOTHING'),
        { sql: SELECT_SALT, args: [day] },
      ])
      return parseSalt(selected?.rows[0]?.[0])
    },

    admit: (claim) => {
      const turn = randomBytes(TURN_ID_BYTES).toString('hex')
      return database.transact((tx) => admitTurn(tx, claim, turn))
    },

    extend: (extension) => database.transact((tx) => extendTurn(tx, extension)),

    async settle(turn, cost, at) {
      const [, settled] = await database.batch([
        { sql: CHARGE, args: [turn, cost] },
        { sql: SETTLE, args: [turn, cost, at] },
      ])
      return settled?.rowsAffected === 1
    },

    async sweep(now, keepFrom) {
      const [, ended] = await database.batch([...sweepStatements(now), ...forgetStatements(keepFrom)])
      await database.makeDurable()
      return ended?.rowsAffected ?? 0
    },

    async spending(day) {
      const { rows } = await database.execute({ sql: SELECT_SPENDING, args: [day] })
      return { settled: Number(rows[0]?.['settled'] ?? 0), reserved: Number(rows[0]?.['reserved'] ?? 0) }
    },

    ping: async () => void (await database.batch(PROBE)),
  }
}

function parseSalt(cell: Value | undefined): Uint8Array {
  if (!(cell instanceof ArrayBuffer) || cell.byteLength !== SALT_BYTES) {
    throw storageDamaged('the state database contains an invalid salt')
  }
  return new Uint8Array(cell)
}

const SELECT_SALT = 'SELECT salt FROM chat_salts WHERE day = ?'

const CHARGE = `
  UPDATE chat_days
  SET settled = settled + ?2, reserved = reserved - (SELECT t.reserved FROM chat_turns AS t WHERE t.id = ?1)
  WHERE day = (SELECT t.day FROM chat_turns AS t WHERE t.id = ?1 AND t.settled_at IS NULL)`

const SETTLE = 'UPDATE chat_turns SET cost = ?2, settled_at = ?3 WHERE id = ?1 AND settled_at IS NULL'

const SELECT_SPENDING = 'SELECT settled, reserved FROM chat_days WHERE day = ?'

/** Writes the rows of an admission and deletes them again: the pages are written in any case. */
const PROBE = [
  `INSERT INTO chat_turns (id, session, address, server, day, admitted_at, reserved, lease_until)
   VALUES ('probe', 'probe', 'probe', 'probe', 'probe', 0, 0, 0)`,
  `INSERT INTO chat_days (day, settled, reserved) VALUES ('probe', 0, 0)`,
  `DELETE FROM chat_turns WHERE id = 'probe'`,
  `DELETE FROM chat_days WHERE day = 'probe'`,
]

/** Creates the store of the chat's keys on libSQL. An admission checks again that the key is active. */
export function libsqlChatKeys(database: Database): State['chatKeys'] {
  return {
    async create({ name, digest, perDay, perMinute, createdAt }) {
      const key = { name, digest, perDay, perMinute, createdAt }
      const inserted = await database.execute(insertRow('chat_keys', key, 'ON CONFLICT DO NOTHING'))
      return inserted.rowsAffected === 1
    },

    async list(day) {
      const rows = await selectRows(database, chatKeys, 'id')
      const used = await database.execute({ sql: COUNT_TURNS, args: [day] })
      const turns = new Map(used.rows.map((row) => [row['address'], Number(row['turns'])]))
      return rows.map(({ id, digest: _digest, ...key }) => ({
        ...key,
        usedToday: turns.get(keyCaller(id)) ?? 0,
      }))
    },

    revoke: async (name, at) =>
      (await database.execute({ sql: REVOKE_KEY, args: [name, at] })).rowsAffected === 1,

    async find(digest) {
      const [row] = await selectRows(database, chatKeys, 'id', 'digest = ? AND revoked_at IS NULL', [digest])
      return row ? { id: row.id, perDay: row.perDay, perMinute: row.perMinute } : null
    },
  }
}

const COUNT_TURNS = `
  SELECT t.address, count(*) AS turns FROM chat_turns AS t
  WHERE t.address IN (SELECT '${keyCaller(0).slice(0, -1)}' || k.id FROM chat_keys AS k) AND t.day = ?
  GROUP BY t.address`

const REVOKE_KEY = 'UPDATE chat_keys SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL'

/** Lifetime of an answer from its storage, regardless of its use. */
const ANSWER_LIFETIME_MS = DAY_MS

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
    async get(key, now) {
      const { rows } = await database.execute({ sql: SELECT_ANSWER, args: [key, now - ANSWER_LIFETIME_MS] })
      const row = rows[0]
      if (!row) return null
      const answer = parseAnswer(key, row['stored_at'], row['text'], row['digest'])
      if (answer === null) onDamage(key)
      return answer
    },

    async put(key, { text, storedAt }) {
      const bytes = Buffer.from(text, 'utf8')
      if (bytes.byteLength > bounds.textBytes) return
      const digest = digestOf(key, storedAt, bytes)
      await database.batch([
        upsertRow('chat_answers', ['key'], { key, storedAt, bytes: bytes.byteLength, digest, text: bytes }),
        { sql: DELETE_OLD_ANSWERS, args: [storedAt - ANSWER_LIFETIME_MS, storedAt + ANSWER_LIFETIME_MS] },
        { sql: DELETE_EXCESS_ANSWERS, args: [bounds.bytes, bounds.entries] },
      ])
    },
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

// Answers of a clock that was ahead would outlast all others.
const DELETE_OLD_ANSWERS = 'DELETE FROM chat_answers WHERE stored_at <= ?1 OR stored_at >= ?2'

// Rows are only sorted if a limit is exceeded, which is rare.
const DELETE_EXCESS_ANSWERS = `
  DELETE FROM chat_answers WHERE key IN (
    SELECT key FROM (
      SELECT key, sum(bytes) OVER newest AS total, row_number() OVER newest AS place FROM chat_answers
      WHERE (SELECT sum(bytes) > ?1 OR count(*) > ?2 FROM chat_answers)
      WINDOW newest AS (ORDER BY stored_at DESC, key ROWS UNBOUNDED PRECEDING)
    ) WHERE total > ?1 OR place > ?2)`
