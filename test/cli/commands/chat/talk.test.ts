import { expect, test } from 'vitest'
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

/** Starts a conversation with a server whose responses are these in order; the last one repeats. */
function talkWith(...replies: (Refusal | readonly ServedEvent[])[]): Talk {
  let count = 0
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
  return new Talk(api, { itemKey: null, sort: 'trending', settings })
}

async function eventsOf(events: AsyncIterable<TalkEvent>): Promise<string> {
  let text = ''
  for await (const each of events) if (each.kind === 'text') text += each.text
  return text
}

test('a repeated question keeps the old answer until the first text of the new one', async () => {
  const talk = talkWith([delta('old')], limited('session', 60), [], [delta('n'), delta('ew')])
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
