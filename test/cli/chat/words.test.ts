import { describe, expect, test } from 'vitest'
import { jsonLine } from '../../../src/cli/terminal.ts'
import { noteRows } from '../../../src/cli/commands/chat/note-rows.ts'
import { replayNotes } from '../../../src/cli/commands/chat/replay-notes.ts'
import { completionsOf, helpText, parseSaid } from '../../../src/cli/commands/chat/slash-commands.ts'
import { clockTime, declinedWords, failureWords, quotaWords } from '../../../src/cli/commands/chat/words.ts'
import { Refusal } from '../../../src/domain/refusal.ts'

const NOON = new Date(2026, 4, 3, 12, 0, 0).getTime()

describe('what a person is told', () => {
  test('of the quotas', () => {
    const quotas = { messagesPerSession: 20, messagesPerDay: 60 }
    expect(quotaWords({ remaining: { session: 18, day: 47 }, quotas })).toBe('18/20 session, 47/60 today')
  })

  test('of a time, by the clock, and its day when that is another', () => {
    expect(clockTime(NOON + 65_000, NOON)).toBe('12:01:05')
    expect(clockTime(NOON + 12 * 3_600_000, NOON)).toBe('4 May 00:00:00')
  })

  test('of a limit: a session that is used up can be replaced, one that is asked too fast is waited for', () => {
    const words = (scope: string, retryAfterSeconds: number, isTalk = true): string => {
      const refusal: Parameters<typeof declinedWords>[0] = new Refusal('rate_limited', undefined, {
        members: { status: 429, scope, retryAfterSeconds },
      })
      return declinedWords(refusal, 'http://h', NOON, { isTalk }).text
    }
    expect(words('session', 1_200)).toBe(
      "this session's limit is reached (session); it opens again at 12:20:00; /new begins another session",
    )
    expect(words('session', 1_200, false)).toBe(
      "this session's limit is reached (session); it opens again at 12:20:00",
    )
    expect(words('session', 2)).toBe("this session's limit is reached (session); it opens again at 12:00:02")
    expect(words('ip', 30)).toBe("this address's limit is reached (ip); it opens again at 12:00:30")
  })

  test('of a model that failed: what asks again where it is read', () => {
    const failure = { error: 'timeout', code: 'idle' }
    expect(failureWords(failure, { isTalk: true })).toMatch(/\(timeout, idle\); \/retry asks again$/)
    expect(failureWords(failure, { isTalk: false })).toMatch(/\(timeout, idle\); ask again$/)
  })

  test('in rows that end between words, whatever the width', () => {
    const text = 'the session had ended; another was begun\n漢字漢字 \u202eb'
    expect(noteRows(text, 20, false)).toEqual([
      'the session had',
      'ended; another was',
      'begun',
      '漢字漢字 \\u202eb',
    ])
    expect(noteRows('ab cd', 4, true)).toEqual(['\x1b[2mab\x1b[22m', '\x1b[2mcd\x1b[22m'])
  })

  test('of what is left out, once', () => {
    const replay = { body: '', leftOut: 2, questionCut: true, earlierCut: 1 }
    expect(replayNotes(replay, null)).toEqual([
      'the question is cut: only its first 2,000 characters are read',
      'the 2 oldest turns are left out from now on: no more than the last 12 messages and 32,768 bytes are read',
      'of long texts before, only the first 2,000 characters are read',
    ])
    expect(replayNotes({ ...replay, questionCut: false }, replay)).toEqual([])
    expect(replayNotes({ ...replay, questionCut: false, leftOut: 3 }, replay)).toHaveLength(1)
  })
})

describe('what a person says', () => {
  test.each([
    ['/lang  RU ', { kind: 'command', name: 'lang', argument: 'RU' }],
    ['/Help', { kind: 'command', name: 'help', argument: '' }],
    ['/nothing', { kind: 'unknown', name: 'nothing' }],
    ['/toString', { kind: 'unknown', name: 'tostring' }],
    ['/etc/hosts?', { kind: 'question', text: '/etc/hosts?' }],
    ['/quit\nnot', { kind: 'question', text: '/quit\nnot' }],
    ['a /quit', { kind: 'question', text: 'a /quit' }],
  ])('%j is understood', (text, said) => {
    expect(parseSaid(text)).toEqual(said)
  })

  test.each([
    ['/s', ['/save ', '/sort ']],
    ['/sort ', ['/sort trending', '/sort day', '/sort week', '/sort month']],
    ['/tone c', ['/tone casual']],
    ['/toString ', []],
    ['what', []],
  ])('%j is completed', (line, completions) => {
    expect(completionsOf(line)).toEqual(completions)
  })

  test('help lists every command', () => {
    for (const name of completionsOf('/')) expect(helpText(80)).toContain(`  ${name.trim()}`)
    expect(completionsOf('/')).toHaveLength(11)
  })

  test('help keeps its two columns where a line is wrapped', () => {
    const rows = helpText(44).split('\n')
    expect(rows).toContain('  /item [KEY]       talk about one item;')
    expect(rows).toContain('                    without a key about the')
    expect(rows.filter((row) => row.length > 44)).toEqual([])
    expect(noteRows(helpText(44), 45, false)).toEqual(rows)
  })
})

test('a line of JSON holds nothing a terminal obeys and says the same', () => {
  const value = { text: 'a\u001b\u009b\u202e\u200b\u{e0041}\u2028"漢👍' }
  const line = jsonLine(value)
  expect(JSON.parse(line)).toEqual(value)
  expect(line.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\u2028]/u)
  expect(line).toContain('漢👍')
})
