import type { MicroUsd } from './money.ts'
import { MAX_ROUNDS, TURN_RESULTS_MAX_BYTES } from './bounds.ts'
import { parseIpAddress } from '../ip-address.ts'
import type { Prices, Usage } from './ports.ts'

/** What a turn may cost, what it did cost, and what that makes of a day (docs/decisions/0028-how-a-turn-is-admitted.md). */

export type BudgetState = 'ok' | 'soft' | 'exhausted' | 'unknown'

/**
 * The state of a day's budget, as the status tells it. Soft from 80 % on.
 *
 * @param spending null when it cannot be read
 */
export function budgetState(
  spending: { settled: MicroUsd; reserved: MicroUsd } | null,
  budgetPerDay: MicroUsd,
): BudgetState {
  if (spending === null) return 'unknown'
  const { settled, reserved } = spending
  if (settled >= budgetPerDay) return 'exhausted'
  return (settled + reserved) * 5 >= budgetPerDay * 4 ? 'soft' : 'ok'
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
  const cost = (sum + PER_TOKENS - 1n) / PER_TOKENS
  return cost > BigInt(COST_MAX) ? COST_MAX : Number(cost)
}

/** Prices are per this many tokens. */
const PER_TOKENS = 1_000_000n

/**
 * What a provider may add of its own to one call: the frame of messages and tools. Everything else is bounded by its
 * bytes, since a token is at least one byte of the text.
 */
const CALL_OVERHEAD_TOKENS = 500

/**
 * The most a turn can cost, with tools and without.
 *
 * @param inputBytes UTF-8 bytes of everything the first call says: instructions, tools, messages, grounding at its largest
 * @param maxOutputTokens of one call
 */
export function worstCase({
  inputBytes,
  maxOutputTokens,
  prices,
}: {
  inputBytes: number
  maxOutputTokens: number
  prices: Prices
}): { withTools: MicroUsd; withoutTools: MicroUsd } {
  // A cache that is dearer than none would be a provider's oddity, but a worst case has to stand it.
  const input = Math.max(prices.input, prices.cached)
  const dearest = { ...prices, input, cached: input }
  const call = inputBytes + CALL_OVERHEAD_TOKENS
  // Each later call says again what the earlier ones wrote and what their tools gave.
  const earlierCalls = (MAX_ROUNDS * (MAX_ROUNDS - 1)) / 2
  const all = MAX_ROUNDS * call + earlierCalls * maxOutputTokens + (MAX_ROUNDS - 1) * TURN_RESULTS_MAX_BYTES
  return {
    withTools: costOf({ in: all, out: MAX_ROUNDS * maxOutputTokens, cached: 0 }, dearest),
    withoutTools: costOf({ in: call, out: maxOutputTokens, cached: 0 }, dearest),
  }
}

/** Calls that were sent and did not tell their usage, together. */
export interface UntoldCalls {
  count: number
  /** UTF-8 bytes of them. */
  sentBytes: number
  /** What they were allowed to write. */
  maxOutputTokens: number
}

/**
 * What the calls of a turn are charged. What a provider told counts as told. A call that told nothing is taken for a token
 * of each byte that was sent and for everything it was allowed to write: how much of that it did write, thoughts and broken
 * calls of tools included, nobody knows. With such an estimate the sum is no more than was reserved, which is above all
 * input there can have been.
 *
 * @param told usage of the calls that told it, together
 */
export function turnCost({
  told,
  untold,
  reserved,
  prices,
}: {
  told: Usage
  untold: UntoldCalls
  reserved: MicroUsd
  prices: Prices
}): MicroUsd {
  const read = told.in + untold.sentBytes + untold.count * CALL_OVERHEAD_TOKENS
  const estimate = costOf({ in: read, out: told.out + untold.maxOutputTokens, cached: told.cached }, prices)
  return Math.max(costOf(told, prices), Math.min(estimate, reserved))
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
  const address = parseIpAddress(host)
  if (address === null) return false
  return address.version === 6 ? address.value === 1n : address.value >> 24n === 127n
}

function isSameBase(one: string, other: string): boolean {
  const base = (text: string): string => {
    const { origin, pathname } = new URL(text)
    return origin + pathname.replace(/\/+$/, '')
  }
  return base(one) === base(other)
}
