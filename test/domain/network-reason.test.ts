import { expect, test } from 'vitest'
import { networkReason } from '../../src/domain/refusal.ts'
import { asPageProblem } from '../../src/adapters/articles/page-client.ts'
import { describeError } from '../../src/cli/exit-codes.ts'

const refusedBy = (address: string): Error =>
  Object.assign(new Error(`connect ECONNREFUSED ${address}:443`), { code: 'ECONNREFUSED' })

/** What Node throws for a host with ten addresses, none of which takes a connection. */
const tenAddresses = Object.assign(
  new AggregateError(Array.from({ length: 10 }, (_, index) => refusedBy(`192.0.2.${index}`))),
  { code: 'ECONNREFUSED' },
)
const wrapped = new TypeError('fetch failed', { cause: tenAddresses })

test('a failure at ten addresses of one host is described once', () => {
  expect(networkReason(tenAddresses)).toBe('connect ECONNREFUSED 192.0.2.0:443')
  expect(networkReason(wrapped)).toBe('connect ECONNREFUSED 192.0.2.0:443')
  expect(describeError(wrapped)).toBe('connect ECONNREFUSED 192.0.2.0:443')
  expect(asPageProblem(tenAddresses, 'https://site.example').message).toBe(
    'https://site.example: connect ECONNREFUSED 192.0.2.0:443',
  )
})

test('a failure without a message is described by its code', () => {
  expect(networkReason(Object.assign(new Error(''), { code: 'EPIPE' }))).toBe('EPIPE')
})
