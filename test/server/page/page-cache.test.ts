import { expect, test } from 'vitest'
import { openPageCache } from '../../../src/server/page/rendered-pages.ts'
import type { RenderedPage } from '../../../src/server/page/rendered-pages.ts'

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
