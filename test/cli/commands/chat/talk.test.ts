import { describe, expect, test } from 'vitest'
import { Talk } from '../../../../src/cli/commands/chat/talk.ts'
import type { TalkEvent } from '../../../../src/cli/commands/chat/talk.ts'
import type { ServedEvent } from '../../../../src/domain/agent/schema.ts'
import type { ChatApi } from '../../../../src/adapters/chat-server.ts'
import { Refusal } from '../../../../src/domain/refusal.ts'

const never = new AbortController().signal

const QUOTAS = { messagesPerSession: 20, messagesPerDay: 60 }

const delta = (text: string): ServedEvent => ({ event: 'delta', data: { text }, raw: { text } })

const limited = (scope: string, retryAfterSeconds: number): Refusal =>
  new Refusal('rate_limited', undefined, { members: { status: 429, scope, retryAfterSeconds } })

interface Conversation {
  talk: Talk
  requests: () => number
  /** The waits so far, in milliseconds. */
  waits: readonly number[]
}

/** Starts a conversation with a server whose responses are these in order; the last one repeats. Its waits end at once. */
function talkWith(...replies: (Refusal | readonly ServedEvent[])[]): Conversation {
  let count = 0
  const waits: number[] = []
  const wait = (ms: number, signal: AbortSignal): Promise<void> => {
    waits.push(ms)
    return Promise.resolve().then(() => signal.throwIfAborted())
  }
  const api: ChatApi = {
    base: 'http://h',
    config: () => Promise.reject(new Error('not asked here')),
    status: () => Promise.reject(new Error('not asked here')),
    session: () => Promise.resolve({ sessionToken: 'v1.token', quotas: QUOTAS }),
    async *ask() {
      const reply = replies[Math.min(count, replies.length - 1)] ?? []
      count += 1
      if (reply instanceof Refusal) throw reply
      yield* reply
    },
  }
  const settings = { preferredLanguage: 'auto', tone: 'neutral' } as const
  const talk = new Talk(api, { itemKey: null, sort: 'trending', settings }, wait)
  return { talk, requests: () => count, waits }
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
    'a talk waits out a limit of scope %s for %i seconds, and repeats the request',
    async (scope, seconds) => {
      const { talk, requests: requestCount, waits } = talkWith(limited(scope, seconds), [delta('Hello')])
      expect(await eventsOf(talk.ask('What is new?', never))).toBe('Hello')
      expect([waits, requestCount()]).toEqual([[seconds * 1000], 2])
    },
  )

  test('a longer limit is reported at once', async () => {
    const { talk, requests: requestCount, waits } = talkWith(limited('session', 4), [delta('Hello')])
    await expect(eventsOf(talk.ask('What is new?', never))).rejects.toMatchObject({ code: 'rate_limited' })
    expect([waits, requestCount()]).toEqual([[], 1])
  })

  test('a limit that still holds after two waits is reported', async () => {
    const { talk, requests: requestCount, waits } = talkWith(limited('ip', 1))
    await expect(eventsOf(talk.ask('What is new?', never))).rejects.toMatchObject({ code: 'rate_limited' })
    expect([waits, requestCount()]).toEqual([[1000, 1000], 3])
  })

  test('a wait can be stopped', async () => {
    const stopping = new AbortController()
    const { talk, requests: requestCount, waits } = talkWith(limited('session', 3), [delta('Hello')])
    const answer = eventsOf(talk.ask('What is new?', stopping.signal))
    stopping.abort(new Error('stopped'))
    await expect(answer).rejects.toThrow('stopped')
    expect([waits, requestCount()]).toEqual([[3000], 1])
  })

  test('a repeated question keeps the old answer until the first text of the new one', async () => {
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
