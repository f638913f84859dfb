import { rmSync } from 'node:fs'
import { formatInstant } from '../../../src/domain/time.ts'
import { GENESIS_LEAF, sealEntry } from '../../../src/domain/year/chain.ts'
import type { LedgerRow, LegacyRow } from '../../../src/domain/year/ledger.ts'
import {
  ENTRY,
  damage,
  rowAt,
  publicationAt,
  publicationNamed,
  objectFile,
  headFile,
  overwrite,
  withFlippedBits,
  damageLedgerFile,
  damageLedger,
  damageEntries,
  damageLegacy,
  changeRow,
  withoutRow,
  reseal,
  rechain,
  forge,
  forgeNewestObject,
} from './damage.ts'
import type { Copy, Damage, SampleContents } from './damage.ts'

/** Damage of the ledger: a faulty disk, an attacker with access to its file only, a roll-back, a forger of both stores. */
export function ledgerDamage(sample: SampleContents): Damage[] {
  return [...entryRows(), ...legacyRows(sample), ...ledgerFile(), ...rollBacks(), ...forgeries()]
}

function entryRows(): Damage[] {
  const hour = 3_600_000
  const positions = { first: ENTRY.firstImported, seal: ENTRY.seal, middle: ENTRY.missedGap }
  const pairs = { 'two publications': [7, 8], 'the first two': [1, 2] } as const
  const earlier: Record<string, (row: LedgerRow) => Partial<LedgerRow>> = {
    published_at: ({ publishedAt }) => ({ publishedAt: Number(publishedAt) - hour }),
    recorded_at: ({ recordedAt }) => ({ recordedAt: recordedAt - hour }),
    'published_at and recorded_at': ({ publishedAt, recordedAt }) => ({
      publishedAt: Number(publishedAt) - hour,
      recordedAt: recordedAt - hour,
    }),
  }
  const inserted = (rows: readonly LedgerRow[]): LedgerRow[] => rows.toSpliced(4, 0, gapAfter(rows))
  return [
    damageEntries('the last one deleted', ['head_mismatch'], (rows) => withoutRow(rows, ENTRY.newest)),
    damageEntries('one inserted over another’s object', ['identity_mismatch'], (rows, copy) => [
      ...rows,
      publicationAfter(rows, copy),
    ]),
    damageEntries('one back-dated, its leaf recomputed', ['head_mismatch'], (rows) =>
      changeRow(rows, ENTRY.newest, (row) => reseal({ ...row, recordedAt: row.recordedAt - 1 })),
    ),
    ...Object.entries(positions).flatMap(([place, seq]) => [
      damageEntries(`the ${place} one deleted`, ['chain_broken'], (rows) => withoutRow(rows, seq)),
      damageEntries(
        `the ${place} one deleted, the chain recomputed`,
        ['head_mismatch', 'row_tampered'],
        (rows) => rechain(withoutRow(rows, seq)),
      ),
    ]),
    damageEntries('all deleted', ['head_mismatch'], () => []),
    damageEntries('one inserted in the middle', ['chain_broken'], (rows) => renumber(inserted(rows))),
    damageEntries('one inserted in the middle, the chain recomputed', ['head_mismatch'], (rows) =>
      rechain(inserted(rows)),
    ),
    damageEntries('one inserted that does not continue the chain', ['chain_broken'], (rows) => [
      ...rows,
      gapAfter(rows, rowAt(rows, ENTRY.previous).leaf),
    ]),
    damageEntries('two gaps in each other’s place', ['chain_broken'], (rows) =>
      renumber(swapRows(rows, ENTRY.missedGap, ENTRY.spentGap)),
    ),
    damageEntries('one inserted without its leaf', ['row_tampered'], (rows) => [
      ...rows,
      { ...gapAfter(rows), leaf: 'ab'.repeat(32) },
    ]),
    damageEntries('two inserted, chained', ['head_mismatch'], (rows) => {
      const longer = [...rows, gapAfter(rows)]
      return [...longer, reseal({ ...gapAfter(longer), asOfDay: '2026-01-21' })]
    }),
    damageEntries('one inserted whose object is not there', ['object_missing'], (rows, copy) => [
      ...rows,
      publicationAfter(rows, copy, 'cd'.repeat(32)),
    ]),
    damageEntries('a second seal at the end', ['chain_broken'], (rows) => {
      const { legacyRows: count, legacyDigest } = rowAt(rows, ENTRY.seal)
      const last = rowAt(rows, ENTRY.newest)
      const content = { kind: 'legacy-seal', rows: count ?? 0, digest: legacyDigest ?? '' } as const
      return [...rows, sealEntry(content, rows.length + 1, last.recordedAt, last.leaf)]
    }),
    ...Object.entries(pairs).map(([what, [one, other]]) =>
      damageEntries(`${what} in each other’s place`, ['chain_broken'], (rows) =>
        renumber(swapRows(rows, one, other)),
      ),
    ),
    ...Object.entries({ 'two gaps': [5, 6] as const, ...pairs }).map(([what, [one, other]]) =>
      damageEntries(`${what} in each other’s place, the chain recomputed`, ['head_mismatch'], (rows) =>
        rechain(swapRows(rows, one, other)),
      ),
    ),
    ...Object.entries(earlier).flatMap(([what, change]) =>
      [ENTRY.previous, ENTRY.newest].flatMap((seq) => [
        damageEntries(`entry ${seq} back-dated by its ${what}`, ['row_tampered'], (rows) =>
          changeRow(rows, seq, change),
        ),
        damageEntries(
          `entry ${seq} back-dated by its ${what}, its leaf recomputed`,
          ['head_mismatch'],
          (rows) => changeRow(rows, seq, (row) => reseal({ ...row, ...change(row) })),
        ),
        damageEntries(
          `entry ${seq} back-dated by its ${what}, the chain recomputed`,
          ['head_mismatch'],
          (rows) => rechain(changeRow(rows, seq, change)),
        ),
      ]),
    ),
  ]
}

