import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { fairQueue } from '../../domain/fair-queue.ts'
import type { FairQueue, PlaceBounds } from '../../domain/fair-queue.ts'
import { PAGES_CALLER, SEARCH_RETRY_AFTER_SECONDS } from '../../domain/feed/search.ts'
import type {
  FeedSearchRefusal,
  ItemTrend,
  SearchCaller,
  SearchPage,
  SimilarItem,
  TermTrend,
} from '../../domain/feed/search.ts'
import type { FeedSearch } from '../../domain/ports.ts'
import { Refusal, StorageFault, storageUnavailable } from '../../domain/refusal.ts'
import type { DatabaseLocation, StorageRefusal } from '../../domain/refusal.ts'
import { withTimeLimit } from '../http.ts'
import type { Database } from '../sqlite/database.ts'
import { answer } from './search-engine.ts'
import type { Answer, Question } from './search-engine.ts'
import { searchIndex } from './search-index.ts'
import type { SearchWorkerData, SearchWorkerReply } from './search-worker.ts'

export interface FeedSearchOptions {
  location: DatabaseLocation
  /** The feed's own database, which migrates what the process reads. */
  database: Database
  /** Bounds of open queries; those of the chat and all others are counted separately. */
  bounds: PlaceBounds
  /** Longest time of a query, from its turn on. */
  timeoutMs: number
  /** The program of the process; that of the build when it is absent. */
  script?: URL
}

/** How long the process waits for a writer, within the time of a query: in native calls, and by trying again. */
const PROCESS_BUSY = { nativeBusyMs: 200, retryMs: 1_000 }

/** Queries that a libSQL server runs for one search at a time. */
const SERVER_LANES = 4

/**
 * Queries about stored items, and their index. A file is read by a separate process, since its driver blocks the thread that calls it; a
 * server is asked from here (docs/decisions/0019-the-search-index.md). Callers are served in turn
 * (docs/decisions/0047-turns-of-the-search.md).
 */
export function openFeedSearch(options: FeedSearchOptions): FeedSearch & { close: () => Promise<void> } {
  const { location, database, timeoutMs } = options
  const script = options.script ?? new URL('./search-worker.js', import.meta.url)
  const reading = location.url.startsWith('file:')
    ? searchProcess(script, { url: location.url, ...PROCESS_BUSY }, timeoutMs)
    : null
  const run = async (question: Question): Promise<Answer> => {
    if (!reading)
      return await withoutWaiting(
        timeoutMs,
        database.use(({ client }) => answer(client, question)),
      )
    await database.use(() => Promise.resolve())
    return await reading.ask(question)
  }
  const turns = searchTurns(options.bounds, reading ? 1 : SERVER_LANES)
  return {
    ...searchIndex(database),
    by(caller) {
      const ask = (question: Question): Promise<Answer> => turns.take(caller, () => run(question))
      return {
        search: async (question) => (await ask({ ask: 'search', question })) as SearchPage,
        similar: async (key, limit) => (await ask({ ask: 'similar', key, limit })) as SimilarItem[],
        itemTrend: async (key) => (await ask({ ask: 'item-trend', key })) as ItemTrend,
        termTrend: async (question) => (await ask({ ask: 'term-trend', question })) as TermTrend,
      }
    },
    async close() {
      turns.close()
      await reading?.close()
    },
  }
}

/** What is read within `ms`; a server cannot be stopped, but its late rows are not waited for. */
function withoutWaiting<T>(ms: number, reading: Promise<T>): Promise<T> {
  return withTimeLimit(
    ms,
    new AbortController().signal,
    (limited) =>
      new Promise((resolve, reject) => {
        limited.addEventListener('abort', () => reject(limited.reason as Error), { once: true })
        reading.then(resolve, reject)
      }),
  )
}

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

/** A process that runs one query at a time; which one is next is decided elsewhere (`feed-search.ts`). */
export interface SearchProcess {
  /**
   * Runs a query. The one before must have ended.
   *
   * @throws Refusal `storage_unavailable` when the database stays locked; StorageFault when the process ended over the
   *   query, took too long or is closed. The next query starts another process
   */
  ask(question: Question): Promise<Answer>
  close(): Promise<void>
}

