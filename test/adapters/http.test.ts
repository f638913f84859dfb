import { Readable } from 'node:stream'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { redirectTarget, retryAt, timeOfResponse, readDecoded } from '../../src/adapters/http.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0, 500)

const after = (wait: string): Record<string, string> => ({ 'retry-after': wait })
const usedUp = (reset: string, remaining = '0'): Record<string, string> => ({
  'x-ratelimit-remaining': remaining,
  'x-ratelimit-reset': reset,
})

test.each([
  ['seconds', after('120'), NOW + 120_000],
  ['a date', after('Sat, 21 Nov 2026 12:05:00 GMT'), Date.UTC(2026, 10, 21, 12, 5)],
  ['a date that is over', after('Sat, 21 Nov 2026 11:00:00 GMT'), NOW],
  ['more than a year', after('999999999'), NOW + 366 * 86_400_000],
  ['a date more than a year ahead', after('Sat, 21 Nov 2099 12:05:00 GMT'), NOW + 366 * 86_400_000],
  ['a reset more than a year ahead', usedUp('9999999999'), NOW + 366 * 86_400_000],
  ['the Unix time of a reset', usedUp(String(NOW / 1000 + 29.5)), NOW + 30_000],
  ['the fraction of a second to a reset', usedUp('0.4'), NOW + 1_000],
  ['a reset that is over', usedUp('1700000000'), NOW],
  ['a reset of a limit that is not used up', usedUp('9', '3'), null],
  ['nothing', {}, null],
  ['a negative number', after('-5'), null],
  ['a fraction of a second more', after('1.5'), NOW + 1_500],
  ['a reset without a number', usedUp('soon'), null],
])('the retry time is read %s', (_how, headers, expected) => {
  expect(retryAt(headers, NOW)).toBe(expected)
})

describe('a body', () => {
  const TEXT = 'Größe '.repeat(10_000)
  const KIB = 1024

  const read = (coding: string | string[], bytes: string | Buffer, maxBytes = 1024 * KIB) =>
    readDecoded(
      { headers: { 'content-encoding': coding }, body: Readable.from([Buffer.from(bytes)]) },
      maxBytes,
    )

  test.each<[string | string[], Buffer]>([
    ['gzip', gzipSync(TEXT)],
    ['GZip', gzipSync(TEXT)],
    ['x-gzip', gzipSync(TEXT)],
    ['identity, gzip', gzipSync(TEXT)],
    [['gzip'], gzipSync(TEXT)],
    ['br', brotliCompressSync(TEXT)],
    ['deflate', deflateSync(TEXT)],
    ['deflate', deflateRawSync(TEXT)],
    ['identity', Buffer.from(TEXT)],
    ['', Buffer.from(TEXT)],
    ['utf-8', Buffer.from(TEXT)],
    ['constructor', Buffer.from(TEXT)],
    ['', gzipSync(TEXT)],
    ['gzip', Buffer.from(TEXT)],
    ['gzip', gzipSync(gzipSync(TEXT))],
    ['gzip, gzip', gzipSync(TEXT)],
    [['gzip', 'gzip'], gzipSync(gzipSync(TEXT))],
    ['gzip, br', brotliCompressSync(gzipSync(TEXT))],
    ['', Buffer.alloc(0)],
    ['gzip', Buffer.alloc(0)],
  ])('a body with the coding %j is decompressed', async (coding, bytes) => {
    const expected = bytes.byteLength === 0 ? bytes : Buffer.from(TEXT)
    const decoded = await read(coding, bytes)
    expect([expected.equals(decoded.bytes), decoded.isCut]).toEqual([true, false])
  })

  test.each([
    ['zstd', gzipSync(TEXT), /unsupported compression zstd/],
    ['gzip, gzip, gzip, gzip', gzipSync(TEXT), /unsupported compression gzip, gzip/],
    ['gzip, br', gzipSync(TEXT), /Decompression failed/],
    ['deflate', gzipSync(TEXT), /./],
    ['gzip', gzipSync(TEXT).subarray(0, 100), /unexpected end of file/],
  ])(
    'a body with the coding %s that cannot be decompressed is an error: %j',
    async (coding, bytes, message) => {
      await expect(read(coding, bytes)).rejects.toThrow(message)
    },
  )

  test.each([
    ['', Buffer.alloc(1024 * KIB)],
    ['gzip', gzipSync(Buffer.alloc(1024 * KIB))],
    ['deflate', deflateSync(Buffer.alloc(1024 * KIB))],
  ])('an endless body with the coding %j is read up to its limit only', async (coding, start) => {
    let pieces = 0
    const body = new Readable({
      read() {
        pieces += 1
        this.push(pieces === 1 ? start : Buffer.alloc(16 * KIB))
      },
    })
    const { bytes, isCut } = await readDecoded({ headers: { 'content-encoding': coding }, body }, 512 * KIB)
    expect([bytes.byteLength, isCut, body.destroyed]).toEqual([512 * KIB, true, true])
    // Data buffered in streams is added.
    expect(pieces).toBeLessThan(64)
  })
})

test.each([
  [undefined, ''],
  [Buffer.from('/p/café').toString('latin1'), '/p/caf%C3%A9'],
  ['/p/caf\xE9', '/p/caf%E9'],
])('the redirect to %j leads to %j', (location, target) => {
  expect(redirectTarget(location === undefined ? {} : { location })).toBe(target)
})

const date = 'Sat, 21 Nov 2026 12:05:00 GMT'
const at = Date.UTC(2026, 10, 21, 12, 5)

test.each([
  ['a date', { date }, at],
  ['a date and an age', { date, age: '3600' }, at + 3_600_000],
  ['a date of another form', { date: '2026-11-21T12:05:00Z' }, null],
  ['a date without a zone', { date: 'Sat Nov 21 12:05:00 2026' }, null],
  ['a negative age', { date, age: '-5' }, null],
  ['an age without a date', { age: '5' }, null],
  ['nothing', {}, null],
])('the time is read from %s', (_how, headers, expected) => {
  expect(timeOfResponse(headers)).toBe(expected)
})
