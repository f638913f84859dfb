import { getEventListeners } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import type { ChatApi } from '../../../../src/adapters/chat-server.ts'
import { showAnswer, showTurn } from '../../../../src/cli/commands/chat/show-turn.ts'
import type { ChatContext } from '../../../../src/cli/commands/chat/show-turn.ts'
import { parseSlashCommand, runSlashCommand } from '../../../../src/cli/commands/chat/slash-commands.ts'
import { Talk } from '../../../../src/cli/commands/chat/talk.ts'
import type { AgentEvent, ServedEvent } from '../../../../src/domain/agent/schema.ts'
import { Refusal } from '../../../../src/domain/refusal.ts'
import { temporaryFolder } from '../../../support/dash.ts'

const QUOTAS = { messagesPerSession: 20, messagesPerDay: 60 }
const LEFT = '19/20 session, 59/60 today left'

const served = (event: AgentEvent): ServedEvent => ({ ...event, raw: event.data })
const delta = (text: string): ServedEvent => served({ event: 'delta', data: { text } })
const META = served({ event: 'meta', data: { remaining: { session: 19, day: 59 }, tier: 'free' } })
const DONE = served({ event: 'done', data: { usage: { in: 1, out: 1, cached: 0 }, cached: true } })
const FAILED = served({ event: 'error', data: { error: 'upstream_error', code: 'a\nb' } })

/** The events of an answer, and the refusal that ends it or comes instead of it. */
type Reply = readonly (ServedEvent | Refusal)[]

/** A conversation on a terminal, in `folder`, with a server whose replies are these in order; the last one repeats. */
function conversation(...replies: Reply[]) {
  const seen = { shown: '', progress: [] as string[], said: [] as string[], bodies: [] as unknown[] }
  const folder = temporaryFolder()
  const config = { enabled: true, requireVerification: false, itemChat: true, model: 'm', quotas: QUOTAS }
  const api: ChatApi = {
    base: 'http://h',
    config: () => Promise.resolve(config),
    status: () => Promise.resolve({ ok: true, service: 'agent-worker', budget: 'soft', itemChat: true }),
    session: () => Promise.resolve({ sessionToken: 'v1.token', quotas: QUOTAS }),
    async *ask(_token, body) {
      const reply = replies[Math.min(seen.bodies.length, replies.length - 1)] ?? []
      seen.bodies.push(JSON.parse(body))
      for (const each of reply)
        if (each instanceof Refusal) throw each
        else yield await Promise.resolve(each)
    },
  }
  const ends = new AbortController()
  const write = (text: string): void => void (seen.shown += text)
  const stdout = new Writable({
    decodeStrings: false,
    // Each write waits for the one before it.
    highWaterMark: 1,
    write: (text: string, _, done) => (write(text), setImmediate(done)),
  })
  const context = {
    stdout: Object.assign(stdout, { isTTY: true, columns: 80 }),
    terminal: { interactive: true, progress: (text: string) => seen.progress.push(text) },
    env: {},
    signal: ends.signal,
    cwd: folder,
    config: { home: folder },
  }
  const settings = { preferredLanguage: 'auto', tone: 'neutral' } as const
  const talk = new Talk(api, { itemKey: null, sort: 'trending', settings })
  const prompt = { interruptible: () => ends.signal }
  const say = (text: string): void => void seen.said.push(text.replace(/\d\.\d s$/, 'N s'))
  const chat = { context, prompt, talk, engine: null, api, config, say, last: null }
  const type = async (text: string): Promise<void> => {
    const command = parseSlashCommand(text)
    await (command ? runSlashCommand(shownChat, command) : showTurn(shownChat, text))
  }
  const shownChat = chat as unknown as ChatContext
  return { chat: shownChat, talk, seen, ends, stdout, folder, type }
}

const tool = (status: 'start' | 'done') => served({ event: 'tool', data: { name: 'search_items', status } })

test('an answer shows each tool with its time, its blocks, its label and the quota', async () => {
  const answer = [META, tool('start'), tool('done'), delta('Found **it**'), delta('\n\nHere.'), DONE]
  const { seen, ends, type } = conversation(answer)
  await type('Find it')
  expect(seen.said).toEqual(['· Searching N s', '(cached answer)', LEFT])
  expect(seen.shown).toBe('\nFound **it**\n\nHere.\n')
  expect(seen.progress).toContain('· Searching …')
  expect(seen.progress.at(-1)).toBe('')
  expect(getEventListeners(ends.signal, 'abort')).toEqual([])
})

test.each([
  ['no tool ran', [], 'no tools were used'],
  ['a tool ran', [tool('start'), tool('done')], 'the answer ends without tools and their results'],
])('a degraded answer says what it lacks: %s', async (_what, tools, lack) => {
  const done = served({ event: 'done', data: { usage: { in: 1, out: 1, cached: 0 }, degraded: true } })
  const { seen, type } = conversation([META, ...tools, delta('Half'), done])
  await type('Find it')
  expect(seen.said.at(-2)).toBe(
    `(degraded answer: the budget or the share of this address is nearly used up, so ${lack})`,
  )
})