/** A gap that continues the rows; another leaf than the last row's breaks the chain. */
function gapAfter(rows: readonly LedgerRow[], previousLeaf = rows.at(-1)?.leaf ?? GENESIS_LEAF): LedgerRow {
  const gap = { kind: 'gap', asOfDay: '2026-01-20', reason: 'missed', attempts: 0 } as const
  return sealEntry(gap, rows.length + 1, rows.at(-1)?.recordedAt ?? 0, previousLeaf)
}

/** Creates a publication of the next day with the newest one's object, or another. */
function publicationAfter(
  rows: readonly LedgerRow[],
  copy: Pick<Copy, 'sample'>,
  sha256?: string,
): LedgerRow {
  const { manifest } = publicationAt(copy, ENTRY.newest)
  const identity = { publicationId: 'top-year-v3-2026-01-08', asOfDay: '2026-01-08' }
  const publishedAt = manifest.publishedAt + 1
  const later = { ...manifest, ...identity, publishedAt, sha256: sha256 ?? manifest.sha256 }
  const content = { kind: 'publication', manifest: later } as const
  return sealEntry(content, rows.length + 1, publishedAt, rows.at(-1)?.leaf ?? GENESIS_LEAF)
}

function renumber(rows: readonly LedgerRow[]): LedgerRow[] {
  return rows.map((row, index) => ({ ...row, seq: index + 1 }))
}

function swapRows(rows: readonly LedgerRow[], first: number, second: number): LedgerRow[] {
  return rows.with(first - 1, rowAt(rows, second)).with(second - 1, rowAt(rows, first))
}

