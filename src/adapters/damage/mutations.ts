import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { GENESIS_LEAF, sealEntry } from '../../domain/year/chain.ts'
import { objectPath } from '../../domain/year/examine.ts'
import { formatHead } from '../../domain/year/ledger.ts'
import type { LedgerRow } from '../../domain/year/ledger.ts'
import { signerKey } from '../../domain/year/log/signed-note.ts'
import { entries, legacyPublications } from '../ledger/schema.ts'
import {
  ENTRY,
  LOG_KEY,
  changeRow,
  damage,
  forge,
  forgeNewestObject,
  headFile,
  replaceObject,
  objectFile,
  damageCell,
  damageEntries,
  damageHead,
  damageLedger,
  damageLedgerFile,
  damageLegacy,
  damageLog,
  damageObject,
  noteOf,
  overwrite,
  publicationAt,
  rechain,
  reseal,
  rowAt,
  withFlippedBits,
  removeHeads,
  withoutRow,
} from './damage.ts'
import type { Copy, Damage } from './damage.ts'

/** SQLite's default page size. */
const PAGE_BYTES = 4_096

/** Examples of each kind of damage; the tests of the audit cover all variants. */
export const MUTATIONS: readonly Damage[] = [
  // Objects: a faulty disk, or an attacker with access to the object store only
  damageObject(ENTRY.newest, 'a bit flipped', ['digest_mismatch'], (bytes) =>
    withFlippedBits(bytes, bytes.byteLength >> 1, 1),
  ),
  damageObject(ENTRY.firstImported, 'cut by one byte', ['size_mismatch'], (bytes) => bytes.subarray(0, -1)),
  replaceObject(ENTRY.newest, 'gone', ['object_missing'], () => undefined),
  replaceObject(ENTRY.newest, 'a folder in its place', ['object_unreadable'], (path) => mkdirSync(path)),
  replaceObject(ENTRY.newest, 'a link to its own bytes', ['object_unreadable'], (path, bytes) => {
    overwrite(`${path}.moved`, bytes)
    symlinkSync(`${path}.moved`, path)
  }),
  damage('objects: two valid ones swapped', ['digest_mismatch'], (copy) => {
    const [first, second] = [publicationAt(copy, ENTRY.previous), publicationAt(copy, ENTRY.newest)]
    overwrite(objectFile(copy, first), second.bytes)
    overwrite(objectFile(copy, second), first.bytes)
  }),
  {
    // An unreferenced object is only a note: a crash before the commit can leave one too.
    ...damage('objects: one no entry names', ['orphan_object'], ({ objectsPath }) =>
      overwrite(join(objectsPath, objectPath('ab'.repeat(32))), 'not an object'),
    ),
    sound: true,
  },

  // Heads. A missing newest head is not damage: a crash after a commit leaves it missing
  removeHeads('a middle one gone', [ENTRY.missedGap]),
  removeHeads('the two newest gone', [ENTRY.previous, ENTRY.newest]),
  damageHead(ENTRY.newest, 'no JSON', () => 'seq 9'),
  damageHead(ENTRY.previous, 'the leaf of the entry before', (head, { sample }) =>
    formatHead({ ...head, leaf: rowAt(sample.rows, head.seq - 1).leaf }),
  ),
  damage('heads: one for an entry that is not there', ['head_mismatch'], (copy) =>
    overwrite(
      headFile(copy, ENTRY.newest + 1),
      formatHead({ seq: ENTRY.newest + 1, leaf: 'ab'.repeat(32), time: 0 }),
    ),
  ),

  // The signed log
  damageLog(`${ENTRY.newest}`, 'a character of its signature changed', ['note_invalid'], (text) =>
    text.replace(/.(?==*\n$)/, (last) => (last === 'A' ? 'E' : 'A')),
  ),
  damageLog(`${ENTRY.newest}`, 'signed by another key', ['note_invalid'], (_text, { sample }) =>
    noteOf(sample.rows, signerKey(LOG_KEY.name, new Uint8Array(32).fill(1))),
  ),
  damageLog(`${ENTRY.newest}`, 'a second history, signed by the key', ['log_forked'], (_text, { sample }) =>
    noteOf(changeRow(sample.rows, ENTRY.newest, (row) => reseal({ ...row, recordedAt: row.recordedAt + 1 }))),
  ),
  damageLog('policy.1', 'gone', ['note_invalid'], () => null),
  damageLog('policy.1', 'not a policy', ['note_invalid'], (text) => text.replace('log ', 'logs ')),

  // The ledger: a faulty disk, or an attacker with access to the ledger file only
  damageCell(entries, ENTRY.spentGap, 'reason', 'another text', "'missed'"),
  damageCell(entries, ENTRY.previous, 'publication_id', 'bytes that are not UTF-8', "CAST(x'c328' AS TEXT)"),
  damageCell(entries, ENTRY.previous, 'published_at', 'a number too large to be exact', '9007199254740993'),
  damageCell(entries, ENTRY.previous, 'sha256', 'a path', "'../../etc/passwd'"),
  damageEntries('one deleted', ['chain_broken'], (rows) => withoutRow(rows, ENTRY.spentGap)),
  damageEntries('the last one deleted', ['head_mismatch'], (rows) => withoutRow(rows, ENTRY.newest)),
  damageEntries('one deleted, the chain recomputed', ['head_mismatch'], (rows) =>
    rechain(withoutRow(rows, ENTRY.spentGap)),
  ),
  damageEntries('one inserted over another’s object', ['identity_mismatch'], (rows, copy) => [
    ...rows,
    publicationAfter(rows, copy),
  ]),
  damageEntries('one back-dated, its leaf recomputed', ['head_mismatch'], (rows) =>
    changeRow(rows, ENTRY.newest, (row) => reseal({ ...row, recordedAt: row.recordedAt - 1 })),
  ),
  damageCell(legacyPublications, 2, 'as_of_day', 'another text', "'2025-11-11'"),
  damageLegacy('one deleted', (rows) => rows.slice(0, -1)),
  damageLedger('the table of entries dropped', ['row_tampered'], () => ['DROP TABLE entries']),
  damageLedgerFile('a bit of a digest flipped', ['row_tampered'], flipDigestBit),
  damageLedgerFile('cut to half of its pages', ['row_tampered'], (bytes) =>
    bytes.subarray(0, Math.floor(bytes.byteLength / PAGE_BYTES / 2) * PAGE_BYTES),
  ),
  damageLedgerFile('its header zeroed', ['row_tampered'], (bytes) => Buffer.from(bytes).fill(0, 0, 100)),

  // Stores rolled back to an earlier state
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

  // A forger of both stores, revealed by the objects, by the rules, or by a head kept elsewhere
  forge('an entry names another publication’s object', ['identity_mismatch'], ({ rows }, copy) => {
    const { sha256, byteSize } = publicationAt(copy, ENTRY.beforePrevious).manifest
    return { rows: changeRow(rows, ENTRY.previous, () => ({ sha256, byteSize })) }
  }),
  forgeNewestObject('an object with titles that were never verified', ['envelope_invalid'], (text) =>
    text.replace('"event_title_verified":true', '"event_title_verified":false'),
  ),
  forge('an entry published before the one before it', ['chain_broken'], ({ rows }) => ({
    rows: changeRow(rows, ENTRY.newest, () => ({ publishedAt: rowAt(rows, ENTRY.previous).recordedAt - 1 })),
  })),
  forge('the seal taken out', ['row_tampered'], ({ rows }) => ({ rows: withoutRow(rows, ENTRY.seal) })),
  forge('a gap taken out', 'kept head', ({ rows }) => ({ rows: withoutRow(rows, ENTRY.spentGap) })),
  forgeNewestObject('the newest publication given other titles', 'kept head', (text) =>
    text.replaceAll('title of', 'another of'),
  ),
]

/** Creates a publication of the next day with the newest one's object, or another. */
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

/** Flips one bit of a digest in all its occurrences: split pages hold it twice. */
function flipDigestBit(bytes: Buffer, { sample }: Copy): Uint8Array {
  const digest = rowAt(sample.rows, ENTRY.previous).sha256 ?? ''
  const second = `${digest.slice(0, -1)}${String.fromCharCode(digest.charCodeAt(63) ^ 0x80)}`
  return Buffer.from(bytes.toString('latin1').replaceAll(digest, second), 'latin1')
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
