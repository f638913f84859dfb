import type { ChatLimits, TurnClaim, TurnExtension } from '../../../src/domain/agent/bounds.ts'
import type { State } from '../../../src/domain/ports.ts'
import { dayOf, startOfDay } from '../../../src/domain/time.ts'

/** Noon of a day. */
export const NOW = startOfDay('2026-03-01') + 43_200_000
export const DAY = dayOf(NOW)
export const NEXT_MIDNIGHT = startOfDay('2026-03-02')

/** Limits that restrict only the money. */
const WIDE: ChatLimits = {
  messagesPerSession: 1_000,
  messagesPerDay: 1_000,
  burstPerMinute: 1_000,
  minGapMs: 0,
  maxOpenTurns: 1_000,
  budgetPerDay: 1_000_000,
  budgetShare: 1_000_000,
}

export interface ClaimChanges extends Partial<Omit<TurnClaim, 'limits'>> {
  limits?: Partial<ChatLimits>
}

let callers = 0

/** Creates a claim of a new caller by default. */
export function claimOf({ limits, ...changes }: ClaimChanges = {}): TurnClaim {
  callers += 1
  const now = changes.now ?? NOW
  return {
    session: `session-${callers}`,
    sessionEndsAt: now + 1_800_000,
    address: `address-${callers}`,
    network: null,
    key: null,
    formerAddress: null,
    server: 'server',
    now,
    day: dayOf(now),
    firstCall: { withTools: 1_000, withoutTools: 300 },
    shortestCall: { withTools: 1_000, withoutTools: 300 },
    requestsPerAddress: null,
    leaseMs: 120_000,
    ...changes,
    limits: { ...WIDE, ...limits },
  }
}

/** Creates an extension of a turn that restricts only the money, like `claimOf`. */
export function extensionOf(
  turn: string,
  upTo: number,
  limits: Partial<ChatLimits> = {},
  requestsPerAddress: number | null = null,
): TurnExtension {
  return { turn, upTo, requestsPerAddress, limits: { ...WIDE, ...limits } }
}

/** Admits a turn that must be admitted; its id. */
export async function admitted(ledger: State['chat'], changes: ClaimChanges = {}): Promise<string> {
  const admission = await ledger.admit(claimOf(changes))
  if (!admission.admitted) throw new Error(`refused: ${admission.scope}`)
  return admission.turn
}

/** Settles a day at an amount. */
export async function spend(ledger: State['chat'], cost: number, now = NOW): Promise<void> {
  await ledger.settle(await admitted(ledger, { now }), cost, now)
}
