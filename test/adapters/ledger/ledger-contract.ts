import { describe, expect, test } from 'vitest'
import { proveLedger } from '../../../src/domain/year/check.ts'
import { sealEntry } from '../../../src/domain/year/chain.ts'
import type { LedgerRow, AppendRefusal } from '../../../src/domain/year/ledger.ts'
import {
  chainOf,
  gap,
  headAt,
  legacyRow,
  legacySeal,
  manifest,
  publication,
  sampleLedger,
} from '../../domain/year/ledger-rows.ts'
import { appendOnlyContract } from './append-only-contract.ts'
import { damageContract } from './damage-contract.ts'
import { foundingContract } from './founding-contract.ts'
import { leaseContract } from './lease-contract.ts'
import { appendNow, fill, leaseOf } from './open-ledger.ts'
import type { LedgerOpener } from './open-ledger.ts'

/** Everything a ledger database promises, whichever engine holds it. */
export const LEDGER_CONTRACTS = [
  ledgerContract,
  leaseContract,
  damageContract,
  appendOnlyContract,
  foundingContract,
]

export const LAST = chainOf([publication('2026-03-01')])[0] as LedgerRow

/** The row a publisher would append after {@link LAST}. */
export function next(overrides: Parameters<typeof manifest>[1] = {}): LedgerRow {
  const following = manifest('2026-03-02', overrides)
  return sealEntry({ kind: 'publication', manifest: following }, 2, following.publishedAt, LAST.leaf)
}

/** Contract of every ledger engine: reading and appending. */
function ledgerContract(engine: string, open: LedgerOpener): void {
  describe(`the contents of the ledger in ${engine}`, () => {
    test('the ledger is empty at first, and returns every column of every entry, also through another connection and after a restart', async () => {
      const opened = await open()
      expect(await opened.ledger.read()).toEqual({ rows: [], legacy: [], founding: null })
      await opened.ledger.ping()
      await fill(opened, sampleLedger())
      const read = await opened.ledger.read()
      expect(read).toEqual(sampleLedger())
      const { entries, timeline } = proveLedger(read, headAt(read.rows, read.rows.length))
      expect([entries.length, timeline.length]).toEqual([7, 7])
      const other = opened.another()
      expect(await other.ledger.read()).toEqual(sampleLedger())
      opened.close()
      other.close()
      expect(await opened.another().ledger.read()).toEqual(sampleLedger())
    })

    test('the ledger keeps text of any script and numbers of any safe size', async () => {
      const opened = await open()
      const odd = legacyRow(1, '2026-01-01', {
        publicationId: 'Größe “quoted” \\ 漢字 😀 \u2028 \u0001 \uFEFF',
        byteSize: Number.MAX_SAFE_INTEGER,
        windowStart: Number.MIN_SAFE_INTEGER,
        publishedAt: -1,
      })
      const contents = { founding: null, legacy: [odd], rows: chainOf([legacySeal([odd])]) }
      await fill(opened, contents)
      expect(await opened.ledger.read()).toEqual(contents)
      expect(proveLedger(await opened.ledger.read(), null).timeline).toHaveLength(1)
    })
  })

  describe(`an append to the ledger in ${engine}`, () => {
    const withinMs = 10_000

    const gapAt = (seq: number, leaf = LAST.leaf) => sealEntry(gap('2026-03-02'), seq, LAST.recordedAt, leaf)
    const earlierGap = sealEntry(gap('2026-03-02'), 2, LAST.recordedAt - 1, LAST.leaf)
    const publishedLater = (laterMs: number) => next({ publishedAt: (LAST.publishedAt ?? 0) + laterMs })

    test.each<[AppendRefusal | null, string, LedgerRow, number?]>([
      [null, 'the row that follows, at once', next()],
      [null, 'the row that follows, late but in time', next(), withinMs - 5_000],
      ['too-late', 'the row that follows, a moment too late', next(), withinMs + 1],
      ['clock-went-back', 'a row of the future', next(), -1],
      [null, 'a row published a millisecond after the last', publishedLater(1)],
      ['clock-went-back', 'a row published at the time of the last', publishedLater(0)],
      ['clock-went-back', 'a row published before the last', publishedLater(-1)],
      ['ledger-moved', 'the last row again', LAST],
      ['ledger-moved', 'a row one too far', gapAt(3)],
      ['ledger-moved', 'a row that continues another', gapAt(2, 'e'.repeat(64))],
      ['ledger-moved', 'a first row, where there is one', gapAt(1, '0'.repeat(64))],
      [null, 'a gap, recorded when the last entry was', gapAt(2)],
      ['clock-went-back', 'a gap, recorded before the last entry was', earlierGap],
      ['too-late', 'a gap, too late', gapAt(2), withinMs + 1],
    ])('an append returns %s for %s', async (refusal, _what, row, lateMs = 0) => {
      const opened = await open()
      const token = await fill(opened, { legacy: [], rows: [LAST] })
      const clock = (): number => row.recordedAt + lateMs
      expect(await opened.ledger.append(row, { token, clock, withinMs })).toBe(refusal)
      expect((await opened.another().ledger.read()).rows).toEqual(refusal === null ? [LAST, row] : [LAST])
    })

    test.each([
      ['at', 0, 'clock-went-back'],
      ['after', 1, null],
    ])(
      'an append compares a publication with the legacy ledger too: published %s its last time',
      async (_what, laterMs, refusal) => {
        const opened = await open()
        const legacy = [legacyRow(1, '2026-03-05'), legacyRow(2, '2026-03-01')]
        const token = await fill(opened, { legacy, rows: [] })
        const publishedAt = manifest('2026-03-05').publishedAt + laterMs
        const [row] = chainOf([publication('2026-03-02', { publishedAt })])
        expect(await appendNow(opened.ledger, row as LedgerRow, token)).toBe(refusal)
      },
    )

    test('an append is refused if another publisher has taken the lease', async () => {
      const { ledger } = await open()
      const first = await leaseOf(ledger, LAST.recordedAt - 2, 1)
      const second = await leaseOf(ledger, LAST.recordedAt, 1_000)
      for (const token of [first, 'never a token'])
        expect(await appendNow(ledger, LAST, token)).toBe('lease-lost')
      expect((await ledger.read()).rows).toEqual([])
      expect(await appendNow(ledger, LAST, second)).toBeNull()
    })

    test.each([
      ['a millisecond before its lease ends', -1, null],
      ['when its lease ends', 0, 'lease-lost'],
    ])('an append %s is judged by the clock inside the transaction', async (_what, afterEndMs, refusal) => {
      const { ledger } = await open()
      const token = await leaseOf(ledger, LAST.recordedAt, 5_000)
      const clock = (): number => LAST.recordedAt + 5_000 + afterEndMs
      expect(await ledger.append(LAST, { token, clock, withinMs })).toBe(refusal)
      expect((await ledger.read()).rows).toHaveLength(refusal === null ? 1 : 0)
    })

    test('one of two publishers wins that append the same entry at the same time', async () => {
      const opened = await open()
      const token = await fill(opened, { legacy: [], rows: [LAST] })
      const others = [opened, opened.another(), opened.another()]
      const refusals = await Promise.all(others.map(({ ledger }) => appendNow(ledger, next(), token)))
      expect(refusals.sort()).toEqual(['ledger-moved', 'ledger-moved', null])
      expect((await opened.ledger.read()).rows).toEqual([LAST, next()])
    })
  })
}
