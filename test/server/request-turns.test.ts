import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { requestTurns } from '../../src/server/request-turns.ts'

/** Requests that are handled until the test ends their turn; `started` lists them in order. */
function openTurns() {
  const turns = requestTurns()
  const started: string[] = []
  const ends: (() => void)[] = []
  return {
    started,
    ends,
    take: (address: string, name = address) =>
      turns.take(address, (endTurn) => {
        started.push(name)
        ends.push(endTurn)
      }),
  }
}

test('four requests of a network start in a turn of the event loop, and those of others meanwhile', async () => {
  const { started, take } = openTurns()
  for (let request = 0; request < 6; request += 1) take('192.0.2.1', `a${request}`)
  for (let request = 0; request < 6; request += 1) take(`2001:db8:1:${request}::/64`, `b${request}`)
  expect(started).toEqual(['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'b2', 'b3'])
  await nextTurn()
  expect(started.slice(8)).toEqual(['a4', 'a5', 'b4', 'b5'])
})

test('a network has sixteen requests handled at once, and the next one starts when a turn ends', async () => {
  const { started, ends, take } = openTurns()
  for (let request = 0; request < 18; request += 1) take('192.0.2.1', String(request))
  for (let turn = 0; turn < 6; turn += 1) await nextTurn()
  expect(started).toHaveLength(16)
  ends[3]?.()
  ends[3]?.()
  await nextTurn()
  expect(started.slice(16)).toEqual(['16'])
})
