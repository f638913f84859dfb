import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LedgerRow } from '../../../../src/domain/year/ledger.ts'
import { auditLog, auditTiles } from '../../../../src/domain/year/log/check-log.ts'
import type { AuditedLogFile, PublishedTile } from '../../../../src/domain/year/log/check-log.ts'
import { ledgerTree, parseLogFileName } from '../../../../src/domain/year/log/log-history.ts'
import { rootAt, leafHash, merkleTree } from '../../../../src/domain/year/log/merkle-tree.ts'
import {
  checkpointText,
  formatVerifierKey,
  signNote,
  signerKey,
} from '../../../../src/domain/year/log/signed-note.ts'
import type { Checkpoint } from '../../../../src/domain/year/log/signed-note.ts'
import { staticTilePath } from '../../../../src/domain/year/log/static-layout.ts'
import { entriesOf, entryBundle, tileOf, tilesOfSize } from '../../../../src/domain/year/log/tiles.ts'
import { sampleArchive } from '../../../support/sample-archive.ts'
import { LOG_SEED } from '../log-vectors.ts'

const { rows } = sampleArchive(3).contents
const KEY = signerKey('dash.example/tlog/year', LOG_SEED)

const textAt = (size: number, of: readonly LedgerRow[] = rows): string =>
  checkpointText({ origin: KEY.name, size, root: rootAt(ledgerTree(of), size) })

/** Files of a log that was signed at three sizes. */
const SOUND: Readonly<Record<string, string>> = {
  'policy.1': `log ${formatVerifierKey(KEY)}\nquorum none\n`,
  'policy.2': `log ${formatVerifierKey(KEY)} https://dash.example/tlog/year\nquorum none\n`,
  '2': signNote(textAt(2), KEY),
  '4': signNote(textAt(4), KEY),
  '6': signNote(textAt(6), KEY),
}

function filesOf(texts: Readonly<Record<string, string>>): AuditedLogFile[] {
  return Object.entries(texts).flatMap(([name, text]) => {
    const file = parseLogFileName(name)
    return file ? [{ file, bytes: new TextEncoder().encode(text) }] : []
  })
}

const found = (changes: Record<string, string>, of: readonly LedgerRow[] = rows): string[] =>
  auditLog(of, filesOf({ ...SOUND, ...changes })).map(({ code, path }) => `${code} ${path}`)

describe('an audit of the signed log', () => {
  test('an audit finds nothing in a sound log and in an archive without a log', () => {
    expect(found({})).toEqual([])
    expect(auditLog(rows, [])).toEqual([])
  })

  test('an audit finds a rewritten or shorter ledger by every note that covers the change', () => {
    expect(found({}, rows.slice(0, 5))).toEqual(['log_forked tlog/year/6'])
    const rewritten = rows.map((row) => (row.seq === 3 ? { ...row, attempts: 7 } : row))
    expect(found({}, rewritten)).toEqual(['log_forked tlog/year/4', 'log_forked tlog/year/6'])
  })

  test.each([
    ['another key signed', { '4': signNote(textAt(4), signerKey(KEY.name, new Uint8Array(32))) }, '4'],
    ['a note has the name of another size', { '4': SOUND['2'] ?? '' }, '4'],
    ['a note is empty', { '4': '' }, '4'],
    ['a note begins with a byte order mark', { '4': `\uFEFF${SOUND['4']}` }, '4'],
    ['a policy begins with a byte order mark', { 'policy.1': `\uFEFF${SOUND['policy.1']}` }, 'policy.1'],
    ['a policy is not valid', { 'policy.1': 'hello\n' }, 'policy.1'],
  ])('an audit finds that %s', (_what, changes, name) => {
    expect(found(changes)).toEqual([`note_invalid tlog/year/${name}`])
  })

  test('an audit reports lost or damaged policies once, not by every note, and still compares the trees', () => {
    const { 'policy.1': _first, 'policy.2': _second, ...notes } = SOUND
    expect(auditLog(rows, filesOf(notes))).toMatchObject([
      { code: 'note_invalid', path: 'tlog/year/policy.1', actual: 'no policy is stored' },
    ])
    const damaged = ['note_invalid tlog/year/policy.1', 'note_invalid tlog/year/policy.2']
    expect(found({ 'policy.1': 'x\n', 'policy.2': 'y\n' })).toEqual(damaged)
    const shorter = auditLog(rows.slice(0, 5), filesOf(notes))
    expect(shorter.map(({ code }) => code)).toEqual(['note_invalid', 'log_forked'])
  })

  test('an audit finds a file that is listed but missing', () => {
    const files = [...filesOf(SOUND), { file: { kind: 'note', size: 5 } as const, bytes: null }]
    expect(auditLog(rows, files)).toMatchObject([{ code: 'note_invalid', path: 'tlog/year/5' }])
  })
})

