import { HASH_BYTES } from './merkle-tree.ts'
import type { Hash, MerkleTree } from './merkle-tree.ts'

/** The files in which a tree is published (C2SP tlog-tiles 0.1): tiles of hashes, and bundles of entries. */

/** Hashes of a full tile, and entries of a full bundle. */
const TILE_WIDTH = 256

/** Levels of the tree that one level of tiles covers. */
const TILE_HEIGHT = 8

const LEVEL_MAX = 63

/** The longest entry whose length a bundle can state. */
export const ENTRY_MAX_BYTES = 65_535

/** One tile or bundle. */
export interface Tile {
  /** `entries` for a bundle. */
  level: number | 'entries'
  index: number
  /** Hashes or entries in it, 1 to 256. */
  width: number
}

/** The path of a tile below the log's prefix: `tile/0/x001/x234/067`, `tile/entries/000.p/30`. */
export function tilePath({ level, index, width }: Tile): string {
  const partial = width === TILE_WIDTH ? '' : `.p/${width}`
  return `tile/${level}/${groupsOf(index)}${partial}`
}

/** Groups of three digits, all but the last with an `x`. */
function groupsOf(index: number): string {
  const digits = String(index)
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, '0')
  return padded.replaceAll(/\d{3}(?=\d)/g, 'x$&/')
}

/** The tile of a path below the log's prefix; null for anything {@link tilePath} would not have written. */
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

/** How many hashes or entries the tree of `size` leaves has at a level. */
function countAt(level: Tile['level'], size: number): number {
  return level === 'entries' ? size : Math.floor(size / TILE_WIDTH ** level)
}

/** True when the tree of `size` leaves contains everything that a tile does. */
export function isTileWithin({ level, index, width }: Tile, size: number): boolean {
  return index * TILE_WIDTH + width <= countAt(level, size)
}

/** Every tile and bundle of the tree of `size` leaves: the full ones, and at each level the partial one at the end. */
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
 * The bytes of a tile of hashes.
 *
 * @throws RangeError when the tree has no such tile
 */
export function tileOf(tree: MerkleTree, tile: Tile & { level: number }): Uint8Array {
  if (!isTileWithin(tile, tree.size))
    throw new RangeError(`a tree of ${tree.size} leaves has no ${tilePath(tile)}`)
  const start = tile.index * TILE_WIDTH
  return Buffer.concat(tree.levels[tile.level * TILE_HEIGHT]?.slice(start, start + tile.width) ?? [])
}

/** The hashes of a tile; null for bytes that do not make up this many. */
export function parseTile(bytes: Uint8Array, width: number): Hash[] | null {
  if (bytes.byteLength !== width * HASH_BYTES) return null
  return Array.from({ length: width }, (_, index) =>
    bytes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES),
  )
}

/** Those of all entries that a bundle holds. */
export function entriesOf<Entry>(entries: readonly Entry[], { index, width }: Tile): Entry[] {
  const start = index * TILE_WIDTH
  return entries.slice(start, start + width)
}

/**
 * The bytes of a bundle: every entry after its length, which is an unsigned 16-bit integer, big-endian.
 *
 * @throws RangeError when an entry is too long
 */
export function entryBundle(entries: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(
    entries.flatMap((entry) => {
      const length = entry.byteLength
      if (length > ENTRY_MAX_BYTES) throw new RangeError(`an entry of ${length} bytes fits no bundle`)
      return [Uint8Array.of(length >>> 8, length & 0xff), entry]
    }),
  )
}

/** The entries of a bundle; null for bytes that do not make up this many. */
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
