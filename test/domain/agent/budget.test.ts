import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GROUNDING_MAX_BYTES } from '../../../src/domain/agent/bounds.ts'
import { INSTRUCTIONS, SHORTEST_REQUEST } from '../../../src/domain/agent/prompt.ts'
import { TOOL_DEFINITIONS } from '../../../src/domain/agent/tools.ts'
import {
  budgetState,
  callCost,
  costOf,
  firstCallCost,
  firstDayOfKeptCallers,
  priceOf,
  requestShareOf,
  shareOf,
  shortestCallCost,
  abortedUsage,
  addUsage,
  turnCost,
  unknownUsage,
} from '../../../src/domain/agent/budget.ts'
import { anyText } from '../../support/any-text.ts'

const PRICES = { input: 250_000, cached: 25_000, output: 2_000_000 }
const NONE = { in: 0, out: 0, cached: 0 }

describe("a day's budget", () => {
  // The shortest call with tools and the one without, and what is spent and reserved of the budget.
  test.each([
    [40, 30, 400, 399, 1_000, 'ok'],
    [40, 30, 400, 400, 1_000, 'soft'],
    [40, 30, 970, 5_000, 1_000, 'soft'],
    [40, 30, 971, 0, 1_000, 'exhausted'],
    [50, 40, 50, 0, 100, 'ok'],
    [50, 40, 0, 60, 100, 'ok'],
    // The shortest turn of all would be refused until a reservation ends.
    [50, 40, 0, 61, 100, 'soft'],
    [50, 40, 61, 0, 100, 'exhausted'],
    // A budget of nothing is exhausted, even for a model that costs nothing.
    [0, 0, 0, 0, 0, 'exhausted'],
  ])('a budget with calls of %i and %i, %i settled and %i reserved of %i is %s', (...row) => {
    const [withTools, withoutTools, settled, reserved, budget, state] = row
    expect(budgetState(null, budget, { withTools, withoutTools })).toBe('unknown')
    expect(budgetState({ settled, reserved }, budget, { withTools, withoutTools })).toBe(state)
  })

  test('shares are exact and rounded down, and an address always has at least one request', () => {
    expect([requestShareOf(50, 10_000), requestShareOf(50, 200_000)]).toEqual([1, 10])
    expect([shareOf(1_999, 200_000), shareOf(1_000_000_000_000, 999_999)]).toEqual([399, 999_999_000_000])
  })
})

describe('the cost of tokens', () => {
  test('the cost counts cached tokens as a part of the input, rounds up, and is a million dollars at most', () => {
    expect(costOf({ in: 1_000_000, out: 0, cached: 0 }, PRICES)).toBe(250_000)
    expect(costOf({ in: 1_000_000, out: 1_000_000, cached: 400_000 }, PRICES)).toBe(2_160_000)
    expect(costOf({ in: 1, out: 0, cached: 0 }, PRICES)).toBe(1)
    expect(costOf({ in: 1, out: 0, cached: 5 }, PRICES)).toBe(1)
    expect(costOf(NONE, PRICES)).toBe(0)
    const most = Number.MAX_SAFE_INTEGER
    const dear = { input: 1e12, cached: 1e12, output: 1e12 }
    expect(costOf({ in: most, out: most, cached: most }, dear)).toBe(1_000_000_000_000)
  })
})

describe('the highest cost of a call', () => {
  const bounds = { maxOutputTokens: 1_000, prices: PRICES }

  test('the highest cost of a call exceeds the cost of any text, and more so with tools', () => {
    fc.assert(
      fc.property(anyText({ maxLength: 2_000 }), fc.nat(1_000), (content, out) => {
        const request = { ...SHORTEST_REQUEST, messages: [{ role: 'user' as const, content }] }
        const { withTools, withoutTools } = firstCallCost(request, bounds)
        const bytes = Buffer.byteLength(INSTRUCTIONS + content) + GROUNDING_MAX_BYTES
        expect(costOf({ in: bytes, out, cached: 0 }, PRICES)).toBeLessThan(withoutTools)
        const tools = Buffer.byteLength(JSON.stringify(TOOL_DEFINITIONS))
        expect(costOf({ in: bytes + tools, out, cached: 0 }, PRICES)).toBeLessThan(withTools)
        expect(withoutTools).toBeGreaterThanOrEqual(shortestCallCost(bounds).withoutTools - 1)
      }),
    )
  })

  test('the highest cost covers a cache that costs more than plain input', () => {
    const dear = { input: 1_000_000, cached: 3_000_000, output: 0 }
    const cost = callCost({ inputTokens: 10, maxOutputTokens: 0, prices: dear })
    expect(cost).toBeGreaterThanOrEqual(costOf({ in: 10, out: 0, cached: 10 }, dear))
  })
})

