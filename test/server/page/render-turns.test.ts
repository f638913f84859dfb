import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openPageCache, openRenderQueue } from '../../../src/server/page/rendered-pages.ts'
import type { RenderedPage, RenderQueue } from '../../../src/server/page/rendered-pages.ts'

/** Turns whose renders block for no time, so that there are no pauses. */
const turnsWithoutPauses = (): RenderQueue =>
  openRenderQueue({ now: () => 0, pause: async () => undefined, watch: () => () => 0 })

/**
 * Runs renders that block for the given times, in milliseconds, one after another or all asked for at once.
 *
 * @returns their starts and the pauses, in order
 */
async function orderOf(blocks: readonly number[], isSequential = false): Promise<string> {
  const events: string[] = []
  let now = 0
  const turns = openRenderQueue({
    now: () => now,
    async pause(ms) {
      events.push(`pause of ${ms}`)
      now += ms
    },
    watch() {
      const startedAt = now
      return () => now - startedAt
    },
  })
  const render = (block: number, index: number): Promise<void> =>
    turns.run('a', async () => {
      events.push(`${index + 1}`)
      now += block
      await nextTurn()
      if (!isSequential) events.push('end')
    })
  if (isSequential) for (const [index, block] of blocks.entries()) await render(block, index)
  else await Promise.all(blocks.map(render))
  return events.join(', ')
}

test('renders that block shortly run together, more and more of them, without a pause', async () => {
  expect(await orderOf([1, 1, 1, 1, 1, 1])).toBe('1, end, 2, 3, end, end, 4, 5, 6, end, end, end')
})

test('renders that block long run alone, with pauses of nine times their duration, of at most 108 ms, and 108 ms owed', async () => {
  expect(await orderOf([8, 10, 40, 1, 1])).toBe(
    '1, end, 2, end, pause of 44, 3, end, pause of 68, 4, end, 5, end',
  )
})

test('renders that come one after another owe the same pauses, also with short ones between them', async () => {
  expect(await orderOf([10, 1, 10, 1, 10], true)).toBe('1, 2, 3, pause of 61, 4, 5')
})

test('the time for which renders block the event loop is measured', async () => {
  const pauses: number[] = []
  const turns = openRenderQueue({ pause: async (ms) => void pauses.push(ms) })
  for (let long = 0; long < 3; long += 1)
    await turns.run('a', async () => {
      const end = performance.now() + 20
      while (performance.now() < end);
    })
  await turns.run('a', async () => undefined)
  expect(pauses.length).toBeGreaterThan(0)
  expect(Math.min(...pauses)).toBeGreaterThan(0)
})

test('renders that block long together are halved', async () => {
  // Three block for nine milliseconds, so two follow.
  expect(await orderOf([1, 1, 1, 3, 3, 3, 1, 1, 1, 1])).toBe(
    '1, end, 2, 3, end, end, 4, 5, 6, end, end, end, 7, 8, end, end, 9, 10, end, end',
  )
})

test('renders that wait delay no others, and an address has at most 32 that wait or run', async () => {
  const turns = turnsWithoutPauses()
  let [started, release] = [0, (): void => undefined]
  const released = new Promise<void>((resolve) => (release = resolve))
  const wait = (): Promise<void> => {
    started += 1
    return released
  }
  const waiting = Array.from({ length: 32 }, () => turns.run('a', wait))
  await expect.poll(() => started).toBe(32)
  await expect(turns.run('a', wait)).rejects.toMatchObject({ code: 'page_limit' })
  expect(await turns.run('b', async () => 'whole')).toBe('whole')
  release()
  await Promise.all(waiting)
  expect(await turns.run('a', async () => 'whole')).toBe('whole')
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
  const turns = openRenderQueue({ now: () => 0, pause: idle, watch: () => () => 1_000 })
  for (let long = 0; long < 2; long += 1) await turns.run('first', async () => undefined)
  await nextTurn()
  return turns
}

test('one address cannot fill the queue, and a newcomer takes a slot of the address with the most', async () => {
  const turns = await stoppedTurns()
  const dropped: string[] = []
  const taken = []
  for (const address of ['a', 'b', 'c', 'd']) taken.push(await placesOf(turns, address, dropped))
  expect(taken).toEqual([32, 32, 21, 16])
  expect(dropped).toHaveLength(21 + 16)
})

test('the addresses of one network hold at most 32 slots, and a newcomer takes one of theirs', async () => {
  const turns = await stoppedTurns()
  const dropped: string[] = []
  let taken = 0
  for (const network of ['a', 'b'])
    for (let at = 0; at < 40; at += 1)
      taken += await placesOfOne(turns, `2001:db8:${network}:${at}::/64`, dropped)
  expect(taken).toBe(2 * 32)
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
