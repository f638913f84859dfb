import { expect, test } from 'vitest'
import { searchQueue } from '../../../src/adapters/feed/feed-search.ts'
import type { SearchQueue } from '../../../src/adapters/feed/feed-search.ts'
import type { SearchCaller } from '../../../src/domain/feed/search/search.ts'
import { Refusal, storageUnavailable } from '../../../src/domain/refusal.ts'

/** A queue whose queries run until the test ends them; `begun` lists them in the order of their turns. */
function openQueue(concurrency = 1) {
  const queue: SearchQueue = searchQueue(concurrency)
  const begun: string[] = []
  const ends = new Map<string, (error?: Error) => void>()
  return {
    turns: queue,
    begun,
    ask: (name: string, caller: Partial<SearchCaller> = {}): Promise<string> =>
      queue.run(
        { group: 'others', signal: null, ...caller },
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

test('the queue serves the chat first, then MCP clients, then all others, each in the order of arrival, as many at the same time as configured', async () => {
  const open = openQueue(2)
  const queries = ['a1', 'b1', 'c1', 'd1'].map((name) => open.ask(name))
  for (const group of ['mcp', 'chat'] as const)
    for (const number of [1, 2]) queries.push(open.ask(`${group}${number}`, { group }))
  expect(open.begun).toEqual(['a1', 'b1'])
  await open.end('b1')
  expect(open.begun).toEqual(['a1', 'b1', 'chat1'])
  await endAll(open)
  expect(open.begun.slice(3)).toEqual(['chat2', 'mcp1', 'mcp2', 'c1', 'd1'])
  await Promise.all(queries)
})

test('the queue drops a waiting query whose caller aborts, and ends a running one', async () => {
  const open = openQueue()
  const leaving = new AbortController()
  const running = open.ask('a1', { signal: leaving.signal })
  const left = [1, 2, 3].map((at) => open.ask(`a-left-${at}`, { signal: leaving.signal }))
  leaving.abort(new Error('gone'))
  for (const each of await Promise.allSettled(left))
    expect(each).toMatchObject({ reason: { message: 'gone' } })
  await expect(open.ask('a2', { signal: leaving.signal })).rejects.toThrow('gone')
  const other = open.ask('a3')
  await endAll(open)
  expect(open.begun).toEqual(['a1', 'a3'])
  expect(await Promise.all([running, other])).toEqual(['a1', 'a3'])
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
