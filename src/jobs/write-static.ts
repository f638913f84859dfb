import { areSameBytes, sha256Hex } from '../domain/digest.ts'
import type { StaticTree } from '../domain/ports.ts'
import { Refusal, storageDamaged } from '../domain/refusal.ts'
import type { StorageRefusal } from '../domain/refusal.ts'
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
import { entriesOf, entryBundle, tileOf } from '../domain/year/log/tiles.ts'

/** Everything in a tree of static files except the publications. */
export interface StaticContent {
  /** Tree of exactly the entries of the checkpoint. */
  tree: MerkleTree
  entries: readonly Uint8Array[]
  /** Text of the legacy ledger; empty without one. */
  legacy: Uint8Array
  index: string
  policy: string
  /** Signed checkpoint with its cosignatures. */
  note: string
}

/** Numbers of files; `unchanged` ones were there before with the same bytes. */
export interface WriteCounts {
  written: number
  unchanged: number
}

/**
 * Refuses a tree that has a file of a changing name but no policy, so that no other site is overwritten.
 *
 * @throws Refusal `copy_refused`
 */
export async function requireOwnTree(target: StaticTree): Promise<void> {
  if ((await target.get(STATIC_POLICY)) !== null) return
  for (const path of [STATIC_INDEX, STATIC_HEADERS, STATIC_PAGE])
    if ((await target.get(path)) !== null)
      throw new Refusal<'copy_refused'>(
        'copy_refused',
        `the target is not a mirror or export and already has ${path}; choose an empty target`,
      )
}

/**
 * Returns true if the target has the publication of a digest.
 *
 * @throws Refusal `storage_damaged` if the file has other bytes
 */
export async function hasObject(target: StaticTree, sha256: string): Promise<boolean> {
  const path = staticObjectPath(sha256)
  const stored = await target.get(path)
  if (stored !== null && sha256Hex(stored) !== sha256) throw differing(path)
  return stored !== null
}

/**
 * Writes all files except the publications, which must be there already. The checkpoint is the last one: a reader never
 * sees a checkpoint whose files are missing.
 *
 * @param mayReplace false if the files that change must stay, because another process wrote a newer checkpoint
 * @throws Refusal `storage_damaged` if a file that never changes has other bytes
 */
export async function writeStaticFiles(
  target: StaticTree,
  content: StaticContent,
  counts: WriteCounts,
  mayReplace: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const { tree, entries, legacy, index, policy, note } = content
  for (const tile of staticTiles(tree.size)) {
    signal.throwIfAborted()
    const { level } = tile
    const bytes =
      level === 'entries' ? entryBundle(entriesOf(entries, tile)) : tileOf(tree, { ...tile, level })
    await putOnce(target, staticTilePath(tile), bytes, counts)
  }
  if (legacy.byteLength > 0) await putOnce(target, STATIC_LEGACY_LEDGER, legacy, counts)
  if (!(await mayReplace())) return
  // The policy is the first of the files that change, because it marks the tree as a mirror.
  await replace(target, STATIC_POLICY, policy, counts)
  await replace(target, STATIC_INDEX, index, counts)
  await replace(target, STATIC_HEADERS, staticHeadersText(), counts)
  await replace(target, STATIC_CHECKPOINT, note, counts)
}

/** Stores a file that never changes. */
async function putOnce(
  target: StaticTree,
  path: string,
  bytes: Uint8Array,
  counts: WriteCounts,
): Promise<void> {
  const stored = await target.get(path)
  if (stored !== null && !areSameBytes(stored, bytes)) throw differing(path)
  if (stored === null) await target.put(path, bytes)
  counts[stored === null ? 'written' : 'unchanged'] += 1
}

/** Stores a file that changes; the same bytes are not written again. */
async function replace(target: StaticTree, path: string, text: string, counts: WriteCounts): Promise<void> {
  const bytes = new TextEncoder().encode(text)
  const stored = await target.get(path)
  const isUnchanged = stored !== null && areSameBytes(stored, bytes)
  if (!isUnchanged) await target.replace(path, bytes)
  counts[isUnchanged ? 'unchanged' : 'written'] += 1
}

function differing(path: string): Refusal<StorageRefusal> {
  return storageDamaged(
    `${path} in the target differs from the log and is never overwritten; if the target is damaged, remove the file and run the command again`,
  )
}
