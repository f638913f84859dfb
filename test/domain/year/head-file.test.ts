import { expect, test } from 'vitest'
import { formatHead, parseHead } from '../../../src/domain/year/ledger.ts'

const HEAD = { seq: 7, leaf: 'ab'.repeat(32), time: Date.UTC(2026, 2, 1, 0, 10, 0, 5) }
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

test('a head is one line of JSON, and is read back from it', () => {
  const text = formatHead(HEAD)
  expect(text).toBe(`{"seq":7,"leaf":"${HEAD.leaf}","time":"2026-03-01T00:10:00.005Z"}\n`)
  expect(parseHead(bytesOf(text))).toEqual(HEAD)
})

test.each([
  '',
  'null',
  '[]',
  formatHead(HEAD).replace('7', '0'),
  formatHead(HEAD).replace('7', '"7"'),
  formatHead(HEAD).replace('ab', 'AB'),
  formatHead(HEAD).replace('2026-03-01', '2026-02-30'),
  formatHead(HEAD).replace('{', '{"more":1,'),
])('%j is no head', (text) => {
  expect(parseHead(bytesOf(text))).toBeNull()
})

test('bytes that are not UTF-8 are no head', () => {
  expect(parseHead(Uint8Array.of(0x7b, 0xc3, 0x28))).toBeNull()
})