test('an expired session is renewed once, and the question is answered', async () => {
  const expired = new Refusal('invalid_session')
  const { seen, type } = conversation(
    [META, delta('one'), DONE],
    [expired],
    [META, delta('two'), DONE],
    [expired],
  )
  for (const question of ['First', 'Second', 'Third']) await type(question)
  expect(seen.shown).toBe('one\ntwo\n')
  const renewed = 'the session had expired; a new one was started'
  const rejected: unknown = expect.stringContaining('rejected its own new session')
  expect(seen.said.slice(2)).toEqual([renewed, '(cached answer)', LEFT, renewed, rejected, LEFT])
})

test('a conversation continues after an answer that broke off, one that failed, and a refusal', async () => {
  const cut = new Refusal('answer_cut', 'the connection broke')
  const { seen, type } = conversation(
    [META, delta('Half'), cut],
    [META, FAILED],
    [new Refusal('internal_error')],
  )
  for (const text of ['one', 'two', 'three', '/retry']) await type(text)
  expect(seen.said.filter((line) => line !== LEFT)).toEqual([
    'the connection broke',
    'the model failed (upstream_error, a b); /retry to ask again',
    ...Array.from({ length: 2 }, () => expect.stringContaining('failed (internal_error)') as unknown),
  ])
  const messages = ['one', 'Half', 'three'].map((content): unknown => expect.objectContaining({ content }))
  expect(seen.bodies.at(-1)).toMatchObject({ messages })
})

test('a repeated question keeps the old answer until the first text of the new one', async () => {
  const limited = new Refusal('rate_limited', undefined, {
    members: { scope: 'session', retryAfterSeconds: 60 },
  })
  const { talk, type } = conversation([delta('old')], [limited], [], [delta('n'), delta('ew')])
  const answers: unknown[] = []
  for (const text of ['What is new?', '/retry', '/retry', '/retry']) {
    await type(text)
    answers.push(...talk.turns.map(({ answer }) => answer))
  }
  expect(answers).toEqual(['old', 'old', 'old', 'new'])
})

test('commands set the options of requests, and say what they do', async () => {
  const { seen, type, talk } = conversation([META, delta('Hello'), DONE])
  for (const [command, says] of [
    ['/retry', 'no question to ask again yet'],
    ['/save', 'nothing to save yet'],
    ['/quota', /^20 messages per session, 60 per day; budget soft, as of \d\d:\d\d:\d\d$/],
    ['/lang RU', 'language: ru'],
    ['/tone terse', 'tone: terse'],
    ['/tone', 'tone: terse; choose from neutral, casual, terse'],
    ['/item hn-1', /^chatting about the item hn-1;/],
    ['/item nonsense', '"nonsense" is not a save key such as hn-29387264'],
    ['/sort year', /^unknown sort "year"; choose from trending,/],
    ['/nothing', 'unknown command /nothing; /help lists the commands'],
  ] as const) {
    await type(command)
    expect(seen.said.at(-1)).toEqual(typeof says === 'string' ? says : expect.stringMatching(says))
  }
  for (let count = 1; count <= 7; count += 1) await type(`question ${count}`)
  expect(seen.said.filter((line) => line.includes('no longer sent'))).toEqual([
    expect.stringMatching(/^the oldest turn is no longer sent/),
  ])
  expect(seen.bodies.at(-1)).toMatchObject({
    messages: { length: 11 },
    scope: { type: 'item', key: 'hn-1' },
    settings: { preferredLanguage: 'ru', tone: 'terse' },
  })
  await type('/item')
  expect([seen.said.at(-1), talk.preferences.itemKey]).toEqual(['chatting about the whole site', null])
  await type('/new')
  expect([seen.said.at(-1), talk.turns]).toEqual([
    'new conversation; earlier messages are no longer sent',
    [],
  ])
})

test('a conversation is saved as a new file, also below the home', async () => {
  const { seen, type, folder } = conversation([META, delta('An **answer**'), DONE])
  await type('A\nquestion')
  for (const [given, file] of [
    ['talk.md', 'talk.md'],
    ['~/at-home.md', 'at-home.md'],
  ] as const) {
    await type(`/save ${given}`)
    expect(seen.said.at(-1)).toBe(`saved to ${join(folder, file)}`)
    expect(readFileSync(join(folder, file), 'utf8')).toBe('> A\n> question\n\nAn **answer**\n')
  }
  await type('/save talk.md')
  expect(seen.said.at(-1)).toMatch(/^not saved: .*talk\.md exists; choose another name$/)
})

test('an answer that nobody reads ends with the program, and nothing is said after it', async () => {
  const { chat, seen, ends, stdout, type } = conversation([delta('More than the buffer holds.\n\n')])
  stdout.write = () => (setImmediate(() => ends.abort(new Error('SIGTERM'))), false)
  expect(await showAnswer(chat, 'What is new?', ends.signal)).toEqual({ last: null, labels: [] })
  await expect(type('What is new?')).rejects.toThrow('SIGTERM')
  expect(seen.said).toEqual([])
})
