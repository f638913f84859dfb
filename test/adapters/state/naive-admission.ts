import type { TurnClaim } from '../../../src/domain/agent/bounds.ts'

/** A turn as a list remembers it. */
export interface NaiveTurn {
  claim: TurnClaim
  reserved: number
  cost: number | null
}

export type NaiveAnswer = { reserved: number; degraded: boolean } | { scope: string }

/** What turns hold and have spent. */
function takenBy(turns: readonly NaiveTurn[]): number {
  return turns.reduce((sum, { cost, reserved }) => sum + (cost ?? reserved), 0)
}

/** What is left of the budget, and of the shares of an address and its network. */
function roomOf(turns: readonly NaiveTurn[], { limits, day, address, network }: TurnClaim): number[] {
  const today = turns.filter((turn) => turn.claim.day === day)
  const share = Math.floor((limits.budgetPerDay * limits.budgetShare) / 1_000_000)
  return [
    limits.budgetPerDay - takenBy(today),
    share >= limits.budgetPerDay
      ? Infinity
      : share - takenBy(today.filter((turn) => turn.claim.address === address)),
    network === null || 2 * share >= limits.budgetPerDay
      ? Infinity
      : 2 * share - takenBy(today.filter((turn) => turn.claim.network === network)),
  ]
}

/** Admission by the plain rules over a plain list, without any thought of speed. */
export function naiveAdmission(turns: readonly NaiveTurn[], claim: TurnClaim): NaiveAnswer {
  const { limits, now, firstCall, shortestCall } = claim
  const count = (fits: (turn: TurnClaim, cost: number | null) => boolean): number =>
    turns.filter((turn) => fits(turn.claim, turn.cost)).length
  const today = turns.filter((turn) => turn.claim.day === claim.day)
  const settled = today.reduce((sum, { cost }) => sum + (cost ?? 0), 0)
  const taken = takenBy(today)
  const { budgetPerDay } = limits
  if (settled >= budgetPerDay || settled + shortestCall.withoutTools > budgetPerDay)
    return { scope: 'global-budget' }
  const addresses = new Set([claim.address, claim.formerAddress])
  const inMinute = count((turn) => addresses.has(turn.address) && turn.now > now - 60_000)
  const inDay = count((turn) => turn.address === claim.address && turn.day === claim.day)
  if (inMinute >= limits.burstPerMinute || inDay >= limits.messagesPerDay) return { scope: 'ip' }
  const [ofDay = 0, ...shares] = roomOf(turns, claim)
  if (firstCall.withoutTools > Math.min(...shares)) return { scope: 'ip' }
  const inSession = count((turn) => turn.session === claim.session)
  const tooSoon = count((turn) => turn.session === claim.session && turn.now > now - limits.minGapMs)
  if (inSession >= limits.messagesPerSession || tooSoon > 0) return { scope: 'session' }
  const open = count((turn, cost) => turn.server === claim.server && cost === null)
  if (open >= limits.maxOpenTurns) return { scope: 'global-budget' }
  const soft = taken >= 0.8 * budgetPerDay || settled + shortestCall.withTools > budgetPerDay
  const degraded = soft || firstCall.withTools > Math.min(ofDay, ...shares)
  const reserved = degraded ? firstCall.withoutTools : firstCall.withTools
  return reserved <= ofDay ? { reserved, degraded } : { scope: 'global-budget' }
}

/** Whether a turn may hold so much, by the same rules. */
export function naiveExtension(turns: readonly NaiveTurn[], turn: NaiveTurn, upTo: number): boolean {
  return (
    turn.cost === null &&
    Math.max(0, upTo - turn.reserved) <= Math.max(0, Math.min(...roomOf(turns, turn.claim)))
  )
}
