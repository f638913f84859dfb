import { readFileSync } from 'node:fs'
import type { Mutation } from '../../domain/ports.ts'
import { damage, ENTRY, overwrite, rowAt, withFlippedBits } from './damage.ts'
import type { Copy, Damage, SampleContents } from './damage.ts'
import { changeLedger } from './raw-ledger.ts'

/** As SQLite makes them where nothing else is asked for. */
const PAGE_BYTES = 4_096

/** Damage to the ledger's file itself, as disks make it. */
export function ledgerFileDamage(): Damage[] {
  return [...cellFlips(), ...cuts(), ...headers(), ...pages(), ...schema()]
}

/** One bit of a cell where it stands in the file, past the database; pages that were split hold it twice. */
function cellFlips(): Damage[] {
  const cells: Record<string, (sample: SampleContents) => string | null | undefined> = {
    'the digest of an entry': ({ rows }) => rowAt(rows, ENTRY.previous).sha256,
    'the reason of a gap': ({ rows }) => rowAt(rows, ENTRY.spentGap).reason,
    'the digest of the seal': ({ rows }) => rowAt(rows, ENTRY.seal).legacyDigest,
    'the leaf of the newest entry': ({ rows }) => rowAt(rows, ENTRY.newest).leaf,
    'the digest of a legacy row': ({ legacy }) => legacy[1]?.sha256,
  }
  return Object.entries(cells).flatMap(([what, cell]) =>
    [0x01, 0x80].map((bit) =>
      fileDamage(`bit ${bit} of ${what} flipped on the disk`, ['row_tampered'], (bytes, { sample }) => {
        const needle = Buffer.from(cell(sample) ?? '')
        let flipped = bytes
        for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1)) {
          flipped = Buffer.from(withFlippedBits(flipped, at + (needle.byteLength >> 1), bit))
        }
        return flipped
      }),
    ),
  )
}

function cuts(): Damage[] {
  const lengths: Record<string, (bytes: number) => number> = {
    'by its last byte': (bytes) => bytes - 1,
    'by its last page': (bytes) => bytes - PAGE_BYTES,
    'to half of its pages': (bytes) => Math.floor(bytes / PAGE_BYTES / 2) * PAGE_BYTES,
    'to its first page': () => PAGE_BYTES,
    'inside its header': () => 50,
  }
  return Object.entries(lengths).map(([what, length]) =>
    fileDamage(`cut ${what}`, ['row_tampered'], (bytes) => bytes.subarray(0, length(bytes.byteLength))),
  )
}

function headers(): Damage[] {
  const flip = (position: number) => (bytes: Buffer) => withFlippedBits(bytes, position, 0x01)
  return [
    fileDamage('the first byte of its header flipped', ['row_tampered'], flip(0)),
    fileDamage('its page size damaged', ['row_tampered'], flip(16)),
    fileDamage('its header zeroed', ['row_tampered'], (bytes) => Buffer.from(bytes).fill(0, 0, 100)),
    fileDamage('filled with something else', ['row_tampered'], (bytes) => Buffer.from(bytes).fill('x')),
    // An empty file is a database without tables: nothing is unreadable, but every head is left over.
    fileDamage('replaced by an empty one', ['head_mismatch'], () => Buffer.alloc(0)),
  ]
}

function pages(): Damage[] {
  const pageOf = (bytes: Buffer, needle: string): number =>
    Math.floor(bytes.lastIndexOf(needle) / PAGE_BYTES) * PAGE_BYTES
  const codes: Mutation['expects'] = ['row_tampered', 'chain_broken', 'head_mismatch']
  return [
    fileDamage('a page of entries zeroed', codes, (bytes, { sample }) => {
      const page = pageOf(bytes, rowAt(sample.rows, ENTRY.newest).sha256 ?? '')
      return Buffer.from(bytes).fill(0, page, page + PAGE_BYTES)
    }),
    fileDamage('a page of entries as it once was', codes, (bytes, { sample }) => {
      const page = pageOf(bytes, rowAt(sample.rows, ENTRY.newest).sha256 ?? '')
      const mixed = Buffer.from(bytes)
      mixed.set(sample.olderLedgers.get(ENTRY.previous)?.subarray(page, page + PAGE_BYTES) ?? [], page)
      return mixed
    }),
  ]
}

function schema(): Damage[] {
  const statements: Record<string, string> = {
    'the table of entries dropped': 'DROP TABLE entries',
    'a column dropped': 'ALTER TABLE entries DROP COLUMN reason',
    'a column renamed': 'ALTER TABLE entries RENAME COLUMN sha256 TO digest',
  }
  return [
    ...Object.entries(statements).map(([what, statement]) =>
      damage(`ledger: ${what}`, ['row_tampered'], ({ ledgerPath }) => changeLedger(ledgerPath, [statement])),
    ),
    damage('ledger: both tables dropped', ['head_mismatch'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, ['DROP TABLE entries', 'DROP TABLE legacy_publications']),
    ),
  ]
}

function fileDamage(
  what: string,
  expects: Mutation['expects'],
  change: (bytes: Buffer, copy: Copy) => Uint8Array,
): Damage {
  return damage(`ledger file: ${what}`, expects, (copy) =>
    overwrite(copy.ledgerPath, change(readFileSync(copy.ledgerPath), copy)),
  )
}
