import { addDays, startOfDay } from '../time.ts'
import type { Instant } from '../time.ts'
import type { Admission, ChatLimits, MicroUsd, TurnClaim, TurnExtension } from './bounds.ts'
import { BURST_WINDOW_MS, budgetState, shareOf } from './budget.ts'

/** The admission of chat turns (docs/decisions/0028-chat-turn-admission.md). */

/** A caller whose share of the day counts: an address, or the /48 network of one, with twice the share. */
export type Caller = 'address' | 'network'

export const SHARES: Readonly<Record<Caller, number>> = { address: 1, network: 2 }

/** What a caller has used of a day. */
interface Used {
  /** Reserved and spent. */
  money: MicroUsd
  /** Sent to the routing service, and one for each other open turn that has sent none. */
  requests: number
}

/** What a day holds, before the turn in question. */
export interface DayUse {
  settled: MicroUsd
  reserved: MicroUsd
  address: Used
  /** Null for IPv4. */
  network: Used | null
}

/** What the store holds when it is asked for a turn. */
export interface AdmissionCounts {
  isKeyRevoked: boolean
  sessionTurns: number
  dayTurns: number
  /** Admission time of the turn that must leave the window before another one fits; null while one fits. */
  burstSince: Instant | null
  /** Time of the session's last admission. */
  lastAdmittedAt: Instant | null
  /** Of the server. */
  openTurns: number
  use: DayUse
}

/** A turn with a reservation; it also reserves one request to the routing service until it sends one. */
export interface OpenTurn {
  leaseUntil: Instant
  reserved: MicroUsd
  ofAddress: boolean
  /** True for a turn of the same /48. */
  ofNetwork: boolean
  hasSent: boolean
}

/** What is left of a day's budget and of the shares; Infinity where nothing is limited. */
interface Left {
  money: MicroUsd
  ofAddress: MicroUsd
  ofNetwork: MicroUsd
  requestsOfAddress: number
  requestsOfNetwork: number
}

/** @param requestsPerAddress daily requests of the routing service for one address; null when they are not counted */
function leftOf(
  { settled, reserved, address, network }: DayUse,
  { budgetPerDay, budgetShare }: Pick<ChatLimits, 'budgetPerDay' | 'budgetShare'>,
  requestsPerAddress: number | null,
): Left {
  const moneyOf = (caller: Caller, used: Used | null): MicroUsd => {
    const share = SHARES[caller] * shareOf(budgetPerDay, budgetShare)
    return used !== null && share < budgetPerDay ? share - used.money : Infinity
  }
  const requestsOf = (caller: Caller, used: Used | null): number =>
    used !== null && requestsPerAddress !== null
      ? SHARES[caller] * requestsPerAddress - used.requests
      : Infinity
  return {
    money: budgetPerDay - settled - reserved,
    ofAddress: moneyOf('address', address),
    ofNetwork: moneyOf('network', network),
    requestsOfAddress: requestsOf('address', address),
    requestsOfNetwork: requestsOf('network', network),
  }
}

/** Requests that a round with tools needs: its own, and that of the last call without tools. */
const REQUESTS_WITH_TOOLS = 2

/** True if a turn may reserve its next model call with tools. @param reserved what it has reserved */
export function mayExtend(
  use: DayUse,
  reserved: MicroUsd,
  { upTo, limits, requestsPerAddress }: TurnExtension,
): boolean {
  const left = leftOf(use, limits, requestsPerAddress)
  const more = Math.max(0, upTo - reserved)
  const fits = more === 0 || more <= Math.min(left.money, left.ofAddress, left.ofNetwork)
  return fits && Math.min(left.requestsOfAddress, left.requestsOfNetwork) >= REQUESTS_WITH_TOOLS
}

/** The decision about a turn, before its open turns are needed for the wait of a refusal. */
interface CheckedClaim {
  /** The reservation for the first model call; null if the turn is refused. */
  reserve: MicroUsd | null
  /** True when the turn runs without tools: the day's budget is soft, or a call with tools does not fit. */
  degraded: boolean
  /**
   * The amount missing for a turn without tools in the day's budget, in the shares of the address and its /48, and in
   * their shares of requests to the routing service; 0 when the turn fits.
   */
  missing: Left
  /** True if open turns hold what is missing. */
  isBlocked: boolean
  refuses: {
    /** Settled spending leaves too little for the shortest turn without tools. */
    exhausted: boolean
    burst: boolean
    day: boolean
    session: boolean
    gap: boolean
    streams: boolean
  }
}

