import type { TurnClaim } from '../../../src/domain/ports.ts'

/** A turn as a list remembers it. */
export interface NaiveTurn {
  claim: TurnClaim
  reserved: number
  cost: number | null
}

export type NaiveAnswer = { reserved: number; degraded: boolean } | { scope: string }

/** Admission by the plain rules over a plain list, without any thought of speed. */
export function naiveAdmission(turns: readonly NaiveTurn[], claim: TurnClaim): NaiveAnswer {
  const { limits, now, worstCase } = claim
  const count = (fits: (turn: TurnClaim, cost: number | null) => boolean): number =>
    turns.filter((turn) => fits(turn.claim, turn.cost)).length
  const today = turns.filter((turn) => turn.claim.day === claim.day)
  const settled = today.reduce((sum, { cost }) => sum + (cost ?? 0), 0)
  const taken = today.reduce((sum, { cost, reserved }) => sum + (cost ?? reserved), 0)
  if (settled >= limits.budgetPerDay) return { scope: 'global-budget' }
  const addresses = new Set([claim.address, claim.formerAddress])
  const inMinute = count((turn) => addresses.has(turn.address) && turn.now > now - 60_000)
  const inDay = count((turn) => turn.address === claim.address && turn.day === claim.day)
  if (inMinute >= limits.burstPerMinute || inDay >= limits.messagesPerDay) return { scope: 'ip' }
  const inSession = count((turn) => turn.session === claim.session)
  const tooSoon = count((turn) => turn.session === claim.session && turn.now > now - limits.minGapMs)
  if (inSession >= limits.messagesPerSession || tooSoon > 0) return { scope: 'session' }
  const open = count((turn, cost) => turn.server === claim.server && cost === null)
  if (open >= limits.maxOpenTurns) return { scope: 'global-budget' }
  const fits = (worst: number): boolean => taken + worst <= limits.budgetPerDay
  const degraded = taken >= 0.8 * limits.budgetPerDay
  const reserved = degraded ? worstCase.withoutTools : worstCase.withTools
  return fits(reserved) ? { reserved, degraded } : { scope: 'global-budget' }
}
