import * as fs from 'node:fs'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ledgerAuditor } from '../../../src/adapters/ledger/auditor.ts'
import type { AuditedContents } from '../../../src/domain/year/audit.ts'
import { sampleLedger } from '../../domain/year/ledger-rows.ts'
import { appendNow, fill, openLedger } from './open-ledger.ts'

vi.mock('node:fs', { spy: true })

const { rows: ROWS, legacy: LEGACY } = sampleLedger()

interface Crashed {
  path: string
  audit: () => Promise<AuditedContents | null>
  /** Makes the ledger what the writer that crashed on it had not come to. */
  goOn: () => void
}

/** A ledger of all but its last two rows with a journal that a crash left, so that an audit reads a copy of it. */
async function openCrashed(): Promise<Crashed> {
  const { path, url, ...opened } = await openLedger()
  const token = await fill(opened, { rows: ROWS.slice(0, -2), legacy: LEGACY })
  const early = fs.readFileSync(path)
  for (const row of ROWS.slice(-2)) await appendNow(opened.ledger, row, token)
  opened.close()
  const late = fs.readFileSync(path)
  fs.writeFileSync(path, early)
  fs.writeFileSync(`${path}-journal`, 'no journal that could be rolled back')
  const auditor = ledgerAuditor({ url, authToken: null }, { nativeBusyMs: 10, retryMs: 5_000 })
  return { path, audit: () => auditor.read(), goOn: () => fs.writeFileSync(path, late) }
}

/** Lets something happen each time right after the ledger itself was copied, before its journal is. */
function afterCopiesOf(path: string, happen: (copies: number) => void): void {
  const copyFileSync = vi.mocked(fs.copyFileSync)
  onTestFinished(() => void copyFileSync.mockReset())
  let copies = 0
  copyFileSync.mockImplementation((from, to) => {
    fs.writeFileSync(to, fs.readFileSync(from))
    if (from !== path) return
    copies += 1
    happen(copies)
  })
}

describe('a ledger that changes while it is copied', () => {
  test('is copied again, and told as it is then', async () => {
    const { path, audit, goOn } = await openCrashed()
    afterCopiesOf(path, (copies) => {
      if (copies === 1) goOn()
    })
    expect((await audit())?.rows).toEqual(ROWS.map((row) => ({ row })))
  })

  test('again and again is given up, with no word on what it holds', async () => {
    const { path, audit } = await openCrashed()
    let last = 0
    afterCopiesOf(path, (copies) => {
      last = copies
      fs.utimesSync(path, copies, copies)
    })
    await expect(audit()).rejects.toThrow('keeps changing while it is copied; audit it again')
    expect(last).toBe(5)
  })
})
