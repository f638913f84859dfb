import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { renderTurns } from '../../../src/server/page/render-turns.ts'

test('a render begins when the one before it is over and its pause too', async () => {
  const events: string[] = []
  let endPause = (): void => undefined
  const turns = renderTurns(
    () => 0,
    () => {
      events.push('pause')
      return new Promise<void>((resolve) => (endPause = resolve))
    },
  )
  const render = (name: string) => async (): Promise<string> => {
    events.push(name)
    return name
  }
  const first = turns.run('a', render('first'))
  const second = turns.run('a', render('second'))
  expect(await first).toBe('first')
  while (!events.includes('pause')) await nextTurn()
  expect(events).toEqual(['first', 'pause'])
  endPause()
  expect(await second).toBe('second')
  while (events.length < 4) await nextTurn()
  expect(events).toEqual(['first', 'pause', 'second', 'pause'])
  endPause()
})

test('a render that fails is told to its caller alone, and the next one runs', async () => {
  const turns = renderTurns(
    () => 0,
    async () => undefined,
  )
  const failing = turns.run('a', () => Promise.reject(new Error('broken')))
  const next = turns.run('a', async () => 'whole')
  await expect(failing).rejects.toThrow('broken')
  expect(await next).toBe('whole')
})

test('one address cannot take all places of the line, and all together not more than there are', () => {
  const turns = renderTurns(
    () => 0,
    async () => undefined,
  )
  const idle = (): Promise<void> => new Promise(() => undefined)
  const placesOf = (address: string): number => {
    for (let taken = 0; ; taken += 1) {
      try {
        void turns.run(address, idle)
      } catch (error) {
        expect(error).toMatchObject({ code: 'page_limit', members: { retryAfterSeconds: 4 } })
        return taken
      }
    }
  }
  expect(['a', 'b', 'c', 'd'].map(placesOf)).toEqual([12, 12, 8, 0])
})
