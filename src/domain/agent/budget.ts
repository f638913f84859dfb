import { parseIpAddress } from '../address.ts'
import { addDays, dayOf, startOfDay } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import type { MicroUsd, Admission, CallCost, TurnClaim } from './bounds.ts'
import type { ChatRequest } from './chat-request.ts'
import type { Prices, Usage } from './model-call.ts'
import { SHORTEST_REQUEST, TOOLS_BYTES, largestInputBytes } from './prompt.ts'

/** What a turn may cost, what it did cost, and what that makes of a day (docs/decisions/0028-chat-turn-admission.md). */

export type BudgetState = 'ok' | 'soft' | 'exhausted' | 'unknown'

/** The state of a day's budget, as the status reports it; an admission applies the same bands. `spending` null: unreadable. */
export function budgetState(
  spending: { settled: MicroUsd; reserved: MicroUsd } | null,
  budgetPerDay: MicroUsd,
  { withTools, withoutTools }: CallCost,
): BudgetState {
  if (spending === null) return 'unknown'
  const { settled, reserved } = spending
  if (settled >= budgetPerDay || settled + withoutTools > budgetPerDay) return 'exhausted'
  const taken = settled + reserved
  const isLow = taken * 5 >= budgetPerDay * 4 || settled + withTools > budgetPerDay
  // Reservations may be in the way of every turn before they reach 80 %.
  return isLow || taken + withoutTools > budgetPerDay ? 'soft' : 'ok'
}

/** @param share in millionths */
export function shareOf(amount: number, share: number): number {
  // Their product may be beyond what a number holds exactly.
  return Number((BigInt(amount) * BigInt(share)) / MILLION)
}

/** Requests a day that one address may send to a routing service, at least one; `share` in millionths. */
export function requestShareOf(requestsPerDay: number, share: number): number {
  return Math.max(1, shareOf(requestsPerDay, share))
}

/** A million dollars: what is beyond was made up by a provider. */
const COST_MAX: MicroUsd = 1_000_000_000_000

/** What tokens cost, in micro-dollars, rounded up. */
export function costOf(usage: Usage, prices: Prices): MicroUsd {
  const cached = Math.min(usage.cached, usage.in)
  // Tokens and prices together may be beyond what a number holds exactly.
  const sum =
    BigInt(usage.in - cached) * BigInt(prices.input) +
    BigInt(cached) * BigInt(prices.cached) +
    BigInt(usage.out) * BigInt(prices.output)
  const cost = (sum + MILLION - 1n) / MILLION
  return cost > BigInt(COST_MAX) ? COST_MAX : Number(cost)
}

/** Prices are per million tokens, shares in millionths. */
const MILLION = 1_000_000n

/** What a provider may add to one call: the frame of messages and tools. All else is bounded by its bytes. */
const CALL_OVERHEAD_TOKENS = 500

/** The most one model call can cost, with at most so many tokens of input: a token is at least one byte of UTF-8. */
export function callCost({ inputTokens, maxOutputTokens, prices }: CallBounds): MicroUsd {
  // A provider may charge more for its cache than for plain input.
  const input = Math.max(prices.input, prices.cached)
  const usage = { in: inputTokens + CALL_OVERHEAD_TOKENS, out: maxOutputTokens, cached: 0 }
  return costOf(usage, { ...prices, input, cached: input })
}

interface CallBounds {
  inputTokens: number
  maxOutputTokens: number
  prices: Prices
}

/**
 * The most the first model call of a turn can cost, with its grounding at its largest. With tools that includes a last call
 * without them and without any result, so that a turn which is refused more can always end.
 */
export function firstCallCost(request: ChatRequest, bounds: Omit<CallBounds, 'inputTokens'>): CallCost {
  const inputTokens = largestInputBytes(request)
  const withoutTools = callCost({ ...bounds, inputTokens })
  const withTools = callCost({ ...bounds, inputTokens: inputTokens + TOOLS_BYTES })
  return { withTools: withTools + withoutTools, withoutTools }
}

/** {@link firstCallCost} of a turn of one character. */
export function shortestCallCost(bounds: Omit<CallBounds, 'inputTokens'>): CallCost {
  return firstCallCost(SHORTEST_REQUEST, bounds)
}

/** Bytes of text to a token, where the tokens of an aborted call are estimated. */
const ABORTED_BYTES_A_TOKEN = 3

