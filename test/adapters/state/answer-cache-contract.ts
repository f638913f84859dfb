import { describe, expect, test } from 'vitest'
import { DAY_MS } from '../../../src/domain/time.ts'
import { NOW } from './chat-claims.ts'
import type { StateOpener } from './open-chat.ts'

const ANSWER = { text: 'né "\\ \u0000 \u{1F642} — done', storedAt: NOW }

/** Contract of every state engine: cached answers. */
export function answerCacheContract(engine: string, open: StateOpener): void {
  describe(`the answer cache in ${engine}`, () => {
    test('the cache returns the later of two answers for 24 hours from its storage, any number of times', async () => {
      const { cache, another } = await open()
      await cache().put('k', ANSWER)
      expect(await another().cache().get('k', NOW)).toEqual(ANSWER)
      expect(await cache().get('k', NOW + DAY_MS - 1)).toEqual(ANSWER)
      expect(await cache().get('k', NOW + DAY_MS)).toBeNull()
      expect(await cache().get('other', NOW)).toBeNull()
      await cache().put('k', { text: 'anew', storedAt: NOW + 5 })
      expect(await cache().get('k', NOW + 5)).toEqual({ text: 'anew', storedAt: NOW + 5 })
    })

    test('an answer that a clock a day ahead stored is deleted with the next one', async () => {
      const { cache } = await open()
      await cache().put('k', { ...ANSWER, storedAt: NOW + DAY_MS })
      await cache().put('other', ANSWER)
      expect(await cache().get('k', NOW + DAY_MS)).toBeNull()
    })

    test('the cache keeps a limited number of answers and bytes, and deletes the oldest first', async () => {
      const { cache } = await open()
      const few = cache({ entries: 3, bytes: 1_000, textBytes: 100 })
      for (const index of [0, 1, 2, 3]) await few.put(`k${index}`, { text: 'x', storedAt: NOW + index })
      const kept = async (keys: number[]): Promise<boolean[]> => {
        const found = keys.map(async (index) => (await few.get(`k${index}`, NOW)) !== null)
        return Promise.all(found)
      }
      expect(await kept([0, 1, 2, 3])).toEqual([false, true, true, true])
      const small = cache({ entries: 100, bytes: 10, textBytes: 8 })
      await small.put('k4', { text: '12345678', storedAt: NOW + 4 })
      expect(await kept([1, 2, 3, 4])).toEqual([false, true, true, true])
      await small.put('k5', { text: '123456789', storedAt: NOW + 5 })
      expect(await kept([4, 5])).toEqual([true, false])
    })

    test.each([
      "UPDATE chat_answers SET text = CAST('forged' AS BLOB)",
      'UPDATE chat_answers SET stored_at = stored_at + 1',
      "UPDATE chat_answers SET digest = x'00'",
      "UPDATE chat_answers SET key = 'k' WHERE key = 'other'",
    ])('the cache ignores and reports a damaged row: %s', async (damage) => {
      const opened = await open()
      const cache = opened.cache()
      await cache.put('other', ANSWER)
      if (!damage.includes('other')) await cache.put('k', ANSWER)
      await opened.database.execute(damage)
      expect(await cache.get('k', NOW)).toBeNull()
      expect(opened.damaged).toEqual(['k'])
      await cache.put('k', ANSWER)
      expect(await cache.get('k', NOW)).toEqual(ANSWER)
    })
  })
}
