import type { InStatement } from '@libsql/client'
import type { Day, Instant } from '../../domain/time.ts'

/** Settles turns whose lease has ended at what they reserved; the second statement's changes are those turns. */
export function sweepStatements(now: Instant): [InStatement, InStatement] {
  return [
    { sql: CHARGE_ENDED, args: [now] },
    { sql: SETTLE_ENDED, args: [now] },
  ]
}

/** Forgets the callers of the days before `keepFrom`. A turn still open keeps its row, which tells nothing by then. */
export function forgetStatements(now: Instant, keepFrom: Day): InStatement[] {
  return [
    { sql: 'DELETE FROM chat_salts WHERE day < ?', args: [keepFrom] },
    { sql: 'DELETE FROM chat_turns WHERE day < ? AND settled_at IS NOT NULL', args: [keepFrom] },
    forgetTries(now),
  ]
}

/** How far back tries to prove to be human are counted. */
const TRIES_WINDOW_MS = 60_000

export function forgetTries(now: Instant): InStatement {
  return { sql: 'DELETE FROM chat_verifications WHERE tried_at <= ?', args: [now - TRIES_WINDOW_MS] }
}

// Left to itself, the engine reads every turn there is in the order of its days.
const CHARGE_ENDED = `
  UPDATE chat_days SET settled = settled + ended.reserved, reserved = chat_days.reserved - ended.reserved
  FROM (
    SELECT day, sum(reserved) AS reserved FROM chat_turns INDEXED BY chat_turns_open
    WHERE settled_at IS NULL AND lease_until <= ?1 GROUP BY day
  ) AS ended
  WHERE chat_days.day = ended.day`

const SETTLE_ENDED = `
  UPDATE chat_turns SET settled_at = ?1, cost = reserved WHERE settled_at IS NULL AND lease_until <= ?1`