/** Of JavaScript alone, in MB; what the driver takes is bounded by its cache. */
const MEMORY = '--max-old-space-size=256'

/** How long a process may take to start. It is not part of the query's time: the query did not cause it. */
const START_TIMEOUT_MS = 10_000

interface InHand {
  resolve: (answer: Answer) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

/**
 * Describes a process without starting it; the first query does. A native call cannot be stopped, and to end a thread
 * inside one ends the whole program: so it is a process, which can be killed anywhere. A query that takes too long ends
 * it, and only that query fails.
 *
 * @param timeoutMs longest time of a query in a process that has started
 */
export function searchProcess(script: URL, workerData: SearchWorkerData, timeoutMs: number): SearchProcess {
  let child: ChildProcess | null = null
  let isReady = false
  let inHand: InHand | null = null
  let closed = false

  const settle = (how: (settled: InHand) => void): void => {
    if (!inHand) return
    const settled = inHand
    clearTimeout(settled.timer)
    inHand = null
    // An idle process does not keep its parent alive.
    child?.unref()
    child?.channel?.unref()
    how(settled)
  }

  /** The process has ended or must end; its query fails. */
  const lose = (lost: ChildProcess, why: string, cause?: unknown): void => {
    if (child !== lost) return
    child = null
    lost.kill('SIGKILL')
    settle(({ reject }) => reject(new StorageFault(why, { cause })))
  }

  const limit = (running: ChildProcess): NodeJS.Timeout => {
    const ms = isReady ? timeoutMs : START_TIMEOUT_MS
    const what = isReady ? 'the search gave no answer' : 'the search process did not start'
    return setTimeout(() => lose(running, `${what} within ${ms} ms`), ms)
  }

  const start = (): ChildProcess => {
    const started = startProcess(script, workerData)
    isReady = false
    started.on('message', (reply: SearchWorkerReply) => {
      if (child !== started || !inHand) return
      if (reply.outcome !== 'ready') {
        settle((asked) => conclude(asked, reply))
        return
      }
      isReady = true
      clearTimeout(inHand.timer)
      inHand.timer = limit(started)
    })
    started.on('error', (error) => lose(started, 'the search process failed', error))
    started.once('exit', (code, signal) => lose(started, `the search process ended with ${signal ?? code}`))
    return started
  }

  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        if (closed || inHand) {
          reject(new StorageFault(closed ? 'the search is closed' : 'the search process has a query already'))
          return
        }
        const running = (child ??= start())
        inHand = { resolve, reject, timer: limit(running) }
        running.ref()
        running.channel?.ref()
        // A failed send needs no handling: the process's exit event follows.
        running.send(question, () => undefined)
      }),
    async close() {
      closed = true
      settle(({ reject }) => reject(new StorageFault('the search is closed')))
      const ending = child
      child = null
      if (ending) await end(ending)
    },
  }
}

function startProcess(script: URL, workerData: SearchWorkerData): ChildProcess {
  return fork(fileURLToPath(script), [JSON.stringify(workerData)], {
    execArgv: [MEMORY],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
}

async function end(ending: ChildProcess): Promise<void> {
  // Without a number it was never started.
  if (ending.pid === undefined || ending.exitCode !== null || ending.signalCode !== null) return
  ending.ref()
  const ended = once(ending, 'exit')
  ending.kill('SIGKILL')
  await ended
}

function conclude(
  { resolve, reject }: InHand,
  reply: Exclude<SearchWorkerReply, { outcome: 'ready' }>,
): void {
  switch (reply.outcome) {
    case 'answer':
      resolve(reply.value)
      return
    case 'refusal':
      reject(new Refusal(reply.code, reply.detail))
      return
    case 'busy':
      reject(storageUnavailable('the feed database is locked by another process'))
      return
    case 'fault':
      reject(new StorageFault(`the search failed: ${reply.message}`, { cause: reply.stack }))
  }
}
