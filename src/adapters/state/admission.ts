import type { InStatement, ResultSet, Value } from '@libsql/client'
import { admissionOf, BURST_WINDOW_MS } from '../../domain/agent/quotas.ts'
import type { Granted, Standing } from '../../domain/agent/quotas.ts'
import type { Admission, TurnClaim } from '../../domain/ports.ts'
import { asJsonRows, decodeJsonRows } from '../libsql/json-rows.ts'
import { sweepStatements } from './sweep.ts'

/** The statements that admit a turn, or refuse it, as one write transaction. */
export function admissionStatements(claim: TurnClaim, turn: string): InStatement[] {
  const { worstCase, limits, ...rest } = claim
  const asked = JSON.stringify({
    ...rest,
    ...worstCase,
    ...limits,
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
  claimed: number | null,
  degraded: number,
  inSession: number,
  inDay: number,
  burstSince: number | null,
  lastAt: number | null,
  settled: number,
]

function standingOf(cell: Value | undefined): Standing {
  const [row] = decodeJsonRows(cell, 'the state database') as StandingRow[]
  if (!row) throw new Error('an admission gave no standing')
  const [exhausted, burst, day, session, gap, streams, claimed, degraded, ...counted] = row
  const [inSession, inDay, burstSince, lastAt, settled] = counted
  return {
    refuses: {
      exhausted: exhausted === 1,
      burst: burst === 1,
      day: day === 1,
      session: session === 1,
      gap: gap === 1,
      streams: streams === 1,
      money: claimed === null,
    },
    inSession,
    inDay,
    burstSince,
    lastAt,
    degraded: degraded === 1,
    settled,
  }
}

/**
 * Every count and every check, once for the two statements that go by them. `asked` is the claim; nothing here knows the
 * time but from it. LIMIT cannot name a column, hence the place of the burst's oldest turn from the argument itself.
 *
 * @param caller what the address of a turn in the burst is
 */
const standing = (caller: string): string => `
  WITH asked AS MATERIALIZED (
    SELECT ?1 ->> 'turn' AS turn, ?1 ->> 'session' AS session, ?1 ->> 'address' AS address,
      ?1 ->> 'formerAddress' AS former_address, ?1 ->> 'server' AS server, ?1 ->> 'day' AS day, ?1 ->> 'now' AS now,
      ?1 ->> 'minuteAgo' AS minute_ago, ?1 ->> 'leaseUntil' AS lease_until, ?1 ->> 'minGapMs' AS min_gap_ms,
      ?1 ->> 'withTools' AS with_tools, ?1 ->> 'withoutTools' AS without_tools, ?1 ->> 'budgetPerDay' AS budget,
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
      coalesce((SELECT d.settled + d.reserved FROM chat_days AS d WHERE d.day = asked.day), 0) AS taken
    FROM asked
  ), banded AS MATERIALIZED (
    SELECT counted.*, taken * 5 >= budget * 4 AS degraded,
      CASE WHEN taken * 5 >= budget * 4 THEN without_tools ELSE with_tools END AS needed
    FROM counted
  ), checked AS MATERIALIZED (
    SELECT banded.*, settled >= budget AS exhausted,
      per_minute = 0 OR burst_since IS NOT NULL AS burst_full,
      in_day >= per_day AS day_full, in_session >= per_session AS session_full,
      last_at IS NOT NULL AND last_at > now - min_gap_ms AS too_soon,
      open_turns >= open_most AS streams_full,
      CASE WHEN taken + needed <= budget THEN needed END AS claimed
    FROM banded
  )`

const STANDING_CELLS = `exhausted, burst_full, day_full, session_full, too_soon, streams_full, claimed, degraded,
  in_session, in_day, burst_since, last_at, settled`

const INSERT_TURN = `
  INSERT INTO chat_turns (id, session, address, server, day, admitted_at, reserved, lease_until)
  SELECT turn, session, address, server, day, now, claimed, lease_until FROM checked
  WHERE NOT (exhausted OR burst_full OR day_full OR session_full OR too_soon OR streams_full) AND claimed IS NOT NULL
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
