import { describe, expect, test } from 'vitest'
import { parseEndpoints } from '../../../src/domain/models/catalogue.ts'

const told = (endpoints: unknown): string => JSON.stringify({ data: { id: 'a/b', endpoints } })

describe("a model's endpoints", () => {
  test('are usable while one of them is, with the latency of the fastest', () => {
    const slow = { status: 0, latency_last_30m: { p50: 2400.6, p90: 9000 } }
    const fast = { status: 0, latency_last_30m: { p50: 640.4 } }
    const out = { status: -5, latency_last_30m: { p50: 10 } }
    expect(parseEndpoints(told([slow, out, fast]))).toEqual({ usable: true, latencyMs: 640 })
  })

  test.each([
    ['none', []],
    ['only those that are taken out', [{ status: -2 }, { status: -10 }]],
  ])('are not usable when there are %s', (_what, endpoints) => {
    expect(parseEndpoints(told(endpoints))).toEqual({ usable: false, latencyMs: null })
  })

  test('have no latency where none is told, and lose nothing by a field of another type', () => {
    expect(parseEndpoints(told([{ status: 0, latency_last_30m: null }]))).toEqual({
      usable: true,
      latencyMs: null,
    })
    expect(parseEndpoints(told([{ status: 'up', latency_last_30m: 'fast' }, 5]))).toEqual({
      usable: true,
      latencyMs: null,
    })
  })

  test.each(['', '<html>', '[]', '{"data":[]}', '{"data":{}}'])('are not told by %j', (body) => {
    expect(parseEndpoints(body)).toBeNull()
  })
})
