import { fairQueue } from '../../domain/fair-queue.ts'
import type { FairQueue, PlaceBounds } from '../../domain/fair-queue.ts'
import { PAGES_CALLER, SEARCH_RETRY_AFTER_SECONDS } from '../../domain/feed/search.ts'
import type { FeedSearchRefusal, SearchCaller } from '../../domain/feed/search.ts'
import { Refusal } from '../../domain/refusal.ts'
import { StorageFault } from '../../domain/storage.ts'
import type { StorageRefusal } from '../../domain/storage.ts'

/** Runs the queries of many callers, few at a time (docs/decisions/0047-turns-of-the-search.md). */
export interface SearchTurns {
  /**
   * Runs a query when it is its caller's turn.
   *
   * @throws Refusal `search_limit` or `search_busy` when there is no place for it; the reason of the caller's signal when
   *   that is aborted before its turn; what the query throws
   */
  take<T>(caller: SearchCaller, query: () => Promise<T>): Promise<T>
  /** Fails every query that waits, and every later one. */
  close(): void
}

interface Job {
  run: () => Promise<void>
  fail: (error: unknown) => void
}

/** @param lanes how many queries run at a time */
export function searchTurns(bounds: PlaceBounds, lanes: number): SearchTurns {
  // None takes a place from another. The chat goes first; pages and clients take turns.
  const queues = {
    chat: fairQueue<Job>(bounds),
    pages: fairQueue<Job>(bounds),
    clients: fairQueue<Job>(bounds),
  }
  let shared = [queues.pages, queues.clients]
  const next = (): Job | undefined => {
    const chat = queues.chat.next()
    if (chat) return chat
    shared = shared.toReversed()
    return shared[0]?.next() ?? shared[1]?.next()
  }
  const queueOf = ({ isChat, address }: SearchCaller): FairQueue<Job> =>
    isChat ? queues.chat : address === PAGES_CALLER.address ? queues.pages : queues.clients
  let running = 0
  let closed = false

  const serve = (): void => {
    while (running < lanes) {
      const job = next()
      if (!job) return
      running += 1
      void job.run().finally(() => {
        running -= 1
        serve()
      })
    }
  }

  const failAllWaiting = (error: unknown): void => {
    for (let job = next(); job; job = next()) job.fail(error)
  }

  return {
    take: (caller, query) =>
      new Promise((resolve, reject) => {
        if (closed) throw closedFault()
        const { address, signal } = caller
        signal?.throwIfAborted()
        const queue = queueOf(caller)
        const abandon = (): void => {
          if (queue.withdraw(address, job)) job.fail(signal?.reason)
        }
        const leave = (): void => {
          signal?.removeEventListener('abort', abandon)
          queue.leave(address)
        }
        const job: Job = {
          async run() {
            try {
              resolve(await query())
            } catch (error) {
              reject(error)
              // Every other query would find the same: a locked database, say, and wait for it as long.
              if (isUnavailable(error)) failAllWaiting(error)
            } finally {
              leave()
            }
          },
          fail(error) {
            leave()
            reject(error)
          },
        }
        enter(queue, address, job)
        signal?.addEventListener('abort', abandon, { once: true })
        serve()
      }),
    close() {
      closed = true
      failAllWaiting(closedFault())
    },
  }
}

function enter(queue: FairQueue<Job>, address: string, job: Job): void {
  const admission = queue.add(address, job)
  if (admission === 'admitted') return
  const [code, detail]: [FeedSearchRefusal, string] =
    admission === 'address_full'
      ? ['search_limit', 'this address or its network has too many open queries']
      : ['search_busy', 'as many queries are open as the search takes']
  throw new Refusal(code, detail, { members: { retryAfterSeconds: SEARCH_RETRY_AFTER_SECONDS } })
}

function isUnavailable(error: unknown): boolean {
  const code: StorageRefusal = 'storage_unavailable'
  return error instanceof Refusal && error.code === code
}

function closedFault(): StorageFault {
  return new StorageFault('the search is closed')
}
