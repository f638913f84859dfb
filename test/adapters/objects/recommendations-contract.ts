import { describe, expect, test } from 'vitest'
import type { RecommendationStore } from '../../../src/domain/ports.ts'
import { DAMAGED } from '../../support/refusals.ts'

/** An empty store of recommendations, and a way past it. */
export interface RecommendationsUnderTest {
  store: RecommendationStore
  /** Puts bytes under a path of the store, as somebody else would who can write to it. */
  plant(path: string, bytes: Uint8Array): Promise<void>
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const textOf = (bytes: Uint8Array | null): string | null => bytes && new TextDecoder().decode(bytes)

/** What every store of recommendations keeps, whatever engine it stands on. */
export function recommendationsContract(engine: string, open: () => Promise<RecommendationsUnderTest>): void {
  describe(`recommendations on ${engine}`, () => {
    test('hold nothing at first', async () => {
      const { store } = await open()
      expect(await store.current()).toBeNull()
      expect(await store.run('2026-08-22.v1')).toBeNull()
      expect(await store.versions()).toEqual([])
    })

    test('give back a run and make it the current one, byte for byte', async () => {
      const { store } = await open()
      const odd = Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d, 0x00, 0xff, 0x0a)
      await store.put('2026-08-22.v1', odd)
      expect([...((await store.current()) ?? [])]).toEqual([...odd])
      expect([...((await store.run('2026-08-22.v1')) ?? [])]).toEqual([...odd])
    })

    test('replace the current one and keep every run', async () => {
      const { store } = await open()
      await store.put('2026-08-22.v1', bytesOf('first'))
      await store.put('2026-08-22.v2', bytesOf('a longer second'))
      await store.put('2026-08-23.v1', bytesOf('3'))
      expect(textOf(await store.current())).toBe('3')
      expect(textOf(await store.run('2026-08-22.v1'))).toBe('first')
      expect(textOf(await store.run('2026-08-22.v2'))).toBe('a longer second')
      expect((await store.versions()).sort()).toEqual(['2026-08-22.v1', '2026-08-22.v2', '2026-08-23.v1'])
    })

    test('take the same run twice, which makes it the current one again', async () => {
      const { store } = await open()
      await store.put('2026-08-22.v1', bytesOf('first'))
      await store.put('2026-08-22.v2', bytesOf('second'))
      await store.put('2026-08-22.v1', bytesOf('first'))
      expect(textOf(await store.current())).toBe('first')
    })

    test('refuse other bytes for a run that is there, and keep both as they were', async () => {
      const { store } = await open()
      await store.put('2026-08-22.v1', bytesOf('first'))
      await expect(store.put('2026-08-22.v1', bytesOf('other'))).rejects.toMatchObject(DAMAGED)
      expect(textOf(await store.run('2026-08-22.v1'))).toBe('first')
      expect(textOf(await store.current())).toBe('first')
    })

    test('replace a current one that somebody else damaged, and give back the damage before', async () => {
      const { store, plant } = await open()
      await plant('free-llm/current', bytesOf('{"broken'))
      expect(textOf(await store.current())).toBe('{"broken')
      await store.put('2026-08-22.v1', bytesOf('whole'))
      expect(textOf(await store.current())).toBe('whole')
    })

    test.each(['', '2026-08-22', '2026-08-22.v', '../current', '2026-08-22.v1?x', '2026-08-22.v1:x'])(
      'take no version called %j',
      async (version) => {
        const { store } = await open()
        await expect(store.put(version, bytesOf('x'))).rejects.toThrow('no ranking version')
        await expect(store.run(version)).rejects.toThrow('no ranking version')
        expect(await store.current()).toBeNull()
      },
    )

    test('list no stray object as a version', async () => {
      const { store, plant } = await open()
      await store.put('2026-08-22.v1', bytesOf('x'))
      for (const path of ['readme', '2026-08-22.v1.bak', 'deeper/2026-08-23.v1'])
        await plant(`free-llm/runs/${path}`, bytesOf('x'))
      expect(await store.versions()).toEqual(['2026-08-22.v1'])
    })

    test('give a reader the old bytes or the new ones, whole, while they are replaced', async () => {
      const { store } = await open()
      const bodies = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(200_000))
      await store.put('2026-08-22.v1', bytesOf(bodies[0] ?? ''))
      const seen: (string | null)[] = []
      const writing = (async () => {
        for (const [index, body] of bodies.entries())
          await store.put(`2026-08-23.v${index + 1}`, bytesOf(body))
      })()
      for (let read = 0; read < 20; read += 1) seen.push(textOf(await store.current()))
      await writing
      expect(seen.filter((body) => !bodies.includes(body ?? ''))).toEqual([])
      expect(textOf(await store.current())).toBe(bodies.at(-1))
    })

    test('can be reached', async () => {
      const { store } = await open()
      await expect(store.ping()).resolves.toBeUndefined()
    })
  })
}
