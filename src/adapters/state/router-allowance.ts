import type { RouterAllowance } from '../../domain/ports.ts'
import { RESERVED_REQUESTS } from '../../domain/models/quota.ts'
import { dayOf } from '../../domain/time.ts'
import type { Database } from '../libsql/database.ts'
import { requestsSentBy } from './shares.ts'

/** The day's requests of both, the evaluation's and the chat's; the day is parameter 1. */
export const COUNTED_OF_DAY = `
  ((SELECT count(*) FROM evaluation_attempts WHERE day = ?1)
    + (SELECT count(*) FROM chat_router_requests WHERE day = ?1))`

/** The chat's side of the account's requests of a day, on libSQL. */
export function libsqlRouterAllowance(database: Database): RouterAllowance {
  return {
    countChatRequest: (model, sentAt, limit, asking) =>
      database.use(async ({ client }) => {
        const most = limit - RESERVED_REQUESTS
        const args = [dayOf(sentAt), model, sentAt, most, asking?.turn ?? null, asking?.perAddress ?? null]
        const { rows } = await client.execute({ sql: COUNT_CHAT_REQUEST, args })
        return rows.length > 0
      }),
  }
}

const COUNT_CHAT_REQUEST = `
  INSERT INTO chat_router_requests (day, model, sent_at, turn) SELECT ?1, ?2, ?3, ?5
  WHERE ${COUNTED_OF_DAY} < ?4 AND NOT EXISTS (
    SELECT 1 FROM (SELECT address, network, ?1 AS day FROM chat_turns WHERE id = ?5) AS asking
    WHERE ${requestsSentBy('address', 'asking')} >= ?6 OR ${requestsSentBy('network', 'asking')} >= 2 * ?6)
  RETURNING id`
