import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileArchive } from '../../../src/adapters/objects/open.ts'
import { yearReader } from '../../../src/adapters/objects/archive.ts'
import type { Archive, Ledger } from '../../../src/domain/ports.ts'
import type { LedgerRow } from '../../../src/domain/year/ledger.ts'
import { chainOf, headAt, publication } from '../../domain/year/ledger-rows.ts'
import { appendNow, fill, openLedger } from '../ledger/open-ledger.ts'
import { DAMAGED, UNAVAILABLE } from '../../support/refusals.ts'

const ROWS = chainOf(
  Array.from({ length: 20 }, (_, day) => publication(`2026-03-${String(day + 1).padStart(2, '0')}`)),
)

interface Year {
  ledger: Ledger
  archive: Archive
  root: string
  /** Appends the next entry, with its head. */
  publish(): Promise<void>
}

/** A real ledger and archive with `entries` entries, of which the first `heads` have a head. */
async function year(entries: number, heads: number): Promise<Year> {
  const opened = await openLedger()
  const root = join(dirname(opened.path), 'objects')
  mkdirSync(root)
  const archive = fileArchive(root)
  const token = await fill(opened, { legacy: [], rows: ROWS.slice(0, entries) })
  for (let seq = 1; seq <= heads; seq += 1) await archive.putHead(headAt(ROWS, seq))
  let seq = entries
  return {
    ledger: opened.ledger,
    archive,
    root,
    async publish() {
      seq += 1
      await appendNow(opened.ledger, ROWS[seq - 1] as LedgerRow, token)
      await archive.putHead(headAt(ROWS, seq))
    },
  }
}

/** The ledger, before each of whose readings something happens; `readings` counts them. */
function whenRead(
  ledger: Ledger,
  before: (reading: number) => Promise<void>,
): { read: Ledger['read']; readings: () => number } {
  let readings = 0
  return {
    async read() {
      readings += 1
      await before(readings)
      return ledger.read()
    },
    readings: () => readings,
  }
}

describe('a reading of both ledgers and the head', () => {
  test.each([
    [0, 0],
    [1, 0],
    [1, 1],
    [3, 3],
    [4, 3],
  ])('holds for %i entries with %i heads', async (entries, heads) => {
    const { ledger, archive } = await year(entries, heads)
    const { proved, head } = await yearReader(ledger, archive).read()
    expect(proved.entries).toHaveLength(entries)
    expect(head).toEqual(heads === 0 ? null : headAt(ROWS, heads))
  })

  test.each([
    [2, 0],
    [5, 3],
  ])('is refused for %i entries with %i heads, after one look', async (entries, heads) => {
    const { ledger, archive } = await year(entries, heads)
    const watched = whenRead(ledger, () => Promise.resolve())
    await expect(yearReader(watched, archive).read()).rejects.toMatchObject(DAMAGED)
    expect(watched.readings()).toBe(1)
  })

  test('is refused for a ledger that is shorter than its newest head', async () => {
    const { ledger, archive } = await year(2, 2)
    await archive.putHead(headAt(ROWS, 3))
    await expect(yearReader(ledger, archive).read()).rejects.toMatchObject(DAMAGED)
  })

  test('is refused for a damaged head', async () => {
    const { ledger, archive, root } = await year(2, 2)
    writeFileSync(join(root, 'heads/3'), '{"seq":3')
    await expect(yearReader(ledger, archive).read()).rejects.toMatchObject(DAMAGED)
  })

  test('is unavailable when the object store is', async () => {
    const { ledger, root } = await year(2, 2)
    await expect(yearReader(ledger, fileArchive(`${root}-elsewhere`)).read()).rejects.toMatchObject(
      UNAVAILABLE,
    )
  })

  test('holds when one publication comes between the head and the ledger', async () => {
    const { ledger, archive, publish } = await year(2, 2)
    const watched = whenRead(ledger, publish)
    const { proved, head } = await yearReader(watched, archive).read()
    expect(proved.entries).toHaveLength(3)
    expect(head?.seq).toBe(2)
    expect(watched.readings()).toBe(1)
  })

  test('is repeated when several publications come between the head and the ledger', async () => {
    const { ledger, archive, publish } = await year(2, 2)
    const watched = whenRead(ledger, async (reading) => {
      if (reading > 2) return
      for (let count = 0; count < 3; count += 1) await publish()
    })
    const { proved, head } = await yearReader(watched, archive).read()
    expect(proved.entries).toHaveLength(8)
    expect(head?.seq).toBe(8)
    expect(watched.readings()).toBe(3)
  })

  test('gives up when it is overtaken again and again', async () => {
    const { ledger, archive, publish } = await year(2, 2)
    const watched = whenRead(ledger, async () => {
      for (let count = 0; count < 3; count += 1) await publish()
    })
    await expect(yearReader(watched, archive).read()).rejects.toMatchObject(DAMAGED)
    expect(watched.readings()).toBe(5)
  })
})
