import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyText } from '../../support/any-text.ts'
import { leafOf } from '../../../src/domain/year/chain.ts'
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
import type { LedgerRow, LegacyRow } from '../../../src/domain/year/ledger.ts'
import { sampleLedger } from './ledger-rows.ts'

const SAMPLE = sampleLedger()

describe('a published text', () => {
  const text = anyText()
  const number = fc.maxSafeInteger()
  const required = new Set(['kind', 'previousLeaf', 'seq', 'recordedAt'])

  /** Any row with the columns of these: texts and numbers, and null where a column of a ledger entry may be. */
  function anyRow(rows: readonly object[], isRequired: (column: string) => boolean): fc.Arbitrary<object> {
    const columns = Object.keys(rows[0] ?? {}).filter((column) => column !== 'leaf')
    const cells = columns.map((column) => {
      const holdsText = rows.some((row) => typeof (row as Record<string, unknown>)[column] === 'string')
      const cell = holdsText ? text : number
      return [column, isRequired(column) ? cell : fc.option<string | number>(cell)] as const
    })
    return fc.record(Object.fromEntries(cells))
  }

  test('the published text of any row is parsed back, with the leaf the text hashes to', () => {
    fc.assert(
      fc.property(
        anyRow(SAMPLE.rows, (column) => required.has(column)),
        (drawn) => {
          const row = drawn as Omit<LedgerRow, 'leaf'>
          expect(parseLeafText(leafText(row))).toEqual({ ...row, leaf: leafOf(row) })
        },
      ),
    )
  })

  test('the published text of any legacy row is parsed back', () => {
    fc.assert(
      fc.property(
        anyRow(SAMPLE.legacy, () => true),
        (drawn) => {
          const row = drawn as LegacyRow
          expect(parseLegacyLine(legacyText([row]))).toEqual(row)
        },
      ),
    )
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
