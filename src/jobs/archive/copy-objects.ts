import type { TimelineItem } from '../../domain/year/chain.ts'
import type { Manifest } from '../../domain/year/ledger.ts'

/** Concurrent copies. */
export const COPY_CONCURRENCY = 8

export interface CopyCounts {
  copied: number
  /** Number of items that were there before. */
  unchanged: number
}

/** Destination of copied publications. */
interface ObjectTarget {
  /**
   * Returns true if the object is stored already.
   *
   * @throws Refusal `storage_damaged` if other bytes are stored there
   */
  has(sha256: string): Promise<boolean>
  put(sha256: string, bytes: Uint8Array): Promise<void>
}

export type ObjectProgress = (progress: { objects: number; ofObjects: number; bytes: number }) => void

/**
 * Copies the objects of publications, {@link COPY_CONCURRENCY} at a time. After a crash, the objects that were written
 * stay, and the next copy continues.
 *
 * @param read returns the bytes of a publication, verified
 * @returns counts, and the sum of the copied bytes
 */
export async function copyObjects(
  read: (manifest: Manifest) => Promise<Uint8Array>,
  timeline: readonly TimelineItem[],
  target: ObjectTarget,
  onProgress: ObjectProgress,
  signal: AbortSignal,
): Promise<CopyCounts & { bytes: number }> {
  const result = { copied: 0, unchanged: 0, bytes: 0 }
  const copy = async ({ manifest }: TimelineItem): Promise<void> => {
    if (await target.has(manifest.sha256)) {
      result.unchanged += 1
      return
    }
    const bytes = await read(manifest)
    await target.put(manifest.sha256, bytes)
    result.copied += 1
    result.bytes += bytes.byteLength
  }
  await inBatches(timeline, copy, signal, () =>
    onProgress({
      objects: result.copied + result.unchanged,
      ofObjects: timeline.length,
      bytes: result.bytes,
    }),
  )
  return result
}

/** Runs an action for every item, {@link COPY_CONCURRENCY} at a time, until the signal aborts. */
export async function inBatches<Item>(
  items: readonly Item[],
  run: (item: Item) => Promise<void>,
  signal: AbortSignal,
  afterBatch: () => void = () => undefined,
): Promise<void> {
  for (let start = 0; start < items.length; start += COPY_CONCURRENCY) {
    signal.throwIfAborted()
    await Promise.all(items.slice(start, start + COPY_CONCURRENCY).map(run))
    afterBatch()
  }
}