const LONGEST = Array.from({ length: 600 }, (_, index) => Buffer.from(`entry ${index} of the log`))

/** The log of the first `size` entries. */
function logOf(size: number): { checkpoint: Checkpoint; files: PublishedTile[]; lines: Uint8Array[] } {
  const lines = LONGEST.slice(0, size)
  const tree = merkleTree(lines.map(leafHash))
  const files = tilesOfSize(size).map((tile) => {
    const { level } = tile
    const bytes = level === 'entries' ? entryBundle(entriesOf(lines, tile)) : tileOf(tree, { ...tile, level })
    return { tile, bytes }
  })
  return { checkpoint: { origin: 'log', size, root: rootAt(tree, size) }, files, lines }
}

type Damage = (bytes: Uint8Array) => Uint8Array | null

const flip =
  (at: number): Damage =>
  (bytes) =>
    bytes.map((byte, index) => (index === at % bytes.byteLength ? byte ^ 1 : byte))

/** Returns `code path` of each finding after the files with these indexes were damaged. */
function foundIn(size: number, damaged: readonly number[], damage: Damage, hasLedger = false): string[] {
  const { checkpoint, files, lines } = logOf(size)
  const sent = files.map((file, index) =>
    damaged.includes(index) && file.bytes ? { ...file, bytes: damage(file.bytes) } : file,
  )
  const ledger = hasLedger ? { path: 'ledger', lines } : null
  return auditTiles(checkpoint, sent, ledger).findings.map(({ code, path }) => `${code} ${path}`)
}

const SIZES = [1, 256, 257, 600]

describe('tiles and bundles of a host', () => {
  test.each(SIZES)('a log of %i entries without damage has no finding, its tree and its entries', (size) => {
    const { checkpoint, files, lines } = logOf(size)
    const { findings, tree, entries } = auditTiles(checkpoint, files, null)
    expect([findings, tree?.size]).toEqual([[], size])
    expect(entries).toEqual(lines)
  })

  test('a file with any changed bit, too short, too long or missing is the only finding', () => {
    const damages = fc.oneof(
      fc.nat().map(flip),
      fc.constant<Damage>((bytes) => bytes.subarray(1)),
      fc.constant<Damage>((bytes) => Buffer.concat([bytes, Buffer.of(0)])),
      fc.constant<Damage>(() => null),
    )
    const sizes = fc.constantFrom(...SIZES)
    fc.assert(
      fc.property(sizes, fc.nat(), damages, fc.boolean(), (size, place, damage, hasLedger) => {
        const { files } = logOf(size)
        const index = place % files.length
        const tile = files[index]?.tile
        const expected = tile && `tile_mismatch ${staticTilePath(tile)}`
        expect(foundIn(size, [index], damage, hasLedger)).toEqual([expected])
      }),
      { numRuns: 80 },
    )
  })

  test('without a ledger, damage in bundles and in tiles makes every file doubtful', () => {
    const all = logOf(600).files.map(({ tile }) => `tile_mismatch ${staticTilePath(tile)}`)
    const exact = ['tile_mismatch tlog/year/tile/0/000', 'tile_mismatch tlog/year/tile/entries/001']
    const damaged = exact.map((finding) => all.indexOf(finding))
    expect(foundIn(600, damaged, flip(7), true)).toEqual(exact)
    expect(foundIn(600, damaged, flip(7))).toEqual(all)
  })

  test('a bundle and the tile of the same entries that are both wrong are both found, with and without a ledger', () => {
    const both = [0, 1]
    expect(logOf(3).files).toHaveLength(2)
    for (const hasLedger of [false, true])
      expect(foundIn(3, both, flip(4), hasLedger)).toEqual([
        'tile_mismatch tlog/year/tile/0/000.p/3',
        'tile_mismatch tlog/year/tile/entries/000.p/3',
      ])
  })

  test('a ledger that is shorter than the tree, or differs from it, is forked', () => {
    const { checkpoint, files, lines } = logOf(300)
    for (const [wrong, actual] of [
      [lines.slice(0, 299), 'only 299 entries'],
      [lines.with(280, Buffer.from('other')), 'another entry 281'],
    ] as const) {
      const { findings } = auditTiles(checkpoint, files, { path: 'ledger', lines: wrong })
      expect(findings).toMatchObject([{ code: 'log_forked', path: 'ledger', actual }])
    }
  })

  test('without a bundle, the tree is proved', () => {
    const { checkpoint, files } = logOf(300)
    const sent = files.map((file) => (file.tile.level === 'entries' ? { ...file, bytes: null } : file))
    const { tree, entries } = auditTiles(checkpoint, sent, null)
    expect([tree?.size, entries]).toEqual([300, []])
  })
})
