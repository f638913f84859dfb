import { areSameBytes, sha256Hex } from '../domain/digest.ts'
import type { StaticTree } from '../domain/ports.ts'
import { Refusal, storageDamaged } from '../domain/refusal.ts'
import type { StorageRefusal } from '../domain/refusal.ts'
import type { LedgerRow, Manifest } from '../domain/year/ledger.ts'
import { tileBytes } from '../domain/year/log/log-history.ts'
import type { MerkleTree } from '../domain/year/log/merkle-tree.ts'
import {
  STATIC_CHECKPOINT,
  STATIC_HEADERS,
  STATIC_INDEX,
  STATIC_LEGACY_LEDGER,
  STATIC_PAGE,
  STATIC_POLICY,
  staticHeadersText,
  staticObjectPath,
  staticTilePath,
  staticTiles,
} from '../domain/year/log/static-layout.ts'
import { inBatches } from './copy-objects.ts'
import type { CopyCounts } from './copy-objects.ts'

/** Everything in a tree of static files except the publications. */
export interface StaticContent {
  /** Number of entries of the checkpoint. */
  size: number
  rows: readonly LedgerRow[]
  /** Tree of the rows. */
  tree: MerkleTree
  /** Text of the legacy ledger; empty without one. */
  legacy: string
  index: string
  policy: string
  /** Signed checkpoint with its cosignatures. */
  note: string
  /** Files of the page by path; empty without a page. */
  page: ReadonlyMap<string, Uint8Array>
}

/** Numbers of files by kind. */
export type StaticCounts = Record<'tiles' | 'bundles' | 'others', CopyCounts>

/** Refuses a tree that has a file of a changing name but is not an export, so that no other site is overwritten. */
export async function requireOwnTree(tree: StaticTree): Promise<void> {
  if ((await tree.get(STATIC_POLICY)) !== null) return
  for (const path of [STATIC_INDEX, STATIC_HEADERS, STATIC_PAGE]) {
    if ((await tree.get(path)) === null) continue
    const advice = 'choose an empty target'
    throw new Refusal<'copy_refused'>(
      'copy_refused',
      `the target is not an export and already has ${path}; ${advice}`,
    )
  }
}

/**
 * Returns true if a tree has the object of a manifest.
 *
 * @throws Refusal `storage_damaged` if other bytes are stored there
 */
export async function hasObject(tree: StaticTree, { sha256 }: Manifest): Promise<boolean> {
  const path = staticObjectPath(sha256)
  const bytes = await tree.get(path)
  if (bytes !== null && sha256Hex(bytes) !== sha256) throw differing(path)
  return bytes !== null
}

/**
 * Writes all files except the publications, which must be there already. The checkpoint comes last: a reader never sees
 * a checkpoint whose files are missing.
 *
 * @param isOvertaken true if another process wrote a checkpoint that this one must not replace
 * @returns null if another process overtook this one
 * @throws Refusal `storage_damaged` if a file that never changes has other bytes
 */
export async function writeStaticFiles(
  target: StaticTree,
  content: StaticContent,
  isOvertaken: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<StaticCounts | null> {
  const { legacy, index, policy, note, page } = content
  const [tiles, bundles] = await writeTiles(target, content, signal)
  const others = noCounts()
  if (legacy !== '') await putOnce(target, STATIC_LEGACY_LEDGER, encode(legacy), others)

  if (await isOvertaken()) return null
  // The policy is the first of these files, because it marks the tree as an export.
  await replace(target, STATIC_POLICY, encode(policy), others)
  // After a crash from here on, the index may list publications after the checkpoint, whose objects are there.
  await replace(target, STATIC_INDEX, encode(index), others)
  await replace(target, STATIC_HEADERS, encode(staticHeadersText()), others)
  // After a crash between files of the page, it may mix two releases until the next export.
  for (const [path, bytes] of page) await replace(target, path, bytes, others)
  if (await isOvertaken()) return null
  await replace(target, STATIC_CHECKPOINT, encode(note), others)
  return { tiles, bundles, others }
}

async function writeTiles(
  target: StaticTree,
  { size, rows, tree }: StaticContent,
  signal: AbortSignal,
): Promise<[tiles: CopyCounts, bundles: CopyCounts]> {
  const [tiles, bundles] = [noCounts(), noCounts()]
  await inBatches(
    staticTiles(size),
    async (tile) => {
      const counts = tile.level === 'entries' ? bundles : tiles
      await putOnce(target, staticTilePath(tile), tileBytes(rows, tree, tile), counts)
    },
    signal,
  )
  return [tiles, bundles]
}

const noCounts = (): CopyCounts => ({ copied: 0, unchanged: 0 })

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Stores a file that never changes. */
async function putOnce(tree: StaticTree, path: string, bytes: Uint8Array, counts: CopyCounts): Promise<void> {
  const there = await tree.get(path)
  if (there !== null && !areSameBytes(there, bytes)) throw differing(path)
  if (there === null) await tree.put(path, bytes)
  counts[there === null ? 'copied' : 'unchanged'] += 1
}

/** Stores a file that changes; the same bytes are not written again. */
async function replace(tree: StaticTree, path: string, bytes: Uint8Array, counts: CopyCounts): Promise<void> {
  const there = await tree.get(path)
  const isUnchanged = there !== null && areSameBytes(there, bytes)
  if (!isUnchanged) await tree.replace(path, bytes)
  counts[isUnchanged ? 'unchanged' : 'copied'] += 1
}

function differing(path: string): Refusal<StorageRefusal> {
  return storageDamaged(
    `${path} in the target differs from this archive and is never overwritten; if the target is damaged, remove the file and run the command again`,
  )
}
