/** What an address, or the /48 around it, has of a day (migrations/state tells the columns), as parts of statements. */

type Caller = 'address' | 'network'

/** A /48 has twice as much as an address. */
const SHARES = { address: 1, network: 2 }

/** Micro-dollars that a caller may still take of its share; null for a share that is not less than the budget. */
export const roomOf = (caller: Caller, from: string): string => `
  CASE WHEN ${SHARES[caller]} * ${from}.per_address < ${from}.budget
    THEN ${SHARES[caller]} * ${from}.per_address - ${paidBy(caller, from)} END`

/**
 * Requests to the routing service that a caller may still send; null where none are counted.
 *
 * @param besides id of a turn that is left out of the open ones
 */
export const requestRoomOf = (caller: Caller, from: string, besides?: string): string =>
  `${SHARES[caller]} * ${from}.requests_most - ${requestsOf(caller, from, besides)}`

/** Turns of a caller on a day that hold or have spent anything. The planner needs the terms of the index as they are. */
const paidTurns = (caller: Caller, value: string, day: string): string => `
  FROM chat_turns AS t INDEXED BY chat_turns_paid_by_${caller}
  WHERE t.${caller} = ${value} AND t.day = ${day} AND (t.cost IS NULL OR t.cost > 0)
    ${caller === 'network' ? 'AND t.network IS NOT NULL' : ''}`

/** Micro-dollars that a caller holds and has spent; 0 for the network of an IPv4 address. */
const paidBy = (caller: Caller, from: string): string => `
  (SELECT coalesce(sum(coalesce(t.cost, t.reserved)), 0) ${paidTurns(caller, `${from}.${caller}`, `${from}.day`)})`

/** Requests to the routing service that a caller has sent, and one for each of its open turns that have sent none. */
const requestsOf = (caller: Caller, from: string, besides = "''"): string => `
  (${requestsSentBy(caller, from)} + (SELECT count(*) ${unsentTurns(caller, from)} AND t.id <> ${besides}))`

export const requestsSentBy = (caller: Caller, from: string): string => `
  (SELECT count(*) FROM chat_router_requests AS r JOIN chat_turns AS t ON t.id = r.turn
    WHERE r.day = ${from}.day AND t.${caller} = ${from}.${caller})`

const unsentTurns = (caller: Caller, from: string): string => `
  FROM chat_turns AS t INDEXED BY chat_turns_open
  WHERE t.settled_at IS NULL AND t.${caller} = ${from}.${caller}
    AND NOT EXISTS (SELECT 1 FROM chat_router_requests AS r WHERE r.turn = t.id)`
