import { expect, test, vi } from 'vitest'
import { delta, DONE, META } from '../../support/scripted-server.ts'

interface PageEvent {
  event: string
  data: unknown
}

const script = new URL('../../../src/server/page/browser/chat/chat-service.ts', import.meta.url).href
const { refusalOf, problemMessage, eventsOf } = (await import(script)) as {
  refusalOf(response: Response): Promise<Error>
  problemMessage(error: unknown, now: number, remaining: null): string
  eventsOf(body: ReadableStream<Uint8Array>): AsyncIterable<PageEvent>
}

/** Noon on the visitor's clock. */
const NOW = new Date(2026, 2, 16, 12).getTime()

const MANY = 'The server or a proxy refused the request: too many requests (HTTP 429).'
const FAILED = 'The server refused: HTTP 503.'

test.each([
  ['12', 429, `${MANY} Try again at 12:00:12.`],
  ['Wed, 01 Jan 2020 00:00:00 GMT', 503, `${FAILED} Try again at 12:00:00.`],
  ['120', 503, `${FAILED} Try again at 12:02.`],
  ['43200', 503, `${FAILED} Try again at 17 Mar, 00:00.`],
  ['31536000', 503, `${FAILED} Try again at 16 Mar 2027, 12:00.`],
  ['99999999999', 503, FAILED],
  ['soon', 429, MANY],
  [null, 502, 'The server refused: HTTP 502.'],
])('a refusal without a body of the interface, Retry-After %s, status %i: %s', async (wait, status, text) => {
  const response = new Response('<html><h1>No</h1></html>', { status })
  if (wait !== null) response.headers.set('retry-after', wait)
  const refusal = await refusalOf(response)
  expect(problemMessage(refusal, NOW, null)).toBe(text)
})

test.each([
  [
    { error: 'rate_limited', scope: 'session', retryAfterSeconds: 600 },
    /^All messages of this session are used; start a new conversation \(scope session\)\. Try again at 12:10\.$/,
  ],
  [
    { error: 'rate_limited', scope: 'ip', retryAfterSeconds: 50 },
    /^Too many messages from this address \(scope ip\)\. Try again at 12:00:50\.$/,
  ],
  [{ error: 'forbidden_origin' }, /^This server does not accept questions from the address of this page;/],
])('the refusal %j names its reason and the time on the clock', async (body, text) => {
  const refusal = await refusalOf(Response.json(body, { status: 429 }))
  expect(problemMessage(refusal, NOW, null)).toMatch(text)
})

/** The names of the events that the page reads from these chunks, and whether reading them failed. */
async function namesOf(chunks: readonly Uint8Array[], error?: Error): Promise<string[]> {
  const left = [...chunks]
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = left.shift()
      if (chunk) controller.enqueue(chunk)
      else if (error) controller.error(error)
      else controller.close()
    },
  })
  const names: string[] = []
  try {
    for await (const { event } of eventsOf(body)) names.push(event)
  } catch (thrown) {
    names.push(String(thrown))
  }
  return names
}

const whole = (text: string): Uint8Array[] => [Buffer.from(text)]

test.each(['\n', '\r\n', '\r'])(
  'the page reads the same events byte by byte, with the line ends %j, the last one included',
  async (end) => {
    const text = `\uFEFF${META}: ping\n\n${delta('Да 👩‍🚀')}${DONE.trimEnd()}`.replaceAll('\n', end)
    for (const last of ['', end, end + end]) {
      const bytes = Array.from(Buffer.from(text + last), (byte) => Uint8Array.of(byte))
      expect(await namesOf(bytes)).toEqual(['meta', 'delta', 'done'])
    }
  },
)

test('the page reads a whole last event before a broken connection, and never half of one', async () => {
  expect(await namesOf(whole(META + DONE.trimEnd()), new Error('reset'))).toEqual([
    'meta',
    'done',
    'Error: reset',
  ])
  expect(await namesOf(whole(`${META}event: done\ndata: {"usage":`))).toEqual(['meta'])
  expect(await namesOf(whole(`${META}event: done`))).toEqual(['meta'])
})

test('a stream without a byte for 60 s ends, and one with pings goes on', async () => {
  vi.useFakeTimers()
  try {
    let connection: ReadableStreamDefaultController<Uint8Array> | null = null
    const send = (text: string): void => connection?.enqueue(Buffer.from(text))
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void (connection = controller) })
    const names: string[] = []
    const reading = (async () => {
      for await (const { event } of eventsOf(body)) names.push(event)
      names.push('ended')
    })()
    send(META)
    for (let ping = 0; ping < 8; ping += 1) {
      await vi.advanceTimersByTimeAsync(15_000)
      send(': ping\n\n')
    }
    send(delta('Half'))
    await vi.advanceTimersByTimeAsync(45_000)
    expect(names).toEqual(['meta', 'delta'])
    await vi.advanceTimersByTimeAsync(15_000)
    await reading
    expect(names).toEqual(['meta', 'delta', 'ended'])
  } finally {
    vi.useRealTimers()
  }
})
