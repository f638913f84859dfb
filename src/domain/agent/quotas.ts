import { addDays, dayOf, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import type { MicroUsd } from './money.ts'
import type { Admission, TurnClaim } from './ports.ts'

/** The window a burst is counted in. */
export const BURST_WINDOW_MS = 60_000

/**
 * The first day whose callers must still be known: earlier ones can hold no token and have no burst.
 *
 * @param sessionSeconds how long a token lasts
 */
export function keepCallersFrom(now: Instant, sessionSeconds: number): Day {
  return dayOf(now - Math.max(sessionSeconds * 1000, BURST_WINDOW_MS))
}

/** How long a caller waits for an open turn of the server, or of its network, to end. */
export const SHORT_WAIT_MS = 5_000

/** A turn that holds money, and a request to the routing service while it has sent none. */
export interface OpenTurn {
  leaseUntil: Instant
  reserved: MicroUsd
  ofAddress: boolean
  /** Of the same /48. */
  ofNetwork: boolean
  hasSent: boolean
}

/** What a store found, in the transaction that admitted or refused a turn, before the turn itself was counted. */
export interface Standing {
  /** The checks of an admission, each true when it refuses. */
  refuses: {
    /** Settled spend leaves no room for the shortest turn without tools. */
    exhausted: boolean
    burst: boolean
    day: boolean
    session: boolean
    gap: boolean
    streams: boolean
  }
  /**
   * What is missing for a turn without tools, of the day's budget, of the shares of the address and of its /48, and of their
   * shares in the requests to the routing service; 0 where it fits.
   */
  missing: {
    money: MicroUsd
    ofAddress: MicroUsd
    ofNetwork: MicroUsd
    requestsOfAddress: number
    requestsOfNetwork: number
  }
  inSession: number
  inDay: number
  /** Admission of the turn that has to leave the window before another fits. */
  burstSince: Instant | null
  /** The session's last admission. */
  lastAt: Instant | null
  /** The turn has no tools. */
  degraded: boolean
}

/** What an admitted turn was given. */
export interface Granted {
  turn: string
  reserved: MicroUsd
  degraded: boolean
}

/** The admission of a turn that was not refused (docs/decisions/0028-how-a-turn-is-admitted.md). */
export function admissionOf(standing: Standing, claim: TurnClaim, granted: Granted): Admission {
  const { messagesPerSession, messagesPerDay } = claim.limits
  return {
    admitted: true,
    ...granted,
    remaining: {
      session: Math.max(0, messagesPerSession - standing.inSession - 1),
      day: Math.max(0, messagesPerDay - standing.inDay - 1),
    },
  }
}

type Scope = (Admission & { admitted: false })['scope']

/**
 * The scope of the first check that refuses, and the time after which none of those known now would. The cap of a session
 * is waited for only where it is itself the reason: a caller may have another session at once.
 *
 * @param open turns of the day, in the order in which their leases end; needed where something is missing
 */
export function refusalOf(standing: Standing, claim: TurnClaim, open: readonly OpenTurn[]): Admission {
  const waits = waitsOf(standing, claim, open).filter(({ refuses }) => refuses)
  const [first] = waits
  if (!first) throw new Error('a turn that no check refused was not admitted')
  const counted = waits.filter(({ scope }) => scope !== 'session' || first.scope === 'session')
  const waitMs = Math.max(...counted.map((each) => each.waitMs))
  return { admitted: false, scope: first.scope, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }
}

/** In the order of the checks; milliseconds. */
function waitsOf(
  { refuses, missing, burstSince, lastAt }: Standing,
  { now, day, sessionEndsAt, limits }: TurnClaim,
  open: readonly OpenTurn[],
): { scope: Scope; refuses: boolean; waitMs: number }[] {
  const untilMidnight = startOfDay(addDays(day, 1)) - now
  const held = (scope: Scope, needed: number, heldBy: (turn: OpenTurn) => number) => ({
    scope,
    refuses: needed > 0,
    waitMs: Math.min(untilMidnight, freeAt(open, needed, heldBy) - now),
  })
  return [
    { scope: 'global-budget', refuses: refuses.exhausted, waitMs: untilMidnight },
    { scope: 'ip', refuses: refuses.burst, waitMs: (burstSince ?? now) + BURST_WINDOW_MS - now },
    { scope: 'ip', refuses: refuses.day, waitMs: untilMidnight },
    held('ip', missing.ofAddress, (turn) => (turn.ofAddress ? turn.reserved : 0)),
    held('ip', missing.ofNetwork, (turn) => (turn.ofNetwork ? turn.reserved : 0)),
    held('ip', missing.requestsOfAddress, (turn) => Number(turn.ofAddress && !turn.hasSent)),
    held('ip', missing.requestsOfNetwork, (turn) => Number(turn.ofNetwork && !turn.hasSent)),
    { scope: 'session', refuses: refuses.session, waitMs: sessionEndsAt - now },
    { scope: 'session', refuses: refuses.gap, waitMs: (lastAt ?? now) + limits.minGapMs - now },
    { scope: 'global-budget', refuses: refuses.streams, waitMs: SHORT_WAIT_MS },
    held('global-budget', missing.money, (turn) => turn.reserved),
  ]
}

/** When so many turns have ended, at the latest, that they held enough together; never when all of them hold less. */
function freeAt(open: readonly OpenTurn[], needed: number, heldBy: (turn: OpenTurn) => number): number {
  let freed = 0
  for (const turn of open) {
    freed += heldBy(turn)
    if (freed >= needed) return turn.leaseUntil
  }
  return Infinity
}
