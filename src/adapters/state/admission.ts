import type { InStatement, ResultSet, Value } from '@libsql/client'
import { shareOf } from '../../domain/agent/budget.ts'
import { admissionOf, BURST_WINDOW_MS } from '../../domain/agent/quotas.ts'
import type { Granted, HeldBack, Standing } from '../../domain/agent/quotas.ts'
import type { Admission, TurnClaim } from '../../domain/ports.ts'
import { asJsonRows, decodeJsonRows } from '../libsql/json-rows.ts'
import { freeAt, paidBy, requestFreeAt, requestsOf } from './shares.ts'
import { sweepStatements } from './sweep.ts'

/** The statements that admit a turn, or refuse it, as one write transaction. */
export function admissionStatements(claim: TurnClaim, turn: string): InStatement[] {
  const { firstCall, shortestCall, limits, ...rest } = claim
  const asked = JSON.stringify({
    ...rest,
    ...firstCall,
    shortestWith: shortestCall.withTools,
    shortestWithout: shortestCall.withoutTools,
    ...limits,
    budgetPerAddress: shareOf(limits.budgetPerDay, limits.budgetShare),
    turn,
    leaseUntil: claim.now + claim.leaseMs,
    minuteAgo: claim.now - BURST_WINDOW_MS,
  })
  const { select, insert } = claim.formerAddress === null ? OF_ONE_ADDRESS : OF_TWO_ADDRESSES
  return [
    ...sweepStatements(claim.now),
    { sql: select, args: [asked] },
    { sql: insert, args: [asked] },
    { sql: RESERVE, args: [turn] },
  ]
}

/** @param results those of {@link admissionStatements} */
export function admissionFrom(results: readonly ResultSet[], claim: TurnClaim, turn: string): Admission {
  const [found, inserted] = results.slice(-3)
  const standing = standingOf(found?.rows[0]?.[0])
  const row = inserted?.rows[0]
  const granted: Granted | null = row
    ? { turn, reserved: Number(row['reserved']), degraded: standing.degraded }
    : null
  return admissionOf(standing, claim, granted)
}

/** In one cell: a dozen columns take the driver longer than the engine takes to count what is in them. */
type StandingRow = [
  exhausted: number,
  burstFull: number,
  dayFull: number,
  sessionFull: number,
  tooSoon: number,
  streamsFull: number,
  degraded: number,
  inSession: number,
  inDay: number,
  burstSince: number | null,
  lastAt: number | null,
  ...held: (number | null)[],
]

function standingOf(cell: Value | undefined): Standing {
  const [row] = decodeJsonRows(cell, 'the state database') as StandingRow[]
  if (!row) throw new Error('an admission gave no standing')
  const [
    exhausted,
    burst,
    day,
    session,
    gap,
    streams,
    degraded,
    inSession,
    inDay,
    burstSince,
    lastAt,
    ...held
  ] = row
  const [money = NOT_HELD, ...shares] = CHECKS_OF_HELD.map((_, index): HeldBack => {
    const [refuses, at = null] = held.slice(2 * index)
    return { refuses: refuses === 1, freeAt: at }
  })
  return {
    refuses: {
      exhausted: exhausted === 1,
      burst: burst === 1,
      day: day === 1,
      session: session === 1,
      gap: gap === 1,
      streams: streams === 1,
    },
    shares,
    money,
    inSession,
    inDay,
    burstSince,
    lastAt,
    degraded: degraded === 1,
  }
}

const NOT_HELD: HeldBack = { refuses: false, freeAt: null }

/** What is missing, and when open turns that hold as much have ended: of the budget, then of each share. */
const CHECKS_OF_HELD = [
  ['without_tools - room', freeAt(null, 'banded', 'without_tools - room')],
  ['without_tools - address_room', freeAt('address', 'banded', 'without_tools - address_room')],
  ['without_tools - network_room', freeAt('network', 'banded', 'without_tools - network_room')],
  ['1 - address_requests', requestFreeAt('address', 'banded', '1 - address_requests')],
  ['1 - network_requests', requestFreeAt('network', 'banded', '1 - network_requests')],
] as const

const HELD_COLUMNS = CHECKS_OF_HELD.map(
  ([missing, free], index) =>
    `coalesce(${missing}, 0) > 0 AS missing_${index}, CASE WHEN ${missing} > 0 THEN ${free} END AS free_${index}`,
).join(', ')
const HELD_CELLS = CHECKS_OF_HELD.map((_, index) => `missing_${index}, free_${index}`).join(', ')
const NOTHING_MISSING = CHECKS_OF_HELD.map((_, index) => `NOT missing_${index}`).join(' AND ')

/**
 * Every count and every check, once for the two statements that go by them. `asked` is the claim; nothing here knows the
 * time but from it. LIMIT cannot name a column, hence the place of the burst's oldest turn from the argument itself. A room
 * that bounds nothing, as that of an IPv4 address's network or of a share as large as the budget, is null.
 *
 * @param caller what the address of a turn in the burst is
 */