function legacyRows({ legacy: [first, middle, last] }: SampleContents): Damage[] {
  if (!first || !middle || !last) throw new Error('the sample has too few legacy rows')
  const another = (row: LegacyRow): LegacyRow => ({
    ...row,
    position: row.position + 1,
    publicationId: `${row.publicationId}-again`,
  })
  const others: Record<string, readonly LegacyRow[]> = {
    'the first one deleted': [middle, last],
    'the middle one deleted': [first, last],
    'all deleted': [],
    'one inserted': [first, middle, last, another(last)],
    'two in each other’s place': [first, { ...last, position: 2 }, { ...middle, position: 3 }],
    'one replaced by another': [first, middle, another(middle)],
    'one back-dated': [first, middle, { ...last, publishedAt: first.publishedAt - 1 }],
  }
  return [
    ...Object.entries(others).map(([what, rows]) => damageLegacy(what, () => rows)),
    damageLedger('the legacy table dropped', ['row_tampered'], () => ['DROP TABLE legacy_publications']),
  ]
}

/** SQLite's default page size. */
const PAGE_BYTES = 4_096

function ledgerFile(): Damage[] {
  const cells: Record<string, (sample: SampleContents) => string | null | undefined> = {
    'the digest of an entry': ({ rows }) => rowAt(rows, ENTRY.previous).sha256,
    'the reason of a gap': ({ rows }) => rowAt(rows, ENTRY.spentGap).reason,
    'the digest of the seal': ({ rows }) => rowAt(rows, ENTRY.seal).legacyDigest,
    'the leaf of the newest entry': ({ rows }) => rowAt(rows, ENTRY.newest).leaf,
    'the digest of a legacy row': ({ legacy }) => legacy[1]?.sha256,
  }
  const lengths: Record<string, (bytes: number) => number> = {
    'by its last byte': (bytes) => bytes - 1,
    'by its last page': (bytes) => bytes - PAGE_BYTES,
    'to its first page': () => PAGE_BYTES,
    'inside its header': () => 50,
  }
  const statements: Record<string, string> = {
    'a column dropped': 'ALTER TABLE entries DROP COLUMN reason',
    'a column renamed': 'ALTER TABLE entries RENAME COLUMN sha256 TO digest',
  }
  /** Where the page begins that holds the newest entry. */
  const pageIn = (bytes: Buffer, { rows }: SampleContents): number =>
    Math.floor(bytes.lastIndexOf(rowAt(rows, ENTRY.newest).sha256 ?? '') / PAGE_BYTES) * PAGE_BYTES
  const anyOf = ['row_tampered', 'chain_broken', 'head_mismatch'] as const
  return [
    damageLedger('the table of entries dropped', ['row_tampered'], () => ['DROP TABLE entries']),
    damageLedgerFile('cut to half of its pages', ['row_tampered'], (bytes) =>
      bytes.subarray(0, Math.floor(bytes.byteLength / PAGE_BYTES / 2) * PAGE_BYTES),
    ),
    damageLedgerFile('its header zeroed', ['row_tampered'], (bytes) => Buffer.from(bytes).fill(0, 0, 100)),
    ...Object.entries(cells).flatMap(([what, cell]) =>
      [0x01, 0x80].map((bit) =>
        damageLedgerFile(`bit ${bit} of ${what} flipped`, ['row_tampered'], (bytes, { sample }) => {
          const needle = Buffer.from(cell(sample) ?? '')
          let flipped: Uint8Array = bytes
          // Pages that were split hold a cell twice.
          for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1))
            flipped = withFlippedBits(flipped, at + (needle.byteLength >> 1), bit)
          return flipped
        }),
      ),
    ),
    ...Object.entries(lengths).map(([what, length]) =>
      damageLedgerFile(`cut ${what}`, ['row_tampered'], (bytes) =>
        bytes.subarray(0, length(bytes.byteLength)),
      ),
    ),
    damageLedgerFile('the first byte of its header flipped', ['row_tampered'], (bytes) =>
      withFlippedBits(bytes, 0, 1),
    ),
    damageLedgerFile('its page size damaged', ['row_tampered'], (bytes) => withFlippedBits(bytes, 16, 1)),
    damageLedgerFile('filled with something else', ['row_tampered'], (bytes) => Buffer.from(bytes).fill('x')),
    // An empty file is a database without tables: nothing is unreadable, but every head is left over.
    damageLedgerFile('replaced by an empty one', ['head_mismatch'], () => Buffer.alloc(0)),
    damageLedgerFile('a page of entries zeroed', anyOf, (bytes, { sample }) => {
      const page = pageIn(bytes, sample)
      return Buffer.from(bytes).fill(0, page, page + PAGE_BYTES)
    }),
    damageLedgerFile('a page of entries as it once was', anyOf, (bytes, { sample }) => {
      const page = pageIn(bytes, sample)
      const mixed = Buffer.from(bytes)
      mixed.set(sample.olderLedgers.get(ENTRY.previous)?.subarray(page, page + PAGE_BYTES) ?? [], page)
      return mixed
    }),
    ...Object.entries(statements).map(([what, statement]) =>
      damageLedger(`ledger: ${what}`, ['row_tampered'], () => [statement]),
    ),
    damageLedger('ledger: both tables dropped', ['head_mismatch'], () => [
      'DROP TABLE entries',
      'DROP TABLE legacy_publications',
    ]),
  ]
}

