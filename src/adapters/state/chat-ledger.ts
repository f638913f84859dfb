import { randomBytes } from 'node:crypto'
import type { Value } from '@libsql/client'
import type { State } from '../../domain/ports.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import type { Database } from '../sqlite/database.ts'
import { admitTurn, extendTurn, forgetStatements, forgetTries, sweepStatements } from './admission.ts'

const SALT_BYTES = 32
const TURN_ID_BYTES = 16

/** Creates the store of the chat's quotas, budget and salts on libSQL. */
export function libsqlChatLedger(database: Database): State['chat'] {
  const salt: State['chat']['salt'] = (day) =>
    database.use(async (client) => {
      const { rows } = await client.execute({ sql: SELECT_SALT, args: [day] })
      return rows[0] ? parseSalt(rows[0][0]) : null
    })
  return {
    salt,
    makeSalt: async (day) =>
      (await salt(day)) ??
      (await database.use(async (client) => {
        const results = await client.batch(
          [
            { sql: INSERT_SALT, args: [day, randomBytes(SALT_BYTES)] },
            { sql: SELECT_SALT, args: [day] },
          ],
          'write',
        )
        return parseSalt(results.at(-1)?.rows[0]?.[0])
      })),

    admit: (claim) => {
      const turn = randomBytes(TURN_ID_BYTES).toString('hex')
      return database.use((client) => client.transact((tx) => admitTurn(tx, claim, turn)))
    },

    extend: (extension) => database.use((client) => client.transact((tx) => extendTurn(tx, extension))),

    settle: (turn, cost, at) =>
      database.use(async (client) => {
        const [, settled] = await client.batch(
          [
            { sql: CHARGE, args: [turn, cost] },
            { sql: SETTLE, args: [turn, cost, at] },
          ],
          'write',
        )
        return settled?.rowsAffected === 1
      }),

    sweep: (now, keepFrom) =>
      database.use(async (client) => {
        const statements = [...sweepStatements(now), ...forgetStatements(now, keepFrom)]
        const [, ended] = await client.batch(statements, 'write')
        await client.makeDurable()
        return ended?.rowsAffected ?? 0
      }),

    spending: (day) =>
      database.use(async (client) => {
        const { rows } = await client.execute({ sql: SELECT_SPENDING, args: [day] })
        return { settled: Number(rows[0]?.['settled'] ?? 0), reserved: Number(rows[0]?.['reserved'] ?? 0) }
      }),

    countVerification: (address, now, limit) =>
      database.use(async (client) => {
        const counted = { sql: COUNT_TRY, args: [address, now, limit] }
        const [, inserted] = await client.batch([forgetTries(now), counted], 'write')
        return inserted?.rowsAffected === 1
      }),

    ping: () =>
      database.use(async (client) => {
        await client.batch(PROBE, 'write')
      }),
  }
}

function parseSalt(cell: Value | undefined): Uint8Array {
  if (!(cell instanceof ArrayBuffer) || cell.byteLength !== SALT_BYTES) {
    throw storageDamaged('the state database contains an invalid salt')
  }
  return new Uint8Array(cell)
}

const SELECT_SALT = 'SELECT salt FROM chat_salts WHERE day = ?'

const INSERT_SALT = 'INSERT INTO chat_salts (day, salt) VALUES (?, ?) ON CONFLICT (day) DO NOTHING'

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

const COUNT_TRY = `
  INSERT INTO chat_verifications (address, tried_at) SELECT ?1, ?2
  WHERE (SELECT count(*) FROM chat_verifications WHERE address = ?1) < ?3`
