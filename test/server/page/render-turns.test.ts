import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openPageCache, openRenderQueue } from '../../../src/server/page/rendered-pages.ts'
import type { RenderedPage, RenderQueue } from '../../../src/server/page/rendered-pages.ts'

/** Turns whose renders take no time, so that there are no pauses. */
const turnsWithoutPauses = (): RenderQueue =>
  openRenderQueue(
    async () => undefined,
    () => 0,
  )

/** Runs renders of the given durations, in milliseconds, and names their starts and the pauses in order. */
async function orderOf(durations: readonly number[]): Promise<string[]> {
  const events: string[] = []
  let now = 0
  const turns = openRenderQueue(
    async (ms) => void events.push(`pause of ${ms}`),
    () => now,
  )
  const renders = durations.map((duration, index) =>
    turns.run('a', async () => {
      events.push(`${index + 1}`)
      now += duration
      await nextTurn()
      events.push(`end of ${index + 1}`)
    }),
  )
  await Promise.all(renders)
  for (let turn = 0; turn < 10; turn += 1) await nextTurn()
  return events
}

test('short renders run together, more and more of them, without a pause', async () => {
  const events = await orderOf([1, 1, 1, 1, 1, 1])
  expect(events.join(', ')).toBe(
    '1, end of 1, 2, 3, end of 2, end of 3, 4, 5, 6, end of 4, end of 5, end of 6',
  )
})

test('other requests get a turn between renders', async () => {
  const turns = turnsWithoutPauses()
  const events: string[] = []
  const renders = ['1', '2', '3', '4'].map((name) =>
    turns.run('a', async () => {
      if (name === '1') setImmediate(() => events.push('other'))
      events.push(name)
    }),
  )
  await Promise.all(renders)
  expect(events).toEqual(['1', 'other', '2', '3', '4'])
})

test('long renders run alone, with pauses of nine times their duration between them from the second on', async () => {
  const events = await orderOf([8, 10, 40, 1, 1])
  expect(events.join(', ')).toBe(
    '1, end of 1, 2, end of 2, pause of 90, 3, end of 3, pause of 108, 4, end of 4, 5, end of 5',
  )
})

test('renders that take long together are halved, without a pause', async () => {
  const events = await orderOf([1, 1, 1, 3, 3, 3, 3, 3])
  expect(events.filter((event) => !event.startsWith('end')).join(', ')).toBe('1, 2, 3, 4, 5, 6, 7, 8')
  // Three took nine milliseconds, so two follow.
  expect(events.slice(-4)).toEqual(['7', '8', 'end of 7', 'end of 8'])
})

test('a failing render rejects only for its caller, and the next one runs', async () => {
  const turns = turnsWithoutPauses()
  const failing = turns.run('a', () => Promise.reject(new Error('broken')))
  const next = turns.run('a', async () => 'whole')
  await expect(failing).rejects.toThrow('broken')
  expect(await next).toBe('whole')
})

const idle = (): Promise<void> => new Promise(() => undefined)

/** Returns the number of slots that an address takes until it is refused; jobs evicted later are added to `dropped`. */
async function placesOf(turns: RenderQueue, address: string, dropped: string[] = []): Promise<number> {
  for (let taken = 0; ; taken += 1) {
    let refusal: unknown = null
    turns.run(address, idle).catch((error: unknown) => {
      refusal = error
      dropped.push(address)
    })
    await nextTurn()
    if (refusal === null) continue
    expect(refusal).toMatchObject({ code: 'page_limit', members: { retryAfterSeconds: 4 } })
    dropped.pop()
    return taken
  }
}

/** A render queue in an endless pause, so that every render waits. */
async function stoppedTurns(): Promise<RenderQueue> {
  let now = 0
  const turns = openRenderQueue(idle, () => (now += 100))
  for (let long = 0; long < 2; long += 1) await turns.run('first', async () => undefined)
  await nextTurn()
  return turns
}

test('one address cannot fill the queue, and a newcomer takes a slot of the address with the most', async () => {
  const turns = await stoppedTurns()
  const dropped: string[] = []
  const taken = []
  for (const address of ['a', 'b', 'c', 'd']) taken.push(await placesOf(turns, address, dropped))
  expect(taken).toEqual([32, 32, 32, 24])
  expect(dropped.toSorted().join('')).toBe(`${'a'.repeat(8)}${'b'.repeat(8)}${'c'.repeat(8)}`)
})

test('the addresses of one network hold at most 32 slots, and a newcomer takes one of theirs', async () => {
  const turns = await stoppedTurns()
  const dropped: string[] = []
  let taken = 0
  for (const network of ['a', 'b', 'c'])
    for (let at = 0; at < 40; at += 1)
      taken += await placesOfOne(turns, `2001:db8:${network}:${at}::/64`, dropped)
  expect(taken).toBe(3 * 32)
  expect(await placesOfOne(turns, '203.0.113.1', dropped)).toBe(1)
})

/** One place, if the address gets it. */
async function placesOfOne(turns: RenderQueue, address: string, dropped: string[]): Promise<number> {
  let isAdmitted = true
  turns.run(address, idle).catch(() => {
    isAdmitted = false
    dropped.push(address)
  })
  await nextTurn()
  return isAdmitted ? 1 : 0
}

test('addresses take turns', async () => {
  const served: string[] = []
  const turns = turnsWithoutPauses()
  const asked = ['a', 'a', 'a', 'b', 'c'].map((name) => turns.run(name, async () => served.push(name)))
  await Promise.all(asked)
  expect(served.join('')).toBe('abcaa')
})

const unchanged = { isUnchanged: async () => true }

function pageOf(bytes: number): RenderedPage {
  const half = Buffer.alloc(bytes / 2)
  return { status: 200, headers: {}, body: half, gzip: half, digest: 'd' }
}

async function keptOf(pages: ReturnType<typeof openPageCache>, keys: readonly string[]): Promise<string[]> {
  const found = await Promise.all(keys.map(async (key) => ((await pages.get(key)) ? [key] : [])))
  return found.flat()
}

test('pages are cached up to a number of bytes in both encodings, the least recently used is evicted, and a larger one is not cached', async () => {
  const pages = openPageCache(300, 100)
  for (const key of ['a', 'b', 'c']) pages.set(key, pageOf(100), unchanged)
  await pages.get('a')
  pages.set('d', pageOf(100), unchanged)
  expect(await keptOf(pages, ['a', 'b', 'c', 'd'])).toEqual(['a', 'c', 'd'])
  pages.set('e', pageOf(400), unchanged)
  expect(await keptOf(pages, ['a', 'b', 'c', 'd', 'e'])).toEqual(['a', 'c', 'd'])
})

test('pages are cached up to a number, and a replaced page frees its bytes', async () => {
  const pages = openPageCache(300, 2)
  for (let time = 0; time < 10; time += 1) pages.set('a', pageOf(200), unchanged)
  expect(await keptOf(pages, ['a'])).toEqual(['a'])
  for (const key of ['b', 'c', 'd']) pages.set(key, pageOf(2), unchanged)
  expect(await keptOf(pages, ['a', 'b', 'c', 'd'])).toEqual(['c', 'd'])
})

test('a page that has changed, or whose sources cannot be read, is not returned', async () => {
  const pages = openPageCache()
  pages.set('changed', pageOf(2), { isUnchanged: async () => false })
  expect(await pages.get('changed')).toBeNull()
})
