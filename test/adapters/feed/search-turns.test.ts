import { describe, expect, test } from 'vitest'
import { searchQueue } from '../../../src/adapters/feed/feed-search.ts'
import type { SearchQueue } from '../../../src/adapters/feed/feed-search.ts'
import { PAGES_CALLER } from '../../../src/domain/feed/search/search.ts'
import type { SearchCaller } from '../../../src/domain/feed/search/search.ts'
import { Refusal, storageUnavailable } from '../../../src/domain/refusal.ts'
const BOUNDS = { perAddress: 4, perNetwork: 16, all: 64 }
const LIMIT = { code: 'search_limit', members: { retryAfterSeconds: 2 } }
const BUSY = { code: 'search_busy', members: { retryAfterSeconds: 2 } }

/** A queue whose queries run until the test ends them; `begun` lists them in the order of their turns. */
function openQueue(concurrency = 1) {
  const queue: SearchQueue = searchQueue(BOUNDS, concurrency)
  const begun: string[] = []
  const ends = new Map<string, (error?: Error) => void>()
  return {
    turns: queue,
    begun,
    ask: (name: string, caller: Partial<SearchCaller> = {}): Promise<string> =>
      queue.run(
        { address: name.charAt(0), isChat: false, signal: null, ...caller },
        () =>
          new Promise<string>((resolve, reject) => {
            begun.push(name)
            ends.set(name, (error) => (error ? reject(error) : resolve(name)))
          }),
      ),
    /** Ends a query and lets the next one begin. */
    async end(name: string, error?: Error): Promise<void> {
      ends.get(name)?.(error)
      await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

/** Ends the running queries one by one until none is left. */
async function endAll({ begun, end }: ReturnType<typeof openQueue>): Promise<void> {
  for (let at = 0; at < begun.length; at += 1) await end(begun[at] ?? '')
}

describe('the queue of the search', () => {
  test('the queue serves the chat before all other callers', async () => {
    const open = openQueue()
    const queries = ['a1', 'b1', 'c1'].map((name) => open.ask(name))
    queries.push(open.ask('a2', { isChat: true }), open.ask('d1', { isChat: true }))
    await endAll(open)
    expect(open.begun).toEqual(['a1', 'a2', 'd1', 'b1', 'c1'])
    await Promise.all(queries)
  })

  test('the queue alternates between pages and clients, and keeps places for pages when clients use all of theirs', async () => {
    const open = openQueue()
    const queries: Promise<string>[] = []
    for (let at = 0; at < BOUNDS.all; at += 1)
      queries.push(open.ask(`c${at}`, { address: `192.0.2.${Math.floor(at / BOUNDS.perAddress)}` }))
    await expect(open.ask('d')).rejects.toMatchObject(BUSY)
    for (const name of ['p1', 'p2']) queries.push(open.ask(name, PAGES_CALLER))
    await endAll(open)
    expect(open.begun.slice(1, 5).filter((name) => name.startsWith('p'))).toEqual(['p1', 'p2'])
    await Promise.all(queries)
  })

  test('the queue runs as many queries at the same time as configured', async () => {
    const open = openQueue(2)
    const queries = ['a1', 'b1', 'c1'].map((name) => open.ask(name))
    expect(open.begun).toEqual(['a1', 'b1'])
    await open.end('b1')
    expect(open.begun).toEqual(['a1', 'b1', 'c1'])
    await endAll(open)
    await Promise.all(queries)
  })

  test('the queue refuses the fifth open query of an address, and accepts another after one has ended', async () => {
    const open = openQueue()
    const queries = ['a1', 'a2', 'a3', 'a4'].map((name) => open.ask(name))
    await expect(open.ask('a5')).rejects.toMatchObject(LIMIT)
    await open.end('a1')
    queries.push(open.ask('a6'))
    await endAll(open)
    expect(await Promise.all(queries)).toEqual(['a1', 'a2', 'a3', 'a4', 'a6'])
  })

  test('the queue refuses everybody when it is full, except the chat, which has its own places', async () => {
    const open = openQueue()
    const queries = Array.from({ length: BOUNDS.all }, (_, at) =>
      open.ask(`q${at}`, { address: `192.0.2.${at}` }),
    )
    await expect(open.ask('z1')).rejects.toMatchObject(BUSY)
    queries.push(open.ask('c1', { isChat: true }))
    await endAll(open)
    expect(open.begun.slice(0, 2)).toEqual(['q0', 'c1'])
    await Promise.all(queries)
  })

  test('the queue drops a waiting query whose caller aborts, and frees its place', async () => {
    const open = openQueue()
    const leaving = new AbortController()
    const first = open.ask('a1')
    const left = [1, 2, 3].map((at) => open.ask(`a-left-${at}`, { signal: leaving.signal }))
    leaving.abort(new Error('gone'))
    for (const each of await Promise.allSettled(left))
      expect(each).toMatchObject({ reason: { message: 'gone' } })
    await expect(open.ask('a2', { signal: leaving.signal })).rejects.toThrow('gone')
    const others = ['a3', 'a4', 'a5'].map((name) => open.ask(name))
    await expect(open.ask('a6')).rejects.toMatchObject(LIMIT)
    await endAll(open)
    expect(open.begun).toEqual(['a1', 'a3', 'a4', 'a5'])
    await Promise.all([first, ...others])
  })

  test('the queue keeps the place of a running query until it ends, although its caller aborted', async () => {
    const open = openQueue()
    const leaving = new AbortController()
    const running = open.ask('a1', { signal: leaving.signal })
    const waiting = ['a2', 'a3', 'a4'].map((name) => open.ask(name))
    leaving.abort()
    await expect(open.ask('a5')).rejects.toMatchObject(LIMIT)
    await endAll(open)
    expect(await running).toBe('a1')
    await Promise.all(waiting)
  })

  test('the queue fails a single query, but every waiting query if the database is missing', async () => {
    const open = openQueue()
    const queries = ['a1', 'b1', 'c1', 'd1'].map((name) => open.ask(name))
    const settled = Promise.allSettled(queries)
    await open.end('a1', new Refusal('item_not_found'))
    await open.end('b1', storageUnavailable('locked'))
    expect(open.begun).toEqual(['a1', 'b1'])
    const codes = (await settled).map((each) => each.status === 'rejected' && (each.reason as Refusal).code)
    expect(codes).toEqual(['item_not_found', ...Array(3).fill('storage_unavailable')])
    const later = open.ask('c2')
    await endAll(open)
    expect(await later).toBe('c2')
  })

  test('the queue rejects waiting and later queries when it is closed', async () => {
    const open = openQueue()
    const running = open.ask('a1')
    const waiting = open.ask('b1')
    open.turns.close()
    await expect(waiting).rejects.toThrow('the search is closed')
    await expect(open.ask('c1')).rejects.toThrow('the search is closed')
    await open.end('a1')
    expect(await running).toBe('a1')
  })
})
