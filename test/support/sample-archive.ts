import type { H3 } from 'h3'
import { sha256Hex } from '../../src/domain/digest.ts'
import type { Objects, YearReader } from '../../src/domain/year/ports.ts'
import { addDays, formatInstant } from '../../src/domain/time.ts'
import type { Day } from '../../src/domain/time.ts'
import { GENESIS_LEAF, leafOf } from '../../src/domain/year/chain.ts'
import { proveLedger } from '../../src/domain/year/check.ts'
import type { Head, LedgerContents, LedgerRow, Manifest } from '../../src/domain/year/ledger.ts'
import type { ServerPorts } from '../../src/server/app.ts'
import {
  chainOf,
  gap,
  headAt,
  identityOf,
  legacyRow,
  legacySeal,
  manifest,
} from '../domain/year/ledger-rows.ts'
import { openApp } from './api-client.ts'

/** An archive in memory: ledgers, heads and objects that belong together. */
export interface SampleArchive {
  contents: LedgerContents
  head: Head | null
  objects: Map<string, Uint8Array>
}

const FIRST_DAY: Day = '2026-01-01'

/**
 * Two legacy publications, an imported one at the very time of the second, the seal, then a publication a day with one
 * gap.
 *
 * @param days own publications after the seal
 * @param marker stands in every body, so that another marker makes another archive of the same days
 * @param ownVersion version of the own publications
 */
export function sampleArchive(days = 3, marker = 'a', ownVersion = 2): SampleArchive {
  const objects = new Map<string, Uint8Array>()
  const archived = (asOfDay: Day, version: number, overrides: Partial<Manifest> = {}): Manifest => {
    const named = manifest(asOfDay, {
      publicationId: `top-year-v${version}-${asOfDay}`,
      algorithmVersion: `top-year-v${version}`,
      schemaVersion: version,
      ...overrides,
    })
    const bytes = envelopeOf(named, marker)
    objects.set(sha256Hex(bytes), bytes)
    return { ...named, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }
  }
  const legacy = [0, 1].map((index) => {
    const asOfDay = addDays(FIRST_DAY, index)
    return legacyRow(index + 1, asOfDay, archived(asOfDay, 1))
  })
  const hiding = archived(addDays(FIRST_DAY, 2), 2, { publishedAt: legacy[1]?.publishedAt ?? 0 })
  const own = Array.from({ length: days }, (_, index) => archived(addDays(FIRST_DAY, 4 + index), ownVersion))
  const rows = chainOf([
    { kind: 'publication', manifest: hiding },
    legacySeal(legacy),
    gap(addDays(FIRST_DAY, 3)),
    ...own.map((one) => ({ kind: 'publication' as const, manifest: one })),
  ])
  return { contents: { rows, legacy, founding: null }, head: headAt(rows, rows.length), objects }
}

/** The same archive with one row changed and everything after it sealed anew, heads included: a consistent lie. */
export function rewritten(archive: SampleArchive, seq: number, changes: Partial<LedgerRow>): SampleArchive {
  const rows = archive.contents.rows.slice(0, seq - 1)
  for (const row of archive.contents.rows.slice(seq - 1)) {
    const previousLeaf = rows.at(-1)?.leaf ?? GENESIS_LEAF
    const changed = { ...row, ...(row.seq === seq ? changes : {}), previousLeaf }
    rows.push({ ...changed, leaf: leafOf(changed) })
  }
  return { ...archive, contents: { ...archive.contents, rows }, head: headAt(rows, rows.length) }
}

/** The whole application over an archive in memory. */
export function openSampleApp(
  archive: SampleArchive,
  changes: Partial<ServerPorts> = {},
  logFiles: Pick<Objects['logFiles'], 'list' | 'get'> = { list: async () => [], get: async () => null },
): H3 {
  const read = async (): ReturnType<YearReader['read']> => {
    const { contents, head } = archive
    return { proved: proveLedger(contents, head), contents, head }
  }
  const refuse = (): Promise<never> => Promise.reject(new Error('not a part of the sample'))
  const none = async (): Promise<null> => null
  const ping = async (): Promise<void> => undefined
  const stores = {
    ledger: { changeToken: none, ping },
    objects: {
      get: async (sha256: string) => archive.objects.get(sha256) ?? null,
      newestHead: async () => archive.head,
      objectChangeToken: none,
      headChangeToken: none,
      ping,
      logFiles: { ...logFiles, put: refuse },
    },
    year: { read },
    feed: { newestSnapshot: none, snapshotFeed: none },
    search: { by: () => ({ search: refuse, similar: refuse, itemTrend: refuse, termTrend: refuse }) },
    recommendations: { current: none, run: none, versions: async () => [], put: refuse },
    audits: { newest: none },
  }
  return openApp(stores, changes)
}

function envelopeOf(one: Manifest, marker: string): Uint8Array {
  const payload = { coverage: {}, feed: { marker }, archivedAt: formatInstant(one.publishedAt) }
  return new TextEncoder().encode(JSON.stringify({ ...identityOf(one), ...payload }))
}
