import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_ROUNDS, TURN_RESULTS_MAX_BYTES } from '../../../src/domain/agent/bounds.ts'
import {
  budgetState,
  costOf,
  isLoopbackUrl,
  priceOf,
  turnCost,
  worstCase,
} from '../../../src/domain/agent/budget.ts'

const PRICES = { input: 250_000, cached: 25_000, output: 2_000_000 }
const NONE = { in: 0, out: 0, cached: 0 }

describe("a day's budget", () => {
  test.each([
    [{ settled: 0, reserved: 0 }, 'ok'],
    [{ settled: 400, reserved: 399 }, 'ok'],
    [{ settled: 400, reserved: 400 }, 'soft'],
    [{ settled: 0, reserved: 1_000 }, 'soft'],
    [{ settled: 999, reserved: 5_000 }, 'soft'],
    [{ settled: 1_000, reserved: 0 }, 'exhausted'],
    [{ settled: 1_500, reserved: 0 }, 'exhausted'],
    [null, 'unknown'],
  ] as const)('with %o of 1000 is %s', (spending, state) => {
    expect(budgetState(spending, 1_000)).toBe(state)
  })

  test('of nothing is exhausted', () => {
    expect(budgetState({ settled: 0, reserved: 0 }, 0)).toBe('exhausted')
  })
})

describe('the cost of tokens', () => {
  test('counts cached ones as a part of the input, and rounds up', () => {
    expect(costOf({ in: 1_000_000, out: 0, cached: 0 }, PRICES)).toBe(250_000)
    expect(costOf({ in: 1_000_000, out: 1_000_000, cached: 400_000 }, PRICES)).toBe(2_160_000)
    expect(costOf({ in: 1, out: 0, cached: 0 }, PRICES)).toBe(1)
    expect(costOf({ in: 1, out: 0, cached: 5 }, PRICES)).toBe(1)
    expect(costOf(NONE, PRICES)).toBe(0)
  })

  test('is a whole number however much was used, and never beyond a million dollars', () => {
    const tokens = fc.nat(Number.MAX_SAFE_INTEGER)
    const price = fc.nat(1_000_000_000_000)
    fc.assert(
      fc.property(tokens, tokens, tokens, price, price, price, (input, out, cached, ...given) => {
        const [inputPrice, cachedPrice, output] = given
        const cost = costOf({ in: input, out, cached }, { input: inputPrice, cached: cachedPrice, output })
        expect(Number.isSafeInteger(cost)).toBe(true)
        expect(cost).toBeGreaterThanOrEqual(0)
        expect(cost).toBeLessThanOrEqual(1_000_000_000_000)
      }),
    )
  })
})

describe('the worst case of a turn', () => {
  test('is above whatever its calls can cost together', () => {
    const call = fc.record({ results: fc.nat(TURN_RESULTS_MAX_BYTES), out: fc.nat(1_000) })
    fc.assert(
      fc.property(
        fc.nat(60_000),
        fc.array(call, { minLength: 1, maxLength: MAX_ROUNDS }),
        (inputBytes, calls) => {
          const worst = worstCase({ inputBytes, maxOutputTokens: 1_000, prices: PRICES })
          let context = inputBytes
          let resultsLeft = TURN_RESULTS_MAX_BYTES
          const usage = { ...NONE }
          for (const { results, out } of calls) {
            usage.in += context
            usage.out += out
            const given = Math.min(results, resultsLeft)
            resultsLeft -= given
            context += out + given
          }
          expect(costOf(usage, PRICES)).toBeLessThanOrEqual(worst.withTools)
          const [first] = calls
          const single = costOf({ in: inputBytes, out: first?.out ?? 0, cached: 0 }, PRICES)
          expect(single).toBeLessThanOrEqual(worst.withoutTools)
          expect(worst.withoutTools).toBeLessThan(worst.withTools)
        },
      ),
    )
  })

  test('costs nothing where nothing is charged', () => {
    const prices = { input: 0, cached: 0, output: 0 }
    expect(worstCase({ inputBytes: 50_000, maxOutputTokens: 1_000, prices })).toEqual({
      withTools: 0,
      withoutTools: 0,
    })
  })
})

