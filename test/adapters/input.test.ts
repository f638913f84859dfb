import { readdirSync, statSync, writeFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { lineFile, spoolInput, archiveFolder } from '../../src/adapters/input.ts'
import { sha256Hex } from '../../src/domain/digest.ts'
import type { InputLine, LineSource } from '../../src/domain/ports.ts'
import { temporaryFolder, openDescriptors } from '../support/temporary-folder.ts'
import { UNREADABLE } from '../support/refusals.ts'

const KIB = 1024
const MIB = 1024 * KIB

/** As much as is read from a file at once. */
const CHUNK = 256 * KIB

const NOT_UTF8 = Buffer.from([0x7b, 0xc3, 0x28, 0x7d])
const BOM = Buffer.from([0xef, 0xbb, 0xbf])

async function fileOf(bytes: Uint8Array | string, name = 'rows.ndjson'): Promise<LineSource> {
  const path = join(await temporaryFolder(), name)
  writeFileSync(path, bytes)
  return lineFile(path)
}

async function linesOf(source: LineSource): Promise<InputLine[]> {
  const lines: InputLine[] = []
  for await (const batch of source.lines()) lines.push(...batch)
  return lines
}

const read = async (bytes: Uint8Array | string, name?: string): Promise<InputLine[]> =>
  linesOf(await fileOf(bytes, name))

/** The good lines read before reading failed, and what it failed with. */
async function linesUntilFailure(source: LineSource): Promise<{ texts: string[]; error: unknown }> {
  const texts: string[] = []
  try {
    for await (const batch of source.lines()) {
      for (const line of batch) if ('text' in line) texts.push(line.text)
    }
  } catch (error) {
    return { texts, error }
  }
  return { texts, error: null }
}

const text = (number: number, value: string): InputLine => ({ number, text: value })
const invalid = (number: number): InputLine => ({ number, problem: 'not valid UTF-8' })
const tooLong = (number: number): InputLine => ({ number, problem: `longer than ${MIB} bytes` })

/** Rows that gzip cannot make very small, so that a truncated file has many in front of its end. */
const digests = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => sha256Hex(String(index)))

