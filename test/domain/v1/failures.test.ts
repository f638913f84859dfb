import { expect, test } from 'vitest'
import { errorOf, limitHeaders } from '../../../src/domain/v1/failures.ts'
import type { UpstreamFailure } from '../../../src/domain/v1/failures.ts'

const NOW = Date.UTC(2026, 7, 22)

const failure = (changes: Partial<UpstreamFailure>): UpstreamFailure => ({
  class: 'ambiguous',
  status: null,
  limit: null,
  remaining: null,
  resetAt: null,
  retryAt: null,
  ...changes,
})

test.each([
  [{}, 502, 'the routing service failed (no connection); try again later'],
  [{ status: 500 }, 502, 'the routing service failed (status 500); try again later'],
  [{ class: 'provider_down', status: 401 }, 502, 'the routing service failed (status 401); try again later'],
  [{ status: 401 }, 401, 'the routing service rejects your key; check it at the service'],
  [{ class: 'account_daily', status: 429 }, 429, 'your account has used its free requests of this day'],
] as const)('a failure with %j is reported as %i', (changes, status, message) => {
  expect(errorOf(failure(changes))).toMatchObject({ status, message })
})

test('the headers of a limit are those that the service reports, with the seconds until the next request', () => {
  const limited = failure({ class: 'model_rate_limit', limit: 20, remaining: 0, resetAt: NOW + 60_000 })
  const headers = {
    'x-ratelimit-limit': '20',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': String(NOW + 60_000),
  }
  expect(limitHeaders(limited, NOW)).toEqual(headers)
  const retried = { ...limited, retryAt: NOW + 1_001 }
  expect(limitHeaders(retried, NOW)).toEqual({ ...headers, 'retry-after': '2' })
  expect(limitHeaders({ ...retried, retryAt: NOW }, NOW)).toMatchObject({ 'retry-after': '1' })
  expect(limitHeaders({ ...retried, class: 'account_key' }, NOW)).toEqual(headers)
  expect(limitHeaders(failure({}), NOW)).toEqual({})
})
