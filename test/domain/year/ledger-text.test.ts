import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { leafOf, sealLegacy } from '../../../src/domain/year/chain.ts'
import type { LedgerRow, LegacyRow } from '../../../src/domain/year/ledger.ts'
import { leafText, legacyText, parseLeafText, parseLegacyLine } from '../../../src/domain/year/ledger.ts'
import { sampleLedger } from './ledger-rows.ts'

const text = fc.string({ unit: 'grapheme' })
const number = fc.maxSafeInteger()
const textOrNull = fc.option(text)
const numberOrNull = fc.option(number)

const anyRow: fc.Arbitrary<Omit<LedgerRow, 'leaf'>> = fc.record({
  seq: number,
  kind: text,
  recordedAt: number,
  asOfDay: textOrNull,
  publicationId: textOrNull,
  algorithmVersion: textOrNull,
  schemaVersion: numberOrNull,
  envelopeKind: textOrNull,
  windowStart: numberOrNull,
  windowEnd: numberOrNull,
  generatedAt: numberOrNull,
  publishedAt: numberOrNull,
  sha256: textOrNull,
  byteSize: numberOrNull,
  reason: textOrNull,
  attempts: numberOrNull,
  legacyRows: numberOrNull,
  legacyDigest: textOrNull,
  previousLeaf: text,
})

const anyLegacyRow: fc.Arbitrary<LegacyRow> = fc.record({
  position: number,
  publicationId: text,
  algorithmVersion: text,
  schemaVersion: number,
  envelopeKind: text,
  asOfDay: text,
  windowStart: number,
  windowEnd: number,
  generatedAt: number,
  publishedAt: number,
  sha256: text,
  byteSize: number,
})

test('any row is read back from its text, with the leaf the text hashes to', () => {
  fc.assert(
    fc.property(anyRow, (row) => {
      expect(parseLeafText(leafText(row))).toEqual({ ...row, leaf: leafOf(row) })
    }),
  )
})

test('any legacy row is read back from its line', () => {
  fc.assert(
    fc.property(anyLegacyRow, (row) => {
      expect(parseLegacyLine(legacyText([row]))).toEqual(row)
    }),
  )
})

test('a leaf and a seal are the digests of the published texts', () => {
  const { rows, legacy } = sampleLedger()
  for (const row of rows) expect(sha256Hex(leafText(row))).toBe(row.leaf)
  expect(sealLegacy(legacy)).toEqual({ rows: 3, digest: sha256Hex(legacyText(legacy)) })
})

describe('a line is no row when', () => {
  const line = leafText(sampleLedger().rows[0] ?? neverRow())
  const changed: Record<string, string> = {
    'it is empty': '',
    'it is not JSON': line.slice(0, -1),
    'it is another document': line.replace('dash-year-ledger/1', 'dash-year-ledger/2'),
    'it has white space': line.replace(',', ', '),
    'it ends with a carriage return': `${line}\r`,
    'it has a byte order mark': `\uFEFF${line}`,
    'it has an element too many': `${line.slice(0, -1)},null]`,
    'it has an element too few': line.replace(/,null\]$/, ']'),
    'a number is written another way': line.replace(/"publication",(\d+)/, '"publication",$1.0'),
    'a number is no safe integer': line.replace(/"publication",\d+/, '"publication",9007199254740993'),
    'a number is a fraction': line.replace(/"publication",\d+/, '"publication",1.5'),
    'a number is a text': line.replace(/"publication",(\d+)/, '"publication","$1"'),
    'a text is escaped without need': line.replace('"publication"', '"\\u0070ublication"'),
    'a text is not well-formed': line.replace('top-year-publication', '\\ud800'),
    'a required column is null': line.replace('"publication"', 'null'),
  }
  test.each(Object.entries(changed))('%s', (_what, other) => {
    expect(other).not.toBe(line)
    expect(parseLeafText(other)).toBeNull()
  })

  test('it stands in the other ledger', () => {
    const { legacy } = sampleLedger()
    expect(parseLegacyLine(line)).toBeNull()
    expect(parseLeafText(legacyText(legacy.slice(0, 1)))).toBeNull()
    expect(parseLegacyLine(`${legacyText(legacy.slice(0, 1))} `)).toBeNull()
  })
})

function neverRow(): never {
  throw new Error('the sample ledger has a first row')
}
