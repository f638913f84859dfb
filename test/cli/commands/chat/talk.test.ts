import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Talk } from '../../../../src/cli/commands/chat/talk.ts'
import type { TalkEvent } from '../../../../src/cli/commands/chat/talk.ts'
import type { ServedEvent } from '../../../../src/domain/agent/schema.ts'
import type { PublicHost } from '../../../../src/domain/ports.ts'
import { Refusal } from '../../../../src/domain/refusal.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
})

const never = new AbortController().signal

const QUOTAS = { messagesPerSession: 20, messagesPerDay: 60 }

const delta = (text: string): ServedEvent => ({ event: 'delta', data: { text }, raw: { text } })

const limited = (scope: string, retryAfterSeconds: number): Refusal =>
  new Refusal('rate_limited', undefined, { members: { status: 429, scope, retryAfterSeconds } })

/** A talk with a server that answers each request as the next entry says, the last one again and again. */
function talkWith(...replies: (Refusal | readonly ServedEvent[])[]): { talk: Talk; requests: () => number } {
  let asked = 0
  const api: PublicHost['chat'] = {
    base: 'http://h',
    config: () => Promise.reject(new Error('not asked here')),
    status: () => Promise.reject(new Error('not asked here')),
    session: () => Promise.resolve({ sessionToken: 'v1.token', quotas: QUOTAS }),
    async *ask() {
      const reply = replies[Math.min(asked, replies.length - 1)] ?? []
      asked += 1
      if (reply instanceof Refusal) throw reply
      yield* reply
    },
  }
  const settings = { preferredLanguage: 'auto', tone: 'neutral' } as const
  return { talk: new Talk(api, { itemKey: null, sort: 'trending', settings }), requests: () => asked }
}

async function eventsOf(events: AsyncIterable<TalkEvent>): Promise<string> {
  let text = ''
  for await (const each of events) if (each.kind === 'text') text += each.text
  return text
}

describe('a talk', () => {
  test.each([
    ['session', 2],
    ['session', 3],
    ['ip', 1],
    ['global-budget', 3],
  ])(
    'waits out a refusal of scope %s for %i seconds, and then asks the same again',
    async (scope, seconds) => {
      const { talk, requests: asked } = talkWith(limited(scope, seconds), [delta('Hello')])
      const answer = eventsOf(talk.ask('What is new?', never))
      await vi.advanceTimersByTimeAsync(seconds * 1000 - 1)
      expect(asked()).toBe(1)
      await vi.advanceTimersByTimeAsync(1)
      expect([await answer, asked()]).toEqual(['Hello', 2])
    },
  )

  test('tells a refusal that lasts longer at once', async () => {
    const { talk, requests: asked } = talkWith(limited('session', 4), [delta('Hello')])
    await expect(eventsOf(talk.ask('What is new?', never))).rejects.toMatchObject({ code: 'rate_limited' })
    expect(asked()).toBe(1)
  })

  test('tells a refusal that is still there after two waits', async () => {
    const { talk, requests: asked } = talkWith(limited('ip', 1))
    const answer = eventsOf(talk.ask('What is new?', never))
    const refused = expect(answer).rejects.toMatchObject({ code: 'rate_limited' })
    await vi.advanceTimersByTimeAsync(10_000)
    await refused
    expect(asked()).toBe(3)
  })

  test('can be stopped while it waits', async () => {
    const stopping = new AbortController()
    const { talk, requests: asked } = talkWith(limited('session', 3), [delta('Hello')])
    const answer = eventsOf(talk.ask('What is new?', stopping.signal))
    const stopped = expect(answer).rejects.toThrow('stopped')
    await vi.advanceTimersByTimeAsync(1_000)
    stopping.abort(new Error('stopped'))
    await stopped
    expect(asked()).toBe(1)
  })

  test('keeps the answer that is asked for again until the first text of the new one', async () => {
    const { talk } = talkWith([delta('old')], limited('session', 60), [], [delta('n'), delta('ew')])
    await eventsOf(talk.ask('What is new?', never))
    await expect(eventsOf(talk.ask('What is new?', never, true))).rejects.toMatchObject({
      code: 'rate_limited',
    })
    expect(talk.turns.map(({ answer }) => answer)).toEqual(['old'])
    await eventsOf(talk.ask('What is new?', never, true))
    expect(talk.turns.map(({ answer }) => answer)).toEqual(['old'])
    await eventsOf(talk.ask('What is new?', never, true))
    expect(talk.turns.map(({ answer }) => answer)).toEqual(['new'])
  })
})
