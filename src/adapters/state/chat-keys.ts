import { keyCaller } from '../../domain/agent/credentials.ts'
import type { State } from '../../domain/ports.ts'
import type { Database } from '../sqlite/database.ts'
import { selectRows } from '../sqlite/rows.ts'
import { chatKeys } from './schema.ts'

/** Creates the store of the chat's keys on libSQL. An admission checks again that the key is active. */
export function libsqlChatKeys(database: Database): State['chatKeys'] {
  return {
    create: ({ name, digest, perDay, perMinute, createdAt }) =>
      database.use(async (client) => {
        const args = [name, digest, perDay, perMinute, createdAt]
        const [inserted] = await client.batch([{ sql: INSERT, args }], 'write')
        return inserted?.rowsAffected === 1
      }),

    list: (day) =>
      database.use(async (client) => {
        const rows = await selectRows(client, chatKeys, 'id')
        const used = await client.execute({ sql: COUNT_TURNS, args: [day] })
        const turns = new Map(used.rows.map((row) => [row['address'], Number(row['turns'])]))
        return rows.map(({ id, digest: _digest, ...key }) => ({
          ...key,
          usedToday: turns.get(keyCaller(id)) ?? 0,
        }))
      }),

    revoke: (name, at) =>
      database.use(async (client) => {
        const [revoked] = await client.batch([{ sql: REVOKE, args: [name, at] }], 'write')
        return revoked?.rowsAffected === 1
      }),

    find: (digest) =>
      database.use(async (client) => {
        const [row] = await selectRows(client, chatKeys, 'id', 'digest = ? AND revoked_at IS NULL', [digest])
        return row ? { id: row.id, perDay: row.perDay, perMinute: row.perMinute } : null
      }),
  }
}

const INSERT = `
  INSERT INTO chat_keys (name, digest, per_day, per_minute, created_at) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO NOTHING`

const COUNT_TURNS = `
  SELECT t.address, count(*) AS turns FROM chat_turns AS t
  WHERE t.address IN (SELECT '${keyCaller(0).slice(0, -1)}' || k.id FROM chat_keys AS k) AND t.day = ?
  GROUP BY t.address`

const REVOKE = 'UPDATE chat_keys SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL'
