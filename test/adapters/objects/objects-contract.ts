import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import type { Objects } from '../../../src/domain/year/ports.ts'
import type { Head } from '../../../src/domain/year/ledger.ts'
import { logFileName } from '../../../src/domain/year/log/log-history.ts'
import type { LogFile } from '../../../src/domain/year/log/log-history.ts'
import { DAMAGED } from '../../support/refusals.ts'

/** An empty archive, and a way past it. */
interface ArchiveUnderTest {
  objects: Objects
  /** Writes bytes to a path of the store (`heads/1`), as another program could. */
  plant(path: string, bytes: Uint8Array): Promise<void>
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const textOf = (bytes: Uint8Array | null): string | null => bytes && new TextDecoder().decode(bytes)

const OBJECTS: Record<string, Uint8Array> = {
  'no bytes at all': new Uint8Array(),
  'a byte order mark': utf8('\uFEFF{"a":1}\r\n'),
  'bytes that are not UTF-8': Uint8Array.of(0x7b, 0xc3, 0x28, 0x00, 0xff, 0xfe, 0x7d),
  '3 MiB of every byte': Uint8Array.from(
    { length: 3 * 1024 * 1024 },
    (_, index) => (index * 31 + (index >> 8)) & 0xff,
  ),
}

/** Digests that must never name a path. */
const INVALID_DIGESTS: Record<string, string> = {
  'a path of 64 characters': 'ab/../'.repeat(10) + 'abcd',
  'a query': `${'a'.repeat(62)}?b`,
  'upper case': 'A'.repeat(64),
  'a line break after 64 digits': `${'a'.repeat(64)}\n`,
}

const leaf = (digit: string): string => digit.repeat(64)

export const headOf = (seq: number, changes: Partial<Head> = {}): Head => ({
  seq,
  leaf: leaf('a'),
  time: Date.UTC(2026, 2, 1, 0, 10, 0, seq),
  ...changes,
})

const formatHead = (fields: Record<string, unknown> = {}): string =>
  JSON.stringify({ seq: 7, leaf: leaf('a'), time: '2026-03-01T00:10:00.007Z', ...fields })

const pathOf = (digest: string): string => `sha256/${digest.slice(0, 2)}/${digest}`

const DAMAGED_HEADS: Record<string, Uint8Array> = {
  'no bytes': new Uint8Array(),
  'bytes that are not UTF-8': Uint8Array.of(...utf8(formatHead().slice(0, -1)), 0xff, 0x7d),
  'the sequence number of another head': utf8(formatHead({ seq: 6 })),
}

type ArchiveOpener = () => Promise<ArchiveUnderTest>

/** Contract of every archive engine. */
export function objectsContract(engine: string, open: ArchiveOpener): void {
  archiveContract(engine, open)
  logFilesContract(engine, open)
  recommendationsContract(engine, open)
}

function archiveContract(engine: string, open: ArchiveOpener): void {
  describe(`an archive on ${engine}`, () => {
    test.each(Object.entries(OBJECTS))(
      'the archive returns %s exactly as it was stored',
      async (_what, bytes) => {
        const { objects } = await open()
        const before = Uint8Array.from(bytes)
        expect(await objects.get(sha256Hex(bytes))).toBeNull()
        await objects.put(sha256Hex(bytes), bytes)
        const stored = await objects.get(sha256Hex(bytes))
        expect(stored).toBeInstanceOf(Uint8Array)
        expect(Buffer.compare(stored ?? new Uint8Array(1), before)).toBe(0)
      },
    )

    test.each(Object.entries(INVALID_DIGESTS))(
      'the archive refuses %s in place of a digest',
      async (_what, digest) => {
        const { objects } = await open()
        const detail = expect.stringContaining('is not a SHA-256 digest') as string
        await expect(async () => objects.get(digest)).rejects.toMatchObject({ ...DAMAGED, detail })
        await expect(async () => objects.objectChangeToken(digest)).rejects.toMatchObject(DAMAGED)
        await expect(async () => objects.put(digest, utf8('x'))).rejects.toThrow()
      },
    )

    test('the archive rejects bytes with another digest, and stores nothing', async () => {
      const { objects } = await open()
      const digest = sha256Hex('these bytes')
      await expect(objects.put(digest, utf8('other bytes'))).rejects.toThrow('a different digest')
      expect(await objects.get(digest)).toBeNull()
      expect(await objects.get(sha256Hex('other bytes'))).toBeNull()
    })

    test.each([
      [[9, 10], 10],
      [[999, 1000, 2], 1000],
    ])('the newest of the heads %j is %i', async (seqs, newest) => {
      const { objects } = await open()
      for (const seq of seqs) await objects.putHead(headOf(seq))
      expect(await objects.newestHead()).toEqual(headOf(newest))
    })

    test('the archive accepts the same head twice and no other leaf for it, and keeps the first', async () => {
      const { objects } = await open()
      await objects.putHead(headOf(4))
      await objects.putHead(headOf(4, { time: Date.UTC(2027, 0, 1) }))
      await expect(objects.putHead(headOf(4, { leaf: leaf('b') }))).rejects.toMatchObject(DAMAGED)
      expect(await objects.newestHead()).toEqual(headOf(4))
    })

    test.each(Object.entries(DAMAGED_HEADS))(
      'the archive refuses a head file with %s',
      async (_what, bytes) => {
        const { objects, plant } = await open()
        await objects.putHead(headOf(6))
        await plant('heads/7', bytes)
        await expect(objects.newestHead()).rejects.toMatchObject(DAMAGED)
        await expect(objects.putHead(headOf(7))).rejects.toMatchObject(DAMAGED)
      },
    )

    test('the archive accepts no other name for a head', async () => {
      const { objects, plant } = await open()
      await objects.putHead(headOf(2))
      for (const name of ['0', '07', '8.json', 'x', '-9', '1e1', '9007199254740993', '7?x', '7:1']) {
        await plant(`heads/${name}`, utf8(formatHead()))
      }
      expect(await objects.newestHead()).toEqual(headOf(2))
    })

    test('the archive refuses to store an object over other bytes, and leaves them as evidence', async () => {
      const { objects, plant } = await open()
      const digest = sha256Hex('an object')
      await plant(pathOf(digest), utf8('other bytes'))
      await expect(objects.put(digest, utf8('an object'))).rejects.toMatchObject(DAMAGED)
      expect(textOf(await objects.get(digest))).toBe('other bytes')
    })

    test('the archive stores one object when it is stored several times at once', async () => {
      const { objects } = await open()
      const digest = sha256Hex('an object')
      await Promise.all([1, 2, 3, 4].map(() => objects.put(digest, utf8('an object'))))
      expect(textOf(await objects.get(digest))).toBe('an object')
      expect(await objects.keys('sha256')).toEqual([pathOf(digest)])
    })

    test('one of two different heads written at the same time wins', async () => {
      const { objects } = await open()
      const heads = ['a', 'b', 'c'].map((digit) => headOf(3, { leaf: leaf(digit) }))
      const written = await Promise.allSettled(heads.map((head) => objects.putHead(head)))
      const winners = heads.filter((_head, index) => written[index]?.status === 'fulfilled')
      expect(winners).toHaveLength(1)
      expect(await objects.newestHead()).toEqual(winners[0])
      for (const loser of written.filter(({ status }) => status === 'rejected'))
        expect(loser).toMatchObject({ reason: DAMAGED })
    })

    test('the archive lists all its contents, including foreign files', async () => {
      const { objects, plant } = await open()
      expect(await objects.keys('sha256')).toEqual([])
      expect(await objects.keys('heads')).toEqual([])
      await objects.put(sha256Hex('an object'), utf8('an object'))
      await objects.putHead(headOf(1))
      const strays = ['sha256/readme.txt', 'sha256/ab/deep/er', 'sha256/ab/a b?c%41+é', 'heads/1.bak']
      for (const path of [...strays, 'elsewhere/1']) await plant(path, utf8('x'))
      expect((await objects.keys('sha256')).sort()).toEqual(
        [...strays.slice(0, 3), pathOf(sha256Hex('an object'))].sort(),
      )
      expect((await objects.keys('heads')).sort()).toEqual(['heads/1', 'heads/1.bak'])
    })

    test('the archive finds the newest of more heads than one page of a server lists', async () => {
      const { objects, plant } = await open()
      const seqs = Array.from({ length: 1_005 }, (_, index) => index + 1)
      for (let first = 0; first < seqs.length; first += 50) {
        await Promise.all(
          seqs.slice(first, first + 50).map((seq) => plant(`heads/${seq}`, utf8(formatHead({ seq })))),
        )
      }
      expect(await objects.keys('heads')).toHaveLength(1_005)
      expect(await objects.newestHead()).toMatchObject({ seq: 1_005 })
    })
  })
}

function logFilesContract(engine: string, open: ArchiveOpener): void {
  describe(`files of the signed log on ${engine}`, () => {
    const note: LogFile = { kind: 'note', size: 30 }
    const policy: LogFile = { kind: 'policy', number: 1 }

    test('stored files are listed and read byte for byte, and each is written once', async () => {
      const { objects } = await open()
      expect([await objects.logFiles.list(), await objects.logFiles.get(note)]).toEqual([[], null])
      for (const [index, file] of [note, policy].entries())
        await objects.logFiles.put(file, Uint8Array.of(0, 255, index))
      expect([...((await objects.logFiles.get(policy)) ?? [])]).toEqual([0, 255, 1])
      const names = (await objects.logFiles.list()).map(logFileName)
      expect(names.sort()).toEqual(['30', 'policy.1'])
      await objects.logFiles.put(note, Uint8Array.of(0, 255, 0))
      await expect(objects.logFiles.put(note, utf8('another'))).rejects.toMatchObject(DAMAGED)
      expect([...((await objects.logFiles.get(note)) ?? [])]).toEqual([0, 255, 0])
    })
  })
}

function recommendationsContract(engine: string, opener: ArchiveOpener): void {
  const open = async () => {
    const { objects, plant } = await opener()
    return { store: objects.recommendations, plant }
  }

  describe(`recommendations on ${engine}`, () => {
    test('the run stored last is the current one, byte for byte, also after a damaged one, and every run is kept', async () => {
      const { store, plant } = await open()
      const runs = {
        '2026-08-22.v1': '\uFEFF{}\0\n',
        '2026-08-22.v2': 'a longer second',
        '2026-08-23.v1': '3',
      }
      expect([await store.current(), await store.run('2026-08-22.v1'), await store.versions()]).toEqual([
        null,
        null,
        [],
      ])
      for (const stray of ['readme', '2026-08-22.v1.bak', 'deeper/2026-08-23.v1'])
        await plant(`free-llm/runs/${stray}`, utf8('x'))
      await plant('free-llm/current', utf8('{"broken'))
      expect(textOf(await store.current())).toBe('{"broken')
      for (const [version, text] of [...Object.entries(runs), ...Object.entries(runs).slice(0, 1)]) {
        await store.put(version, utf8(text))
        expect([...((await store.current()) ?? [])]).toEqual([...utf8(text)])
      }
      for (const [version, text] of Object.entries(runs))
        expect([...((await store.run(version)) ?? [])]).toEqual([...utf8(text)])
      expect((await store.versions()).sort()).toEqual(Object.keys(runs))
    })

    test('other bytes for an existing run are refused, and both stay unchanged', async () => {
      const { store } = await open()
      await store.put('2026-08-22.v1', utf8('first'))
      await expect(store.put('2026-08-22.v1', utf8('other'))).rejects.toMatchObject(DAMAGED)
      expect(textOf(await store.run('2026-08-22.v1'))).toBe('first')
      expect(textOf(await store.current())).toBe('first')
    })

    test.each(['', '2026-08-22', '2026-08-22.v', '../current', '2026-08-22.v1?x', '2026-08-22.v1:x'])(
      'the version %j is refused',
      async (version) => {
        const { store } = await open()
        await expect(store.put(version, utf8('x'))).rejects.toThrow('not a ranking version')
        await expect(store.run(version)).rejects.toThrow('not a ranking version')
        expect(await store.current()).toBeNull()
      },
    )

    test('a reader gets the old bytes or the new ones while they are replaced', async () => {
      const { store } = await open()
      const bodies = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(200_000))
      await store.put('2026-08-22.v1', utf8(bodies[0] ?? ''))
      const seen: (string | null)[] = []
      const writing = (async () => {
        for (const [index, body] of bodies.entries()) await store.put(`2026-08-23.v${index + 1}`, utf8(body))
      })()
      for (let read = 0; read < 20; read += 1) seen.push(textOf(await store.current()))
      await writing
      expect(seen.filter((body) => !bodies.includes(body ?? ''))).toEqual([])
      expect(textOf(await store.current())).toBe(bodies.at(-1))
    })
  })
}
