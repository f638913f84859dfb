import { expect, test } from 'vitest'
import { keptPages } from '../../../src/server/page/rendered-pages.ts'
import type { RenderedPage } from '../../../src/server/page/rendered-pages.ts'

const unchanged = { isUnchanged: async () => true }

function pageOf(bytes: number): RenderedPage {
  const half = Buffer.alloc(bytes / 2)
  return { status: 200, headers: {}, body: half, gzip: half, digest: 'd' }
}

async function keptOf(pages: ReturnType<typeof keptPages>, keys: readonly string[]): Promise<string[]> {
  const found = await Promise.all(keys.map(async (key) => ((await pages.current(key)) ? [key] : [])))
  return found.flat()
}

test('pages are kept up to a number of bytes in both encodings, and the one used longest ago goes first', async () => {
  const pages = keptPages(300, 100)
  for (const key of ['a', 'b', 'c']) pages.keep(key, pageOf(100), unchanged)
  await pages.current('a')
  pages.keep('d', pageOf(100), unchanged)
  expect(await keptOf(pages, ['a', 'b', 'c', 'd'])).toEqual(['a', 'c', 'd'])
  pages.keep('e', pageOf(400), unchanged)
  expect(await keptOf(pages, ['a', 'b', 'c', 'd', 'e'])).toEqual([])
})

test('pages are kept up to a number, and a page that takes the place of another frees its bytes', async () => {
  const pages = keptPages(300, 2)
  for (let time = 0; time < 10; time += 1) pages.keep('a', pageOf(200), unchanged)
  expect(await keptOf(pages, ['a'])).toEqual(['a'])
  for (const key of ['b', 'c', 'd']) pages.keep(key, pageOf(2), unchanged)
  expect(await keptOf(pages, ['a', 'b', 'c', 'd'])).toEqual(['c', 'd'])
})

test('a page that has changed, or whose sources cannot be read, is not given', async () => {
  const pages = keptPages()
  pages.keep('changed', pageOf(2), { isUnchanged: async () => false })
  expect(await pages.current('changed')).toBeNull()
})
