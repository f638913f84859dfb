import type { InStatement } from '@libsql/client'
import { shareOf } from '../../domain/agent/budget.ts'
import type { TurnExtension } from '../../domain/ports.ts'
import { requestRoomOf, roomOf } from './shares.ts'

/** The statements that reserve a turn's next model call, as one write transaction; the first one gives a row if they do. */
export function extensionStatements({ limits, ...extension }: TurnExtension): InStatement[] {
  const { budgetPerDay, budgetShare } = limits
  const budgetPerAddress = shareOf(budgetPerDay, budgetShare)
  return [
    { sql: EXTEND, args: [JSON.stringify({ ...extension, budgetPerDay, budgetPerAddress })] },
    { sql: ADD_UP, args: [extension.turn] },
  ]
}

/** Two requests: the round that is asked for, and the last call without tools. */
const EXTEND = `
  WITH asked AS MATERIALIZED (
    SELECT t.id, t.day, t.address, t.network, t.reserved, max(t.reserved, ?1 ->> 'upTo') AS up_to,
      ?1 ->> 'budgetPerDay' AS budget, ?1 ->> 'budgetPerAddress' AS per_address,
      ?1 ->> 'requestsPerAddress' AS requests_most
    FROM chat_turns AS t WHERE t.id = ?1 ->> 'turn' AND t.settled_at IS NULL
  ), granted AS MATERIALIZED (
    SELECT up_to FROM asked
    WHERE (up_to = reserved OR (
      up_to - reserved <= budget - (SELECT d.settled + d.reserved FROM chat_days AS d WHERE d.day = asked.day)
      AND coalesce(up_to - reserved <= ${roomOf('address', 'asked')}, 1)
      AND (network IS NULL OR coalesce(up_to - reserved <= ${roomOf('network', 'asked')}, 1))))
    AND (requests_most IS NULL OR (
      ${requestRoomOf('address', 'asked', 'asked.id')} >= 2
      AND (network IS NULL OR ${requestRoomOf('network', 'asked', 'asked.id')} >= 2)))
  )
  UPDATE chat_turns SET reserved = granted.up_to FROM granted
  WHERE chat_turns.id = ?1 ->> 'turn' RETURNING chat_turns.id`

const ADD_UP = `
  UPDATE chat_days SET reserved = (
    SELECT sum(t.reserved) FROM chat_turns AS t INDEXED BY chat_turns_open
    WHERE t.settled_at IS NULL AND t.day = chat_days.day)
  WHERE day = (SELECT t.day FROM chat_turns AS t WHERE t.id = ?1 AND t.settled_at IS NULL)`
