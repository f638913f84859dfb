import { LibsqlError } from '@libsql/client'
import { expect, test } from 'vitest'
import { retryWithFewerRows } from '../../../src/adapters/feed/items.ts'

const tooLarge = new LibsqlError('too large', 'RESPONSE_TOO_LARGE')

test('a step whose response is too large is retried with a quarter of the rows, down to one row', async () => {
  const tried: number[] = []
  const step = async (limit: number): Promise<string> => {
    tried.push(limit)
    if (limit > 1) throw tooLarge
    return 'read'
  }
  expect(await retryWithFewerRows(100, step)).toEqual({ result: 'read', limit: 1 })
  expect(tried).toEqual([100, 25, 7, 2, 1])
  await expect(retryWithFewerRows(1, () => Promise.reject(tooLarge))).rejects.toBe(tooLarge)
})

test('another failure of a step is not retried', async () => {
  let tries = 0
  const failing = retryWithFewerRows(100, async () => {
    tries += 1
    throw new Error('broken')
  })
  await expect(failing).rejects.toThrow('broken')
  expect(tries).toBe(1)
})
