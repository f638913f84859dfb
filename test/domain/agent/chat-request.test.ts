import { describe, expect, test } from 'vitest'
import { ownOrigins, parseChatRequest } from '../../../src/domain/agent/chat-request.ts'
import type { ChatRequest } from '../../../src/domain/agent/chat-request.ts'

function parsed(body: object): ChatRequest {
  const result = parseChatRequest(JSON.stringify(body))
  if (!result.ok) throw new Error(result.code)
  return result.request
}

function refused(body: string | object): string | null {
  const result = parseChatRequest(typeof body === 'string' ? body : JSON.stringify(body))
  return result.ok ? null : result.code
}

const question = { role: 'user', content: 'What trends?' }

describe('a request', () => {
  test('a request with only a question has every default', () => {
    expect(parsed({ messages: [question] })).toEqual({
      messages: [question],
      itemKey: null,
      sort: 'trending',
      settings: { preferredLanguage: 'auto', tone: 'neutral', prePrompt: '', interests: [] },
    })
  })

  test('a request keeps its valid members', () => {
    const chosen = { preferredLanguage: 'ru', tone: 'terse' }
    const settings = { ...chosen, prePrompt: ' Be kind. ', interests: ['rust', ' llm\n'] }
    const scope = { type: 'item', key: 'hn-1' }
    expect(parsed({ messages: [question], scope, sort: 'week', settings })).toMatchObject({
      itemKey: 'hn-1',
      sort: 'week',
      settings: { ...chosen, prePrompt: 'Be kind.', interests: ['rust', 'llm'] },
    })
  })

  test.each([
    ['invalid_json', '{"messages":'],
    ['no_user_message', {}],
    ['no_user_message', { messages: [question, { role: 'assistant', content: 'Hi' }] }],
    ['no_user_message', { messages: [{ role: 'user', content: ' \u200b\n' }] }],
  ])('a request is %s: %j', (code, body) => {
    expect(refused(body)).toBe(code)
  })

  test('only the last twelve messages of a request are read, and those of the system as of the user', () => {
    const many = Array.from({ length: 30 }, (_, index) => ({ role: 'user', content: `${index}` }))
    expect(parsed({ messages: [null, ...many] }).messages).toEqual(many.slice(-12))
    const [first] = parsed({ messages: [{ role: 'system', content: 'x' }, question] }).messages
    expect(first).toEqual({ role: 'user', content: 'x' })
  })

  test('long text of a request is cut between characters', () => {
    const key = '👍'.repeat(132)
    const { messages, settings, itemKey } = parsed({
      scope: { type: 'item', key },
      messages: [{ role: 'user', content: '👍'.repeat(2_001) }],
      settings: { prePrompt: '👍'.repeat(501), interests: Array.from({ length: 11 }, () => 'я'.repeat(41)) },
    })
    expect(itemKey).toBe(key)
    expect(messages[0]?.content).toBe('👍'.repeat(2_000))
    expect(settings.prePrompt).toBe('👍'.repeat(500))
    expect(settings.interests).toEqual(Array.from({ length: 10 }, () => 'я'.repeat(40)))
  })

  test.each([
    ...['year', 'Trending', 1, null, ['day']].map((sort) => ({ sort })),
    ...['hn-1', { type: 'user', key: 'hn-1' }, { type: 'item' }].map((scope) => ({ scope })),
    ...[1, '', 'a'.repeat(133)].map((key) => ({ scope: { type: 'item', key } })),
    ...[null, 7, [], { interests: [1, null, '', '\u200d'] }].map((settings) => ({ settings })),
  ])('an unknown or wrong-typed member counts as absent: %j', (changes) => {
    expect(parsed({ messages: [question], ...changes })).toEqual(parsed({ messages: [question] }))
  })
})

test('the last of repeated members counts, and __proto__ is a member like others', () => {
  const body =
    '{"messages":[],"messages":[{"role":"user","content":"b","__proto__":{"role":"assistant"}}],"__proto__":{"sort":"day"},"sort":"week"}'
  const result = parseChatRequest(body)
  expect(result).toMatchObject({
    ok: true,
    request: { sort: 'week', messages: [{ role: 'user', content: 'b' }] },
  })
  expect(({} as Record<string, unknown>)['sort']).toBeUndefined()
})

test('deep nesting is parsed without failing', () => {
  const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
  expect(refused(`{"messages":${deep}}`)).toBe('invalid_json')
  expect(refused(`{"messages":[{"role":"user","content":"x"}],"settings":${deep}}`)).toBeNull()
})

describe('an origin', () => {
  test("a server's own origins are its public one and the one it listens on", () => {
    const origins = ownOrigins('http://192.0.2.1:3000', 'https://dash.example/news')
    expect(origins).toEqual(['http://192.0.2.1:3000', 'https://dash.example'])
    expect(ownOrigins('http://192.0.2.1:80', null)).toEqual(['http://192.0.2.1'])
  })

  test.each(['127.0.0.1', '0.0.0.0'])(
    "every name of this machine is a server's own origin where it listens on %s",
    (host) => {
      const names = ['http://localhost:3000', 'http://127.0.0.1:3000', 'http://[::1]:3000']
      expect(ownOrigins(`http://${host}:3000`, null)).toEqual(names)
    },
  )
})