describe('the lines of a file', () => {
  test('are its lines, numbered from 1', async () => {
    expect(await read('{"a":1}\n{"b":2}\n')).toEqual([text(1, '{"a":1}'), text(2, '{"b":2}')])
  })

  test('include a last one without a line break', async () => {
    expect(await read('one\ntwo')).toEqual([text(1, 'one'), text(2, 'two')])
  })

  test.each(['', '\n', '\n\n\n', '\r\n', ' \t \n', '\uFEFF', '\uFEFF\n'])(
    'are none for %j',
    async (content) => {
      expect(await read(content)).toEqual([])
    },
  )

  test('leave blank ones out and count them', async () => {
    expect(await read('\none\n\n  \t\ntwo\n\r\nthree\n\n')).toEqual([
      text(2, 'one'),
      text(5, 'two'),
      text(7, 'three'),
    ])
  })

  test('may end in CRLF, which no JSON parser minds', async () => {
    const lines = await read('{"a":1}\r\n{"b":2}\r\n')
    expect(lines.map((line) => JSON.parse('text' in line ? line.text : '') as unknown)).toEqual([
      { a: 1 },
      { b: 2 },
    ])
    expect(lines.map(({ number }) => number)).toEqual([1, 2])
  })

  test('are not cut at other line separators of Unicode', async () => {
    expect(await read('a\u2028b\u2029c\u0085d\ve\rf\n')).toEqual([text(1, 'a\u2028b\u2029c\u0085d\ve\rf')])
  })

  test('lose a byte order mark at the start of the file alone', async () => {
    expect(await read('\uFEFFone\n\uFEFFtwo\n')).toEqual([text(1, 'one'), text(2, '\uFEFFtwo')])
  })

  test('keep a byte order mark at the start of a later read', async () => {
    const first = 'a'.repeat(CHUNK - 10)
    const second = `\uFEFF${'b'.repeat(100)}`
    expect(await read(`${first}\n${second}\nthree`)).toEqual([
      text(1, first),
      text(2, second),
      text(3, 'three'),
    ])
  })

  test('are the same beside a line that is not valid UTF-8', async () => {
    const content = Buffer.concat([BOM, Buffer.from('one\n'), NOT_UTF8, Buffer.from('\n\uFEFFtwo\n')])
    expect(await read(content)).toEqual([text(1, 'one'), invalid(2), text(3, '\uFEFFtwo')])
  })

  test.each([
    [
      'the first',
      Buffer.concat([NOT_UTF8, Buffer.from('\ntwo\nthree\n')]),
      [invalid(1), text(2, 'two'), text(3, 'three')],
    ],
    ['the last', Buffer.concat([Buffer.from('one\n\n'), NOT_UTF8]), [text(1, 'one'), invalid(3)]],
    [
      'every one',
      Buffer.concat([NOT_UTF8, Buffer.from('\n'), NOT_UTF8, Buffer.from('\n')]),
      [invalid(1), invalid(2)],
    ],
    ['one cut inside a character', Buffer.from([0x61, 0xe2, 0x82, 0x0a, 0x62]), [invalid(1), text(2, 'b')]],
  ])(
    'that are not valid UTF-8 are reported, while the others survive: %s',
    async (_what, bytes, expected) => {
      expect(await read(bytes)).toEqual(expected)
    },
  )

  test('keep characters whole that lie across two reads', async () => {
    for (const shift of [1, 2, 3]) {
      const long = `${'a'.repeat(CHUNK - shift)}😀`
      expect(await read(`${long}\nnext\n`)).toEqual([text(1, long), text(2, 'next')])
    }
  })

  test('are right wherever reads cut them', async () => {
    for (const length of [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK]) {
      const long = 'x'.repeat(length)
      expect(await read(`${long}\n\n${long}\nlast`)).toEqual([text(1, long), text(3, long), text(4, 'last')])
    }
  })

  test('of exactly 1 MiB are kept', async () => {
    const longest = 'x'.repeat(MIB)
    expect(await read(`one\n${longest}\nthree\n`)).toEqual([
      text(1, 'one'),
      text(2, longest),
      text(3, 'three'),
    ])
    expect(await read(longest)).toEqual([text(1, longest)])
  })

  test.each([
    ['one byte longer', MIB + 1],
    ['within one more read', MIB + 1000],
    ['five reads long', 5 * CHUNK],
    ['many reads long', 4 * MIB + 3],
  ])('longer than 1 MiB are reported, and the following keep their numbers: %s', async (_what, length) => {
    const long = 'x'.repeat(length)
    expect(await read(`${long}\ntwo\n\n${long}\nfive\nsix`)).toEqual([
      tooLong(1),
      text(2, 'two'),
      tooLong(4),
      text(5, 'five'),
      text(6, 'six'),
    ])
    expect(await read(`one\n\n${long}`)).toEqual([text(1, 'one'), tooLong(3)])
  })

  test('longer than 1 MiB are reported although they are not valid UTF-8', async () => {
    const content = Buffer.concat([
      Buffer.alloc(2 * MIB, 0xff),
      Buffer.from('\n'),
      NOT_UTF8,
      Buffer.from('\nthree'),
    ])
    expect(await read(content)).toEqual([tooLong(1), invalid(2), text(3, 'three')])
  })

  test.each([0, 1, CHUNK / 2])('are measured in bytes, wherever they begin: %i bytes in', async (offset) => {
    const first = 'a'.repeat(offset)
    // One MiB and a little, but half as many characters.
    const wide = 'é'.repeat(MIB / 2 + 50)
    const expected = [...(offset > 0 ? [text(1, first)] : []), tooLong(2), text(3, 'three')]
    expect(await read(`${first}\n${wide}\nthree`)).toEqual(expected)
  })

  test('agree with a plain split for any content, plain or gzip', async () => {
    const folder = await temporaryFolder()
    const path = join(folder, 'any')
    const part = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\n', '\n\n', '\r\n', ' ', '\uFEFF', '😀'),
      fc.nat({ max: 4 }).map((count) => 'long'.repeat(count * 40_000)),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 12 }), fc.boolean(), async (parts, zipped) => {
        const content = parts.join('')
        writeFileSync(path, zipped ? gzipSync(content) : content)
        const plain = content.startsWith('\uFEFF') ? content.slice(1) : content
        const expected = plain.split('\n').flatMap((line, index): InputLine[] => {
          if (line.trim() === '') return []
          return [Buffer.byteLength(line) > MIB ? tooLong(index + 1) : text(index + 1, line)]
        })
        expect(await linesOf(lineFile(path))).toEqual(expected)
      }),
      { numRuns: 60 },
    )
  })

  test('can be read again from the beginning, several at once', async () => {
    const source = await fileOf('one\ntwo\n')
    const readings = await Promise.all([linesOf(source), linesOf(source)])
    expect([...readings, await linesOf(source)]).toEqual(
      Array.from({ length: 3 }, () => [text(1, 'one'), text(2, 'two')]),
    )
  })
})

