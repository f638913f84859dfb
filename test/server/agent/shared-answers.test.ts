import { setImmediate as nextTick } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { AgentEvent } from '../../../src/domain/agent/schema.ts'
import { SharedAnswers } from '../../../src/server/agent/shared-answers.ts'
import type { GenerateAnswer, SharedAnswer } from '../../../src/server/agent/shared-answers.ts'

const delta = (text: string): AgentEvent => ({ event: 'delta', data: { text } })
const DONE: AgentEvent = { event: 'done', data: { usage: { in: 0, out: 0, cached: 0 } } }

/** An answer of some words and an end, which counts its generated events. */
function answerOf(count: number) {
  const seen = { begun: 0, said: 0, over: 0, stopped: '' }
  const make: GenerateAnswer = async function* (signal) {
    seen.begun += 1
    signal.addEventListener('abort', () => (seen.stopped = String(signal.reason)))
    try {
      for (let index = 1; index <= count; index += 1) {
        signal.throwIfAborted()
        seen.said = index
        yield delta(`word${index}`)
      }
      yield DONE
    } finally {
      seen.over += 1
    }
  }
  return { seen, make }
}

const wordsTo = (count: number): string[] => Array.from({ length: count }, (_, index) => `word${index + 1}`)

const TIME_MS = 60_000
const reading = (): AbortSignal => new AbortController().signal

async function readAll(answer: SharedAnswer, signal = reading()): Promise<string[]> {
  const texts: string[] = []
  for await (const event of answer.read(signal)) if (event.event === 'delta') texts.push(event.data.text)
  return texts
}

/** A reader that reads and leaves on demand. */
function readerOf(answer: SharedAnswer) {
  const controller = new AbortController()
  const events = answer.read(controller.signal)
  const next = async (): Promise<string | null> => {
    const { value } = await events.next()
    return value?.event === 'delta' ? value.data.text : null
  }
  const leave = async (): Promise<void> => {
    controller.abort()
    await events.next().catch(() => undefined)
  }
  return { next, leave }
}

test('an answer with too little time left cannot be joined, and continues for its readers', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const shared = new SharedAnswers(TIME_MS)
  const { seen, make } = answerOf(3)
  const join = (): SharedAnswer => shared.join('same', true, make)
  const [leader, early] = [join(), join()]
  vi.advanceTimersByTime(TIME_MS / 2)
  const [late, later] = [join(), join()]
  expect([leader, early, late, later].map(({ isLeader }) => isLeader)).toEqual([true, false, true, false])
  const texts = await Promise.all([leader, early, late, later].map((each) => readAll(each)))
  expect(texts).toEqual(Array.from({ length: 4 }, () => wordsTo(3)))
  expect(seen.begun).toBe(2)
})

test('an answer is aborted at its timeout', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const { seen, make } = answerOf(3)
  const { next } = readerOf(new SharedAnswers(TIME_MS).join('same', true, make))
  await next()
  vi.advanceTimersByTime(TIME_MS)
  expect(seen.stopped).toBe('Stopped: time')
})

describe('an answer', () => {
  test('an answer is aborted when the last reader leaves, and starts again for the next', async () => {
    const shared = new SharedAnswers(TIME_MS)
    const { seen, make } = answerOf(10)
    const answer = shared.join('same', true, make)
    const [one, other] = [readerOf(answer), readerOf(shared.join('same', true, make))]
    await Promise.all([one.next(), other.next()])
    await one.leave()
    expect(seen.stopped).toBe('')
    await other.leave()
    expect(seen.stopped).toBe('Stopped: left')
    await expect(answer.finished).rejects.toThrow('left')
    expect(seen.over).toBe(1)
    expect(await readAll(shared.join('same', true, answerOf(3).make))).toEqual(wordsTo(3))
  })

  test('an answer is generated no further than its fastest reader has read', async () => {
    const { seen, make } = answerOf(1_000)
    const { next, leave } = readerOf(new SharedAnswers(TIME_MS).join('same', true, make))
    for (let read = 1; read <= 5; read += 1) await next()
    for (let turn = 0; turn < 20; turn += 1) await nextTick()
    expect(seen.said).toBeLessThanOrEqual(6)
    await leave()
  })

  test('an answer is finished once its last event was generated, even if all readers leave', async () => {
    let kept = false
    const answer = new SharedAnswers(TIME_MS).join('same', true, async function* (signal) {
      yield DONE
      await nextTick()
      kept = !signal.aborted
    })
    await readAll(answer)
    await answer.finished
    expect(kept).toBe(true)
  })

  test.each([false, true])(
    'an answer that is no longer shared continues for its first turn only, unless that has left (%s)',
    async (leaves) => {
      const shared = new SharedAnswers(TIME_MS)
      let stopped = false
      const make: GenerateAnswer = async function* (signal, withdraw) {
        yield delta('ours')
        withdraw()
        stopped = signal.aborted
        yield delta('mine')
        yield DONE
      }
      const [leading, ...others] = Array.from({ length: 3 }, () => shared.join('same', true, make))
      if (!leading) throw new Error('nobody leads')
      const leader = readerOf(leading)
      expect(await leader.next()).toBe('ours')
      const followers = others.map((each) => readAll(each))
      if (leaves) await leader.leave()
      expect(await Promise.all(followers)).toEqual([['ours'], ['ours']])
      expect(stopped).toBe(leaves)
      if (!leaves) expect([await leader.next(), await leader.next()]).toEqual(['mine', null])
      const again = others.map(() => shared.join('same', true, answerOf(2).make))
      expect(again.map(({ isLeader }) => isLeader)).toEqual([true, false])
      expect(await Promise.all(again.map((each) => readAll(each)))).toEqual([wordsTo(2), wordsTo(2)])
    },
  )

  test('a failing answer fails for all of its readers', async () => {
    const shared = new SharedAnswers(TIME_MS)
    const make: GenerateAnswer = async function* () {
      yield delta('half')
      throw new Error('broken')
    }
    const readers = [shared.join('same', true, make), shared.join('same', true, make)]
    const failures = readers.map((each) => expect(readAll(each)).rejects.toThrow('broken'))
    await Promise.all(failures)
  })

  test.each([
    ['without a key', null, true],
    ['that is not offered', 'same', false],
  ])('an answer is not shared: %s', async (_which, key, isOffered) => {
    const shared = new SharedAnswers(TIME_MS)
    const { seen, make } = answerOf(2)
    const answers = [shared.join(key, isOffered, make), shared.join(key, isOffered, make)]
    await Promise.all(answers.map((each) => readAll(each)))
    expect(seen.begun).toBe(2)
  })
})
