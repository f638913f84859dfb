import { parseIpAddress } from '../address.ts'
import { dayOf } from '../time.ts'
import type { Day, Instant } from '../time.ts'
import type { MicroUsd, CallCost } from './bounds.ts'
import type { ChatRequest } from './chat-request.ts'
import type { Prices, Usage } from './model-call.ts'
import { SHORTEST_REQUEST, TOOLS_BYTES, largestInputBytes } from './prompt.ts'

/** The cost of chat turns and the daily budget (docs/decisions/0028-chat-turn-admission.md). */

export type BudgetState = 'ok' | 'soft' | 'exhausted' | 'unknown'

/**
 * The state of a day's budget, as the status endpoint reports it; admissions use the same thresholds. A null `spending`
 * is unreadable.
 */
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
  // Reservations may block every turn before they reach 80 %.
  return isLow || taken + withoutTools > budgetPerDay ? 'soft' : 'ok'
}

/** @param share in millionths */
export function shareOf(amount: number, share: number): number {
  // The product may exceed the range of exact integers.
  return Number((BigInt(amount) * BigInt(share)) / MILLION)
}

/** Daily requests that one address may send to a routing service, at least 1; `share` in millionths. */
export function requestShareOf(requestsPerDay: number, share: number): number {
  return Math.max(1, shareOf(requestsPerDay, share))
}

/** A million dollars: a higher cost is a provider's error. */
const COST_MAX: MicroUsd = 1_000_000_000_000

/** Cost of tokens in micro-dollars, rounded up. */
export function costOf(usage: Usage, prices: Prices): MicroUsd {
  const cached = Math.min(usage.cached, usage.in)
  // The product may exceed the range of exact integers.
  const sum =
    BigInt(usage.in - cached) * BigInt(prices.input) +
    BigInt(cached) * BigInt(prices.cached) +
    BigInt(usage.out) * BigInt(prices.output)
  const cost = (sum + MILLION - 1n) / MILLION
  return cost > BigInt(COST_MAX) ? COST_MAX : Number(cost)
}

/** Prices are per million tokens, shares in millionths. */
const MILLION = 1_000_000n

/**
 * Tokens a provider may add to one call for the framing of messages and tools. Everything else is bounded by its bytes.
 */
const CALL_OVERHEAD_TOKENS = 500

/** Highest cost of one model call. Each token has at least one byte of UTF-8, so that bytes bound the input tokens. */
export function callCost({ inputTokens, maxOutputTokens, prices }: CallBounds): MicroUsd {
  // A provider may charge more for cached input than for plain input.
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
 * Highest cost of the first model call of a turn, with its largest grounding. The cost with tools includes a last call
 * without tools and results, so that a turn can end when no further reservation is granted.
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

/** ASCII bytes per token in the estimate for an aborted call. */
const ASCII_BYTES_A_TOKEN = 3

/**
 * Estimates the usage of an aborted call by the text sent and received. A tokenizer can make a token of each byte of a
 * character that it does not know, such as cuneiform.
 */
export function abortedUsage(sent: string, received: string): Usage {
  const tokens = (text: string): number => {
    const others = Buffer.byteLength(text.replaceAll(ASCII, ''))
    return Math.ceil((Buffer.byteLength(text) - others) / ASCII_BYTES_A_TOKEN) + others
  }
  return { in: tokens(sent), out: tokens(received), cached: 0 }
}

const ASCII = /\p{ASCII}+/gu

/**
 * Upper estimate of a call without reported usage: one token per byte sent, and the whole output limit, because
 * reasoning and broken tool calls are charged but not visible.
 */
export function unknownUsage(sentBytes: number, maxOutputTokens: number): Usage {
  return { in: sentBytes + CALL_OVERHEAD_TOKENS, out: maxOutputTokens, cached: 0 }
}

export function addUsage(one: Usage, other: Usage): Usage {
  return { in: one.in + other.in, out: one.out + other.out, cached: one.cached + other.cached }
}

/** The charge for the calls of a turn. An estimate never raises the sum above the reservation. */
export function turnCost(known: Usage, estimated: Usage, reserved: MicroUsd, prices: Prices): MicroUsd {
  const estimate = costOf(addUsage(known, estimated), prices)
  return Math.max(costOf(known, prices), Math.min(estimate, reserved))
}

const FREE: Prices = { input: 0, cached: 0, output: 0 }

/**
 * The prices of a model. A model without a price is `unknown` and must not be called. The routing service's `:free`
 * models, its `auto` route, which selects only those, and models on this machine cost nothing.
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

/** True for a URL on this machine. */
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

/**
 * The first day whose caller hashes are still needed: callers of earlier days have neither a valid token nor a burst.
 */
export function firstDayOfKeptCallers(now: Instant, sessionSeconds: number): Day {
  return dayOf(now - Math.max(sessionSeconds * 1000, BURST_WINDOW_MS))
}