describe('the cost of a turn that was cut', () => {
  const told = { in: 1_000, out: 100, cached: 0 }
  const none = { count: 0, sentBytes: 0, maxOutputTokens: 0 }
  const one = { count: 1, sentBytes: 8_000, maxOutputTokens: 1_000 }
  const cost = (given: Partial<Parameters<typeof turnCost>[0]>) =>
    turnCost({ told: NONE, untold: none, reserved: 100_000, prices: PRICES, ...given })

  test('is what was told where everything was, below the reservation or above it', () => {
    expect(cost({})).toBe(0)
    expect(cost({ told })).toBe(costOf(told, PRICES))
    expect(cost({ told, reserved: 10 })).toBe(costOf(told, PRICES))
    expect(cost({ told, untold: one, reserved: 10 })).toBe(costOf(told, PRICES))
  })

  test('counts the input of an untold call and all it was allowed to write', () => {
    expect(cost({ untold: one })).toBe(costOf({ in: 8_500, out: 1_000, cached: 0 }, PRICES))
    expect(cost({ told, untold: one })).toBe(costOf({ in: 9_500, out: 1_100, cached: 0 }, PRICES))
    const three = { count: 3, sentBytes: 24_000, maxOutputTokens: 3_000 }
    expect(cost({ untold: three })).toBe(costOf({ in: 25_500, out: 3_000, cached: 0 }, PRICES))
  })

  test('is by estimate never more than was reserved', () => {
    expect(cost({ untold: one, reserved: 4_000 })).toBe(4_000)
    expect(cost({ told, untold: one, reserved: 3_000 })).toBe(3_000)
  })
})

describe('the price of a model', () => {
  const routerUrl = 'https://router.example/api/v1'
  const providerUrl = 'https://provider.example/v1'
  const FREE = { input: 0, cached: 0, output: 0 }

  test.each([
    ['is what an operator set', { model: 'gpt', providerUrl, configured: PRICES }, PRICES],
    ['is unknown without that', { model: 'gpt', providerUrl, configured: null }, 'unknown'],
    ['is nothing for the recommendation', { model: 'auto', providerUrl, configured: PRICES }, FREE],
    [
      'is nothing for a free model of the service',
      { model: 'a/b:free', providerUrl: `${routerUrl}/`, configured: null },
      FREE,
    ],
    [
      'is unknown for a free model of anybody else',
      { model: 'a/b:free', providerUrl, configured: null },
      'unknown',
    ],
    [
      'is unknown for another path of that host',
      { model: 'a/b:free', providerUrl: 'https://router.example/v1', configured: null },
      'unknown',
    ],
    [
      'is unknown for what looks like a free one',
      { model: 'a/b:free:x', providerUrl: routerUrl, configured: null },
      'unknown',
    ],
    [
      'is nothing on this machine',
      { model: 'llama', providerUrl: 'http://127.0.0.1:11434/v1', configured: null },
      FREE,
    ],
    [
      'is what was set on this machine too',
      { model: 'llama', providerUrl: 'http://[::1]:1/v1', configured: PRICES },
      PRICES,
    ],
  ] as const)('%s', (_, facts, price) => {
    expect(priceOf({ routerUrl, ...facts })).toEqual(price)
  })

  test.each([
    ['http://localhost:1', true],
    ['http://127.9.9.9', true],
    ['http://[::1]:8080/v1', true],
    ['http://128.0.0.1', false],
    ['http://localhost.example', false],
    ['http://[::2]', false],
    ['http://10.0.0.1', false],
  ])('knows this machine: %s is %s', (url, local) => {
    expect(isLoopbackUrl(url)).toBe(local)
  })
})
