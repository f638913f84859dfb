import { HASH_BYTES } from './merkle-tree.ts'
import type { Hash, MerkleTree } from './merkle-tree.ts'

/** Files that publish a tree (C2SP tlog-tiles 0.1): tiles of hashes, and bundles of entries. */

/** Number of hashes in a full tile, and of entries in a full bundle. */
export const TILE_WIDTH = 256

/** Number of tree levels that one level of tiles covers. */
const TILE_HEIGHT = 8

const LEVEL_MAX = 63

/** Length of the longest entry that a bundle can hold. */
export const ENTRY_MAX_BYTES = 65_535

export interface Tile {
  /** `entries` for a bundle. */
  level: number | 'entries'
  index: number
  /** Number of hashes or entries in it, 1 to 256. */
  width: number
}

/** Returns the path of a tile below the log's prefix: `tile/0/x001/x234/067`, `tile/entries/000.p/30`. */
export function tilePath({ level, index, width }: Tile): string {
  const partial = width === TILE_WIDTH ? '' : `.p/${width}`
  return `tile/${level}/${groupsOf(index)}${partial}`
}

/** Splits an index into groups of three digits; all but the last begin with `x`. */
function groupsOf(index: number): string {
  const digits = String(index)
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, '0')
  return padded.replaceAll(/\d{3}(?=\d)/g, 'x$&/')
}

/** Parses the path of a tile below the log's prefix; null for any path that {@link tilePath} does not produce. */
export function parseTilePath(path: string): Tile | null {
  const match = /^tile\/(entries|\d{1,2})\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/(\d{1,3}))?$/.exec(path)
  if (!match) return null
  const [, kind = '', groups = '', partial] = match
  const level: Tile['level'] = kind === 'entries' ? kind : Number(kind)
  const index = Number(groups.replaceAll(/[x/]/g, ''))
  const width = partial === undefined ? TILE_WIDTH : Number(partial)
  if (level !== 'entries' && level > LEVEL_MAX) return null
  if (!Number.isSafeInteger(index) || width < 1) return null
  const tile = { level, index, width }
  return tilePath(tile) === path ? tile : null
}

/** Returns the number of hashes or entries at a level of the tree of `size` leaves. */
function countAt(level: Tile['level'], size: number): number {
  return level === 'entries' ? size : Math.floor(size / TILE_WIDTH ** level)
}

/** Returns true if the tree of `size` leaves contains all hashes or entries of a tile. */
export function isTileWithin({ level, index, width }: Tile, size: number): boolean {
  return index * TILE_WIDTH + width <= countAt(level, size)
}

/** Returns the tile of level 0, or the bundle, that ends with the last of `size` leaves. */
export function lastTile(level: 'entries' | 0, size: number): Tile {
  return { level, index: Math.ceil(size / TILE_WIDTH) - 1, width: ((size - 1) % TILE_WIDTH) + 1 }
}

/** Returns all tiles and bundles of the tree of `size` leaves: full ones, and a partial one at the end of a level. */
export function tilesOfSize(size: number): Tile[] {
  const tiles: Tile[] = []
  const add = (level: Tile['level']): void => {
    const count = countAt(level, size)
    for (let index = 0; index * TILE_WIDTH < count; index += 1)
      tiles.push({ level, index, width: Math.min(TILE_WIDTH, count - index * TILE_WIDTH) })
  }
  for (let level = 0; countAt(level, size) > 0; level += 1) add(level)
  add('entries')
  return tiles
}

/**
 * Returns the bytes of a tile of hashes.
 *
 * @throws RangeError if the tree has no such tile
 */
export function tileOf(tree: MerkleTree, tile: Tile & { level: number }): Uint8Array {
  if (!isTileWithin(tile, tree.size))
    throw new RangeError(`a tree of ${tree.size} leaves has no ${tilePath(tile)}`)
  const start = tile.index * TILE_WIDTH
  return Buffer.concat(tree.levels[tile.level * TILE_HEIGHT]?.slice(start, start + tile.width) ?? [])
}

/** Parses a tile of hashes; null unless the bytes are exactly `width` hashes. */
export function parseTile(bytes: Uint8Array, width: number): Hash[] | null {
  if (bytes.byteLength !== width * HASH_BYTES) return null
  return Array.from({ length: width }, (_, index) =>
    bytes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES),
  )
}

/** Selects the entries of a bundle from all entries. */
export function entriesOf<Entry>(entries: readonly Entry[], { index, width }: Tile): Entry[] {
  const start = index * TILE_WIDTH
  return entries.slice(start, start + width)
}

/**
 * Returns the bytes of a bundle: the length of each entry as an unsigned 16-bit integer, big-endian, then the entry.
 *
 * @throws RangeError if an entry is longer than {@link ENTRY_MAX_BYTES}
 */
export function entryBundle(entries: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(
    entries.flatMap((entry) => {
      const length = entry.byteLength
      if (length > ENTRY_MAX_BYTES)
        throw new RangeError(`an entry of ${length} bytes is too long for a bundle`)
      return [Uint8Array.of(length >>> 8, length & 0xff), entry]
    }),
  )
}

/** Parses a bundle; null unless the bytes are exactly `width` entries. */
export function parseEntryBundle(bytes: Uint8Array, width: number): Uint8Array[] | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entries: Uint8Array[] = []
  let at = 0
  while (entries.length < width && at + 2 <= bytes.byteLength) {
    const end = at + 2 + view.getUint16(at)
    if (end > bytes.byteLength) return null
    entries.push(bytes.subarray(at + 2, end))
    at = end
  }
  return entries.length === width && at === bytes.byteLength ? entries : null
}

/**
 * Returns the bytes of a tile or a bundle.
 *
 * @param entriesIn returns the entries of a bundle
 * @throws RangeError if the tree has no such tile
 */
export function tileBytes(
  tree: MerkleTree,
  tile: Tile,
  entriesIn: (bundle: Tile) => readonly Uint8Array[],
): Uint8Array {
  const { level } = tile
  return level === 'entries' ? entryBundle(entriesIn(tile)) : tileOf(tree, { ...tile, level })
}
