import pLimit from 'p-limit'

/**
 * Does the work of several items, at most `limit` at a time. The first failure stops the others, and is thrown once they
 * have ended.
 *
 * @param signal null for work that is never interrupted
 * @param work gets a signal that aborts with `signal`, or with the failure of another item
 * @returns the results in the order of the items
 */
export async function concurrently<Item, Result>(
  items: Iterable<Item>,
  limit: number,
  signal: AbortSignal | null,
  work: (item: Item, signal: AbortSignal) => Promise<Result>,
): Promise<Result[]> {
  const failed = new AbortController()
  const combinedSignal = AbortSignal.any([signal ?? failed.signal, failed.signal])
  const results = await pLimit(limit).map(items, async (item) => {
    try {
      combinedSignal.throwIfAborted()
      return [await work(item, combinedSignal)]
    } catch (error) {
      failed.abort(error)
      return []
    }
  })
  failed.signal.throwIfAborted()
  return results.flat()
}
