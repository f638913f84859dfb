import type { Objects } from '../../domain/ports.ts'
import type { TimelineItem } from '../../domain/year/chain.ts'
import { proveBytes } from '../../domain/year/envelope.ts'

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
 * Copies the objects of publications, {@link COPY_CONCURRENCY} at a time. Each is verified before it is written. After
 * a crash, the objects that were written stay, and the next copy continues.
 *
 * @returns counts, and the sum of the copied bytes
 * @throws Refusal `storage_damaged` for an object that is not the publication of its manifest
 */
export async function copyObjects(
  source: Pick<Objects, 'get'>,
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
    const bytes = proveBytes(manifest, await source.get(manifest.sha256))
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