const standing = (caller: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT ?1 ->> 'turn' AS turn, ?1 ->> 'session' AS session, ?1 ->> 'address' AS address,
      ?1 ->> 'network' AS network,
      ?1 ->> 'formerAddress' AS former_address, ?1 ->> 'server' AS server, ?1 ->> 'day' AS day, ?1 ->> 'now' AS now,
      ?1 ->> 'minuteAgo' AS minute_ago, ?1 ->> 'leaseUntil' AS lease_until, ?1 ->> 'minGapMs' AS min_gap_ms,
      ?1 ->> 'withTools' AS with_tools, ?1 ->> 'withoutTools' AS without_tools,
      ?1 ->> 'shortestWith' AS shortest_with, ?1 ->> 'shortestWithout' AS shortest_without,
      ?1 ->> 'budgetPerDay' AS budget, ?1 ->> 'budgetPerAddress' AS per_address,
      ?1 ->> 'requestsPerAddress' AS requests_most,
      ?1 ->> 'messagesPerSession' AS per_session, ?1 ->> 'messagesPerDay' AS per_day,
      ?1 ->> 'burstPerMinute' AS per_minute, ?1 ->> 'maxOpenTurns' AS open_most
  ), counted AS MATERIALIZED (
    SELECT asked.*,
      (SELECT count(*) FROM chat_turns AS t WHERE t.session = asked.session) AS in_session,
      (SELECT max(t.admitted_at) FROM chat_turns AS t WHERE t.session = asked.session) AS last_at,
      (SELECT count(*) FROM chat_turns AS t WHERE t.address = asked.address AND t.day = asked.day) AS in_day,
      (SELECT t.admitted_at FROM chat_turns AS t
        WHERE t.address ${caller} AND t.admitted_at > asked.minute_ago
        ORDER BY t.admitted_at DESC LIMIT 1 OFFSET max(0, (?1 ->> 'burstPerMinute') - 1)) AS burst_since,
      (SELECT count(*) FROM chat_turns AS t WHERE t.server = asked.server AND t.settled_at IS NULL) AS open_turns,
      coalesce((SELECT d.settled FROM chat_days AS d WHERE d.day = asked.day), 0) AS settled,
      coalesce((SELECT d.settled + d.reserved FROM chat_days AS d WHERE d.day = asked.day), 0) AS taken,
      CASE WHEN per_address < budget THEN per_address - ${paidBy('address', 'asked')} END AS address_room,
      CASE WHEN network IS NOT NULL AND 2 * per_address < budget THEN 2 * per_address - ${paidBy('network', 'asked')} END AS network_room,
      CASE WHEN requests_most IS NOT NULL THEN requests_most - ${requestsOf('address', 'asked')} END
        AS address_requests,
      CASE WHEN requests_most IS NOT NULL AND network IS NOT NULL
        THEN 2 * requests_most - ${requestsOf('network', 'asked')} END AS network_requests
    FROM asked
  ), banded AS MATERIALIZED (
    SELECT counted.*, budget - taken AS room,
      taken * 5 >= budget * 4 OR taken + max(shortest_with, with_tools) > budget
        OR coalesce(with_tools > address_room, 0) OR coalesce(with_tools > network_room, 0)
        OR coalesce(min(address_requests, coalesce(network_requests, address_requests)) < 2, 0) AS degraded
    FROM counted
  ), checked AS MATERIALIZED (
    SELECT banded.*, settled >= budget OR settled + shortest_without > budget AS exhausted,
      per_minute = 0 OR burst_since IS NOT NULL AS burst_full,
      in_day >= per_day AS day_full, in_session >= per_session AS session_full,
      last_at IS NOT NULL AND last_at > now - min_gap_ms AS too_soon,
      open_turns >= open_most AS streams_full,
      ${HELD_COLUMNS}
    FROM banded
  )`

const STANDING_CELLS = `exhausted, burst_full, day_full, session_full, too_soon, streams_full, degraded,
  in_session, in_day, burst_since, last_at, ${HELD_CELLS}`

const INSERT_TURN = `
  INSERT INTO chat_turns (id, session, address, network, server, day, admitted_at, reserved, lease_until)
  SELECT turn, session, address, network, server, day, now,
    CASE WHEN degraded THEN without_tools ELSE with_tools END, lease_until FROM checked
  WHERE NOT (exhausted OR burst_full OR day_full OR session_full OR too_soon OR streams_full) AND ${NOTHING_MISSING}
  RETURNING reserved`

const statementsOf = (caller: string): { select: string; insert: string } => ({
  select: `${standing(caller)} ${asJsonRows(STANDING_CELLS, 'SELECT * FROM checked')}`,
  insert: `${standing(caller)} ${INSERT_TURN}`,
})

// The index has the turns of one address in the order of their times; those of two have to be sorted.
const OF_ONE_ADDRESS = statementsOf('= asked.address')
const OF_TWO_ADDRESSES = statementsOf('IN (asked.address, asked.former_address)')

const RESERVE = `
  INSERT INTO chat_days (day, settled, reserved) SELECT day, 0, reserved FROM chat_turns WHERE id = ?1
  ON CONFLICT (day) DO UPDATE SET reserved = reserved + excluded.reserved`
