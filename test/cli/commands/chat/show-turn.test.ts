import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { showAnswer, showTurn } from '../../../../src/cli/commands/chat/show-turn.ts'
import type { ChatContext } from '../../../../src/cli/commands/chat/show-turn.ts'
import type { Replay } from '../../../../src/domain/agent/conversation.ts'

const REPLAY: Replay = { body: '{}', leftOut: 0, questionCut: false, earlierCut: 0 }

/** A conversation whose standard output nobody reads; once it is full, `ends` is aborted. */
function unreadChat(ends: AbortController): { chat: ChatContext; said: string[] } {
  const said: string[] = []
  const chat = {
    context: {
      stdout: new Writable({
        highWaterMark: 1,
        write: () => void setImmediate(() => ends.abort(new Error('SIGTERM'))),
      }),
      terminal: { interactive: false, json: false, progress: () => undefined },
      env: {},
      signal: ends.signal,
    },
    talk: {
      quota: null,
      replay: () => REPLAY,
      async *ask() {
        yield await Promise.resolve({ kind: 'text', text: 'More than the buffer holds.' })
      },
    },
    prompt: { interruptible: () => ends.signal },
    say: (text: string) => void said.push(text),
    last: null,
  }
  return { chat: chat as unknown as ChatContext, said }
}

test('an answer that nobody reads ends with its signal', async () => {
  const ends = new AbortController()
  const { chat } = unreadChat(ends)
  expect(await showAnswer(chat, 'What is new?', ends.signal)).toBeNull()
})

test('a turn says nothing after the program was told to end', async () => {
  const { chat, said } = unreadChat(new AbortController())
  await expect(showTurn(chat, 'What is new?')).rejects.toThrow('SIGTERM')
  expect(said).toEqual([])
})
