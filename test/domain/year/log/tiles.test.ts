import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../../src/domain/digest.ts'
import { leafHash, merkleTree } from '../../../../src/domain/year/log/merkle-tree.ts'
import {
  ENTRY_MAX_BYTES,
  entriesOf,
  entryBundle,
  isTileWithin,
  parseEntryBundle,
  parseTile,
  parseTilePath,
  tileOf,
  tilePath,
  tilesOfSize,
} from '../../../../src/domain/year/log/tiles.ts'
import type { Tile } from '../../../../src/domain/year/log/tiles.ts'
import { naiveRoot } from '../naive-merkle-tree.ts'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

describe('tile paths', () => {
  test.each<[Tile, string]>([
    [{ level: 0, index: 1_234_067, width: 256 }, 'tile/0/x001/x234/067'],
    [{ level: 0, index: 999, width: 1 }, 'tile/0/999.p/1'],
    [{ level: 1, index: 1000, width: 255 }, 'tile/1/x001/000.p/255'],
    [{ level: 63, index: 0, width: 256 }, 'tile/63/000'],
    [{ level: 'entries', index: 273, width: 112 }, 'tile/entries/273.p/112'],
  ])('%j is %s', (tile, path) => {
    expect(tilePath(tile)).toBe(path)
    expect(parseTilePath(path)).toEqual(tile)
  })

  // prettier-ignore
  test.each([
    'tile/0/05', 'tile/00/005', 'tile/64/005', 'tile/0/005.p/0', 'tile/0/x999/x999/x999/x999/x999/999',
  ])('%j is not the path of a tile', (path) => {
    expect(parseTilePath(path)).toBeNull()
  })
})

describe('tiles of a tree', () => {
  const paths = (size: number): string[] => tilesOfSize(size).map(tilePath)

  test('trees of 0, 3, 256 and 600 entries have the published files', () => {
    expect(paths(0)).toEqual([])
    expect(paths(3)).toEqual(['tile/0/000.p/3', 'tile/entries/000.p/3'])
    expect(paths(256)).toEqual(['tile/0/000', 'tile/1/000.p/1', 'tile/entries/000'])
    expect(paths(600).join(' ')).toBe(
      'tile/0/000 tile/0/001 tile/0/002.p/88 tile/1/000.p/2 tile/entries/000 tile/entries/001 tile/entries/002.p/88',
    )
  })

  test('a tree of 70,000 entries has the files of the example in the specification', () => {
    const files = paths(70_000)
    expect(files.filter((path) => /^tile\/0\/\d{3}$/.test(path))).toHaveLength(273)
    expect(files.filter((path) => !/^tile\/(0|entries)\/\d{3}$/.test(path)).join(' ')).toBe(
      'tile/0/273.p/112 tile/1/000 tile/1/001.p/17 tile/2/000.p/1 tile/entries/273.p/112',
    )
  })

  test('a tile is within a tree that has all its hashes or entries', () => {
    const within = (level: Tile['level'], index: number, width: number) =>
      isTileWithin({ level, index, width }, 600)
    for (const level of ['entries', 0] as const)
      expect([within(level, 2, 88), within(level, 2, 89)]).toEqual([true, false])
    expect([within(1, 0, 2), within(1, 0, 3)]).toEqual([true, false])
  })

  test('the tiles of a tree hold the leaf hashes and the roots of full tiles', () => {
    const entries = Array.from({ length: 600 }, (_, index) => utf8(String(index)))
    const tree = merkleTree(entries.map(leafHash))
    const tile = (level: number, index: number, width: number) => hex(tileOf(tree, { level, index, width }))
    const leaves = entries.map((entry) => hex(naiveRoot([entry])))
    expect(tile(0, 1, 256)).toBe(leaves.slice(256, 512).join(''))
    expect(tile(0, 2, 88)).toBe(leaves.slice(512).join(''))
    const roots = [entries.slice(0, 256), entries.slice(256, 512)].map((full) => hex(naiveRoot(full)))
    expect(tile(1, 0, 2)).toBe(roots.join(''))
    expect(() => tile(0, 2, 89)).toThrow(RangeError)
  })
})

describe('tile bytes', () => {
  test('a tree of three entries has the published tile and bundle', () => {
    const entries = ['a', 'b', 'c'].map(utf8)
    const tile = tileOf(merkleTree(entries.map(leafHash)), { level: 0, index: 0, width: 3 })
    expect(sha256Hex(tile)).toBe('e1b99e440708cafb1712e68f1c63a11baedd8c6fbcd6a147d6c307c8667e3367')
    expect(hex(entryBundle(entries))).toBe('000161000162000163')
  })

  test('a tile with the wrong number of bytes is refused', () => {
    expect([33, 31].map((bytes) => parseTile(new Uint8Array(bytes), 1))).toEqual([null, null])
    expect(parseTile(new Uint8Array(64), 2)).toHaveLength(2)
  })
})

describe('entry bundles', () => {
  test('a bundle is parsed to its entries, and refused with the wrong number of entries or bytes', () => {
    const all = ['0', 'a', 'x'.repeat(300), ''].map(utf8)
    const entries = entriesOf([...Array<Uint8Array>(255).fill(utf8('')), ...all], {
      level: 'entries',
      index: 1,
      width: 3,
    })
    expect(entries).toEqual(all.slice(1))
    const bytes = Uint8Array.from(entryBundle(entries))
    expect(parseEntryBundle(bytes, 3)).toEqual(entries)
    expect(parseEntryBundle(bytes, 4)).toBeNull()
    expect(parseEntryBundle(bytes, 2)).toBeNull()
    expect(parseEntryBundle(bytes.subarray(0, -1), 3)).toBeNull()
    expect(parseEntryBundle(Buffer.concat([bytes, Buffer.of(0)]), 3)).toBeNull()
  })

  test('a bundle holds an entry of 65,535 bytes and refuses a longer one', () => {
    const longest = new Uint8Array(ENTRY_MAX_BYTES)
    expect(parseEntryBundle(entryBundle([longest]), 1)?.[0]).toHaveLength(ENTRY_MAX_BYTES)
    expect(() => entryBundle([new Uint8Array(ENTRY_MAX_BYTES + 1)])).toThrow(RangeError)
  })
})
