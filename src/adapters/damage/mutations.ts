import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { GENESIS_LEAF, sealEntry } from '../../domain/year/chain.ts'
import { objectPath } from '../../domain/year/examine.ts'
import { formatHead } from '../../domain/year/ledger.ts'
import type { LedgerRow } from '../../domain/year/ledger.ts'
import { entries, legacyPublications } from '../ledger/schema.ts'
import {
  ENTRY,
  changed,
  damage,
  forged,
  forgedObject,
  headFile,
  inPlaceOfObject,
  objectFile,
  ofCell,
  ofEntries,
  ofHead,
  ofLedger,
  ofLedgerFile,
  ofLegacy,
  ofObject,
  overwrite,
  publicationAt,
  rechained,
  renumbered,
  resealed,
  rowAt,
  withFlippedBits,
  withoutHeads,
  withoutRow,
} from './damage.ts'
import type { Copy, Damage } from './damage.ts'

/** As SQLite makes them where nothing else is asked for. */
const PAGE_BYTES = 4_096

/** One way of each kind to damage an archive; the tests of the audit have every way. */
export const MUTATIONS: readonly Damage[] = [
  // Objects: a broken disk, or somebody who has the store alone
  ofObject(ENTRY.newest, 'a bit flipped', ['digest_mismatch'], (bytes) =>
    withFlippedBits(bytes, bytes.byteLength >> 1, 1),
  ),
  ofObject(ENTRY.firstImported, 'cut by one byte', ['size_mismatch'], (bytes) => bytes.subarray(0, -1)),
  ofObject(ENTRY.newest, 'another valid envelope of the same size', ['digest_mismatch'], (_bytes, text) =>
    text.replace(/"title":"./, '"title":"X'),
  ),
  inPlaceOfObject(ENTRY.newest, 'gone', ['object_missing'], () => undefined),
  inPlaceOfObject(ENTRY.newest, 'moved to another name', ['object_missing'], (path, bytes) =>
    overwrite(`${path}.moved`, bytes),
  ),
  inPlaceOfObject(ENTRY.newest, 'a folder in its place', ['object_unreadable'], (path) => mkdirSync(path)),
  inPlaceOfObject(ENTRY.newest, 'a link to its own bytes', ['object_unreadable'], (path, bytes) => {
    overwrite(`${path}.moved`, bytes)
    symlinkSync(`${path}.moved`, path)
  }),
  inPlaceOfObject(
    ENTRY.newest,
    'a pipe in its place, not to be waited for',
    ['object_unreadable'],
    (path) => void execFileSync('mkfifo', [path]),
  ),
  damage('objects: two valid ones swapped', ['digest_mismatch'], (copy) => {
    const [one, other] = [publicationAt(copy, ENTRY.previous), publicationAt(copy, ENTRY.newest)]
    overwrite(objectFile(copy, one), other.bytes)
    overwrite(objectFile(copy, other), one.bytes)
  }),
  damage('objects: all gone', ['object_missing'], ({ objectsPath }) =>
    rmSync(join(objectsPath, 'sha256'), { recursive: true }),
  ),
  {
    // What no entry names is a note: a crash before the commit leaves it too.
    ...damage('objects: one no entry names', ['orphan_object'], ({ objectsPath }) =>
      overwrite(join(objectsPath, objectPath('ab'.repeat(32))), 'not an object'),
    ),
    sound: true,
  },

  // Heads. That the newest alone is gone is no damage: a crash after a commit leaves it so
  withoutHeads('a middle one gone', [ENTRY.missedGap]),
  withoutHeads('the two newest gone', [ENTRY.previous, ENTRY.newest]),
  ofHead(ENTRY.newest, 'no JSON', () => 'seq 9'),
  ofHead(ENTRY.previous, 'the leaf of the entry before', (head, { sample }) =>
    formatHead({ ...head, leaf: rowAt(sample.rows, head.seq - 1).leaf }),
  ),
  damage('heads: a link in the place of one', ['head_mismatch'], (copy) => {
    const path = headFile(copy, ENTRY.previous)
    renameSync(path, join(copy.folder, 'moved-head'))
    symlinkSync(join(copy.folder, 'moved-head'), path)
  }),
  damage('heads: one for an entry that is not there', ['head_mismatch'], (copy) =>
    overwrite(
      headFile(copy, ENTRY.newest + 1),
      formatHead({ seq: ENTRY.newest + 1, leaf: 'ab'.repeat(32), time: 0 }),
    ),
  ),

  // The ledger: a disk that changes a cell, or somebody who has its file alone
  ofCell(entries, ENTRY.spentGap, 'reason', 'another text', "'missed'"),
  ofCell(entries, ENTRY.previous, 'publication_id', 'bytes that are not UTF-8', "CAST(x'c328' AS TEXT)"),
  ofCell(entries, ENTRY.previous, 'published_at', 'a number too large to be exact', '9007199254740993'),
  ofCell(entries, ENTRY.previous, 'byte_size', 'a text instead of a number', "'many'", true),
  ofCell(entries, ENTRY.previous, 'sha256', 'a path', "'../../etc/passwd'"),
  ofEntries('one deleted', ['chain_broken'], (rows) => withoutRow(rows, ENTRY.spentGap)),
  ofEntries('the last one deleted', ['head_mismatch'], (rows) => withoutRow(rows, ENTRY.newest)),
  ofEntries('one deleted, the chain recomputed', ['head_mismatch'], (rows) =>
    rechained(withoutRow(rows, ENTRY.spentGap)),
  ),
  ofEntries('one inserted that does not continue the chain', ['chain_broken'], (rows) => [
    ...rows,
    gapAfter(rows, rowAt(rows, ENTRY.previous).leaf),
  ]),
  ofEntries('one inserted over another’s object', ['identity_mismatch'], (rows, copy) => [
    ...rows,
    publicationAfter(rows, copy),
  ]),
  ofEntries('two in each other’s place', ['chain_broken'], (rows) =>
    renumbered(swapped(rows, ENTRY.missedGap, ENTRY.spentGap)),
  ),
  ofEntries('one back-dated, its leaf recomputed', ['head_mismatch'], (rows) =>
    changed(rows, ENTRY.newest, (row) => resealed({ ...row, recordedAt: row.recordedAt - 1 })),
  ),
  ofCell(legacyPublications, 2, 'as_of_day', 'another text', "'2025-11-11'"),
  ofLegacy('one deleted', (rows) => rows.slice(0, -1)),
  ofLedger('the table of entries dropped', ['row_tampered'], () => ['DROP TABLE entries']),
  ofLedgerFile('a bit of a digest flipped', ['row_tampered'], flipped),
  ofLedgerFile('cut to half of its pages', ['row_tampered'], (bytes) =>
    bytes.subarray(0, Math.floor(bytes.byteLength / PAGE_BYTES / 2) * PAGE_BYTES),
  ),
  ofLedgerFile('its header zeroed', ['row_tampered'], (bytes) => Buffer.from(bytes).fill(0, 0, 100)),

  // Stores put back to where they once stood
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

  // Both stores in the hands of one forger: betrayed by the objects, by the rules, or by a head kept elsewhere
  forged('an entry names another publication’s object', ['identity_mismatch'], ({ rows }, copy) => {
    const { sha256, byteSize } = publicationAt(copy, ENTRY.beforePrevious).manifest
    return { rows: changed(rows, ENTRY.previous, () => ({ sha256, byteSize })) }
  }),
  forgedObject('an object with titles that were never verified', ['envelope_invalid'], (text) =>
    text.replace('"event_title_verified":true', '"event_title_verified":false'),
  ),
  forged('a path in a digest column', ['row_tampered'], ({ rows }) => ({
    rows: changed(rows, ENTRY.newest, () => ({ sha256: '../../etc/passwd' })),
  })),
  forged('an entry published before the one before it', ['chain_broken'], ({ rows }) => ({
    rows: changed(rows, ENTRY.newest, () => ({ publishedAt: rowAt(rows, ENTRY.previous).recordedAt - 1 })),
  })),
  forged('the seal taken out', ['row_tampered'], ({ rows }) => ({ rows: withoutRow(rows, ENTRY.seal) })),
  forged('a gap taken out', 'kept head', ({ rows }) => ({ rows: withoutRow(rows, ENTRY.spentGap) })),
  forgedObject('the newest publication given other titles', 'kept head', (text) =>
    text.replaceAll('title of', 'another of'),
  ),
]

/** A gap that continues the rows. @param previousLeaf other than that of the last row, it does not */
export function gapAfter(
  rows: readonly LedgerRow[],
  previousLeaf = rows.at(-1)?.leaf ?? GENESIS_LEAF,
): LedgerRow {
  const gap = { kind: 'gap', asOfDay: '2026-01-20', reason: 'missed', attempts: 0 } as const
  return sealEntry(gap, rows.length + 1, rows.at(-1)?.recordedAt ?? 0, previousLeaf)
}

/** A publication of the next day over the newest one's object, or another. */
export function publicationAfter(
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

export function swapped(rows: readonly LedgerRow[], one: number, other: number): LedgerRow[] {
  return rows.with(one - 1, rowAt(rows, other)).with(other - 1, rowAt(rows, one))
}

/** One bit of a digest wherever it stands in the file: pages that were split hold it twice. */
function flipped(bytes: Buffer, { sample }: Copy): Uint8Array {
  const digest = rowAt(sample.rows, ENTRY.previous).sha256 ?? ''
  const other = `${digest.slice(0, -1)}${String.fromCharCode(digest.charCodeAt(63) ^ 0x80)}`
  return Buffer.from(bytes.toString('latin1').replaceAll(digest, other), 'latin1')
}

export function rollBackLedger({ ledgerPath, sample }: Copy, seq: number): void {
  const older = sample.olderLedgers.get(seq)
  if (!older) throw new Error(`the sample kept no ledger of entry ${seq}`)
  overwrite(ledgerPath, older)
}

export function rollBackObjects(copy: Copy, seqs: readonly number[]): void {
  for (const seq of seqs) {
    rmSync(objectFile(copy, publicationAt(copy, seq)))
    rmSync(headFile(copy, seq))
  }
}
