import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RESPONSE_CLASSES } from '../../../src/domain/models/evaluation.ts'
import { classifyResponse } from '../../../src/adapters/router/classify.ts'
import { ANSWERED_AT, ANSWER_SHAPES, answered } from './answer-shapes.ts'
import { anyText } from '../../support/any-text.ts'

const PAGE = fileURLToPath(new URL('../../../docs/model-errors.md', import.meta.url))

/** Returns the response of the shape whose name contains these words. */
const shapeOf = (words: string) =>
  ANSWER_SHAPES.find(({ shape }) => shape.includes(words))?.answer ?? answered(null, '')

/** The shape and the meaning of each response that the page lists. */
const DOCUMENTED = readFileSync(PAGE, 'utf8')
  .split('\n')
  .map((line) => (/^\| (.*) \|$/.exec(line)?.[1] ?? '').split(' | ').map((cell) => cell.trim()))
  .filter((row) => row.length === 2 && row[1]?.startsWith('`'))

test('the documents list the shapes, with every class except for those that need more than the response', () => {
  expect(DOCUMENTED.map(([shape]) => shape)).toEqual(ANSWER_SHAPES.map(({ shape }) => shape))
  const classes = DOCUMENTED.map(([, meaning = '']) => meaning.split('`')[1])
  const all = new Set([...classes, 'service_down', 'cut_answer'])
  expect(all).toEqual(new Set(Object.keys(RESPONSE_CLASSES)))
})

test.each(ANSWER_SHAPES)(
  'the response $shape means what the documents say',
  ({ shape, answer, retryAfter }) => {
    const { class: kind, correlated, retryAt } = classifyResponse(answer)
    const meaning = correlated === null ? `\`${kind}\`` : `\`${kind}\`, maybe \`${correlated}\``
    expect(meaning).toBe(DOCUMENTED.find(([name]) => name === shape)?.[1])
    expect(retryAt).toBe(retryAfter === null ? null : ANSWERED_AT + retryAfter * 1000)
  },
)

test('the classification contains the whole reply, from a message and from a stream alike', () => {
  const { response } = classifyResponse(shapeOf('with comments'))
  expect(response).toEqual({ text: 'hello', toolCalls: [], finishReason: 'stop' })
  const call = { index: 0, function: { name: 'write_file', arguments: '{"pa' } }
  const rest = { index: 0, function: { arguments: 'th":"a"}' } }
  const events = [call, rest].map(
    (each) => `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [each] } }] })}`,
  )
  expect(classifyResponse(answered(200, events.join('\n\n'))).response?.toolCalls).toEqual([
    { name: 'write_file', arguments: '{"path":"a"}' },
  ])
})

test('a wait of 0 seconds allows a retry at once, and is no missing balance', () => {
  const metadata = { retry_after_seconds: 0 }
  const response = answered(402, { error: { code: 402, message: 'Wait', metadata } })
  expect(classifyResponse(response)).toMatchObject({ class: 'account_busy', retryAt: ANSWERED_AT })
})

test('the classification reports the limit and its reset', () => {
  expect(classifyResponse(shapeOf('openrouter_free_tier_daily'))).toMatchObject({
    limit: 50,
    remaining: 0,
    resetAt: Date.UTC(2026, 2, 2),
    status: 429,
  })
})

test.each([
  [404, 'Breaks our data policy', 'model_gone'],
  [403, 'Key limit exceeded', 'refused'],
])('a provider\'s %i with the message "%s" is not the account\'s', (status, message, means) => {
  const error = { code: status, message, metadata: { provider_name: 'Example Cloud' } }
  expect(classifyResponse(answered(status, JSON.stringify({ error }))).class).toBe(means)
})

test('the availability may be in the metadata of an error', () => {
  const error = {
    code: 404,
    message: 'Not available',
    metadata: { availability: { code: 'privacy_restricted' } },
  }
  expect(classifyResponse(answered(404, { error })).class).toBe('account_policy')
})

test('a time that no limit can have is never waited for', () => {
  const headers = { 'retry-after': '99999999999', 'x-ratelimit-reset': '99999999999999' }
  const { retryAt, resetAt } = classifyResponse(answered(429, '{}', { headers }))
  expect(resetAt).toBeNull()
  expect(retryAt).toBe(ANSWERED_AT + 172_800_000)
})

const DAY_S = 86_400

test.each([
  [ANSWERED_AT + 60_000, ANSWERED_AT + 60_000],
  [(ANSWERED_AT + 60_000) / 1000, ANSWERED_AT + 60_000],
  [ANSWERED_AT / 1000 - DAY_S, ANSWERED_AT - DAY_S * 1000],
  [ANSWERED_AT / 1000 - DAY_S - 1, null],
  [ANSWERED_AT / 1000 + 2 * DAY_S, ANSWERED_AT + 2 * DAY_S * 1000],
  [ANSWERED_AT / 1000 + 2 * DAY_S + 1, null],
  [60, null],
])('the reset %i is read as milliseconds or seconds since 1970: %i', (reset, resetAt) => {
  const headers = { 'x-ratelimit-reset': String(reset) }
  expect(classifyResponse(answered(429, '{}', { headers })).resetAt).toBe(resetAt)
})

test.each([
  [{ code: '504' }, 504],
  [{ code: 400 }, 400],
  [{ code: 599 }, 599],
  [{ code: 600 }, 502],
  [{ code: 399 }, 502],
  [{ code: 400.5 }, 502],
  [{ code: 'server_error' }, 502],
])('the error %j within a response of 200 has the status %i', (error, status) => {
  expect(classifyResponse(answered(200, { error: { message: 'Failed', ...error } })).status).toBe(status)
})

test('the preview omits identifiers of the account', () => {
  const body = JSON.stringify({
    error: {
      message:
        'Forbidden for Bearer abc.def, key sk-or-v1-0123456789 of org_12345, limit_rpm/m/abc12345-0123-4abc-8abc-012345678abc',
    },
    user_id: 'user_2abcDEF',
  })
  const { preview } = classifyResponse(answered(403, body))
  expect(preview).toContain('Forbidden for Bearer (key) key (key) of (org)')
  expect(preview).not.toMatch(/abc|0123|12345|2abc|user_id/)
})

test('the preview is cut at whole characters', () => {
  const { preview } = classifyResponse(answered(502, '\u{1F642}'.repeat(500)))
  expect(preview).toBe('\u{1F642}'.repeat(200))
})

test('any response is classified without an error and in valid Unicode', () => {
  const bodies = fc.oneof(
    anyText(),
    fc.json(),
    fc.jsonValue().map((error) => JSON.stringify({ error, choices: [error] })),
  )
  const statuses = fc.option(fc.integer({ min: 100, max: 599 }))
  fc.assert(
    fc.property(
      statuses,
      bodies,
      fc.dictionary(fc.constantFrom('retry-after', 'x-ratelimit-limit', 'x-ratelimit-reset'), fc.string()),
      (status, body, headers) => {
        const classification = classifyResponse(
          answered(status, body, { headers, ending: status === null ? 'unreachable' : 'whole' }),
        )
        expect(Object.keys(RESPONSE_CLASSES)).toContain(classification.class)
        expect(JSON.stringify(classification)).not.toMatch(/\\ud[89a-f]/i)
        expect(classification.retryAt ?? ANSWERED_AT).toBeGreaterThanOrEqual(ANSWERED_AT)
      },
    ),
  )
})
