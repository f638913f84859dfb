import type { TimelineItem } from '../../domain/year/chain.ts'
import type { Manifest } from '../../domain/year/ledger.ts'

/** Concurrent copies. */
export const COPY_CONCURRENCY = 8

export interface CopyCounts {
  copied: number
  /** Number of items that were there before. */
  unchanged: number
}

/** Reads a proved archive that is copied. */
export interface CopyReader {
  timeline: readonly TimelineItem[]
  /** Returns the bytes of a publication, verified. */
  publication(manifest: Manifest): Promise<Uint8Array>
}

/**
 * Writes a copy: to other stores, or to a tree of static files. All copies keep one rule of what may be overwritten: a
 * target holds nothing or a beginning of the archive. What it holds of publications, entries and the log stays, and must
 * have the same bytes; only files that name the newest state are replaced, by those of a later state.
 */
export interface CopyWriter<Report> {
  /**
   * Refuses a target that does not hold a beginning of the archive, before anything is written.
   *
   * @throws Refusal
   */
  requireBeginning(): Promise<void>
  /**
   * Returns true if the object is stored already.
   *
   * @throws Refusal `storage_damaged` if other bytes are stored there
   */
  has(sha256: string): Promise<boolean>
  put(sha256: string, bytes: Uint8Array): Promise<void>
  /** Writes what names the objects, the commit point last or followed by what the next copy can add. */
  commit(objects: ObjectCounts): Promise<Report>
}

export type ObjectCounts = CopyCounts & { bytes: number }

export type ObjectProgress = (progress: { objects: number; ofObjects: number; bytes: number }) => void

/**
 * Copies an archive: every object, {@link COPY_CONCURRENCY} at a time, then what names them. After a crash, the objects that
 * were written stay, and the next copy continues.
 */
export async function copy<Report>(
  reader: CopyReader,
  writer: CopyWriter<Report>,
  onProgress: ObjectProgress,
  signal: AbortSignal,
): Promise<Report> {
  await writer.requireBeginning()
  const counts = { copied: 0, unchanged: 0, bytes: 0 }
  const copyObject = async ({ manifest }: TimelineItem): Promise<void> => {
    if (await writer.has(manifest.sha256)) {
      counts.unchanged += 1
      return
    }
    const bytes = await reader.publication(manifest)
    await writer.put(manifest.sha256, bytes)
    counts.copied += 1
    counts.bytes += bytes.byteLength
  }
  // After a crash from here on, the target has objects that nothing names.
  await inBatches(reader.timeline, copyObject, signal, () =>
    onProgress({
      objects: counts.copied + counts.unchanged,
      ofObjects: reader.timeline.length,
      bytes: counts.bytes,
    }),
  )
  return writer.commit(counts)
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
