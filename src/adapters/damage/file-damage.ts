import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import type { Mutation } from '../../domain/year/finding.ts'
import { objectPath } from '../../domain/year/finding.ts'
import { formatHead } from '../../domain/year/ledger.ts'
import type { Head } from '../../domain/year/ledger.ts'
import {
  ENTRY,
  damage,
  headFile,
  objectFile,
  overwrite,
  publicationAt,
  publicationNamed,
  rowAt,
  withFlippedBits,
  withText,
} from './damage.ts'
import type { Copy, Damage, Publication, SampleContents } from './damage.ts'
import { changeLedger } from './ledger-damage.ts'

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

/** Damage to the objects, by a broken disk or by somebody who has the store alone. */
export function objectDamage(sample: SampleContents): Damage[] {
  const newest = publicationAt({ sample }, ENTRY.newest)
  const legacy = publicationNamed(sample, sample.legacy[0]?.publicationId)
  return [
    ...[...sample.publications.values()].flatMap(bitFlips),
    ...[newest, legacy].flatMap(otherBytes),
    ...[newest, legacy].flatMap(otherThings),
    ...exchanges(),
    ...extras(),
  ]
}

function bitFlips(publication: Publication): Damage[] {
  const { byteLength } = publication.bytes
  const places = { first: 0, middle: byteLength >> 1, last: byteLength - 1 }
  return Object.entries(places).map(([place, position]) =>
    ofObject(publication, `a bit of its ${place} byte flipped`, ['digest_mismatch'], (bytes) =>
      withFlippedBits(bytes, position, 1),
    ),
  )
}

