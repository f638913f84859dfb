import { describe, expect, test } from 'vitest'
import type { StaticTree } from '../../../src/domain/year/ports.ts'
import { DAMAGED } from '../../support/refusals.ts'

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const textOf = (bytes: Uint8Array | null): string | null => bytes && new TextDecoder().decode(bytes)

const TILE = 'tlog/year/tile/0/x001/002.p/3'

/** Contract of every tree of static files. */
export function staticTreeContract(engine: string, open: () => Promise<StaticTree>): void {
  describe(`a static tree on ${engine}`, () => {
    test('a stored file is returned byte for byte; the same bytes can be stored twice, and no others', async () => {
      const tree = await open()
      const odd = Uint8Array.of(0xef, 0xbb, 0xbf, 0x00, 0xff, 0xfe, 0x0a)
      expect(await tree.get(TILE)).toBeNull()
      await tree.put(TILE, odd)
      await tree.put(TILE, odd)
      await expect(tree.put(TILE, utf8('other'))).rejects.toMatchObject(DAMAGED)
      expect([...((await tree.get(TILE)) ?? [])]).toEqual([...odd])
    })

    test('a file is replaced, whether it exists or not, unless it changed since it was read', async () => {
      const tree = await open()
      expect(await tree.replace('index.json', utf8('removed'), utf8('second'))).toBe(false)
      expect(await tree.get('index.json')).toBeNull()
      expect(await tree.replace('index.json', null, utf8('first'))).toBe(true)
      for (const before of [null, utf8('other'), utf8('')])
        expect(await tree.replace('index.json', before, utf8('second'))).toBe(false)
      expect(await tree.replace('index.json', utf8('first'), utf8('a longer second'))).toBe(true)
      expect(textOf(await tree.get('index.json'))).toBe('a longer second')
    })

    test('of processes that replace the same file at the same time, one succeeds', async () => {
      const tree = await open()
      await tree.replace('index.json', null, utf8('first'))
      const texts = ['a', 'b', 'c', 'd', 'e']
      const replaced = await Promise.all(
        texts.map((text) => tree.replace('index.json', utf8('first'), utf8(text))),
      )
      const winners = texts.filter((_, index) => replaced[index])
      expect(winners).toHaveLength(1)
      expect(textOf(await tree.get('index.json'))).toBe(winners[0])
    })
  })
}
