import { areSameBytes, sha256Hex } from '../../domain/digest.ts'
import type { StaticTree } from '../../domain/ports.ts'
import { Refusal, storageDamaged } from '../../domain/refusal.ts'
import type { StorageRefusal } from '../../domain/refusal.ts'
import type { ProvedLedger } from '../../domain/year/chain.ts'
import { historyIndex } from '../../domain/year/history/history.ts'
import { legacyText } from '../../domain/year/ledger.ts'
import type { Head, LedgerContents } from '../../domain/year/ledger.ts'
import { entryBytes } from '../../domain/year/log/log-history.ts'
import type { MerkleTree } from '../../domain/year/log/merkle-tree.ts'
import {
  STATIC_CHECKPOINT,
  STATIC_HEADERS,
  STATIC_INDEX,
  STATIC_LEGACY_LEDGER,
  STATIC_POLICY,
  staticHeadersText,
  staticObjectPath,
  staticTilePath,
  staticTiles,
} from '../../domain/year/log/static-layout.ts'
import { entriesOf, tileBytes } from '../../domain/year/log/tiles.ts'
import { inBatches } from './copy-objects.ts'

/** Everything in a tree of static files except the publications. */
export interface StaticContent {
  /** The ledgers up to the checkpoint, as stored and proved. */
  contents: LedgerContents
  proved: ProvedLedger
  /** The head of the last entry; null if it is not known. */
  head: Head | null
  /** Tree that begins with the entries of the checkpoint. */
  tree: MerkleTree
  policy: string
  /** Signed checkpoint with its cosignatures. */
  note: string
}

/** Number of files in the target: all, those that were written, and those that were there with the same bytes. */
export interface FileCounts {
  files: number
  written: number
  unchanged: number
  /** Sum of the written bytes. */
  bytes: number
}

/** @param bytes bytes of a file that was written; null for one that was there */
export function countFile(counts: FileCounts, bytes: Uint8Array | null): void {
  counts.files += 1
  counts.written += bytes === null ? 0 : 1
  counts.unchanged += bytes === null ? 1 : 0
  counts.bytes += bytes?.byteLength ?? 0
}

/**
 * Refuses a tree that has a file of a changing name but no policy, so that no other site is overwritten.
 *
 * @throws Refusal `copy_refused`
 */
export async function requireOwnTree(target: StaticTree): Promise<void> {
  if ((await target.get(STATIC_POLICY)) !== null) return
  for (const path of [STATIC_INDEX, STATIC_HEADERS])
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
 * @param counts to which each file is added
 * @param mayReplace receives the checkpoint of the target, or null; false if the files that change must stay
 * @returns false if `mayReplace` returned false
 * @throws Refusal `storage_damaged` if a file that never changes has other bytes, or if the files that change do not stay
 *   as they are written
 */
export async function writeStaticFiles(
  target: StaticTree,
  content: StaticContent,
  counts: FileCounts,
  mayReplace: (checkpoint: Uint8Array | null) => Promise<boolean>,
  signal: AbortSignal,
): Promise<boolean> {
  const { contents, proved, head, tree, policy, note } = content
  const entries = contents.rows.map(entryBytes)
  const legacy = legacyText(contents.legacy)
  // After a crash from here on, the target has files without a checkpoint that covers them.
  await inBatches(
    staticTiles(entries.length),
    async (tile) => {
      const bytes = tileBytes(tree, tile, (bundle) => entriesOf(entries, bundle))
      await putOnce(target, staticTilePath(tile), bytes, counts)
    },
    signal,
  )
  if (legacy !== '') await putOnce(target, STATIC_LEGACY_LEDGER, encode(legacy), counts)
  const changing = new Map([
    // The policy is the first of the files that change, because it marks the tree as an export.
    [STATIC_POLICY, encode(policy)],
    // After a crash from here on, the index may list publications after the checkpoint, whose objects are there.
    [STATIC_INDEX, encode(JSON.stringify(historyIndex(proved, head)))],
    [STATIC_HEADERS, encode(staticHeadersText())],
    [STATIC_CHECKPOINT, encode(note)],
  ])
  for (let pass = 1; pass <= PASSES_MAX; pass += 1) {
    const before = await readAll(target, [...changing.keys()])
    // The checkpoint is compared after all files are read: what another process writes from here on is not replaced.
    if (!(await mayReplace(before.get(STATIC_CHECKPOINT) ?? null))) return false
    if (await replaceAll(target, before, changing, counts)) return true
  }
  throw storageDamaged(
    'the files in the target do not stay as they are written; check what else writes there',
  )
}

/** Most attempts to replace the files that change while other processes write them. */
const PASSES_MAX = 10

async function readAll(
  target: StaticTree,
  paths: readonly string[],
): Promise<ReadonlyMap<string, Uint8Array | null>> {
  const files = new Map<string, Uint8Array | null>()
  for (const path of paths) files.set(path, await target.get(path))
  return files
}

/**
 * Replaces the files that differ, in order.
 *
 * @returns false if one of them is not as it was read, which ends the replacement
 */
async function replaceAll(
  target: StaticTree,
  before: ReadonlyMap<string, Uint8Array | null>,
  files: ReadonlyMap<string, Uint8Array>,
  counts: FileCounts,
): Promise<boolean> {
  const written = new Map<string, Uint8Array | null>()
  for (const [path, bytes] of files) {
    const stored = before.get(path) ?? null
    const isUnchanged = stored !== null && areSameBytes(stored, bytes)
    if (!isUnchanged && !(await target.replace(path, stored, bytes))) return false
    written.set(path, isUnchanged ? null : bytes)
  }
  for (const bytes of written.values()) countFile(counts, bytes)
  return true
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Stores a file that never changes. */
async function putOnce(
  target: StaticTree,
  path: string,
  bytes: Uint8Array,
  counts: FileCounts,
): Promise<void> {
  const stored = await target.get(path)
  if (stored !== null && !areSameBytes(stored, bytes)) throw differing(path)
  if (stored === null) await target.put(path, bytes)
  countFile(counts, stored === null ? bytes : null)
}

function differing(path: string): Refusal<StorageRefusal> {
  return storageDamaged(
    `${path} in the target differs from the log and is never overwritten; if the target is damaged, remove the file and run the command again`,
  )
}
