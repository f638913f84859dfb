import { expect, test } from 'vitest'
import { V1Refusal } from '../../../src/server/v1/contracts.ts'
import { V1Limits } from '../../../src/server/v1/limits.ts'

const refusalOf = (act: () => unknown): V1Refusal | null => {
  try {
    act()
    return null
  } catch (error) {
    if (error instanceof V1Refusal) return error
    throw error
  }
}

const codeOf = (act: () => unknown): string | null => refusalOf(act)?.error.code ?? null

test('an address and an IPv6 /48 have 25 open requests, and all together 100', () => {
  const limits = new V1Limits(() => 1)
  const enter = (address: string): (() => void) => limits.enter(address)
  const free = Array.from({ length: 25 }, () => enter('192.0.2.1'))
  expect(codeOf(() => enter('192.0.2.1'))).toBe('too_many_streams')
  for (let index = 0; index < 25; index += 1) enter(`2001:db8:1:${index}::/64`)
  expect(codeOf(() => enter('2001:db8:1:99::/64'))).toBe('too_many_streams')
  for (let index = 0; index < 50; index += 1) enter(`198.51.100.${index}`)
  expect(codeOf(() => enter('203.0.113.1'))).toBe('busy')
  free[0]?.()
  free[0]?.()
  expect(codeOf(() => enter('203.0.113.1'))).toBeNull()
  expect(codeOf(() => enter('203.0.113.2'))).toBe('busy')
})

test('an IPv6 /32 has 50 open requests', () => {
  const limits = new V1Limits(() => 1)
  const enter = (address: string): (() => void) => limits.enter(address)
  const address = (index: number): string => `2001:db8:${index}:1::/64`
  const free = Array.from({ length: 50 }, (_, index) => enter(address(index)))
  expect(codeOf(() => enter(address(50)))).toBe('too_many_streams')
  expect(codeOf(() => enter('2001:db9:1:1::/64'))).toBeNull()
  free[0]?.()
  expect(codeOf(() => enter(address(50)))).toBeNull()
})

test.each([
  ['ten rejected keys within a minute close an address', 10, () => '192.0.2.1', '192.0.2.2'],
  [
    'twenty rejected keys within a minute close an IPv6 /48',
    20,
    (index: number) => `2001:db8:1:${index.toString(16)}::/64`,
    '2001:db8:2:1::/64',
  ],
])('%s for the next minute', (_what, count, address, other) => {
  let now = 1_000_000
  const limits = new V1Limits(() => now)
  for (let index = 1; index < count; index += 1) limits.countRejectedKey(address(index))
  expect(codeOf(() => limits.countRequest(address(200)))).toBeNull()
  now += 59_000
  limits.countRejectedKey(address(100))
  const closed = { error: { code: 'too_many_rejected_keys' }, headers: { 'retry-after': '60' } }
  expect(refusalOf(() => limits.countRequest(address(200)))).toMatchObject(closed)
  now += 59_000
  expect(codeOf(() => limits.countRequest(address(200)))).toBe('too_many_rejected_keys')
  expect(codeOf(() => limits.countRequest(other))).toBeNull()
  now += 1_001
  expect(codeOf(() => limits.countRequest(address(200)))).toBeNull()
})

test('bodies of more than 64 KiB have 16 MiB of an address, 32 MiB of an IPv6 /48, and 128 MiB in all', () => {
  const limits = new V1Limits(() => 1)
  const part = 4 * 1024 * 1024
  /** The beginning of a body is not counted. */
  const opened = (address: string): ReturnType<V1Limits['holdBody']> => {
    const body = limits.holdBody(address)
    expect(body.hold(64 * 1024)).toBeNull()
    return body
  }
  const heldOf = (address: string): number => {
    const body = opened(address)
    for (let parts = 0; ; parts += 1) if (body.hold(part) !== null) return parts
  }
  const first = opened('192.0.2.1')
  expect([1, 2, 3, 4].map(() => first.hold(part))).toEqual([null, null, null, null])
  expect(first.hold(1)).toMatchObject({
    error: { code: 'busy', status: 429 },
    headers: { 'retry-after': '1' },
  })
  expect([1, 2, 3].map((at) => heldOf(`2001:db8:1:${at}::/64`))).toEqual([4, 4, 0])
  expect([1, 2, 3, 4, 5, 6].map((at) => heldOf(`198.51.100.${at}`))).toEqual([4, 4, 4, 4, 4, 0])
  first.end()
  first.end()
  expect(heldOf('203.0.113.1')).toBe(4)
  expect(opened('203.0.113.2').hold(1)).not.toBeNull()
})
