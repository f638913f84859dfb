import { describe, expect, test } from 'vitest'
import { proveLedger } from '../../../src/domain/year/check.ts'
import { sealEntry } from '../../../src/domain/year/chain.ts'
import type { Attempt, FoundingMark, LedgerContents } from '../../../src/domain/year/ledger.ts'
import { sealFounding } from '../../../src/domain/year/legacy-import.ts'
import type { Founding } from '../../../src/domain/year/legacy-import.ts'
import { chainOf, gap, headAt, legacyRow, publication } from '../../domain/year/ledger-rows.ts'
import { anyLease, appendNow, leaseOf } from './open-ledger.ts'
import type { LedgerOpener, OpenLedger } from './open-ledger.ts'

const LEGACY = [legacyRow(1, '2025-12-30'), legacyRow(2, '2025-12-31', { kind: 'Größe “x” 漢字 😀 \u0001' })]

const FOUNDING: Founding = {
  legacy: LEGACY,
  rows: chainOf([
    publication('2026-01-01', { publicationId: 'one', algorithmVersion: 'top-year-v2' }),
    publication('2026-01-02', { publicationId: 'two', algorithmVersion: 'top-year-v2' }),
  ]),
}

const NOW = Date.UTC(2026, 2, 1)
const SEAL = sealFounding(FOUNDING, NOW)
const MARK: FoundingMark = { seq: 2, leaf: headAt(FOUNDING.rows, 2).leaf, beganAt: NOW }

const EMPTY: LedgerContents = { rows: [], legacy: [], founding: null }

interface Guard {
  token: string
  now: number
}

/** A ledger with a lease of ten minutes, while it is held and at the moment it ends. */
async function leasedIn(open: LedgerOpener): Promise<OpenLedger & Record<'held' | 'ended', Guard>> {
  const opened = await open()
  const forMs = 600_000
  const token = await leaseOf(opened.ledger, NOW, forMs)
  return { ...opened, held: { token, now: NOW + forMs - 1 }, ended: { token, now: NOW + forMs } }
}

async function begunIn(open: LedgerOpener): Promise<OpenLedger & { guard: Guard }> {
  const opened = await open()
  const guard = { token: await anyLease(opened.ledger), now: NOW }
  expect(await opened.ledger.beginFounding(MARK, guard)).toBeNull()
  return { ...opened, guard }
}

