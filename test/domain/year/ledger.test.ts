import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { leafOf, sealLegacy } from '../../../src/domain/year/chain.ts'
import {
  formatHead,
  lastCompleteDay,
  leafText,
  legacyText,
  parseHead,
  parseLeafText,
  parseLegacyLine,
  windowEnding,
} from '../../../src/domain/year/ledger.ts'
import { sampleLedger } from './ledger-rows.ts'

const SAMPLE = sampleLedger()

describe('a published text', () => {
  const odd = '"\\ \u2028 \0 😀 é'

  test('the published text of a row is parsed back, with the leaf the text hashes to', () => {
    const [first] = SAMPLE.rows
    const others = first
      ? [{ ...first, publicationId: odd, byteSize: -1, publishedAt: Number.MAX_SAFE_INTEGER }]
      : []
    for (const { leaf: _leaf, ...row } of [...SAMPLE.rows, ...others])
      expect(parseLeafText(leafText(row))).toEqual({ ...row, leaf: leafOf(row) })
  })

  test('the text that a leaf or the seal covers has every column in the published order', () => {
    const named = (names: string) => Object.fromEntries(names.split(' ').map((name) => [name, name])) as never
    const manifest =
      'windowStart windowEnd generatedAt publishedAt sha256 byteSize reason attempts legacyRows legacyDigest'
    const entry = `previousLeaf seq kind recordedAt asOfDay publicationId algorithmVersion schemaVersion envelopeKind ${manifest}`
    const legacy =
      'position publicationId algorithmVersion schemaVersion envelopeKind asOfDay windowStart windowEnd generatedAt publishedAt sha256 byteSize'
    expect(leafText(named(entry))).toBe(JSON.stringify(['dash-year-ledger/1', ...entry.split(' ')]))
    expect(legacyText([named(legacy)])).toBe(JSON.stringify(legacy.split(' ')))
    const lines = SAMPLE.legacy.map((row) => legacyText([row]))
    expect(sealLegacy(SAMPLE.legacy)).toEqual({ rows: 3, digest: sha256Hex(lines.join('\n')) })
  })

  test('the published text of a legacy row is parsed back', () => {
    for (const row of SAMPLE.legacy.flatMap((each) => [each, { ...each, envelopeKind: odd }]))
      expect(parseLegacyLine(legacyText([row]))).toEqual(row)
  })

  const line = SAMPLE.rows.slice(0, 1).map(leafText).join('')

  test.each([
    ['it is not JSON', line.slice(0, -1)],
    ['it is another document', line.replace('dash-year-ledger/1', 'dash-year-ledger/2')],
    ['it has an element too few', line.replace(/,null\]$/, ']')],
    ['a number is written another way', line.replace(/"publication",(\d+)/, '"publication",$1.0')],
    ['a text is not well-formed', line.replace('top-year-publication', '\\ud800')],
  ])('a line is not a row when %s', (_what, other) => {
    expect(other).not.toBe(line)
    expect(parseLeafText(other)).toBeNull()
  })

  test('the line of an entry or one with a space is not a legacy row', () => {
    for (const other of [line, `${legacyText(SAMPLE.legacy.slice(0, 1))} `])
      expect(parseLegacyLine(other)).toBeNull()
  })
})

describe('a head file', () => {
  const HEAD = { seq: 7, leaf: 'ab'.repeat(32), time: Date.UTC(2026, 2, 1, 0, 10, 0, 5) }
  const text = formatHead(HEAD)

  test('a head file is one line of JSON, and is parsed back', () => {
    expect(text).toBe(`{"seq":7,"leaf":"${HEAD.leaf}","time":"2026-03-01T00:10:00.005Z"}\n`)
    expect(parseHead(Buffer.from(text))).toEqual(HEAD)
  })

  // prettier-ignore
  test.each([
    '', 'null',  text.replace('7', '0'), text.replace('7', '"7"'), text.replace('ab', 'AB'),
    text.replace('2026-03-01', '2026-02-30'), text.replace('{', '{"more":1,'),
    Uint8Array.of(0x7b, 0xc3, 0x28),
  ])('%j is not a head file', (other) => {
    expect(parseHead(Buffer.from(other))).toBeNull()
  })
})

describe('the window of a day', () => {
  test('the window of a day has 365 days and ends at the midnight after it', () => {
    const [windowStart, windowEnd] = [Date.UTC(2024, 0, 2), Date.UTC(2025, 0, 1)]
    const firstDay = '2024-01-02'
    expect(windowEnding('2024-12-31')).toEqual({ asOfDay: '2024-12-31', firstDay, windowStart, windowEnd })
  })

  test('the last complete day ended at this midnight or before', () => {
    expect(lastCompleteDay(Date.UTC(2026, 2, 15))).toBe('2026-03-14')
    expect(lastCompleteDay(Date.UTC(2026, 2, 15) - 1)).toBe('2026-03-13')
  })
})
