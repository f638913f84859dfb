import type { InStatement, ResultSet, Value } from '@libsql/client'
import { shareOf } from '../../domain/agent/budget.ts'
import { admissionOf, BURST_WINDOW_MS, refusalOf } from '../../domain/agent/quotas.ts'
import type { OpenTurn, Standing } from '../../domain/agent/quotas.ts'
import type { Admission, TurnClaim } from '../../domain/ports.ts'
import { asJsonRows, decodeJsonRows } from '../libsql/json-rows.ts'
import type { Reader } from '../libsql/store-client.ts'
import { requestRoomOf, roomOf } from './shares.ts'
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
  const { select, insert } = statementsFor(claim)
  return [
    ...sweepStatements(claim.now),
    { sql: select, args: [asked] },
    { sql: insert, args: [asked] },
    { sql: RESERVE, args: [turn] },
  ]
}

/**
 * @param results those of {@link admissionStatements}
 * @param reader asked for the open turns where they are in the way of a refused one
 */
export async function admissionFrom(
  results: readonly ResultSet[],
  claim: TurnClaim,
  turn: string,
  reader: Reader,
): Promise<Admission> {
  const [found, inserted] = results.slice(-3)
  const standing = standingOf(found?.rows[0]?.[0])
  const row = inserted?.rows[0]
  if (row) {
    const { degraded } = standing
    return admissionOf(standing, claim, { turn, reserved: Number(row['reserved']), degraded })
  }
  const isHeldBack = Object.values(standing.missing).some((missing) => missing > 0)
  return refusalOf(standing, claim, isHeldBack ? await openTurns(reader, claim) : [])
}

async function openTurns(reader: Reader, { day, address, network }: TurnClaim): Promise<OpenTurn[]> {
  const { rows } = await reader.execute({ sql: SELECT_OPEN, args: [day, address, network] })
  return rows.map((row) => ({
    leaseUntil: Number(row['lease_until']),
    reserved: Number(row['reserved']),
    ofAddress: row['of_address'] === 1,
    ofNetwork: row['of_network'] === 1,
    hasSent: row['has_sent'] === 1,
  }))
}

const SELECT_OPEN = `
  SELECT t.lease_until, t.reserved, t.address = ?2 AS of_address, t.network = ?3 AS of_network,
    EXISTS (SELECT 1 FROM chat_router_requests AS r WHERE r.turn = t.id) AS has_sent
  FROM chat_turns AS t INDEXED BY chat_turns_open WHERE t.settled_at IS NULL AND t.day = ?1 ORDER BY t.lease_until`

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
  money: number,
  ofAddress: number,
  ofNetwork: number,
  requestsOfAddress: number,
  requestsOfNetwork: number,
]

function standingOf(cell: Value | undefined): Standing {
  const [row] = decodeJsonRows(cell, 'the state database') as StandingRow[]
  if (!row) throw new Error('an admission gave no standing')
  const [exhausted, burst, day, session, gap, streams, degraded, ...counted] = row
  const [inSession, inDay, burstSince, lastAt, money, ofAddress, ofNetwork, ...requests] = counted
  const [requestsOfAddress, requestsOfNetwork] = requests
  return {
    refuses: {
      exhausted: exhausted === 1,
      burst: burst === 1,
      day: day === 1,
      session: session === 1,
      gap: gap === 1,
      streams: streams === 1,
    },
    missing: { money, ofAddress, ofNetwork, requestsOfAddress, requestsOfNetwork },
    inSession,
    inDay,
    burstSince,
    lastAt,
    degraded: degraded === 1,
  }
}

/**
 * Every count and every check, once for the two statements that go by them. `asked` is the claim; nothing here knows the
 * time but from it. LIMIT cannot name a column, hence the place of the burst's oldest turn from the argument itself. A room
 * that bounds nothing is null; what no claim of its kind has a share of is not counted at all.
 */