/** Contract of every ledger engine: founding an archive. */
export function foundingContract(engine: string, open: LedgerOpener): void {
  const begun = () => begunIn(open)
  const leased = () => leasedIn(open)

  describe(`a begun founding in ${engine}`, () => {
    test('a begun founding is read back with the time of its first beginning', async () => {
      const { ledger, guard } = await begun()
      expect(await ledger.beginFounding({ ...MARK, beganAt: NOW + 5 }, guard)).toBeNull()
      expect(await ledger.read()).toEqual({ ...EMPTY, founding: MARK })
    })

    test('only one founding can be begun', async () => {
      const { ledger, guard } = await begun()
      for (const changes of [{ leaf: SEAL.leaf }, { seq: 1 }])
        expect(await ledger.beginFounding({ ...MARK, ...changes }, guard)).toBe('ledger-moved')
      const rows = chainOf([publication('2026-01-01', { publicationId: 'other' })])
      const other = { legacy: [], rows }
      expect(await ledger.commitFounding(other, sealFounding(other, NOW), guard)).toBe('ledger-moved')
      const none = { legacy: LEGACY, rows: [] }
      expect(await ledger.commitFounding(none, sealFounding(none, NOW), guard)).toBe('ledger-moved')
      expect(await ledger.read()).toEqual({ ...EMPTY, founding: MARK })
    })

    test('a begun founding admits no entry of another kind or chain before it, from any writer', async () => {
      const { ledger, guard } = await begun()
      const [own] = chainOf([gap('2026-01-05')])
      if (!own) throw new Error('no entry')
      await expect(appendNow(ledger, own, guard.token)).rejects.toThrow('another founding was begun')
    })

    test.each([
      'UPDATE OR REPLACE founding SET seq = 9',
      'DELETE FROM founding',
      "INSERT OR REPLACE INTO founding VALUES (1, 1, 'x', 1)",
      "REPLACE INTO founding VALUES (1, 1, 'x', 1)",
      "INSERT INTO founding VALUES (2, 1, 'x', 1)",
    ])('a begun founding is permanent: %s', async (statement) => {
      const { ledger, raw } = await begun()
      await expect(raw.execute(statement)).rejects.toThrow()
      expect((await ledger.read()).founding).toEqual(MARK)
    })
  })

  describe(`a founding in ${engine}`, () => {
    test('a founding writes both ledgers and the seal, and they prove', async () => {
      const { ledger, guard } = await begun()
      expect(await ledger.commitFounding(FOUNDING, SEAL, guard)).toBeNull()
      const contents = await ledger.read()
      expect(contents).toEqual({ legacy: LEGACY, rows: [...FOUNDING.rows, SEAL], founding: MARK })
      expect(proveLedger(contents, headAt(contents.rows, 3)).timeline).toHaveLength(4)
      expect(await ledger.commitFounding(FOUNDING, SEAL, guard)).toBe('ledger-moved')
    })

    test('a founding of versioned rows needs the mark, and one of legacy rows alone needs none', async () => {
      const { ledger } = await open()
      const guard = { token: await anyLease(ledger), now: NOW }
      expect(await ledger.commitFounding(FOUNDING, SEAL, guard)).toBe('ledger-moved')
      expect(await ledger.read()).toEqual(EMPTY)
      const founding = { legacy: LEGACY, rows: [] }
      expect(await ledger.commitFounding(founding, sealFounding(founding, NOW), guard)).toBeNull()
      expect(proveLedger(await ledger.read(), null).timeline).toHaveLength(2)
    })

    test('a founding is neither begun nor written in a ledger with an entry', async () => {
      const { ledger } = await open()
      const token = await anyLease(ledger)
      const rows = chainOf([gap('2026-01-05')])
      for (const row of rows) await appendNow(ledger, row, token)
      const guard = { token, now: NOW }
      expect(await ledger.beginFounding(MARK, guard)).toBe('ledger-moved')
      const none = { legacy: LEGACY, rows: [] }
      expect(await ledger.commitFounding(none, sealFounding(none, NOW), guard)).toBe('ledger-moved')
      expect(await ledger.read()).toEqual({ rows, legacy: [], founding: null })
    })

    test.each([
      ['a row', [legacyRow(9, '2025-12-29')]],
      ['as many rows, but others', [legacyRow(8, '2025-12-28'), legacyRow(9, '2025-12-29')]],
    ])('a founding writes nothing into a legacy ledger that has %s', async (_what, there) => {
      const { ledger, addLegacy, guard } = await begun()
      await addLegacy(there)
      expect(await ledger.commitFounding(FOUNDING, SEAL, guard)).toBe('ledger-moved')
      expect(await ledger.read()).toEqual({ ...EMPTY, legacy: there, founding: MARK })
    })

    test('a founding and its beginning need an unexpired lease', async () => {
      const { ledger, held, ended } = await leased()
      const others = [ended, { ...held, token: 'nobody' }]
      for (const guard of others) expect(await ledger.beginFounding(MARK, guard)).toBe('lease-lost')
      expect(await ledger.read()).toEqual(EMPTY)
      expect(await ledger.beginFounding(MARK, held)).toBeNull()
      for (const guard of others)
        expect(await ledger.commitFounding(FOUNDING, SEAL, guard)).toBe('lease-lost')
      expect(await ledger.read()).toEqual({ ...EMPTY, founding: MARK })
      expect(await ledger.commitFounding(FOUNDING, SEAL, held)).toBeNull()
    })

    test('a founding writes nothing if a row in the middle cannot be written', async () => {
      const { ledger, guard } = await begun()
      const twice = { ...FOUNDING, legacy: [...LEGACY, { ...legacyRow(1, '2025-12-30'), position: 3 }] }
      await expect(ledger.commitFounding(twice, SEAL, guard)).rejects.toThrow('the legacy ledger is closed')
      expect(await ledger.read()).toEqual({ ...EMPTY, founding: MARK })
    })
  })

  describe(`a ledger adopted by ${engine}`, () => {
    const own = sealEntry(gap('2026-01-05'), 4, NOW + 1, SEAL.leaf)
    const founded: LedgerContents = { legacy: LEGACY, rows: [...FOUNDING.rows, SEAL], founding: MARK }
    const longer: LedgerContents = { ...founded, rows: [...founded.rows, own] }
    const ATTEMPTS: Attempt[] = [
      { asOfDay: '2026-01-05', attempt: 1, startedAt: NOW - 9, failedAt: NOW - 8, reason: 'a reason “x” 😀' },
      { asOfDay: '2026-01-05', attempt: 2, startedAt: NOW - 7, failedAt: null, reason: null },
      { asOfDay: '2026-01-06', attempt: 1, startedAt: NOW - 6, failedAt: null, reason: null },
    ]

    test('an adopted ledger is read back with its mark and its attempts', async () => {
      const { ledger, held } = await leased()
      expect(await ledger.adopt(founded, ATTEMPTS.slice(0, 1), EMPTY, held)).toBeNull()
      expect(await ledger.read()).toEqual(founded)
      expect(await ledger.attempts()).toEqual(ATTEMPTS.slice(0, 1))
      expect(await ledger.adopt(longer, ATTEMPTS, founded, held)).toBeNull()
      expect(await ledger.read()).toEqual(longer)
      expect(await ledger.attempts()).toEqual(ATTEMPTS)
    })

    test('an adoption leaves an existing attempt unchanged', async () => {
      const { ledger, held } = await leased()
      expect(await ledger.countAttempt('2026-01-05', 1, NOW, held.token)).toBe(true)
      expect(await ledger.adopt(founded, ATTEMPTS, EMPTY, held)).toBeNull()
      const [first, ...others] = await ledger.attempts()
      expect(first).toMatchObject({ attempt: 1, startedAt: NOW, failedAt: null })
      expect(others).toEqual(ATTEMPTS.slice(1))
    })

    const other = { ...EMPTY, rows: chainOf(['01', '02', '03'].map((day) => gap(`2026-01-${day}`))) }
    const ofOtherLegacy = { ...EMPTY, legacy: [legacyRow(9, '2025-12-29')] }
    const shorter = { ...EMPTY, rows: FOUNDING.rows.slice(0, 1) }

    test.each<[string, LedgerContents, LedgerContents, LedgerContents]>([
      ['an entry was added since the comparison', founded, longer, EMPTY],
      ['another chain of the same length is there', founded, other, EMPTY],
      ['the comparison was with another chain', founded, { ...other, legacy: LEGACY }, other],
      ['an entry of the comparison is missing', EMPTY, { ...founded, legacy: [] }, shorter],
      ['a legacy row was added since the comparison', ofOtherLegacy, founded, EMPTY],
    ])('an adoption writes nothing if %s', async (_what, stored, contents, before) => {
      const { ledger, addLegacy, held } = await leased()
      if (stored.rows.length > 0) await ledger.adopt(stored, [], EMPTY, held)
      else await addLegacy(stored.legacy)
      expect(await ledger.adopt(contents, ATTEMPTS, before, held)).toBe('ledger-moved')
      expect([await ledger.read(), await ledger.attempts()]).toEqual([stored, []])
    })

    test('an adoption needs an unexpired lease, and writes nothing without it', async () => {
      const { ledger, held, ended } = await leased()
      for (const guard of [ended, { ...held, token: 'nobody' }])
        expect(await ledger.adopt(founded, ATTEMPTS, EMPTY, guard)).toBe('lease-lost')
      expect([await ledger.read(), await ledger.attempts()]).toEqual([EMPTY, []])
    })
  })
}
