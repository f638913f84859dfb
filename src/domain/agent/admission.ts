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

type Refused = Admission & { admitted: false }
type Scope = Exclude<Refused['scope'], 'key'>

/** A limit of a day's money or of its requests to the routing service, of all callers or of one. */
interface Limit {
  scope: Scope
  unit: 'money' | 'requests'
  left: number
  /** What an open turn holds of it. */
  heldBy: (turn: OpenTurn) => number
}

/** @param requestsPerAddress daily requests of the routing service for one address; null when they are not counted */
function limitsOf(
  { settled, reserved, address, network }: DayUse,
  { budgetPerDay, budgetShare }: Pick<ChatLimits, 'budgetPerDay' | 'budgetShare'>,
  requestsPerAddress: number | null,
): Limit[] {
  const ofCaller = (caller: Caller, used: Used, isOf: (turn: OpenTurn) => boolean): Limit[] => {
    const share = SHARES[caller] * shareOf(budgetPerDay, budgetShare)
    const requests = SHARES[caller] * (requestsPerAddress ?? Infinity)
    return [
      {
        scope: 'ip',
        unit: 'money',
        left: share < budgetPerDay ? share - used.money : Infinity,
        heldBy: (turn) => (isOf(turn) ? turn.reserved : 0),
      },
      {
        scope: 'ip',
        unit: 'requests',
        left: requests - used.requests,
        heldBy: (turn) => Number(isOf(turn) && !turn.hasSent),
      },
    ]
  }
  return [
    ...ofCaller('address', address, ({ ofAddress }) => ofAddress),
    ...(network ? ofCaller('network', network, ({ ofNetwork }) => ofNetwork) : []),
    {
      scope: 'global-budget',
      unit: 'money',
      left: budgetPerDay - settled - reserved,
      heldBy: (turn) => turn.reserved,
    },
  ]
}

/** True if what is needed fits into every limit. */
function isWithin(limits: readonly Limit[], needed: Readonly<Record<Limit['unit'], number>>): boolean {
  return limits.every(({ unit, left }) => needed[unit] <= left)
}

/** Requests that a round with tools needs: its own, and that of the last call without tools. */
const REQUESTS_WITH_TOOLS = 2

/** True if a turn may reserve its next model call with tools. @param reserved what it has reserved */
export function mayExtend(
  use: DayUse,
  reserved: MicroUsd,
  { upTo, limits, requestsPerAddress }: TurnExtension,
): boolean {
  const money = upTo > reserved ? upTo - reserved : -Infinity
  return isWithin(limitsOf(use, limits, requestsPerAddress), { money, requests: REQUESTS_WITH_TOOLS })
}

/** The decision about a turn, before its open turns are needed for the wait of a refusal. */
interface CheckedClaim {
  /** The reservation for the first model call; null if the turn is refused. */
  reserve: MicroUsd | null
  /** True when the turn runs without tools: the day's budget is soft, or a call with tools does not fit. */
  degraded: boolean
  /** The checks that failed, in order. */
  failed: readonly FailedCheck[]
  /** True if open turns hold what is missing. */
  isBlocked: boolean
}

interface FailedCheck {
  scope: Scope
  /** Time until the check would pass, in milliseconds. */
  waitMs: (open: readonly OpenTurn[]) => number
}

/** Suggested wait for an open turn of the server or the network to end. */
export const SHORT_WAIT_MS = 5_000

/** Decides about a turn, with the counts and in the transaction in which it is stored. */
export function checkClaim(counts: AdmissionCounts, claim: TurnClaim): CheckedClaim {
  const { use, burstSince, lastAdmittedAt } = counts
  const { limits, shortestCall, now, day, sessionEndsAt } = claim
  const { withTools, withoutTools } = claim.firstCall
  const budget = budgetState(use, limits.budgetPerDay, shortestCall)
  const all = limitsOf(use, limits, claim.requestsPerAddress)
  const degraded = budget !== 'ok' || !isWithin(all, { money: withTools, requests: REQUESTS_WITH_TOOLS })
  const untilMidnight = startOfDay(addDays(day, 1)) - now
  const blocked = all.flatMap(({ scope, unit, left, heldBy }) => {
    const missing = (unit === 'money' ? withoutTools : 1) - left
    const waitMs: FailedCheck['waitMs'] = (open) =>
      Math.min(untilMidnight, freeAt(open, missing, heldBy) - now)
    return missing > 0 ? [{ scope, waitMs }] : []
  })
  const check = (refuses: boolean, scope: Scope, waitMs: number): FailedCheck[] =>
    refuses ? [{ scope, waitMs: () => waitMs }] : []
  const isBurst = limits.burstPerMinute === 0 || burstSince !== null
  const isEarly = lastAdmittedAt !== null && lastAdmittedAt > now - limits.minGapMs
  const failed = [
    // Settled spending leaves too little for the shortest turn without tools.
    ...check(budget === 'exhausted', 'global-budget', untilMidnight),
    ...check(isBurst, 'ip', (burstSince ?? now) + BURST_WINDOW_MS - now),
    ...check(counts.dayTurns >= limits.messagesPerDay, 'ip', untilMidnight),
    ...blocked.filter(({ scope }) => scope === 'ip'),
    ...check(counts.sessionTurns >= limits.messagesPerSession, 'session', sessionEndsAt - now),
    ...check(isEarly, 'session', (lastAdmittedAt ?? now) + limits.minGapMs - now),
    ...check(counts.openTurns >= limits.maxOpenTurns, 'global-budget', SHORT_WAIT_MS),
    ...blocked.filter(({ scope }) => scope !== 'ip'),
  ]
  const isRefused = counts.isKeyRevoked || failed.length > 0
  return {
    reserve: isRefused ? null : degraded ? withoutTools : withTools,
    degraded,
    failed,
    isBlocked: blocked.length > 0,
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

/**
 * The refusal by the first failed check, with the time until all failed checks would pass. The session's cap counts
 * only when it is the first, because a caller can start another session at once.
 *
 * @param open turns of the day, in the order in which their leases end; needed where open turns are in the way
 */
export function refusalOf(
  { isKeyRevoked }: AdmissionCounts,
  { failed }: CheckedClaim,
  open: readonly OpenTurn[],
): Refused {
  if (isKeyRevoked) return { admitted: false, scope: 'key', retryAfterSeconds: 0 }
  const [first] = failed
  if (!first) throw new Error('a turn that no check refused was not admitted')
  const counted = failed.filter(({ scope }) => scope !== 'session' || first.scope === 'session')
  const waitMs = Math.max(...counted.map((each) => each.waitMs(open)))
  return { admitted: false, scope: first.scope, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }
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
