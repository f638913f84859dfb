import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { sharedAnswers } from '../../../src/server/agent/shared-answers.ts'
import type { AnswerReader } from '../../../src/server/agent/shared-answers.ts'

interface Word {
  text: string
  last: boolean
}

/** An answer of so many words that tells how far it has come. */
function answerOf(count: number) {
  const seen = { begun: 0, said: 0, over: 0, stopped: false }
  const begin = async function* (signal: AbortSignal): AsyncGenerator<Word> {
    seen.begun += 1
    signal.addEventListener('abort', () => (seen.stopped = true))
    try {
      for (let index = 1; index <= count; index += 1) {
        signal.throwIfAborted()
        seen.said = index
        yield { text: `word${index}`, last: index === count }
      }
    } finally {
      seen.over += 1
    }
  }
  return { seen, begin }
}

async function readAll(reader: AnswerReader<Word>): Promise<string[]> {
  const texts: string[] = []
  for (let part = await reader.next(); part; part = part.last ? null : await reader.next())
    texts.push(part.text)
  reader.leave()
  return texts
}

const OFFERED = { offered: true, joinableMs: 60_000 }

test('an answer of which too little time is left is joined by nobody, and goes on for its readers', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const shared = sharedAnswers<Word>()
  const { seen, begin } = answerOf(3)
  const [leader, early] = [shared.join('same', begin, OFFERED), shared.join('same', begin, OFFERED)]
  vi.advanceTimersByTime(OFFERED.joinableMs)
  const late = shared.join('same', begin, OFFERED)
  const later = shared.join('same', begin, OFFERED)
  expect([leader, early, late, later].map(({ leads }) => leads)).toEqual([true, false, true, false])
  const texts = await Promise.all([leader, early, late, later].map(readAll))
  expect(texts).toEqual(Array.from({ length: 4 }, () => ['word1', 'word2', 'word3']))
  expect(seen.begun).toBe(2)
})

describe('an answer', () => {
  test('that is asked for a hundred times at once is made once and read whole by each', async () => {
    const shared = sharedAnswers<Word>()
    const { seen, begin } = answerOf(20)
    const readers = Array.from({ length: 100 }, () => shared.join('same', begin, OFFERED))
    const texts = await Promise.all(readers.map(readAll))
    expect(new Set(texts.map((each) => each.join(' ')))).toHaveLength(1)
    expect([texts[99]?.length, seen.begun, seen.over]).toEqual([20, 1, 1])
    expect(readers.map(({ leads }) => leads).filter(Boolean)).toHaveLength(1)
  })

  test('goes on for the others when the one that began it leaves', async () => {
    const shared = sharedAnswers<Word>()
    const { seen, begin } = answerOf(10)
    const leader = shared.join('same', begin, OFFERED)
    expect((await leader.next())?.text).toBe('word1')
    const follower = shared.join('same', begin, OFFERED)
    leader.leave()
    expect(await leader.next()).toBeNull()
    expect(await readAll(follower)).toHaveLength(10)
    expect([seen.begun, seen.over]).toEqual([1, 1])
  })

  test('is stopped at once when the last reader leaves, and begun anew for the next', async () => {
    const shared = sharedAnswers<Word>()
    const { seen, begin } = answerOf(10)
    const one = shared.join('same', begin, OFFERED)
    const other = shared.join('same', begin, OFFERED)
    await one.next()
    one.leave()
    expect(seen.stopped).toBe(false)
    other.leave()
    expect(seen.stopped).toBe(true)
    await expect(one.made).rejects.toThrow()
    expect(seen.over).toBe(1)
    const next = answerOf(3)
    expect(await readAll(shared.join('same', next.begin, OFFERED))).toHaveLength(3)
  })

  test('is made no further than its fastest reader has read', async () => {
    const shared = sharedAnswers<Word>()
    const { seen, begin } = answerOf(1_000)
    const reader = shared.join('same', begin, OFFERED)
    for (let read = 1; read <= 5; read += 1) await reader.next()
    for (let turn = 0; turn < 20; turn += 1) await nextTurn()
    expect(seen.said).toBeLessThanOrEqual(6)
    reader.leave()
  })

  test('is made to its end once its last part was read, whoever leaves then', async () => {
    const shared = sharedAnswers<Word>()
    let kept = false
    const reader = shared.join(
      'same',
      async function* (signal) {
        yield { text: 'all', last: true }
        await nextTurn()
        kept = !signal.aborted
      },
      OFFERED,
    )
    expect(await readAll(reader)).toEqual(['all'])
    await reader.made
    expect(kept).toBe(true)
  })

  test.each([false, true])(
    'that is withdrawn goes on for the one that began it alone, unless that has left (%s)',
    async (leaves) => {
      const shared = sharedAnswers<Word>()
      let stopped = false
      const begin = async function* (signal: AbortSignal, withdraw: () => void): AsyncGenerator<Word> {
        yield { text: 'ours', last: false }
        withdraw()
        stopped = signal.aborted
        yield { text: 'mine', last: true }
      }
      const [leader, ...others] = Array.from({ length: 3 }, () => shared.join('same', begin, OFFERED))
      if (leaves) leader?.leave()
      expect(await Promise.all(others.map(readAll))).toEqual([['ours'], ['ours']])
      expect([leader, ...others].map((reader) => reader?.withdrawn)).toEqual([false, true, true])
      if (leader && !leaves) expect(await readAll(leader)).toEqual(['ours', 'mine'])
      expect(stopped).toBe(leaves)
      const next = answerOf(2)
      const again = others.map(() => shared.join('same', next.begin, OFFERED))
      expect(again.map(({ leads }) => leads)).toEqual([true, false])
      expect(await Promise.all(again.map(readAll))).toEqual([
        ['word1', 'word2'],
        ['word1', 'word2'],
      ])
    },
  )

  test('that fails fails for all of its readers', async () => {
    const shared = sharedAnswers<Word>()
    const begin = async function* (): AsyncGenerator<Word> {
      yield { text: 'half', last: false }
      throw new Error('broken')
    }
    const readers = [shared.join('same', begin, OFFERED), shared.join('same', begin, OFFERED)]
    for (const reader of readers) await expect(readAll(reader)).rejects.toThrow('broken')
  })

  test('without a key, or that is not offered, is nobody else’s', async () => {
    const shared = sharedAnswers<Word>()
    for (const [key, options] of [
      [null, OFFERED],
      ['same', { offered: false, joinableMs: 60_000 }],
    ] as const) {
      const { seen, begin } = answerOf(2)
      const readers = [shared.join(key, begin, options), shared.join(key, begin, options)]
      await Promise.all(readers.map(readAll))
      expect(seen.begun).toBe(2)
    }
  })
})
