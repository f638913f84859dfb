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

test('the parser yields the same events for any chunks and any line ends, also the last without its own', () => {
  const data = anyText({ minLength: 1 }).filter((text) => !/[\r\n]/.test(text))
  const event = fc.record({
    data: fc.array(data, { minLength: 1, maxLength: 3 }),
    comment: fc.boolean(),
    name: fc.boolean(),
  })
  const ends = fc.constantFrom('\n', '\r\n', '\r')
  const lastEnds = fc.constantFrom('', '\n', '\r', '\r\n', '\r\n\r', '\n\n', '\r\r', '\r\n\r\n')
  const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 })
  fc.assert(
    fc.property(
      fc.array(event),
      ends,
      lastEnds,
      sizes,
      fc.boolean(),
      (events, end, lastEnd, lengths, mark) => {
        const blocks = events.map(({ data: texts, comment, name }) =>
          [
            ...(comment ? [': ping'] : []),
            ...(name ? ['event: something', 'id: 1'] : []),
            ...texts.map((text) => `data: ${text}`),
          ].join(end),
        )
        let rest = Buffer.from(`${mark ? '\uFEFF' : ''}${blocks.join(end + end)}${lastEnd}`)
        const chunks: Buffer[] = []
        for (let at = 0; rest.length > 0; at += 1) {
          const length = lengths[at % lengths.length]
          chunks.push(rest.subarray(0, length))
          rest = rest.subarray(length)
        }
        expect(recordsOf(chunks)).toEqual(
          events.map(({ data: texts, name }) => ({
            name: name ? 'something' : 'message',
            data: texts.join('\n'),
          })),
        )
      },
    ),
    { numRuns: 200 },
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

test('the parser counts comments towards no later event', () => {
  const stream = new SseParser({ maxEventBytes: 100, maxBytes: 1_000_000 })
  for (let sent = 0; sent < 100; sent += 1) expect(stream.push(Buffer.from(': ping\r\r'))).toEqual([])
  expect(stream.push(Buffer.from('data: one\n\n'))).toEqual([{ name: 'message', data: 'one' }])
})

test('the parser keeps no event and no stream above its limits', () => {
  const line = Buffer.from(`data: ${'x'.repeat(50)}\n\n`)
  const bounds = { maxEventBytes: 60, maxBytes: 200 }
  expect(eventsOf([line, line, line], bounds).length).toBe(3)
  expect(() => eventsOf([line, line, line, line], bounds)).toThrow(StreamTooLarge)
  expect(eventsOf([Buffer.from(`data: ${'x'.repeat(54)}`)], bounds).length).toBe(1)
  expect(() => eventsOf([Buffer.from(`data: ${'x'.repeat(55)}`)], bounds)).toThrow(StreamTooLarge)
  const parts = Array.from('data: '.padEnd(62, 'x'), (character) => Buffer.from(character))
  expect(() => eventsOf(parts, bounds)).toThrow(StreamTooLarge)
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