function otherBytes(publication: Publication): Damage[] {
  const appended = (bytes: Uint8Array): Uint8Array => Buffer.concat([bytes, Buffer.from('\n')])
  return [
    ofObject(publication, 'cut by one byte', ['size_mismatch'], (bytes) => bytes.subarray(0, -1)),
    ofObject(publication, 'cut to nothing', ['size_mismatch'], () => new Uint8Array()),
    ofObject(publication, 'a byte appended', ['size_mismatch'], appended),
    ofObject(publication, 'its second half zeroed', ['digest_mismatch'], (bytes) =>
      Uint8Array.from(bytes).fill(0, bytes.byteLength >> 1),
    ),
    ofObject(
      publication,
      'another valid envelope of the same size',
      ['digest_mismatch'],
      () => withText(publication, (text) => text.replace(/"title":"./, '"title":"X')).bytes,
    ),
  ]
}

/** Things that are no regular file; a pipe must not be waited for. */
function otherThings(publication: Publication): Damage[] {
  const things: Record<string, (path: string) => void | Promise<void>> = {
    'a folder': (path) => mkdirSync(path),
    'a symbolic link to its own bytes': (path) => {
      overwrite(`${path}.moved`, publication.bytes)
      symlinkSync(`${path}.moved`, path)
    },
    'a symbolic link to nothing': (path) => symlinkSync(`${path}.nowhere`, path),
    'a named pipe': (path) => void execFileSync('mkfifo', [path]),
    'a socket': placeSocket,
  }
  return [
    damage(`object of ${nameOf(publication)}: gone`, ['object_missing'], (copy) =>
      rmSync(objectFile(copy, publication)),
    ),
    ...Object.entries(things).map(([thing, place]) =>
      damage(`object of ${nameOf(publication)}: ${thing} in its place`, ['object_unreadable'], (copy) => {
        const path = objectFile(copy, publication)
        rmSync(path)
        return place(path)
      }),
    ),
    damage(
      `object of ${nameOf(publication)}: a file in the place of its folder`,
      ['object_unreadable'],
      (copy) => overwrite(dirname(objectFile(copy, publication)), 'a file'),
    ),
  ]
}

function exchanges(): Damage[] {
  return [
    damage('objects: two valid ones swapped', ['digest_mismatch'], (copy) => {
      const [one, other] = [publicationAt(copy, ENTRY.previous), publicationAt(copy, ENTRY.newest)]
      overwrite(objectFile(copy, one), other.bytes)
      overwrite(objectFile(copy, other), one.bytes)
    }),
    damage('objects: the newest replaced by the one before', ['digest_mismatch'], (copy) =>
      overwrite(
        objectFile(copy, publicationAt(copy, ENTRY.newest)),
        publicationAt(copy, ENTRY.previous).bytes,
      ),
    ),
    damage('objects: all gone', ['object_missing'], ({ objectsPath }) =>
      rmSync(join(objectsPath, 'sha256'), { recursive: true }),
    ),
    damage('objects: one moved to another name', ['object_missing'], (copy) => {
      const path = objectFile(copy, publicationAt(copy, ENTRY.newest))
      renameSync(path, `${path}.moved`)
    }),
  ]
}

/** What no entry names is a note: a crash before the commit leaves it too. */
function extras(): Damage[] {
  const places: Record<string, string> = {
    'an object no entry names': objectPath('ab'.repeat(32)),
    'a file whose name is no digest': 'sha256/zz/readme',
  }
  return Object.entries(places).map(([what, place]) => ({
    ...damage(`objects: ${what}`, ['orphan_object'], ({ objectsPath }) => {
      mkdirSync(dirname(join(objectsPath, place)), { recursive: true })
      overwrite(join(objectsPath, place), 'not an object')
    }),
    sound: true,
  }))
}

function ofObject(
  publication: Publication,
  what: string,
  expects: Mutation['expects'],
  change: (bytes: Uint8Array) => Uint8Array,
): Damage {
  return damage(`object of ${nameOf(publication)}: ${what}`, expects, (copy: Copy) => {
    const path = objectFile(copy, publication)
    overwrite(path, change(readFileSync(path)))
  })
}

function nameOf({ manifest }: Publication): string {
  return manifest.publicationId
}

/** A socket stays in its place once it was moved there from where its server made it. */
async function placeSocket(path: string): Promise<void> {
  const server = createServer()
  const first = join(dirname(path), 's')
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(first, resolve))
  renameSync(first, path)
  await new Promise((resolve) => server.close(resolve))
}

/** Damage to the heads. That the newest alone is gone is none: a crash after a commit leaves it so. */
export function headDamage(): Damage[] {
  return [...losses(), ...edits()]
}

function losses(): Damage[] {
  const gone: Record<string, readonly number[]> = {
    'a middle one gone': [ENTRY.missedGap],
    'that of the founding gone': [ENTRY.lastImported],
    'that of the seal gone': [ENTRY.seal],
    'the two newest gone': [ENTRY.previous, ENTRY.newest],
    'all but the newest gone': [2, 3, 4, 5, 6, 7, 8],
  }
  return [
    ...Object.entries(gone).map(([what, seqs]) =>
      damage(`heads: ${what}`, ['head_mismatch'], (copy) => {
        for (const seq of seqs) rmSync(headFile(copy, seq))
      }),
    ),
    damage('heads: all gone', ['head_mismatch'], ({ objectsPath }) =>
      rmSync(join(objectsPath, 'heads'), { recursive: true }),
    ),
  ]
}

function edits(): Damage[] {
  const contents: Record<string, (head: Head, copy: Copy) => string | Uint8Array> = {
    'the leaf edited': (head) =>
      formatHead({ ...head, leaf: `${head.leaf.slice(0, -1)}${otherDigit(head)}` }),
    'the leaf of the entry before': (head, { sample }) =>
      formatHead({ ...head, leaf: rowAt(sample.rows, head.seq - 1).leaf }),
    'the number of another entry': (head) => formatHead({ ...head, seq: head.seq - 1 }),
    'the leaf in upper case': (head) => formatHead({ ...head, leaf: head.leaf.toUpperCase() }),
    'no JSON': () => 'seq 9',
    'not UTF-8': (head) => withFlippedBits(new TextEncoder().encode(formatHead(head)), 40, 0x80),
    cut: (head) => formatHead(head).slice(0, -2),
    'a member too many': (head) => formatHead(head).replace('{', '{"more":1,'),
    'no time': (head) => formatHead(head).replace(/"time":"[^"]*"/, '"time":"yesterday"'),
    empty: () => '',
  }
  return [
    ...['newest' as const, 'previous' as const].flatMap((which) =>
      Object.entries(contents).map(([what, content]) =>
        damage(`heads: the ${which} edited: ${what}`, ['head_mismatch'], (copy) =>
          overwrite(headFile(copy, ENTRY[which]), content(headAt(copy, ENTRY[which]), copy)),
        ),
      ),
    ),
    ...(['newest', 'previous'] as const).map((which) =>
      damage(`heads: a folder in the place of the ${which}`, ['head_mismatch'], (copy) => {
        rmSync(headFile(copy, ENTRY[which]))
        mkdirSync(headFile(copy, ENTRY[which]))
      }),
    ),
    damage('heads: a link in the place of one', ['head_mismatch'], (copy) => {
      const path = headFile(copy, ENTRY.previous)
      overwrite(join(copy.folder, 'moved-head'), formatHead(headAt(copy, ENTRY.previous)))
      rmSync(path)
      symlinkSync(join(copy.folder, 'moved-head'), path)
    }),
    damage('heads: two swapped', ['head_mismatch'], (copy) => {
      overwrite(headFile(copy, ENTRY.previous), formatHead(headAt(copy, ENTRY.newest)))
      overwrite(headFile(copy, ENTRY.newest), formatHead(headAt(copy, ENTRY.previous)))
    }),
    damage('heads: one for an entry that is not there', ['head_mismatch'], (copy) => {
      const seq = ENTRY.newest + 1
      overwrite(headFile(copy, seq), formatHead({ ...headAt(copy, ENTRY.newest), seq }))
    }),
    damage('heads: one of entry 1 with another leaf', ['head_mismatch'], (copy) =>
      overwrite(headFile(copy, 1), formatHead({ ...headAt(copy, ENTRY.newest), seq: 1 })),
    ),
    damage('heads: a file with another name among them', ['head_mismatch'], (copy) =>
      overwrite(join(copy.objectsPath, 'heads', 'newest'), formatHead(headAt(copy, ENTRY.newest))),
    ),
    damage('heads: a number written another way', ['head_mismatch'], (copy) =>
      overwrite(join(copy.objectsPath, 'heads', '09'), formatHead(headAt(copy, ENTRY.newest))),
    ),
  ]
}

function headAt({ sample }: Pick<Copy, 'sample'>, seq: number): Head {
  const head = sample.heads.find((each) => each.seq === seq)
  if (!head) throw new Error(`the sample has no head ${seq}`)
  return head
}

function otherDigit({ leaf }: Head): string {
  return leaf.endsWith('0') ? '1' : '0'
}