/** Decides about a turn, with the counts and in the transaction in which it is stored. */
export function checkClaim(counts: AdmissionCounts, claim: TurnClaim): CheckedClaim {
  const { use, lastAdmittedAt, isKeyRevoked } = counts
  const { limits, firstCall, shortestCall } = claim
  const left = leftOf(use, limits, claim.requestsPerAddress)
  const budget = budgetState(use, limits.budgetPerDay, shortestCall)
  const { withTools, withoutTools } = firstCall
  const degraded =
    budget !== 'ok' ||
    withTools > Math.min(left.money, left.ofAddress, left.ofNetwork) ||
    Math.min(left.requestsOfAddress, left.requestsOfNetwork) < REQUESTS_WITH_TOOLS
  const missing = {
    money: Math.max(0, withoutTools - left.money),
    ofAddress: Math.max(0, withoutTools - left.ofAddress),
    ofNetwork: Math.max(0, withoutTools - left.ofNetwork),
    requestsOfAddress: Math.max(0, 1 - left.requestsOfAddress),
    requestsOfNetwork: Math.max(0, 1 - left.requestsOfNetwork),
  }
  const refuses = {
    exhausted: budget === 'exhausted',
    burst: limits.burstPerMinute === 0 || counts.burstSince !== null,
    day: counts.dayTurns >= limits.messagesPerDay,
    session: counts.sessionTurns >= limits.messagesPerSession,
    gap: lastAdmittedAt !== null && lastAdmittedAt > claim.now - limits.minGapMs,
    streams: counts.openTurns >= limits.maxOpenTurns,
  }
  const isBlocked = Object.values(missing).some((amount) => amount > 0)
  const isRefused = isKeyRevoked || isBlocked || Object.values(refuses).includes(true)
  return {
    reserve: isRefused ? null : degraded ? withoutTools : withTools,
    degraded,
    missing,
    isBlocked,
    refuses,
  }
}

/** Messages left after an admitted turn. */
export function remainingAfter(
  { sessionTurns, dayTurns }: AdmissionCounts,
  { messagesPerSession, messagesPerDay }: ChatLimits,
): { session: number; day: number } {
  return {
    session: Math.max(0, messagesPerSession - sessionTurns - 1),
    day: Math.max(0, messagesPerDay - dayTurns - 1),
  }
}

/** Suggested wait for an open turn of the server or the network to end. */
export const SHORT_WAIT_MS = 5_000

type Refused = Admission & { admitted: false }

/**
 * The refusal by the first failed check, with the time until all failed checks would pass. The session's cap counts
 * only when it is the first, because a caller can start another session at once.
 *
 * @param open turns of the day, in the order in which their leases end; needed where something is missing
 */
export function refusalOf(
  counts: AdmissionCounts,
  checked: CheckedClaim,
  claim: TurnClaim,
  open: readonly OpenTurn[],
): Refused {
  if (counts.isKeyRevoked) return { admitted: false, scope: 'key', retryAfterSeconds: 0 }
  const waits = waitsOf(counts, checked, claim, open).filter(({ refuses }) => refuses)
  const [first] = waits
  if (!first) throw new Error('a turn that no check refused was not admitted')
  const counted = waits.filter(({ scope }) => scope !== 'session' || first.scope === 'session')
  const waitMs = Math.max(...counted.map((each) => each.waitMs))
  return { admitted: false, scope: first.scope, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }
}

type Scope = Exclude<Refused['scope'], 'key'>

/** The checks in order, with the wait of each in milliseconds. */
function waitsOf(
  { burstSince, lastAdmittedAt }: AdmissionCounts,
  { refuses, missing }: CheckedClaim,
  { now, day, sessionEndsAt, limits }: TurnClaim,
  open: readonly OpenTurn[],
): { scope: Scope; refuses: boolean; waitMs: number }[] {
  const untilMidnight = startOfDay(addDays(day, 1)) - now
  const heldUntil = (scope: Scope, needed: number, heldBy: (turn: OpenTurn) => number) => ({
    scope,
    refuses: needed > 0,
    waitMs: Math.min(untilMidnight, freeAt(open, needed, heldBy) - now),
  })
  return [
    { scope: 'global-budget', refuses: refuses.exhausted, waitMs: untilMidnight },
    { scope: 'ip', refuses: refuses.burst, waitMs: (burstSince ?? now) + BURST_WINDOW_MS - now },
    { scope: 'ip', refuses: refuses.day, waitMs: untilMidnight },
    heldUntil('ip', missing.ofAddress, (turn) => (turn.ofAddress ? turn.reserved : 0)),
    heldUntil('ip', missing.ofNetwork, (turn) => (turn.ofNetwork ? turn.reserved : 0)),
    heldUntil('ip', missing.requestsOfAddress, (turn) => Number(turn.ofAddress && !turn.hasSent)),
    heldUntil('ip', missing.requestsOfNetwork, (turn) => Number(turn.ofNetwork && !turn.hasSent)),
    { scope: 'session', refuses: refuses.session, waitMs: sessionEndsAt - now },
    { scope: 'session', refuses: refuses.gap, waitMs: (lastAdmittedAt ?? now) + limits.minGapMs - now },
    { scope: 'global-budget', refuses: refuses.streams, waitMs: SHORT_WAIT_MS },
    heldUntil('global-budget', missing.money, (turn) => turn.reserved),
  ]
}

/** The time at which the leases of enough turns have ended to free `needed`; Infinity when all of them hold less. */
function freeAt(open: readonly OpenTurn[], needed: number, heldBy: (turn: OpenTurn) => number): number {
  let freed = 0
  for (const turn of open) {
    freed += heldBy(turn)
    if (freed >= needed) return turn.leaseUntil
  }
  return Infinity
}
