import type { InStatement } from '@libsql/client'
import { checkClaim, mayExtend, refusalOf, remainingAfter } from '../../domain/agent/admission.ts'
import type { AdmissionCounts, Caller, DayUse, OpenTurn } from '../../domain/agent/admission.ts'
import { BURST_WINDOW_MS } from '../../domain/agent/budget.ts'
import type { Admission, TurnClaim, TurnExtension } from '../../domain/agent/bounds.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { storageDamaged } from '../../domain/refusal.ts'
import { insertRow, selectObjects } from '../sqlite/rows.ts'
import type { ObjectColumns, SqlReader, SqlTransaction } from '../sqlite/rows.ts'

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
export function forgetStatements(keepFrom: Day): InStatement[] {
  return [
    { sql: 'DELETE FROM chat_salts WHERE day < ?', args: [keepFrom] },
    { sql: 'DELETE FROM chat_turns WHERE day < ? AND settled_at IS NOT NULL', args: [keepFrom] },
  ]
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

/**
 * Returns the FROM clause of a caller's turns on a day with a reservation or a cost. The planner only uses the
 * index if its terms are repeated exactly.
 */
const paidTurns = (caller: Caller): string => `
  FROM chat_turns AS t INDEXED BY chat_turns_paid_by_${caller}
  WHERE t.${caller} = claim.${caller} AND t.day = claim.day AND (t.cost IS NULL OR t.cost > 0)
    ${caller === 'network' ? 'AND t.network IS NOT NULL' : ''}`

export const requestsSentBy = (caller: Caller, from: string): string => `
  (SELECT count(*) FROM chat_router_requests AS r JOIN chat_turns AS t ON t.id = r.turn
    WHERE r.day = ${from}.day AND t.${caller} = ${from}.${caller})`

const hasSent = 'EXISTS (SELECT 1 FROM chat_router_requests AS r WHERE r.turn = t.id)'

const unsentTurns = (caller: Caller): string => `
  (SELECT count(*) FROM chat_turns AS t INDEXED BY chat_turns_open
    WHERE t.settled_at IS NULL AND t.${caller} = claim.${caller} AND t.id IS NOT claim.turn AND NOT ${hasSent})`

/** {@link DayUse} in one row. */
interface DayUseRow {
  settled: number
  reserved: number
  network: string | null
  moneyOfAddress: number
  moneyOfNetwork: number
  requestsOfAddress: number
  requestsOfNetwork: number
}

const moneyOf = (caller: Caller): string =>
  `(SELECT coalesce(sum(coalesce(t.cost, t.reserved)), 0) ${paidTurns(caller)})`
const requestsOf = (caller: Caller): string => `${requestsSentBy(caller, 'claim')} + ${unsentTurns(caller)}`

/** Columns of what a day holds; `claim` has the day, the caller, and the turn that is not counted. */
const DAY_USE: ObjectColumns<DayUseRow> = {
  settled: 'coalesce((SELECT d.settled FROM chat_days AS d WHERE d.day = claim.day), 0)',
  reserved: 'coalesce((SELECT d.reserved FROM chat_days AS d WHERE d.day = claim.day), 0)',
  network: 'claim.network',
  moneyOfAddress: moneyOf('address'),
  moneyOfNetwork: moneyOf('network'),
  requestsOfAddress: requestsOf('address'),
  requestsOfNetwork: requestsOf('network'),
}

function dayUseOf(row: DayUseRow): DayUse {
  const { settled, reserved, network } = row
  return {
    settled,
    reserved,
    address: { money: row.moneyOfAddress, requests: row.requestsOfAddress },
    network: network === null ? null : { money: row.moneyOfNetwork, requests: row.requestsOfNetwork },
  }
}

interface CountsRow extends DayUseRow, Omit<AdmissionCounts, 'isKeyRevoked' | 'use'> {
  isKeyRevoked: 0 | 1
}

const COUNTS: ObjectColumns<CountsRow> = {
  ...DAY_USE,
  isKeyRevoked: `claim.key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM chat_keys AS k WHERE k.id = claim.key AND k.revoked_at IS NULL)`,
  sessionTurns: '(SELECT count(*) FROM chat_turns AS t WHERE t.session = claim.session)',
  // Here and in the burst, turns further ahead do not count: a wrong clock would refuse callers until their time.
  lastAdmittedAt: `(SELECT max(t.admitted_at) FROM chat_turns AS t
    WHERE t.session = claim.session AND t.admitted_at < claim.minute_ahead)`,
  dayTurns: '(SELECT count(*) FROM chat_turns AS t WHERE t.address = claim.address AND t.day = claim.day)',
  // LIMIT cannot name a column, so that the OFFSET of the burst's oldest turn reads the parameter itself.
  burstSince: `(SELECT t.admitted_at FROM chat_turns AS t
    WHERE t.address IN (claim.address, claim.former_address) AND t.admitted_at > claim.minute_ago
      AND t.admitted_at < claim.minute_ahead
    ORDER BY t.admitted_at DESC LIMIT 1 OFFSET max(0, (?1 ->> 'burstPerMinute') - 1))`,
  openTurns: '(SELECT count(*) FROM chat_turns AS t WHERE t.server = claim.server AND t.settled_at IS NULL)',
}

const FROM_CLAIM = `(
  SELECT ?1 ->> 'session' AS session, ?1 ->> 'address' AS address, ?1 ->> 'network' AS network,
    ?1 ->> 'formerAddress' AS former_address, ?1 ->> 'server' AS server, ?1 ->> 'day' AS day, ?1 ->> 'key' AS key,
    ?1 ->> 'minuteAgo' AS minute_ago, ?1 ->> 'minuteAhead' AS minute_ahead, NULL AS turn
) AS claim`

async function readCounts(reader: SqlReader, claim: TurnClaim): Promise<AdmissionCounts> {
  const { session, address, network, formerAddress, server, day, key, limits } = claim
  const [minuteAgo, minuteAhead] = [claim.now - BURST_WINDOW_MS, claim.now + BURST_WINDOW_MS]
  const { burstPerMinute } = limits
  const caller = { session, address, network, formerAddress, server, day, key }
  const args = [JSON.stringify({ ...caller, minuteAgo, minuteAhead, burstPerMinute })]
  const [row] = await selectObjects(reader, COUNTS, FROM_CLAIM, args, 'the state database')
  if (!row) throw storageDamaged('an admission returned no counts')
  return { ...row, isKeyRevoked: row.isKeyRevoked === 1, use: dayUseOf(row) }
}

interface OpenTurnRow {
  leaseUntil: Instant
  reserved: number
  ofAddress: 0 | 1
  ofNetwork: 0 | 1 | null
  hasSent: 0 | 1
}

const OPEN_TURN: ObjectColumns<OpenTurnRow> = {
  leaseUntil: 't.lease_until',
  reserved: 't.reserved',
  ofAddress: 't.address = ?2',
  ofNetwork: 't.network = ?3',
  hasSent,
}

const FROM_OPEN_TURNS = `
  chat_turns AS t INDEXED BY chat_turns_open WHERE t.settled_at IS NULL AND t.day = ?1 ORDER BY t.lease_until`

async function readOpenTurns(reader: SqlReader, { day, address, network }: TurnClaim): Promise<OpenTurn[]> {
  const args = [day, address, network]
  const rows = await selectObjects(reader, OPEN_TURN, FROM_OPEN_TURNS, args, 'the state database')
  return rows.map(({ leaseUntil, reserved, ...row }) => ({
    leaseUntil,
    reserved,
    ofAddress: row.ofAddress === 1,
    ofNetwork: row.ofNetwork === 1,
    hasSent: row.hasSent === 1,
  }))
}

/** Admits a turn and reserves its first model call, or refuses it. @param turn id of the new turn */
export async function admitTurn(tx: SqlTransaction, claim: TurnClaim, turn: string): Promise<Admission> {
  await tx.batch(sweepStatements(claim.now))
  const counts = await readCounts(tx, claim)
  const checked = checkClaim(counts, claim)
  const { reserve, degraded } = checked
  if (reserve === null)
    return refusalOf(counts, checked, checked.isBlocked ? await readOpenTurns(tx, claim) : [])
  const { session, address, network, server, day, now, leaseMs } = claim
  const caller = { session, address, network, server, day }
  const lease = { admittedAt: now, reserved: reserve, leaseUntil: now + leaseMs }
  await tx.batch([
    insertRow('chat_turns', { id: turn, ...caller, ...lease }),
    { sql: RESERVE, args: [day, reserve] },
  ])
  return {
    admitted: true,
    turn,
    reserved: reserve,
    degraded,
    remaining: remainingAfter(counts, claim.limits),
  }
}

const RESERVE = `
  INSERT INTO chat_days (day, settled, reserved) VALUES (?1, 0, ?2)
  ON CONFLICT (day) DO UPDATE SET reserved = reserved + excluded.reserved`

interface ExtendedRow extends DayUseRow {
  day: Day
  reservedByTurn: number
}

const EXTENDED: ObjectColumns<ExtendedRow> = {
  ...DAY_USE,
  day: 'claim.day',
  reservedByTurn: 'claim.reserved',
}

const FROM_OPEN_TURN = `(
  SELECT t.id AS turn, t.day, t.address, t.network, t.reserved FROM chat_turns AS t
  WHERE t.id = ?1 AND t.settled_at IS NULL
) AS claim`

/** Reserves a turn's next model call with tools; false if it is not open or has no room for it. */
export async function extendTurn(tx: SqlTransaction, extension: TurnExtension): Promise<boolean> {
  const { turn, upTo } = extension
  const [row] = await selectObjects(tx, EXTENDED, FROM_OPEN_TURN, [turn], 'the state database')
  if (!row || !mayExtend(dayUseOf(row), row.reservedByTurn, extension)) return false
  const more = upTo - row.reservedByTurn
  if (more > 0)
    await tx.batch([
      { sql: 'UPDATE chat_turns SET reserved = ?2 WHERE id = ?1', args: [turn, upTo] },
      { sql: RESERVE, args: [row.day, more] },
    ])
  return true
}
