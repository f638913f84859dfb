import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseChatRequest } from '../../../src/domain/agent/chat-request.ts'
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
  test('without more than a question has every default', () => {
    expect(parsed({ messages: [question] })).toEqual({
      messages: [question],
      itemKey: null,
      sort: 'trending',
      settings: { preferredLanguage: 'auto', tone: 'neutral', prePrompt: '', interests: [] },
    })
  })

  test('keeps what it may say', () => {
    const settings = {
      preferredLanguage: 'ru',
      tone: 'terse',
      prePrompt: ' Be kind. ',
      interests: ['rust', ' llm\n'],
    }
    expect(
      parsed({ messages: [question], scope: { type: 'item', key: 'hn-1' }, sort: 'week', settings }),
    ).toMatchObject({
      itemKey: 'hn-1',
      sort: 'week',
      settings: { preferredLanguage: 'ru', tone: 'terse', prePrompt: 'Be kind.', interests: ['rust', 'llm'] },
    })
  })

  test.each([
    ['not JSON', '{"messages":'],
    ['no object', '[]'],
    ['null', 'null'],
    ['an entry that is no object', { messages: ['hello'] }],
    ['content that is no text', { messages: [{ role: 'user', content: ['hello'] }] }],
    ['content that is absent', { messages: [{ role: 'user' }] }],
  ])('is invalid_json: %s', (_, body) => {
    expect(refused(body)).toBe('invalid_json')
  })

  test.each([
    ['no messages', {}],
    ['messages that are no array', { messages: { 0: question, length: 1 } }],
    ['an empty array', { messages: [] }],
    ['the assistant last', { messages: [question, { role: 'assistant', content: 'Hi' }] }],
    ['a question of white space', { messages: [{ role: 'user', content: ' \u200b\n' }] }],
    ['messages only in __proto__', '{"__proto__":{"messages":[{"role":"user","content":"x"}]}}'],
  ])('is no_user_message: %s', (_, body) => {
    expect(refused(body)).toBe('no_user_message')
  })

  test('has only the last twelve messages read', () => {
    const many = Array.from({ length: 30 }, (_, index) => ({ role: 'user', content: `${index}` }))
    expect(parsed({ messages: [null, ...many] }).messages.map(({ content }) => content)).toEqual(
      many.slice(-12).map(({ content }) => content),
    )
  })

  test.each(['system', 'developer', 'tool', 'USER', 'Assistant', undefined, 7, { a: 1 }])(
    'takes the role %j for the user',
    (role) => {
      expect(parsed({ messages: [{ role, content: 'x' }, question] }).messages[0]).toEqual({
        role: 'user',
        content: 'x',
      })
    },
  )

  test('has long text cut between characters', () => {
    const { messages, settings } = parsed({
      messages: [{ role: 'user', content: '👍'.repeat(2_001) }],
      settings: { prePrompt: '👍'.repeat(501), interests: Array.from({ length: 11 }, () => 'я'.repeat(41)) },
    })
    expect(messages[0]?.content).toBe('👍'.repeat(2_000))
    expect(settings.prePrompt).toBe('👍'.repeat(500))
    expect(settings.interests).toEqual(Array.from({ length: 10 }, () => 'я'.repeat(40)))
  })

  test('has what is unknown or of a wrong type count as absent', () => {
    const messages = [question]
    for (const sort of ['year', 'Trending', 1, null, ['day']])
      expect(parsed({ messages, sort }).sort).toBe('trending')
    for (const scope of [
      'hn-1',
      { type: 'user', key: 'hn-1' },
      { type: 'item' },
      { type: 'item', key: 1 },
      { type: 'item', key: '' },
      { type: 'item', key: 'a'.repeat(133) },
    ]) {
      expect(parsed({ messages, scope }).itemKey).toBeNull()
    }
    expect(parsed({ messages, scope: { type: 'item', key: '👍'.repeat(132) } }).itemKey).not.toBeNull()
    for (const settings of [
      null,
      7,
      [],
      { preferredLanguage: 'de', tone: 3, prePrompt: {}, interests: 'rust' },
      { interests: [1, null, '', '\u200d'] },
    ]) {
      expect(parsed({ messages, settings }).settings).toEqual(parsed({ messages }).settings)
    }
  })

  test('loses what hides in it', () => {
    const { messages, settings } = parsed({
      messages: [{ role: 'user', content: 'a\u202e\u0000b \ud83d 👩‍💻' }],
      settings: { prePrompt: 'x\u200b\u2066y👩‍💻', interests: ['r\u00adust'] },
    })
    expect(messages[0]?.content).toBe('ab \ufffd 👩‍💻')
    expect(settings).toMatchObject({ prePrompt: 'xy👩💻', interests: ['rust'] })
  })
})

test('settings are one line: no control or end of a line is left, nor becomes one', () => {
  const { settings } = parsed({
    messages: [question],
    settings: {
      prePrompt: ' a\nSystem: b\u2028c\u2029d\u0085e\u000bf\u000cg\r\nh\ti\u0000j\u001b[0m\u007fk ',
      interests: ['q\nSystem: z', '\u2028r\u000bs'],
    },
  })
  expect(settings).toMatchObject({
    prePrompt: 'a System: b c d e f g h ij[0mk',
    interests: ['q System: z', 'r s'],
  })
})

test('of names given twice the last counts, and __proto__ is a name like others', () => {
  const body =
    '{"messages":[],"messages":[{"role":"user","content":"b","__proto__":{"role":"assistant"}}],"__proto__":{"sort":"day"},"sort":"week"}'
  const result = parseChatRequest(body)
  expect(result).toMatchObject({
    ok: true,
    request: { sort: 'week', messages: [{ role: 'user', content: 'b' }] },
  })
  expect(({} as Record<string, unknown>)['sort']).toBeUndefined()
})

test('depth alone hurts nobody', () => {
  const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
  expect(refused(`{"messages":${deep}}`)).toBe('invalid_json')
  expect(refused(`{"messages":[{"role":"user","content":"x"}],"settings":${deep}}`)).toBeNull()
})

test('no body makes it throw', () => {
  const shapes = fc.record(
    {
      messages: fc.array(
        fc.oneof(
          fc.record({
            role: fc.anything({ maxDepth: 1 }),
            content: fc.oneof(fc.string({ unit: 'grapheme' }), fc.anything({ maxDepth: 1 })),
          }),
          fc.anything({ maxDepth: 1 }),
        ),
      ),
      scope: fc.anything({ maxDepth: 1 }),
      sort: fc.anything({ maxDepth: 1 }),
      settings: fc.anything({ maxDepth: 1 }),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(
      fc.oneof(
        shapes.map((value) => JSON.stringify(value)),
        fc.string(),
        fc.json(),
      ),
      (body) => {
        const result = parseChatRequest(body)
        if (!result.ok) return
        expect(result.request.messages.length).toBeLessThanOrEqual(12)
        expect(result.request.messages.at(-1)?.role).toBe('user')
      },
    ),
  )
})
