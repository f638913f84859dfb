import { Refusal } from '../../../src/domain/refusal.ts'
import { formatInstant } from '../../../src/domain/time.ts'
import { GENESIS_LEAF, sealEntry, sealLegacy } from '../../../src/domain/year/chain.ts'
import { proveLedger } from '../../../src/domain/year/check.ts'
import type { ProvedLedger } from '../../../src/domain/year/chain.ts'
import type {
  EntryContent,
  Head,
  LedgerContents,
  LedgerRow,
  LegacyRow,
  Manifest,
} from '../../../src/domain/year/ledger.ts'

/** Builders of ledger rows: the chain is sealed by the code under test, everything else is spelled out. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A manifest of `asOfDay`, published five minutes after that day ended, but for what is overridden. */
export function manifest(asOfDay: string, overrides: Partial<Manifest> = {}): Manifest {
  const windowEnd = Date.parse(`${asOfDay}T00:00:00Z`) + DAY_MS
  return {
    publicationId: `top-year-v3-${asOfDay}`,
    algorithmVersion: 'top-year-v3',
    schemaVersion: 3,
    kind: 'top-year-publication',
    asOfDay,
    windowStart: windowEnd - 365 * DAY_MS,
    windowEnd,
    generatedAt: windowEnd + 299_000,
    publishedAt: windowEnd + 300_000,
    sha256: asOfDay.replaceAll('-', '').padEnd(64, 'abcdef'),
    byteSize: 12_345,
    ...overrides,
  }
}

/** The identity of a publication as its envelope spells it. */
export function identityOf(one: Manifest): Record<string, string | number> {
  const { schemaVersion, kind, publicationId, algorithmVersion, asOfDay } = one
  const times = {
    generatedAt: formatInstant(one.generatedAt),
    windowStart: formatInstant(one.windowStart),
    windowEnd: formatInstant(one.windowEnd),
  }
  return { schemaVersion, kind, publicationId, algorithmVersion, asOfDay, ...times }
}

/** True when something is refused as damaged. */
export function isDamaged(prove: () => unknown): boolean {
  try {
    prove()
    return false
  } catch (error) {
    if (error instanceof Refusal && error.code === 'storage_damaged') return true
    throw error
  }
}

export function publication(asOfDay: string, overrides: Partial<Manifest> = {}): EntryContent {
  return { kind: 'publication', manifest: manifest(asOfDay, overrides) }
}

export function gap(asOfDay: string): EntryContent {
  return { kind: 'gap', asOfDay, reason: 'missed', attempts: 0 }
}

export function legacySeal(legacy: readonly LegacyRow[]): EntryContent {
  return { kind: 'legacy-seal', ...sealLegacy(legacy) }
}

/** A row of the preserved version-1 ledger. */
export function legacyRow(position: number, asOfDay: string, overrides: Partial<Manifest> = {}): LegacyRow {
  const { kind, ...columns } = manifest(asOfDay, {
    publicationId: `top-year-${asOfDay}`,
    algorithmVersion: 'top-year-v1',
    schemaVersion: 1,
    ...overrides,
  })
  return { ...columns, position, envelopeKind: kind }
}

/**
 * Rows that chain from the first on. A publication is recorded when it is published, everything else at the time
 * of the entry before it.
 */
export function chainOf(contents: readonly EntryContent[]): LedgerRow[] {
  const rows: LedgerRow[] = []
  for (const content of contents) {
    const last = rows.at(-1)
    const recordedAt = content.kind === 'publication' ? content.manifest.publishedAt : (last?.recordedAt ?? 0)
    rows.push(sealEntry(content, rows.length + 1, recordedAt, last?.leaf ?? GENESIS_LEAF))
  }
  return rows
}

/** The head a publisher writes after the row with this sequence number. */
export function headAt(rows: readonly LedgerRow[], seq: number): Head {
  const row = rows[seq - 1]
  if (!row) throw new Error(`there is no entry ${seq}`)
  return { seq, leaf: row.leaf, time: row.recordedAt + 5 }
}

/** The proof of these entries under the head after the last of them. */
export function proved(contents: readonly EntryContent[], legacy: LegacyRow[] = []): ProvedLedger {
  const rows = chainOf(contents)
  return proveLedger({ rows, legacy, founding: null }, rows.length === 0 ? null : headAt(rows, rows.length))
}

/** An archive with every kind of entry: imported v2, the seal over three legacy rows, publications and both gaps. */
export function sampleLedger(): LedgerContents {
  const legacy = [legacyRow(1, '2025-12-30'), legacyRow(2, '2025-12-31'), legacyRow(3, '2026-01-01')]
  const rows = chainOf([
    publication('2026-01-02', {
      algorithmVersion: 'top-year-v2',
      schemaVersion: 2,
      publicationId: 'v2 of 2 January',
    }),
    legacySeal(legacy),
    publication('2026-01-03'),
    gap('2026-01-04'),
    { kind: 'gap', asOfDay: '2026-01-05', reason: 'attempts_spent', attempts: 3 },
    publication('2026-01-06'),
    publication('2026-01-07'),
  ])
  return { rows, legacy, founding: null }
}