function rollBacks(): Damage[] {
  return [
    damage('roll-back of the ledger file by two entries', ['head_mismatch'], (copy) =>
      rollBackLedger(copy, ENTRY.beforePrevious),
    ),
    damage('roll-back of the object store by one publication', ['object_missing'], (copy) =>
      rollBackObjects(copy, [ENTRY.newest]),
    ),
    damage('roll-back of both stores by one publication', 'kept head', (copy) => {
      rollBackLedger(copy, ENTRY.previous)
      rollBackObjects(copy, [ENTRY.newest])
    }),
    damage('roll-back of the ledger file by one entry', ['head_mismatch'], (copy) =>
      rollBackLedger(copy, ENTRY.previous),
    ),
    damage('roll-back of the object store by two publications', ['head_mismatch'], (copy) =>
      rollBackObjects(copy, [ENTRY.previous, ENTRY.newest]),
    ),
    damage('roll-back of both stores by two publications', 'kept head', (copy) => {
      rollBackLedger(copy, ENTRY.beforePrevious)
      rollBackObjects(copy, [ENTRY.previous, ENTRY.newest])
    }),
    damage('both stores emptied', 'kept head', ({ ledgerPath, objectsPath }) => {
      overwrite(ledgerPath, '')
      for (const area of ['sha256', 'heads']) rmSync(`${objectsPath}/${area}`, { recursive: true })
    }),
  ]
}

function rollBackLedger({ ledgerPath, sample }: Copy, seq: number): void {
  const older = sample.olderLedgers.get(seq)
  if (!older) throw new Error(`the sample kept no ledger of entry ${seq}`)
  overwrite(ledgerPath, older)
}

function rollBackObjects(copy: Copy, seqs: readonly number[]): void {
  for (const seq of seqs) {
    rmSync(objectFile(copy, publicationAt(copy, seq)))
    rmSync(headFile(copy, seq))
  }
}

