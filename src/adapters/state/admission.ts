import type { InStatement, ResultSet, Value } from '@libsql/client'
import { BURST_WINDOW_MS, admissionOf, refusalOf, shareOf } from '../../domain/agent/budget.ts'
import type { OpenTurn, AdmissionState } from '../../domain/agent/budget.ts'
import type { Admission, TurnClaim, TurnExtension } from '../../domain/agent/bounds.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { asJsonRows, decodeJsonRows } from '../sqlite/rows.ts'
import type { SqlReader } from '../sqlite/rows.ts'

/**
 * Returns statements that settle turns with an expired lease at their reserved cost. The second statement changes
 * one row per settled turn.
 */
export function sweepStatements(now: Instant): [InStatement, InStatement] {
  return [
    { sql: CHARGE_ENDED, args: [now] },
    { sql: SETTLE_ENDED, args: [now] },
  ]
}

/**
 * Returns statements that delete the data about callers of the days before `keepFrom`. An open turn keeps its row,
 * which cannot be linked to an address without the salt of the day.
 */
export function forgetStatements(now: Instant, keepFrom: Day): InStatement[] {
  return [
    { sql: 'DELETE FROM chat_salts WHERE day < ?', args: [keepFrom] },
    { sql: 'DELETE FROM chat_turns WHERE day < ? AND settled_at IS NOT NULL', args: [keepFrom] },
    forgetTries(now),
  ]
}

/** Time window in milliseconds in which verification attempts are counted. */
const TRIES_WINDOW_MS = 60_000

export function forgetTries(now: Instant): InStatement {
  return { sql: 'DELETE FROM chat_verifications WHERE tried_at <= ?', args: [now - TRIES_WINDOW_MS] }
}

// Without INDEXED BY the engine reads all turns in the order of their days.
const CHARGE_ENDED = `
  UPDATE chat_days SET settled = settled + ended.reserved, reserved = chat_days.reserved - ended.reserved
  FROM (
    SELECT day, sum(reserved) AS reserved FROM chat_turns INDEXED BY chat_turns_open
    WHERE settled_at IS NULL AND lease_until <= ?1 GROUP BY day
  ) AS ended
  WHERE chat_days.day = ended.day`

const SETTLE_ENDED = `
  UPDATE chat_turns SET settled_at = ?1, cost = reserved WHERE settled_at IS NULL AND lease_until <= ?1`

/** SQL expressions for the share of a day that an address, or its /48 network, has left (columns: migrations/state). */

type Caller = 'address' | 'network'

/** A /48 network has twice the share of an address. */
export const SHARES = { address: 1, network: 2 }

/**
 * Returns an expression for the micro-dollars left of a caller's share; null if the share is not less than the
 * budget.
 */
const moneyLeft = (caller: Caller, from: string): string => `
  CASE WHEN ${SHARES[caller]} * ${from}.per_address < ${from}.budget
    THEN ${SHARES[caller]} * ${from}.per_address - ${moneySpent(caller, from)} END`

/**
 * Returns an expression for the requests to the routing service that a caller has left; null if they are not
 * counted.
 *
 * @param exceptTurn id of an open turn that is not counted
 */
const requestsLeft = (caller: Caller, from: string, exceptTurn?: string): string =>
  `${SHARES[caller]} * ${from}.requests_max - ${requestsUsed(caller, from, exceptTurn)}`

/**
 * Returns the FROM clause of a caller's turns on a day with a reservation or a cost. The planner only uses the
 * index if its terms are repeated exactly.
 */
const paidTurns = (caller: Caller, value: string, day: string): string => `
  FROM chat_turns AS t INDEXED BY chat_turns_paid_by_${caller}
  WHERE t.${caller} = ${value} AND t.day = ${day} AND (t.cost IS NULL OR t.cost > 0)
    ${caller === 'network' ? 'AND t.network IS NOT NULL' : ''}`

/**
 * Returns an expression for the micro-dollars that a caller has reserved and spent; 0 for the network of an IPv4
 * address.
 */
const moneySpent = (caller: Caller, from: string): string => `
  (SELECT coalesce(sum(coalesce(t.cost, t.reserved)), 0) ${paidTurns(caller, `${from}.${caller}`, `${from}.day`)})`

