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
    expect(paths(600)).toEqual([
      'tile/0/000',
      'tile/0/001',
      'tile/0/002.p/88',
      'tile/1/000.p/2',
      'tile/entries/000',
      'tile/entries/001',
      'tile/entries/002.p/88',
    ])
  })

  test('a tree of 70,000 entries has the files of the example in the specification', () => {
    const files = paths(70_000)
    expect(files.filter((path) => /^tile\/0\/\d{3}$/.test(path))).toHaveLength(273)
    expect(files.filter((path) => !/^tile\/(0|entries)\/\d{3}$/.test(path))).toEqual([
      'tile/0/273.p/112',
      'tile/1/000',
      'tile/1/001.p/17',
      'tile/2/000.p/1',
      'tile/entries/273.p/112',
    ])
  })

  test('a tile is within a tree that has all its hashes or entries', () => {
    const within = (level: Tile['level'], index: number, width: number) =>
      isTileWithin({ level, index, width }, 600)
    expect([within('entries', 2, 88), within('entries', 2, 89)]).toEqual([true, false])
    expect([within(0, 2, 88), within(0, 2, 89), within(1, 0, 2), within(1, 0, 3)]).toEqual([
      true,
      false,
      true,
      false,
    ])
  })

  test('the tiles of every tree of up to 600 entries hold the leaf hashes and the roots of full tiles', () => {
    const entries = Array.from({ length: 600 }, (_, index) => utf8(String(index)))
    const tree = merkleTree(entries.map(leafHash))
    const levels = [
      entries.map((entry) => naiveRoot([entry])),
      [0, 1].map((tile) => rootOfTile(entries, tile)),
    ]
    for (let size = 1; size <= 600; size += 1)
      for (const { level, index, width } of tilesOfSize(size)) {
        if (level === 'entries') continue
        const expected = levels[level]?.slice(index * 256, index * 256 + width) ?? []
        expect(Buffer.concat(expected).equals(tileOf(tree, { level, index, width }))).toBe(true)
      }
  })

  const rootOfTile = (entries: readonly Uint8Array[], index: number): Buffer =>
    naiveRoot(entries.slice(index * 256, (index + 1) * 256))
})

describe('tile bytes', () => {
  test('a tree of three entries has the published tile and bundle', () => {
    const entries = ['a', 'b', 'c'].map(utf8)
    const tile = tileOf(merkleTree(entries.map(leafHash)), { level: 0, index: 0, width: 3 })
    expect(sha256Hex(tile)).toBe('e1b99e440708cafb1712e68f1c63a11baedd8c6fbcd6a147d6c307c8667e3367')
    expect(hex(entryBundle(entries))).toBe('000161000162000163')
  })

  test('a tile outside of the tree throws a RangeError', () => {
    const tree = merkleTree([leafHash(utf8('a'))])
    expect(() => tileOf(tree, { level: 0, index: 0, width: 2 })).toThrow(RangeError)
  })

  test('a tile with the wrong number of bytes is refused', () => {
    expect(parseTile(new Uint8Array(33), 1)).toBeNull()
    expect(parseTile(new Uint8Array(32), 2)).toBeNull()
    expect(parseTile(new Uint8Array(64), 2)).toHaveLength(2)
  })
})

describe('entry bundles', () => {
  test('a bundle holds the entries of its place', () => {
    const entries = Array.from({ length: 600 }, (_, index) => index)
    expect(entriesOf(entries, { level: 'entries', index: 2, width: 80 })).toEqual(entries.slice(512, 592))
  })

  test('a bundle is parsed to its entries, and refused with the wrong number of entries or bytes', () => {
    const entries = ['', 'a', 'x'.repeat(300)].map(utf8)
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