/** What an aborted call is taken to have used, by the UTF-8 bytes sent and those of the text received until then. */
export function abortedUsage(sentBytes: number, receivedBytes: number): Usage {
  const tokens = (bytes: number): number => Math.ceil(bytes / ABORTED_BYTES_A_TOKEN)
  return { in: tokens(sentBytes), out: tokens(receivedBytes), cached: 0 }
}

/**
 * What a call is taken to have used whose provider did not tell: a token for each byte sent, and everything the call was
 * allowed to write, since thoughts and broken tool calls are paid for and not seen.
 */
export function unknownUsage(sentBytes: number, maxOutputTokens: number): Usage {
  return { in: sentBytes + CALL_OVERHEAD_TOKENS, out: maxOutputTokens, cached: 0 }
}

export function addUsage(one: Usage, other: Usage): Usage {
  return { in: one.in + other.in, out: one.out + other.out, cached: one.cached + other.cached }
}

/** What the calls of a turn are charged. An estimate never takes the sum above what was reserved. */
export function turnCost(known: Usage, estimated: Usage, reserved: MicroUsd, prices: Prices): MicroUsd {
  const estimate = costOf(addUsage(known, estimated), prices)
  return Math.max(costOf(known, prices), Math.min(estimate, reserved))
}

const FREE: Prices = { input: 0, cached: 0, output: 0 }

/**
 * What a model costs. One without a price is unknown, and may not be asked, unless it is known to cost nothing: the
 * routing service's `:free` models and `auto`, which asks for no others, and whatever a machine serves to itself.
 *
 * @param configured prices an operator has set
 */
export function priceOf({
  model,
  providerUrl,
  routerUrl,
  configured,
}: {
  model: string
  providerUrl: string
  routerUrl: string
  configured: Prices | null
}): Prices | 'unknown' {
  if (model === 'auto') return FREE
  if (configured !== null) return configured
  if (isLoopbackUrl(providerUrl)) return FREE
  return model.endsWith(':free') && isSameBase(providerUrl, routerUrl) ? FREE : 'unknown'
}

/** True when a URL leads to this machine itself. */
export function isLoopbackUrl(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
  if (host === 'localhost') return true
  return parseIpAddress(host)?.range() === 'loopback'
}

function isSameBase(one: string, other: string): boolean {
  const base = (text: string): string => {
    const { origin, pathname } = new URL(text)
    return origin + pathname.replace(/\/+$/, '')
  }
  return base(one) === base(other)
}

/** The window a burst is counted in. */
export const BURST_WINDOW_MS = 60_000

/** The first day whose callers must still be known: those of earlier ones can hold no token and have no burst. */
export function firstDayOfKeptCallers(now: Instant, sessionSeconds: number): Day {
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
export interface AdmissionState {
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
  sessionTurns: number
  dayTurns: number
  /** Admission of the turn that has to leave the window before another fits. */
  burstSince: Instant | null
  /** The session's last admission. */
  lastAdmittedAt: Instant | null
  /** The turn has no tools. */
  degraded: boolean
}

/** What an admitted turn was given. */
export interface GrantedTurn {
  turn: string
  reserved: MicroUsd
  degraded: boolean
}

/** The admission of a turn that was not refused (docs/decisions/0028-chat-turn-admission.md). */
export function admissionOf(state: AdmissionState, claim: TurnClaim, granted: GrantedTurn): Admission {
  const { messagesPerSession, messagesPerDay } = claim.limits
  return {
    admitted: true,
    ...granted,
    remaining: {
      session: Math.max(0, messagesPerSession - state.sessionTurns - 1),
      day: Math.max(0, messagesPerDay - state.dayTurns - 1),
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
export function refusalOf(state: AdmissionState, claim: TurnClaim, open: readonly OpenTurn[]): Admission {
  const waits = waitsOf(state, claim, open).filter(({ refuses }) => refuses)
  const [first] = waits
  if (!first) throw new Error('a turn that no check refused was not admitted')
  const counted = waits.filter(({ scope }) => scope !== 'session' || first.scope === 'session')
  const waitMs = Math.max(...counted.map((each) => each.waitMs))
  return { admitted: false, scope: first.scope, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }
}

/** In the order of the checks; milliseconds. */
function waitsOf(
  { refuses, missing, burstSince, lastAdmittedAt }: AdmissionState,
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

/** When so many turns have ended, at the latest, that they held enough together; never when all of them hold less. */
function freeAt(open: readonly OpenTurn[], needed: number, heldBy: (turn: OpenTurn) => number): number {
  let freed = 0
  for (const turn of open) {
    freed += heldBy(turn)
    if (freed >= needed) return turn.leaseUntil
  }
  return Infinity
}
