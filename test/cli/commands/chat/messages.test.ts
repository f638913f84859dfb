import { describe, expect, test } from 'vitest'
import { noteRows } from '../../../../src/cli/commands/chat/chat.ts'
import { replayNotes } from '../../../../src/cli/commands/chat/show-turn.ts'
import {
  completionsOf,
  helpText,
  parseSlashCommand,
} from '../../../../src/cli/commands/chat/slash-commands.ts'
import { refusalMessage, failureMessage } from '../../../../src/cli/commands/chat/messages.ts'
import type { Quota } from '../../../../src/cli/commands/chat/messages.ts'
import { Refusal } from '../../../../src/domain/refusal.ts'

const NOON = new Date(2026, 4, 3, 12, 0, 0).getTime()

const limit = (scope: string, retryAfterSeconds: number) =>
  new Refusal('rate_limited' as const, undefined, { members: { status: 429, scope, retryAfterSeconds } })

const limitText = (scope: string, seconds: number, quota: Quota | null, isTalk = true): string =>
  refusalMessage(limit(scope, seconds), 'http://h', NOON, { isTalk, quota }).text

describe('messages', () => {
  const all = 'all messages of this session are used (session); try again at'
  const day = 'this address has used all its messages of today (ip); try again at'
  const share =
    'this address has used all its messages of today or its share of the budget (ip); try again at'
  const busy = 'the chat is busy: open answers hold the remaining budget or all streams (global-budget)'
  const used = 'the chat budget of today is used up (global-budget); try again at 4 May 00:00:00'

  test.each([
    ['session', 30, 0, 47, `${all} 12:00:30; /new starts another session`],
    ['session', 2, 1, 47, 'too soon after the last message (session); try again at 12:00:02'],
    ['ip', 30, 18, 0, `${day} 12:00:30`],
    ['ip', 43_200, 18, 47, `${share} 4 May 00:00:00`],
    ['ip', 120, 18, 47, 'too many messages from this address (ip); try again at 12:02:00'],
    ['global-budget', 5, 18, 47, `${busy}; try again at 12:00:05`],
    ['global-budget', 120, 18, 47, `${busy}; try again at 12:02:00`],
    ['global-budget', 43_200, 18, 47, used],
  ])('a limit of scope %s for %i s is described, with %i of the session and %i of the day left', (...row) => {
    const [scope, retryAfterSeconds, session, left, text] = row
    const quotas = { messagesPerSession: 20, messagesPerDay: 60 }
    const quota = { remaining: { session, day: left }, quotas }
    expect(limitText(scope, retryAfterSeconds, quota)).toBe(text)
  })

  test('a limit is described before any quota is known, and names no command outside of a conversation', () => {
    expect(limitText('session', 2, null)).toMatch(/^too soon after/)
    expect(limitText('session', 1_200, null)).toMatch(/^all messages of this session are used/)
    expect(limitText('ip', 30, null)).toMatch(/^too many messages from this address/)
    expect(limitText('session', 1_200, null, false)).toBe(`${all} 12:20:00`)
  })

  test.each([
    ['timeout', 'idle', 'the model took too long (timeout, idle)'],
    ['upstream_error', 'http_402', 'the model failed (upstream_error, http_402)'],
    [
      'upstream_error',
      'http_429',
      'the provider of the model accepts no more requests for now (upstream_error, http_429)',
    ],
    [
      'upstream_error',
      'connect',
      'the model at http://127.0.0.1:8080/v1 cannot be reached (upstream_error, connect); start it or correct OPENAI_BASE_URL, then',
    ],
    [
      'upstream_error',
      'http_404',
      'the model at http://127.0.0.1:8080/v1 refuses the request (upstream_error, http_404); correct OPENAI_BASE_URL, OPENAI_API_KEY or DASH_CHAT_MODEL, then',
    ],
  ])('a model that failed by %s, %s is described with what to do', (error, code, text) => {
    const engine = { url: 'http://127.0.0.1:8080/v1', prefix: 'OPENAI' } as const
    const words = text.endsWith('then') ? text : `${text};`
    expect(failureMessage({ error, code }, { isTalk: true, engine })).toBe(`${words} /retry to ask again`)
    expect(failureMessage({ error, code }, { isTalk: false, engine })).toBe(`${words} ask again`)
    const elsewhere = failureMessage({ error, code }, { isTalk: false, engine: null })
    expect(elsewhere).toMatch(/^the (?:provider of the )?model [^;]* \(\w+, \w+\); ask again$/)
  })

  test('notes are wrapped between words at any width', () => {
    const text = 'the session had expired; a new one was started\n漢字漢字 \u202eb'
    expect(noteRows(text, 20)).toEqual([
      'the session had',
      'expired; a new one',
      'was started',
      '漢字漢字 \\u202eb',
    ])
  })

  test('omitted text is noted once', () => {
    const replay = { body: '', leftOut: 2, questionCut: true, earlierCut: 1 }
    expect(replayNotes(replay, null)).toEqual([
      'the question is too long: only its first 2,000 characters are sent',
      'the 2 oldest turns are no longer sent: the chat reads at most the last 12 messages and 32,768 bytes',
      'only the first 2,000 characters of long earlier messages are sent',
    ])
    expect(replayNotes({ ...replay, questionCut: false }, replay)).toEqual([])
    expect(replayNotes({ ...replay, questionCut: false, leftOut: 3 }, replay)).toHaveLength(1)
  })
})

describe('typed lines', () => {
  test.each([
    ['/lang  RU ', { name: 'lang', argument: 'RU' }],
    ['/Help', { name: 'help', argument: '' }],
    ['/etc/hosts?', null],
    ['a /quit', null],
    ['quit', { name: 'quit', argument: '' }],
    ['/exit', { name: 'quit', argument: '' }],
    ['exit strategies?', null],
  ])('the line %j is parsed', (text, parsed) => {
    expect(parseSlashCommand(text)).toEqual(parsed)
  })

  test.each([
    ['/s', ['/save ', '/sort ']],
    ['/tone c', ['/tone casual']],
    ['/toString ', []],
  ])('the line %j is completed', (line, completions) => {
    expect(completionsOf(line)).toEqual(completions)
  })

  test('the help lists every command', () => {
    for (const name of completionsOf('/')) expect(helpText(80)).toContain(`  ${name.trim()}`)
    expect(completionsOf('/')).toHaveLength(10)
  })

  test('the help keeps its two columns where a line is wrapped', () => {
    const rows = helpText(44).split('\n')
    expect(rows).toContain('  /item [KEY]       chat about one item;')
    expect(rows).toContain('                    without KEY, about the')
    expect(rows.filter((row) => row.length > 44)).toEqual([])
    expect(noteRows(helpText(44), 44)).toEqual(rows)
  })
})
