import { describe, expect, test } from 'vitest'
import { byteLengthOf } from '../../../src/domain/text.ts'
import { parseChatRequest } from '../../../src/domain/agent/chat-request.ts'
import { replayOf } from '../../../src/domain/agent/conversation.ts'
import type { Turn, TurnOptions } from '../../../src/domain/agent/conversation.ts'

const WISHES: TurnOptions = {
  itemKey: null,
  sort: 'trending',
  settings: { preferredLanguage: 'auto', tone: 'neutral' },
}

const turnsOf = (count: number, answer = 'a'): Turn[] =>
  Array.from({ length: count }, (_, index) => ({
    itemKey: null,
    question: `q${index}`,
    answer: `${answer}${index}`,
  }))

const sent = (body: string): { role: string; content: string }[] =>
  (JSON.parse(body) as { messages: { role: string; content: string }[] }).messages
const contents = (turns: readonly Turn[], wishes = WISHES): string[] =>
  sent(replayOf(turns, 'now', wishes).body).map(({ content }) => content)

describe('the request of a conversation', () => {
  test('the first request sends the question and the options', () => {
    const wishes: TurnOptions = {
      itemKey: 'hn-1',
      sort: 'week',
      settings: { preferredLanguage: 'ru', tone: 'terse' },
    }
    expect(replayOf([], 'Hello', wishes)).toEqual({
      body:
        '{"messages":[{"role":"user","content":"Hello"}],"scope":{"type":"item","key":"hn-1"},"sort":"week",' +
        '"settings":{"preferredLanguage":"ru","tone":"terse"}}',
      leftOut: 0,
      questionCut: false,
      earlierCut: 0,
    })
  })

  test('a request sends turns with an answer within twelve messages, and counts the others', () => {
    expect(replayOf(turnsOf(5), 'now', WISHES)).toMatchObject({ leftOut: 0 })
    expect(replayOf(turnsOf(8), 'now', WISHES)).toMatchObject({ leftOut: 3 })
    expect(contents(turnsOf(8)).join(' ')).toBe('q3 a3 q4 a4 q5 a5 q6 a6 q7 a7 now')
    const unanswered = { itemKey: null, question: 'lost', answer: ' \n' }
    expect(contents([unanswered, ...turnsOf(1)])).toEqual(['q0', 'a0', 'now'])
  })

  test('a request sends and counts only turns of the same item, or of the site', () => {
    const about = (itemKey: string | null, count: number): Turn[] =>
      turnsOf(count, `${itemKey}-`).map((turn) => ({ ...turn, itemKey }))
    const turns = [...about('hn-1', 1), ...about(null, 7), ...about('hn-2', 1), ...about('hn-1', 1)]
    const of = (itemKey: string | null): string => contents(turns, { ...WISHES, itemKey }).join(' ')
    expect(of('hn-1')).toBe('q0 hn-1-0 q0 hn-1-0 now')
    expect(of('hn-2')).toBe('q0 hn-2-0 now')
    expect(of('hn-3')).toBe('now')
    expect(of(null)).not.toContain('hn')
    expect(replayOf(turns, 'now', WISHES).leftOut).toBe(2)
    expect(replayOf(turns, 'now', { ...WISHES, itemKey: 'hn-1' }).leftOut).toBe(0)
  })

  test.each(['\0', '"', '👍', '\ud800'])(
    'a request of the text %j fits, and is read by the server as it is meant',
    (text) => {
      const turns = turnsOf(9, text.repeat(2_500)).map((turn) => ({ ...turn, question: turn.answer }))
      const { body } = replayOf(turns, `x${text.repeat(3_000)}`, WISHES)
      expect(byteLengthOf(body)).toBeLessThanOrEqual(32_768)
      expect(sent(body).at(-1)?.content.startsWith('x')).toBe(true)
      expect(sent(body).map(({ role }) => role)).toEqual(
        sent(body).map((_, at) => (at % 2 ? 'assistant' : 'user')),
      )
      expect(parseChatRequest(body).ok).toBe(true)
    },
  )

  test('a request sends fewer turns when its bytes are limited', () => {
    const turns = turnsOf(5, '漢'.repeat(2_500))
    const replay = replayOf(turns, '字'.repeat(2_000), WISHES)
    expect(replay).toMatchObject({ questionCut: false, leftOut: 1, earlierCut: 4 })
    expect(byteLengthOf(replay.body)).toBeLessThanOrEqual(32_768)
  })

  test('a request cuts texts as the server would, and counts them', () => {
    const turn = { itemKey: null, question: 'q', answer: '👍'.repeat(2_001) }
    const replay = replayOf([turn], '👎'.repeat(2_001), WISHES)
    expect(replay).toMatchObject({ questionCut: true, earlierCut: 1, leftOut: 0 })
    expect(sent(replay.body).map(({ content }) => Array.from(content).length)).toEqual([1, 2_000, 2_000])
  })
})