describe('a gzip file', () => {
  test.each(['rows.ndjson.gz', 'rows.ndjson', 'rows'])(
    'is known by its bytes, not by its name: %s',
    async (name) => {
      expect(await read(gzipSync('one\ntwo\n'), name)).toEqual([text(1, 'one'), text(2, 'two')])
    },
  )

  test('that is none is read as it is, whatever its name', async () => {
    expect(await read('one\ntwo\n', 'rows.ndjson.gz')).toEqual([text(1, 'one'), text(2, 'two')])
  })

  test('may have several members, even in the middle of a line', async () => {
    const members = ['one\ntw', 'o\n', '', '\nfour'].map((part) => gzipSync(part))
    expect(await read(Buffer.concat(members))).toEqual([text(1, 'one'), text(2, 'two'), text(4, 'four')])
  })

  test('may begin with a byte order mark', async () => {
    expect(await read(gzipSync('\uFEFFone\n'))).toEqual([text(1, 'one')])
  })

  test('may hold a line over 1 MiB', async () => {
    expect(await read(gzipSync(`one\n${'x'.repeat(3 * MIB)}\nthree`))).toEqual([
      text(1, 'one'),
      tooLong(2),
      text(3, 'three'),
    ])
  })

  test.each([
    ['truncated', (bytes: Buffer) => bytes.subarray(0, -20)],
    ['without its checksum', (bytes: Buffer) => bytes.subarray(0, -8)],
    ['with a wrong checksum', (bytes: Buffer) => bytes.fill(0, bytes.length - 8, bytes.length - 4)],
    [
      'with a truncated second member',
      (bytes: Buffer) => Buffer.concat([bytes, gzipSync('more\n').subarray(0, 12)]),
    ],
  ])('that is broken is refused after its good lines: %s', async (_what, damage) => {
    const rows = digests(20_000)
    const source = await fileOf(damage(gzipSync(`${rows.join('\n')}\n`)))
    const { texts, error } = await linesUntilFailure(source)
    expect(error).toMatchObject({ ...UNREADABLE, detail: expect.stringContaining(source.name) as string })
    expect(texts.length).toBeGreaterThan(1_000)
    expect(texts).toEqual(rows.slice(0, texts.length))
  })

  test('with other bytes in its middle is refused', async () => {
    const bytes = gzipSync(digests(20_000).join('\n'))
    const source = await fileOf(bytes.fill(0, 100_000, 100_200))
    expect((await linesUntilFailure(source)).error).toMatchObject(UNREADABLE)
  })

  test('of nothing but its two first bytes is refused', async () => {
    await expect(read(Buffer.from([0x1f, 0x8b]))).rejects.toMatchObject(UNREADABLE)
  })
})

describe('a file that cannot be read', () => {
  test('is refused by name when it is missing', async () => {
    const path = join(await temporaryFolder(), 'missing.ndjson')
    await expect(linesOf(lineFile(path, 'as the user typed it'))).rejects.toMatchObject({
      ...UNREADABLE,
      detail: 'as the user typed it: there is no such file',
    })
  })

  test('is refused when it is a folder', async () => {
    await expect(linesOf(lineFile(await temporaryFolder()))).rejects.toMatchObject(UNREADABLE)
  })

  test('is refused when it is a device', async () => {
    await expect(linesOf(lineFile('/dev/null'))).rejects.toMatchObject(UNREADABLE)
  })

  test('is refused when it is below a file', async () => {
    const source = await fileOf('one\n')
    await expect(linesOf(lineFile(join(source.name, 'rows.ndjson')))).rejects.toMatchObject(UNREADABLE)
  })

  test('is refused anew at each reading, and read once it is there', async () => {
    const path = join(await temporaryFolder(), 'later.ndjson')
    const source = lineFile(path)
    await expect(linesOf(source)).rejects.toMatchObject(UNREADABLE)
    writeFileSync(path, 'one\n')
    expect(await linesOf(source)).toEqual([text(1, 'one')])
  })
})

describe('a file that was read', () => {
  const rows = digests(60_000).join('\n')

  test.each([
    ['plain', Buffer.from(rows)],
    ['gzip', gzipSync(rows)],
    ['broken gzip', gzipSync(rows).fill(0, 1_000, 1_200)],
  ])('is closed, also when its reader stops early: %s', async (_what, bytes) => {
    const source = await fileOf(bytes)
    await linesOf(source).catch(() => undefined)
    expect(await descriptorsLeft(source.name)).toBe(0)
    const started = source.lines()[Symbol.asyncIterator]()
    await started.next().catch(() => undefined)
    await started.return?.()
    expect(await descriptorsLeft(source.name)).toBe(0)
  })
})