function forgeries(): Damage[] {
  const { newest, previous, missedGap, spentGap, seal } = ENTRY
  type Edit = [
    what: string,
    code: 'identity_mismatch' | 'size_mismatch' | 'row_tampered' | 'chain_broken',
    seq: number,
    change: (row: LedgerRow, rows: readonly LedgerRow[]) => Partial<LedgerRow>,
  ]
  const edits: Edit[] = [
    [
      'an entry back-dated',
      'identity_mismatch',
      newest,
      (row) => ({ publishedAt: Number(row.publishedAt) - 1 }),
    ],
    [
      'an entry with a time that is no date',
      'identity_mismatch',
      newest,
      () => ({ publishedAt: 8_640_000_000_000_001 }),
    ],
    ['an entry of another day', 'identity_mismatch', newest, () => ({ asOfDay: '2026-01-08' })],
    ['an entry of another size', 'size_mismatch', newest, () => ({ byteSize: 1 })],
    [
      'a digest in upper case',
      'row_tampered',
      newest,
      (row) => ({ sha256: row.sha256?.toUpperCase() ?? null }),
    ],
    ['an entry of an unknown kind', 'row_tampered', missedGap, () => ({ kind: 'hole' })],
    ['a gap without a reason', 'row_tampered', missedGap, () => ({ reason: null })],
    ['a gap on a day that is none', 'row_tampered', missedGap, () => ({ asOfDay: '2026-02-30' })],
    [
      'an entry recorded before the one before it',
      'chain_broken',
      newest,
      (_row, rows) => ({ recordedAt: rowAt(rows, previous).recordedAt - 1 }),
    ],
  ]
  const editedLegacy = (changes: Partial<LegacyRow>) => (legacy: readonly LegacyRow[]) =>
    legacy.map((row) => (row.position === 2 ? { ...row, ...changes } : row))
  return [
    forge('an entry names another publication’s object', ['identity_mismatch'], ({ rows }, copy) => {
      const { sha256, byteSize } = publicationAt(copy, ENTRY.beforePrevious).manifest
      return { rows: changeRow(rows, ENTRY.previous, () => ({ sha256, byteSize })) }
    }),
    forgeNewestObject('an object with titles that were never verified', ['envelope_invalid'], (text) =>
      text.replace('"event_title_verified":true', '"event_title_verified":false'),
    ),
    forge('an entry published before the one before it', ['chain_broken'], ({ rows }) => ({
      rows: changeRow(rows, ENTRY.newest, () => ({
        publishedAt: rowAt(rows, ENTRY.previous).recordedAt - 1,
      })),
    })),
    forge('the seal taken out', ['row_tampered'], ({ rows }) => ({ rows: withoutRow(rows, ENTRY.seal) })),
    forge('a gap taken out', 'kept head', ({ rows }) => ({ rows: withoutRow(rows, ENTRY.spentGap) })),
    forgeNewestObject('the newest publication given other titles', 'kept head', (text) =>
      text.replaceAll('title of', 'another of'),
    ),
    ...edits.map(([what, code, seq, change]) =>
      forge(what, [code], ({ rows }) => ({ rows: changeRow(rows, seq, (row) => change(row, rows)) })),
    ),
    forge('a legacy row of another day', ['identity_mismatch'], ({ legacy }) => ({
      legacy: editedLegacy({ asOfDay: '2025-11-11' })(legacy),
    })),
    forge('a legacy row of another size', ['size_mismatch'], ({ legacy }) => ({
      legacy: editedLegacy({ byteSize: 1 })(legacy),
    })),
    forge('a path in a digest column', ['row_tampered'], ({ rows }) => ({
      rows: changeRow(rows, newest, () => ({ sha256: '../../etc/passwd' })),
    })),
    forge('a path in a digest of a legacy row', ['row_tampered'], ({ legacy }) => ({
      legacy: editedLegacy({ sha256: '../../etc/passwd' })(legacy),
    })),
    forge('a second seal', ['chain_broken'], ({ rows }) => ({
      rows: [...rows, { ...rowAt(rows, seal), recordedAt: rowAt(rows, newest).recordedAt }],
    })),
    forgeNewestObject('an object that is no JSON', ['envelope_invalid'], (text) => text.slice(1)),
    forgeNewestObject('an object of another version', ['identity_mismatch'], (text) =>
      text.replace('"schemaVersion":3', '"schemaVersion":2'),
    ),
    forge('a gap given another reason', 'kept head', ({ rows }) => ({
      rows: changeRow(rows, spentGap, () => ({ reason: 'missed', attempts: 0 })),
    })),
    forge('a legacy row and its object taken out', 'kept head', ({ legacy }, copy) => {
      rmSync(objectFile(copy, publicationNamed(copy.sample, legacy.at(-1)?.publicationId)))
      return { legacy: legacy.slice(0, -1) }
    }),
    forgeNewestObject(
      'the newest publication back-dated with its envelope',
      'kept head',
      (text, { publishedAt }) => text.replaceAll(formatInstant(publishedAt), formatInstant(publishedAt - 1)),
    ),
  ]
}
