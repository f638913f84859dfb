import type { RouterAllowance } from '../../domain/ports.ts'
import { RESERVED_REQUESTS } from '../../domain/models/quota.ts'
import { dayOf } from '../../domain/time.ts'
import type { Database } from '../libsql/database.ts'

/** The day's requests of both, the evaluation's and the chat's; the day is parameter 1. */
export const COUNTED_OF_DAY = `
  ((SELECT count(*) FROM evaluation_attempts WHERE day = ?1)
    + (SELECT count(*) FROM chat_router_requests WHERE day = ?1))`

/** The chat's side of the account's requests of a day, on libSQL. */
export function libsqlRouterAllowance(database: Database): RouterAllowance {
  return {
    countChatRequest: (model, sentAt, limit) =>
      database.use(async ({ client }) => {
        const args = [dayOf(sentAt), model, sentAt, limit - RESERVED_REQUESTS]
        const { rows } = await client.execute({ sql: COUNT_CHAT_REQUEST, args })
        return rows.length > 0
      }),
  }
}

const COUNT_CHAT_REQUEST = `
  INSERT INTO chat_router_requests (day, model, sent_at) SELECT ?1, ?2, ?3
  WHERE ${COUNTED_OF_DAY} < ?4
  RETURNING id`