describe('the cost of an interrupted turn', () => {
  const told = { in: 1_000, out: 100, cached: 0 }
  const unknown = unknownUsage(8_000, 1_000)
  const cost = (known = NONE, estimated = NONE, reserved = 100_000) =>
    turnCost(known, estimated, reserved, PRICES)

  test('a call of unknown usage counts its input and its whole output limit', () => {
    expect(cost(NONE, unknown)).toBe(costOf({ in: 8_500, out: 1_000, cached: 0 }, PRICES))
    const two = addUsage(unknown, unknown)
    expect(cost(told, two)).toBe(costOf({ in: 18_000, out: 2_100, cached: 0 }, PRICES))
  })

  test('an aborted call is estimated at 3 bytes of ASCII a token, sent and received, rounded up', () => {
    const aborted = abortedUsage('x'.repeat(8_000), '1234567890')
    expect(cost(NONE, aborted)).toBe(costOf({ in: 2_667, out: 4, cached: 0 }, PRICES))
  })

  test.each([
    ['cuneiform', '𒀭𒂗𒆤', 12],
    ['an accented letter among others', 'année!', 1 + 2 + 1],
  ])('an aborted call of %s counts a token for each byte outside ASCII', (_, text, tokens) => {
    expect(abortedUsage(text, text)).toEqual({ in: tokens, out: tokens, cached: 0 })
  })

  test('an estimate never exceeds the reservation', () => {
    expect(cost(NONE, unknown, 4_000)).toBe(4_000)
    expect(cost(told, unknown, 3_000)).toBe(3_000)
  })
})

describe('the price of a model', () => {
  const routerUrl = 'https://router.example/api/v1'
  const providerUrl = 'https://provider.example/v1'
  const FREE = { input: 0, cached: 0, output: 0 }

  test.each([
    ['is what an operator set', 'gpt', providerUrl, PRICES, PRICES],
    ['is nothing for the recommendation', 'auto', providerUrl, PRICES, FREE],
    ['is nothing for a free model of the service', 'a/b:free', `${routerUrl}/`, null, FREE],
    ['is unknown for a free model of anybody else', 'a/b:free', providerUrl, null, 'unknown'],
    ['is unknown for another path of its host', 'a/b:free', 'https://router.example/v1', null, 'unknown'],
    ['is unknown for what looks like a free one', 'a/b:free:x', routerUrl, null, 'unknown'],
    ['is nothing on this machine', 'llama', 'http://127.0.0.1:11434/v1', null, FREE],
    ['is nothing at its own name', 'llama', 'http://localhost:1', null, FREE],
    ['is nothing at its IPv6 address', 'llama', 'http://[::1]:8080/v1', null, FREE],
    ['is what was set on this machine too', 'llama', 'http://[::1]:1/v1', PRICES, PRICES],
  ] as const)('the price of a model %s', (_, model, url, configured, price) => {
    expect(priceOf({ routerUrl, model, providerUrl: url, configured })).toEqual(price)
  })
})

test.each([
  ['while a token of theirs may last', '2026-03-02T00:29:59.999Z', 1_800, '2026-03-01'],
  ['not a moment longer', '2026-03-02T00:30:00.000Z', 1_800, '2026-03-02'],
  ['for the minute of a burst at least', '2026-03-02T00:00:59.999Z', 1, '2026-03-01'],
  ['for a day at most', '2026-03-02T23:59:59.999Z', 86_400, '2026-03-01'],
])('the callers of a day are known %s', (_, now, sessionSeconds, day) => {
  expect(firstDayOfKeptCallers(Date.parse(now), sessionSeconds)).toBe(day)
})