/** How often a file stays open; streams close it a little after they have ended. */
async function descriptorsLeft(path: string): Promise<number> {
  const closed = vi.waitUntil(() => openDescriptors(path) === 0, { interval: 5, timeout: 2_000 })
  await closed.catch(() => undefined)
  return openDescriptors(path)
}

describe('standard input', () => {
  test.each([
    ['plain', Buffer.from('one\n\nthree')],
    ['gzip', gzipSync('one\n\nthree')],
  ])('can be read twice, and leaves nothing behind: %s', async (_what, bytes) => {
    const folder = await temporaryFolder()
    const { source, remove } = await spoolInput(
      Readable.from([bytes.subarray(0, 3), bytes.subarray(3)]),
      folder,
    )
    expect(source.name).toBe('-')
    expect(await linesOf(source)).toEqual([text(1, 'one'), text(3, 'three')])
    expect(await linesOf(source)).toEqual([text(1, 'one'), text(3, 'three')])
    await remove()
    expect(readdirSync(folder)).toEqual([])
    await expect(linesOf(source)).rejects.toMatchObject(UNREADABLE)
    await remove()
  })

  test('may be empty', async () => {
    const { source, remove } = await spoolInput(Readable.from([]), await temporaryFolder())
    expect(await linesOf(source)).toEqual([])
    await remove()
  })

  test('is refused when it breaks, and leaves nothing behind', async () => {
    const folder = await temporaryFolder()
    const broken = new Readable({
      read() {
        this.push('one\n')
        this.destroy(new Error('the pipe broke'))
      },
    })
    await expect(spoolInput(broken, folder)).rejects.toMatchObject({
      ...UNREADABLE,
      detail: '-: the pipe broke',
    })
    expect(readdirSync(folder)).toEqual([])
  })

  test('is kept where nobody else can read it', async () => {
    const folder = await temporaryFolder()
    const { remove } = await spoolInput(Readable.from(['secret']), folder)
    onTestFinished(remove)
    const [name = ''] = readdirSync(folder)
    const { mode } = statSync(join(folder, name))
    expect(mode & 0o077).toBe(0)
  })
})

async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = await temporaryFolder()
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return folder
}

function refusal(reason: string | RegExp) {
  return { code: 'input_unreadable', detail: expect.stringMatching(reason) }
}

test('reads the bytes of a file as they are, through a link that stays in the folder too', async () => {
  const folder = await folderWith({ a: '\ufeff{"x": 1.0}\r\n' })
  symlinkSync('a', join(folder, 'link'))
  const archive = archiveFolder(folder)
  for (const file of ['a', './a', 'link']) {
    expect(Buffer.from(await archive.read(file, 15)).toString('hex')).toBe(
      Buffer.from('\ufeff{"x": 1.0}\r\n').toString('hex'),
    )
  }
})

test('reads an archive that lies behind a link itself', async () => {
  const folder = await folderWith({ a: 'x' })
  const link = join(await temporaryFolder(), 'link')
  symlinkSync(folder, link)
  expect(await archiveFolder(link).read('a', 1)).toHaveLength(1)
})

test('refuses what is missing, is no regular file, or has another size, without waiting', async () => {
  const folder = await folderWith({ a: 'x' })
  mkdirSync(join(folder, 'folder'))
  execFileSync('mkfifo', [join(folder, 'pipe')])
  const archive = archiveFolder(folder)
  await expect(archive.read('b', 1)).rejects.toMatchObject(refusal('"b": there is no such file'))
  await expect(archive.read('a/b', 1)).rejects.toMatchObject(refusal('there is no such file'))
  await expect(archive.read('folder', 1)).rejects.toMatchObject(refusal('not a regular file'))
  await expect(archive.read('pipe', 0)).rejects.toMatchObject(refusal('not a regular file'))
  await expect(archive.read('a', 2)).rejects.toMatchObject(refusal('has 1 bytes instead of 2'))
  await expect(archive.read('.', 1)).rejects.toMatchObject(refusal('outside the folder'))
})

test('refuses a link that leads out of the folder, even into one whose name begins alike', async () => {
  const outside = await folderWith({ secret: 'x' })
  const folder = join(outside, 'in')
  mkdirSync(folder)
  mkdirSync(`${folder}side`)
  writeFileSync(join(`${folder}side`, 'x'), 'x')
  symlinkSync('../secret', join(folder, 'file'))
  symlinkSync('..', join(folder, 'up'))
  symlinkSync('../inside', join(folder, 'alike'))
  const archive = archiveFolder(folder)
  for (const file of ['file', 'up/secret', 'alike/x']) {
    await expect(archive.read(file, 1)).rejects.toMatchObject(refusal('outside the folder'))
  }
})