const standing = ({ twoAddresses, network, requests }: ClaimKind): string => `
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
        WHERE t.address ${twoAddresses ? 'IN (asked.address, asked.former_address)' : '= asked.address'} AND t.admitted_at > asked.minute_ago
        ORDER BY t.admitted_at DESC LIMIT 1 OFFSET max(0, (?1 ->> 'burstPerMinute') - 1)) AS burst_since,
      (SELECT count(*) FROM chat_turns AS t WHERE t.server = asked.server AND t.settled_at IS NULL) AS open_turns,
      coalesce((SELECT d.settled FROM chat_days AS d WHERE d.day = asked.day), 0) AS settled,
      coalesce((SELECT d.settled + d.reserved FROM chat_days AS d WHERE d.day = asked.day), 0) AS taken,
      ${roomOf('address', 'asked')} AS address_room,
      ${network ? roomOf('network', 'asked') : 'NULL'} AS network_room,
      ${requests ? requestRoomOf('address', 'asked') : 'NULL'} AS address_requests,
      ${requests && network ? requestRoomOf('network', 'asked') : 'NULL'} AS network_requests
    FROM asked
  ), banded AS MATERIALIZED (
    SELECT counted.*, budget - taken AS room,
      taken * 5 >= budget * 4 OR settled + shortest_with > budget OR taken + with_tools > budget
        OR coalesce(with_tools > address_room, 0) OR coalesce(with_tools > network_room, 0)
        OR coalesce(min(address_requests, coalesce(network_requests, address_requests)) < 2, 0) AS degraded
    FROM counted
  ), checked AS MATERIALIZED (
    SELECT banded.*, settled >= budget OR settled + shortest_without > budget AS exhausted,
      per_minute = 0 OR burst_since IS NOT NULL AS burst_full,
      in_day >= per_day AS day_full, in_session >= per_session AS session_full,
      last_at IS NOT NULL AND last_at > now - min_gap_ms AS too_soon,
      open_turns >= open_most AS streams_full,
      max(0, without_tools - room) AS missing, max(0, coalesce(without_tools - address_room, 0)) AS missing_of_address,
      max(0, coalesce(without_tools - network_room, 0)) AS missing_of_network,
      max(0, coalesce(1 - address_requests, 0)) AS missing_requests,
      max(0, coalesce(1 - network_requests, 0)) AS missing_network_requests
    FROM banded
  )`

const STANDING_CELLS = `exhausted, burst_full, day_full, session_full, too_soon, streams_full, degraded,
  in_session, in_day, burst_since, last_at,
  missing, missing_of_address, missing_of_network, missing_requests, missing_network_requests`

const INSERT_TURN = `
  INSERT INTO chat_turns (id, session, address, network, server, day, admitted_at, reserved, lease_until)
  SELECT turn, session, address, network, server, day, now,
    CASE WHEN degraded THEN without_tools ELSE with_tools END, lease_until FROM checked
  WHERE NOT (exhausted OR burst_full OR day_full OR session_full OR too_soon OR streams_full)
    AND missing + missing_of_address + missing_of_network + missing_requests + missing_network_requests = 0
  RETURNING reserved`

/** What a claim has to be counted by. A statement is prepared for each turn, so that its length matters. */
interface ClaimKind {
  /** The index has the turns of one address in the order of their times; those of two have to be sorted. */
  twoAddresses: boolean
  network: boolean
  requests: boolean
}

const statements = new Map<string, { select: string; insert: string }>()

function statementsFor({ formerAddress, network, requestsPerAddress }: TurnClaim): {
  select: string
  insert: string
} {
  const kind = {
    twoAddresses: formerAddress !== null,
    network: network !== null,
    requests: requestsPerAddress !== null,
  }
  const key = JSON.stringify(kind)
  const known = statements.get(key) ?? {
    select: `${standing(kind)} ${asJsonRows(STANDING_CELLS, 'SELECT * FROM checked')}`,
    insert: `${standing(kind)} ${INSERT_TURN}`,
  }
  statements.set(key, known)
  return known
}

const RESERVE = `
  INSERT INTO chat_days (day, settled, reserved) SELECT day, 0, reserved FROM chat_turns WHERE id = ?1
  ON CONFLICT (day) DO UPDATE SET reserved = reserved + excluded.reserved`
