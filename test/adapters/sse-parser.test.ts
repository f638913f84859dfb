import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyText } from '../support/any-text.ts'
import { SseParser, StreamTooLarge, hasData } from '../../src/adapters/sse-parser.ts'
import type { StreamRecord } from '../../src/adapters/sse-parser.ts'

const WIDE = { maxEventBytes: 1_000_000, maxBytes: 1_000_000 }

function recordsOf(chunks: readonly Uint8Array[], bounds = WIDE): StreamRecord[] {
  const stream = new SseParser(bounds)
  const events = chunks.flatMap((chunk) => stream.push(chunk))
  const last = stream.end()
  return last === null ? events : [...events, last]
}

const eventsOf = (chunks: readonly Uint8Array[], bounds = WIDE): string[] =>
  recordsOf(chunks, bounds).map(({ data }) => data)

test('the parser yields the same events for any chunks and any line ends', () => {
  const data = anyText({ minLength: 1 }).filter((text) => !/[\r\n]/.test(text))
  const event = fc.record({
    data: fc.array(data, { minLength: 1, maxLength: 3 }),
    comment: fc.boolean(),
    name: fc.boolean(),
  })
  fc.assert(
    fc.property(
      fc.array(event),
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.integer({ min: 1, max: 7 }),
      fc.boolean(),
      (events, end, size, mark) => {
        const lines = events.flatMap(({ data: texts, comment, name }) => [
          ...(comment ? [': ping'] : []),
          ...(name ? ['event: something', 'id: 1'] : []),
          ...texts.map((text) => `data: ${text}`),
          '',
        ])
        const bytes = Buffer.from((mark ? '\uFEFF' : '') + lines.map((line) => line + end).join(''))
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size),
        )
        expect(eventsOf(chunks)).toEqual(events.map(({ data: texts }) => texts.join('\n')))
      },
    ),
  )
})

test('the parser yields an event at its blank line, while the stream stays open', () => {
  const stream = new SseParser(WIDE)
  const pushed = (text: string): StreamRecord[] => stream.push(Buffer.from(text))
  expect(pushed('data: one\n\n')).toEqual([{ name: 'message', data: 'one' }])
  expect(pushed('event: a\ndata: two\n')).toEqual([])
  expect(pushed('\n')).toEqual([{ name: 'a', data: 'two' }])
  expect(stream.end()).toBeNull()
})

test.each([': ping\r\r'])('the parser counts %j towards no later event', (block) => {
  const stream = new SseParser({ maxEventBytes: 100, maxBytes: 1_000_000 })
  for (let sent = 0; sent < 100; sent += 1) expect(stream.push(Buffer.from(block))).toEqual([])
  expect(stream.push(Buffer.from('data: one\n\n'))).toEqual([{ name: 'message', data: 'one' }])
})

test('the parser yields the last event without its final line ends, for any chunks', () => {
  const ends = fc.constantFrom('\n', '\r\n', '\r')
  const ending = fc.constantFrom('', '\n', '\r', '\r\n', '\r\n\r', '\n\n', '\r\r', '\r\n\r\n')
  const chunking = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 8 })
  fc.assert(
    fc.property(ends, ending, chunking, fc.boolean(), (end, lastEnd, sizes, named) => {
      const last = named ? `event: done${end}data: two` : 'data: two'
      let rest = Buffer.from(`data: one${end}${end}${last}${lastEnd}`)
      const chunks = sizes.map((size) => {
        const chunk = rest.subarray(0, size)
        rest = rest.subarray(size)
        return chunk
      })
      expect(recordsOf([...chunks, rest])).toEqual([
        { name: 'message', data: 'one' },
        { name: named ? 'done' : 'message', data: 'two' },
      ])
    }),
  )
})

test('the parser keeps no event and no stream above its limits', () => {
  const line = Buffer.from(`data: ${'x'.repeat(50)}\n\n`)
  const bounds = { maxEventBytes: 60, maxBytes: 200 }
  expect(eventsOf([line, line, line], bounds).length).toBe(3)
  expect(() => eventsOf([line, line, line, line], bounds)).toThrow(StreamTooLarge)
  expect(eventsOf([Buffer.from(`data: ${'x'.repeat(54)}`)], bounds).length).toBe(1)
  expect(() => eventsOf([Buffer.from(`data: ${'x'.repeat(55)}`)], bounds)).toThrow(StreamTooLarge)
  const comments = Buffer.from(': ping\n\n'.repeat(26))
  expect(() => eventsOf([comments], bounds)).toThrow(StreamTooLarge)
})

test.each([':\n\n', '\n', '\r', 'data:\n\n', 'data: null\n\n', 'event: a\n\n'])(
  'the parser ends a stream of more than a megabyte of %j without data, but not over events',
  (block) => {
    const stream = new SseParser({ maxEventBytes: 1_000, maxBytes: Infinity })
    const blocks = Buffer.from(block.repeat(Math.ceil(50_000 / block.length)))
    for (let sent = 0; sent < 3; sent += 1) {
      for (let times = 0; times < 15; times += 1) stream.push(blocks)
      const events = stream.push(Buffer.from('data: one\n\n'))
      expect(events.filter(({ data }) => hasData(data))).toEqual([{ name: 'message', data: 'one' }])
    }
    const pushMany = (): void => {
      for (let times = 0; times < 25; times += 1) stream.push(blocks)
    }
    expect(pushMany).toThrow(StreamTooLarge)
  },
)