/**
 * Returns an expression for the requests to the routing service that a caller has sent, plus one for each open turn
 * that has sent none.
 */
const requestsUsed = (caller: Caller, from: string, exceptTurn = "''"): string => `
  (${requestsSentBy(caller, from)} + (SELECT count(*) ${unsentTurns(caller, from)} AND t.id <> ${exceptTurn}))`

export const requestsSentBy = (caller: Caller, from: string): string => `
  (SELECT count(*) FROM chat_router_requests AS r JOIN chat_turns AS t ON t.id = r.turn
    WHERE r.day = ${from}.day AND t.${caller} = ${from}.${caller})`

const unsentTurns = (caller: Caller, from: string): string => `
  FROM chat_turns AS t INDEXED BY chat_turns_open
  WHERE t.settled_at IS NULL AND t.${caller} = ${from}.${caller}
    AND NOT EXISTS (SELECT 1 FROM chat_router_requests AS r WHERE r.turn = t.id)`

/** Returns the statements that admit or refuse a turn in one write transaction. */
export function admissionStatements(claim: TurnClaim, turn: string): InStatement[] {
  const { firstCall, shortestCall, limits, ...rest } = claim
  const parameters = JSON.stringify({
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
    { sql: select, args: [parameters] },
    { sql: insert, args: [parameters] },
    { sql: RESERVE, args: [turn] },
  ]
}

/**
 * Reads the outcome of an admission.
 *
 * @param results results of {@link admissionStatements}
 * @param reader used to read the open turns if they caused the refusal
 */
export async function admissionFrom(
  results: readonly ResultSet[],
  claim: TurnClaim,
  turn: string,
  reader: SqlReader,
): Promise<Admission> {
  const [found, inserted] = results.slice(-3)
  const counts = parseCounts(found?.rows[0]?.[0])
  const row = inserted?.rows[0]
  if (row) {
    const { degraded } = counts
    return admissionOf(counts, claim, { turn, reserved: Number(row['reserved']), degraded })
  }
  const isBlocked = Object.values(counts.missing).some((missing) => missing > 0)
  return refusalOf(counts, claim, isBlocked ? await readOpenTurns(reader, claim) : [])
}

async function readOpenTurns(reader: SqlReader, { day, address, network }: TurnClaim): Promise<OpenTurn[]> {
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

/**
 * The counts are read as one cell: the driver takes longer for a dozen columns than the engine takes to compute
 * them.
 */
type CountsRow = [
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
  keyRevoked: number,
]

function parseCounts(cell: Value | undefined): AdmissionState {
  const [row] = decodeJsonRows(cell, 'the state database') as CountsRow[]
  if (!row) throw new Error('an admission returned no result')
  const [exhausted, burst, day, session, gap, streams, degraded, ...counted] = row
  const [sessionTurns, dayTurns, burstSince, lastAdmittedAt, money, ofAddress, ofNetwork, ...others] = counted
  const [requestsOfAddress, requestsOfNetwork, keyRevoked] = others
  return {
    refuses: {
      key: keyRevoked === 1,
      exhausted: exhausted === 1,
      burst: burst === 1,
      day: day === 1,
      session: session === 1,
      gap: gap === 1,
      streams: streams === 1,
    },
    missing: { money, ofAddress, ofNetwork, requestsOfAddress, requestsOfNetwork },
    sessionTurns,
    dayTurns,
    burstSince,
    lastAdmittedAt,
    degraded: degraded === 1,
  }
}

/**
 * Returns the common table expressions with all counts and checks, shared by the SELECT and the INSERT of an
 * admission. `claim` holds the parameters of the claim, which are also the only source of the time. LIMIT cannot
 * name a column, so the OFFSET of the burst's oldest turn reads the parameter itself. A share without a limit is
 * null. Counts that a kind of claim does not need are omitted.
 */
const checkedClaim = ({ twoAddresses, network, requests, key }: ClaimKind): string => `
  WITH claim AS MATERIALIZED (
    SELECT ?1 ->> 'turn' AS turn, ?1 ->> 'session' AS session, ?1 ->> 'address' AS address,
      ?1 ->> 'network' AS network,
      ?1 ->> 'formerAddress' AS former_address, ?1 ->> 'server' AS server, ?1 ->> 'day' AS day, ?1 ->> 'now' AS now,
      ?1 ->> 'minuteAgo' AS minute_ago, ?1 ->> 'leaseUntil' AS lease_until, ?1 ->> 'minGapMs' AS min_gap_ms,
      ?1 ->> 'withTools' AS with_tools, ?1 ->> 'withoutTools' AS without_tools,
      ?1 ->> 'shortestWith' AS shortest_with, ?1 ->> 'shortestWithout' AS shortest_without,
      ?1 ->> 'budgetPerDay' AS budget, ?1 ->> 'budgetPerAddress' AS per_address,
      ?1 ->> 'requestsPerAddress' AS requests_max,
      ?1 ->> 'messagesPerSession' AS per_session, ?1 ->> 'messagesPerDay' AS per_day,
      ?1 ->> 'burstPerMinute' AS per_minute, ?1 ->> 'maxOpenTurns' AS open_max
  ), counted AS MATERIALIZED (
    SELECT claim.*,
      (SELECT count(*) FROM chat_turns AS t WHERE t.session = claim.session) AS in_session,
      (SELECT max(t.admitted_at) FROM chat_turns AS t WHERE t.session = claim.session) AS last_at,
      (SELECT count(*) FROM chat_turns AS t WHERE t.address = claim.address AND t.day = claim.day) AS in_day,
      (SELECT t.admitted_at FROM chat_turns AS t
        WHERE t.address ${twoAddresses ? 'IN (claim.address, claim.former_address)' : '= claim.address'} AND t.admitted_at > claim.minute_ago
        ORDER BY t.admitted_at DESC LIMIT 1 OFFSET max(0, (?1 ->> 'burstPerMinute') - 1)) AS burst_since,
      (SELECT count(*) FROM chat_turns AS t WHERE t.server = claim.server AND t.settled_at IS NULL) AS open_turns,
      coalesce((SELECT d.settled FROM chat_days AS d WHERE d.day = claim.day), 0) AS settled,
      coalesce((SELECT d.settled + d.reserved FROM chat_days AS d WHERE d.day = claim.day), 0) AS taken,
      ${moneyLeft('address', 'claim')} AS address_left,
      ${network ? moneyLeft('network', 'claim') : 'NULL'} AS network_left,
      ${requests ? requestsLeft('address', 'claim') : 'NULL'} AS address_requests_left,
      ${requests && network ? requestsLeft('network', 'claim') : 'NULL'} AS network_requests_left,
      ${key ? KEY_REVOKED : '0'} AS key_revoked
    FROM claim
  ), banded AS MATERIALIZED (
    SELECT counted.*, budget - taken AS money_left,
      taken * 5 >= budget * 4 OR settled + shortest_with > budget OR taken + with_tools > budget
        OR coalesce(with_tools > address_left, 0) OR coalesce(with_tools > network_left, 0)
        OR coalesce(min(address_requests_left, coalesce(network_requests_left, address_requests_left)) < 2, 0) AS degraded
    FROM counted
  ), checked AS MATERIALIZED (
    SELECT banded.*, settled >= budget OR settled + shortest_without > budget AS exhausted,
      per_minute = 0 OR burst_since IS NOT NULL AS burst_full,
      in_day >= per_day AS day_full, in_session >= per_session AS session_full,
      last_at IS NOT NULL AND last_at > now - min_gap_ms AS too_soon,
      open_turns >= open_max AS streams_full,
      max(0, without_tools - money_left) AS missing, max(0, coalesce(without_tools - address_left, 0)) AS missing_of_address,
      max(0, coalesce(without_tools - network_left, 0)) AS missing_of_network,
      max(0, coalesce(1 - address_requests_left, 0)) AS missing_requests,
      max(0, coalesce(1 - network_requests_left, 0)) AS missing_network_requests
    FROM banded
  )`

const KEY_REVOKED = `NOT EXISTS (
        SELECT 1 FROM chat_keys AS k WHERE k.id = ?1 ->> 'key' AND k.revoked_at IS NULL)`

const COUNTS_CELLS = `exhausted, burst_full, day_full, session_full, too_soon, streams_full, degraded,
  in_session, in_day, burst_since, last_at,
  missing, missing_of_address, missing_of_network, missing_requests, missing_network_requests,
  key_revoked`

const INSERT_TURN = `
  INSERT INTO chat_turns (id, session, address, network, server, day, admitted_at, reserved, lease_until)
  SELECT turn, session, address, network, server, day, now,
    CASE WHEN degraded THEN without_tools ELSE with_tools END, lease_until FROM checked
  WHERE NOT (key_revoked OR exhausted OR burst_full OR day_full OR session_full OR too_soon OR streams_full)
    AND missing + missing_of_address + missing_of_network + missing_requests + missing_network_requests = 0
  RETURNING reserved`

/** The counts that a claim needs. A statement is prepared for each turn, so its length matters. */
interface ClaimKind {
  /** The index orders the turns of one address by time; those of two addresses must be sorted. */
  twoAddresses: boolean
  network: boolean
  requests: boolean
  key: boolean
}

const statements = new Map<string, { select: string; insert: string }>()

function statementsFor({ formerAddress, network, requestsPerAddress, key: keyId }: TurnClaim): {
  select: string
  insert: string
} {
  const kind = {
    twoAddresses: formerAddress !== null,
    network: network !== null,
    requests: requestsPerAddress !== null,
    key: keyId !== null,
  }
  const key = JSON.stringify(kind)
  const cached = statements.get(key) ?? {
    select: `${checkedClaim(kind)} ${asJsonRows(COUNTS_CELLS, 'SELECT * FROM checked')}`,
    insert: `${checkedClaim(kind)} ${INSERT_TURN}`,
  }
  statements.set(key, cached)
  return cached
}

const RESERVE = `
  INSERT INTO chat_days (day, settled, reserved) SELECT day, 0, reserved FROM chat_turns WHERE id = ?1
  ON CONFLICT (day) DO UPDATE SET reserved = reserved + excluded.reserved`

/**
 * Returns the statements that reserve a turn's next model call in one write transaction. The first one returns a
 * row if the reservation succeeds.
 */
export function extensionStatements({ limits, ...extension }: TurnExtension): InStatement[] {
  const { budgetPerDay, budgetShare } = limits
  const budgetPerAddress = shareOf(budgetPerDay, budgetShare)
  return [
    { sql: EXTEND, args: [JSON.stringify({ ...extension, budgetPerDay, budgetPerAddress })] },
    { sql: ADD_UP, args: [extension.turn] },
  ]
}

/** Requires two requests: the next round, and the last call without tools. */
const EXTEND = `
  WITH claim AS MATERIALIZED (
    SELECT t.id, t.day, t.address, t.network, t.reserved, max(t.reserved, ?1 ->> 'upTo') AS up_to,
      ?1 ->> 'budgetPerDay' AS budget, ?1 ->> 'budgetPerAddress' AS per_address,
      ?1 ->> 'requestsPerAddress' AS requests_max
    FROM chat_turns AS t WHERE t.id = ?1 ->> 'turn' AND t.settled_at IS NULL
  ), granted AS MATERIALIZED (
    SELECT up_to FROM claim
    WHERE (up_to = reserved OR (
      up_to - reserved <= budget - (SELECT d.settled + d.reserved FROM chat_days AS d WHERE d.day = claim.day)
      AND coalesce(up_to - reserved <= ${moneyLeft('address', 'claim')}, 1)
      AND (network IS NULL OR coalesce(up_to - reserved <= ${moneyLeft('network', 'claim')}, 1))))
    AND (requests_max IS NULL OR (
      ${requestsLeft('address', 'claim', 'claim.id')} >= 2
      AND (network IS NULL OR ${requestsLeft('network', 'claim', 'claim.id')} >= 2)))
  )
  UPDATE chat_turns SET reserved = granted.up_to FROM granted
  WHERE chat_turns.id = ?1 ->> 'turn' RETURNING chat_turns.id`

const ADD_UP = `
  UPDATE chat_days SET reserved = (
    SELECT sum(t.reserved) FROM chat_turns AS t INDEXED BY chat_turns_open
    WHERE t.settled_at IS NULL AND t.day = chat_days.day)
  WHERE day = (SELECT t.day FROM chat_turns AS t WHERE t.id = ?1 AND t.settled_at IS NULL)`
