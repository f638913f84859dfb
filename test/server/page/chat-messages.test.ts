import { expect, test } from 'vitest'

const browser = new URL('../../../src/server/page/browser/chat/', import.meta.url).href
const { refusalOf } = (await import(`${browser}chat-service.ts`)) as {
  refusalOf(response: Response): Promise<Error>
}
const { problemMessage } = (await import(`${browser}chat-messages.ts`)) as {
  problemMessage(error: unknown, now: number, remaining: null): string
}

/** Noon on the visitor's clock. */
const NOW = new Date(2026, 2, 16, 12).getTime()

test.each([
  [
    '12',
    429,
    'The server or a proxy refused the request: too many requests (HTTP 429). Try again at 12:00:12.',
  ],
  ['Wed, 01 Jan 2020 00:00:00 GMT', 503, 'The server refused: HTTP 503. Try again at 12:00:00.'],
  ['120', 503, 'The server refused: HTTP 503. Try again at 12:02.'],
  ['43200', 503, 'The server refused: HTTP 503. Try again at 17 Mar, 00:00.'],
  ['31536000', 503, 'The server refused: HTTP 503. Try again at 16 Mar 2027, 12:00.'],
  ['99999999999', 503, 'The server refused: HTTP 503.'],
  ['soon', 429, 'The server or a proxy refused the request: too many requests (HTTP 429).'],
  [null, 502, 'The server refused: HTTP 502.'],
])('a refusal without a body of the interface, Retry-After %s, status %i: %s', async (wait, status, text) => {
  const response = new Response('<html><h1>No</h1></html>', { status })
  if (wait !== null) response.headers.set('retry-after', wait)
  const refusal = await refusalOf(response)
  expect(problemMessage(refusal, NOW, null)).toBe(text)
})

test.each([
  ['session', 600, 'All messages of this session are used; start a new conversation (scope session).'],
  ['ip', 50, 'Too many messages from this address (scope ip).'],
])('a limit of the scope %s names itself and the time on the clock', async (scope, seconds, text) => {
  const body = { error: 'rate_limited', scope, retryAfterSeconds: seconds }
  const refusal = await refusalOf(Response.json(body, { status: 429 }))
  expect(problemMessage(refusal, NOW, null)).toMatch(text)
  expect(problemMessage(refusal, NOW, null)).toMatch(/ Try again at 12:\d\d(:\d\d)?\.$/)
})
