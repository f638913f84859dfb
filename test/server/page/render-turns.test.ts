import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openPageCache, openRenderQueue } from '../../../src/server/page/rendered-pages.ts'
import type { RenderedPage, RenderQueue } from '../../../src/server/page/rendered-pages.ts'

/** Turns whose clock stands still. */
const turnsWithoutPauses = (): RenderQueue =>
  openRenderQueue(
    () => 0,
    async () => undefined,
  )

test('a render starts after the previous one and its pause', async () => {
  const events: string[] = []
  let endPause = (): void => undefined
  const turns = openRenderQueue(
    () => 0,
    () => {
      events.push('pause')
      return new Promise<void>((resolve) => (endPause = resolve))
    },
  )
  const render = (name: string) => async (): Promise<string> => {
    events.push(name)
    return name
  }
  const first = turns.run('a', render('first'))
  const second = turns.run('a', render('second'))
  expect(await first).toBe('first')
  while (!events.includes('pause')) await nextTurn()
  expect(events).toEqual(['first', 'pause'])
  endPause()
  expect(await second).toBe('second')
  while (events.length < 4) await nextTurn()
  expect(events).toEqual(['first', 'pause', 'second', 'pause'])
  endPause()
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

/** A render queue that never runs, so that every render waits. */
function stoppedTurns(): RenderQueue {
  const turns = openRenderQueue(() => 0, idle)
  void turns.run('first', async () => undefined)
  return turns
}

test('one address cannot fill the queue, and a newcomer takes a slot of the address with the most', async () => {
  const turns = stoppedTurns()
  await nextTurn()
  const dropped: string[] = []
  const taken = []
  for (const address of ['a', 'b', 'c', 'd']) taken.push(await placesOf(turns, address, dropped))
  expect(taken).toEqual([12, 12, 10, 8])
  expect(dropped.toSorted().join('')).toBe('aaaabbbbcc')
})

test('the addresses of one network hold at most twelve slots, and a newcomer takes one of theirs', async () => {
  const turns = stoppedTurns()
  await nextTurn()
  const dropped: string[] = []
  let taken = 0
  for (const network of ['a', 'b', 'c'])
    for (let at = 0; at < 20; at += 1)
      taken += await placesOfOne(turns, `2001:db8:${network}:${at}::/64`, dropped)
  expect(taken).toBe(12 + 12 + 10)
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

test('the addresses of one IPv6 /48 share a rate', async () => {
  const turns = turnsWithoutPauses()
  let number = 0
  const renderOne = (network: string): Promise<number> => {
    number += 1
    return turns.run(`2001:db8:${network}:${number.toString(16)}::/64`, async () => 1)
  }
  let rendered = 0
  await expect(async () => {
    for (; rendered < 1_000; rendered += 1) await renderOne('7')
  }).rejects.toMatchObject({ code: 'page_limit', members: { retryAfterSeconds: 60 } })
  expect(rendered).toBe(240)
  expect(await renderOne('8')).toBe(1)
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
