import { readdirSync, statSync, writeFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { lineFile, openInputs, archiveFolder } from '../../src/adapters/input.ts'
import { sha256Hex } from '../../src/domain/digest.ts'
import type { InputLine, LineSource } from '../../src/domain/ports.ts'
import { temporaryFolder, openDescriptors } from '../support/temporary-folder.ts'
import { UNREADABLE } from '../support/refusals.ts'
import { NEVER_ABORTED } from './provider/model-turns.ts'

const KIB = 1024
const MIB = 1024 * KIB

/** As much as is read from a file at once. */
const CHUNK = 256 * KIB

const NOT_UTF8 = Buffer.from([0x7b, 0xc3, 0x28, 0x7d])

async function fileOf(bytes: Uint8Array | string, name = 'rows.ndjson'): Promise<LineSource> {
  const path = join(temporaryFolder(), name)
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

/** Returns the lines read before the failure, and the error. */
async function linesUntilFailure(source: LineSource): Promise<{ texts: string[]; error: unknown }> {
  const texts: string[] = []
  try {
    for await (const batch of source.lines())
      for (const line of batch) if ('text' in line) texts.push(line.text)
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

/** Contents that ends of reads, byte order marks and lines that are too long make hard. */
const EDGES: string[] = [
  '',
  '\n\n\n',
  '\r\n',
  '\uFEFF',
  '\uFEFFone\n\uFEFFtwo\n',
  'a\u2028b\u0085c\vd\f\n',
  `${'a'.repeat(CHUNK - 10)}\n\uFEFF${'b'.repeat(100)}\nthree`,
  ...[1, 2, 3].map((shift) => `${'a'.repeat(CHUNK - shift)}😀\nnext\n`),
  ...[CHUNK - 1, CHUNK, 2 * CHUNK, MIB, MIB + 1, 5 * CHUNK, 4 * MIB + 3].map(
    (length) => `${'x'.repeat(length)}\ntwo\n\n \n${'x'.repeat(length)}`,
  ),
  // One MiB and a little, but half as many characters.
  ...[0, CHUNK / 2].map((offset) => `${'a'.repeat(offset)}\n${'é'.repeat(MIB / 2 + 50)}\nthree`),
]

/** The lines of a content by a plain split. */
function plainLines(content: string): InputLine[] {
  const plain = content.startsWith('\uFEFF') ? content.slice(1) : content
  return plain.split('\n').flatMap((line, index): InputLine[] => {
    if (line.trim() === '') return []
    return [Buffer.byteLength(line) > MIB ? tooLong(index + 1) : text(index + 1, line)]
  })
}

describe('the lines of a file', () => {
  test('the lines of a file agree with a plain split, plain or gzip', async () => {
    for (const content of EDGES)
      for (const bytes of [content, gzipSync(content)]) expect(await read(bytes)).toEqual(plainLines(content))
  })

  test.each<[string, (string | Buffer)[], InputLine[]]>([
    ['the first', [NOT_UTF8, '\ntwo\nthree\n'], [invalid(1), text(2, 'two'), text(3, 'three')]],
    ['one cut inside a character', [Buffer.from([0x61, 0xe2, 0x82, 0x0a, 0x62])], [invalid(1), text(2, 'b')]],
    [
      'one between byte order marks',
      ['\uFEFFone\n', NOT_UTF8, '\n\uFEFFtwo\n'],
      [text(1, 'one'), invalid(2), text(3, '\uFEFFtwo')],
    ],
    [
      'one after a line that is too long',
      [Buffer.alloc(2 * MIB, 0xff), '\n', NOT_UTF8, '\nthree'],
      [tooLong(1), invalid(2), text(3, 'three')],
    ],
  ])(
    'lines that are not valid UTF-8 are reported, and the others are kept: %s',
    async (_what, parts, expected) => {
      expect(await read(Buffer.concat(parts.map((part) => Buffer.from(part))))).toEqual(expected)
    },
  )
})

describe('a gzip file', () => {
  test('a gzip file is detected by its bytes, not by its name', async () => {
    expect(await read('one\ntwo\n', 'rows.ndjson.gz')).toEqual([text(1, 'one'), text(2, 'two')])
  })

  test('a gzip file may have several members, even in the middle of a line', async () => {
    const members = ['one\ntw', 'o\n', '', '\nfour'].map((part) => gzipSync(part))
    expect(await read(Buffer.concat(members))).toEqual([text(1, 'one'), text(2, 'two'), text(4, 'four')])
  })

  test.each([
    ['truncated', (bytes: Buffer) => bytes.subarray(0, -20)],
    ['with a wrong checksum', (bytes: Buffer) => bytes.fill(0, bytes.length - 8, bytes.length - 4)],
    [
      'with a truncated second member',
      (bytes: Buffer) => Buffer.concat([bytes, gzipSync('more\n').subarray(0, 12)]),
    ],
  ])('a broken gzip file is refused after its good lines: %s', async (_what, damage) => {
    const rows = digests(20_000)
    const source = await fileOf(damage(gzipSync(`${rows.join('\n')}\n`)))
    const { texts, error } = await linesUntilFailure(source)
    expect(error).toMatchObject(refusal(source.name))
    expect(texts.length).toBeGreaterThan(1_000)
    expect(texts).toEqual(rows.slice(0, texts.length))
  })
})

describe('a file that cannot be read', () => {
  test('a missing file is refused by name', async () => {
    const path = join(temporaryFolder(), 'missing.ndjson')
    const reading = linesOf(lineFile(path, 'as the user typed it'))
    await expect(reading).rejects.toMatchObject(refusal(/^as the user typed it: no such file$/))
  })

  test('a folder, a device and a path below a file are refused', async () => {
    const { name } = await fileOf('one\n')
    for (const path of [temporaryFolder(), '/dev/null', join(name, 'rows.ndjson')])
      await expect(linesOf(lineFile(path)), path).rejects.toMatchObject(UNREADABLE)
  })
})

test.each([
  ['zstd', '28b52ffd2000'],
  ['xz', 'fd377a585a00'],
  ['bzip2', '425a6839'],
  ['zip', '504b030414'],
])('a file that is compressed with %s is refused with the remedy', async (name, hex) => {
  await expect(read(Buffer.from(hex, 'hex'))).rejects.toMatchObject(
    refusal(`compressed with ${name}; decompress it`),
  )
})

const rows = digests(60_000).join('\n')

test.each([
  ['plain', Buffer.from(rows)],
  ['gzip', gzipSync(rows)],
  ['broken gzip', gzipSync(rows).fill(0, 1_000, 1_200)],
])('a file is closed, also when its reader stops early: %s', async (_what, bytes) => {
  const source = await fileOf(bytes)
  await linesOf(source).catch(() => undefined)
  expect(await descriptorsLeft(source.name)).toBe(0)
  const started = source.lines()[Symbol.asyncIterator]()
  await started.next().catch(() => undefined)
  await started.return?.()
  expect(await descriptorsLeft(source.name)).toBe(0)
})

/** How often a file stays open; streams close it a little after they have ended. */
async function descriptorsLeft(path: string): Promise<number> {
  const closed = vi.waitUntil(() => openDescriptors(path) === 0, { interval: 5, timeout: 2_000 })
  await closed.catch(() => undefined)
  return openDescriptors(path)
}

/** A folder in which the copies of standard input are made. */
function folderOfCopies(): string {
  const folder = temporaryFolder()
  vi.stubEnv('TMPDIR', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  return folder
}

describe('standard input', () => {
  test.each([
    ['plain', Buffer.from('one\n\nthree')],
    ['gzip', gzipSync('one\n\nthree')],
  ])(
    'standard input can be read twice from a copy that only its owner may read, and leaves nothing behind: %s',
    async (_what, bytes) => {
      const folder = folderOfCopies()
      const input = Readable.from([bytes.subarray(0, 3), bytes.subarray(3)])
      const { sources, close } = await openInputs(['-'], input, NEVER_ABORTED)
      const [source = lineFile('')] = sources
      expect(source.name).toBe('-')
      const [name = ''] = readdirSync(folder)
      expect(statSync(join(folder, name)).mode & 0o077).toBe(0)
      for (let reading = 0; reading < 2; reading += 1)
        expect(await linesOf(source)).toEqual([text(1, 'one'), text(3, 'three')])
      await close()
      expect(readdirSync(folder)).toEqual([])
      await expect(linesOf(source)).rejects.toMatchObject(UNREADABLE)
      await close()
    },
  )

  test('standard input that breaks is refused, and leaves nothing behind', async () => {
    const folder = folderOfCopies()
    const broken = new Readable({
      read() {
        this.push('one\n')
        this.destroy(new Error('the pipe broke'))
      },
    })
    await expect(openInputs(['-'], broken, NEVER_ABORTED)).rejects.toMatchObject(refusal('-: the pipe broke'))
    expect(readdirSync(folder)).toEqual([])
  })

  test('the copy of standard input is removed if a later file cannot be read', async () => {
    const folder = folderOfCopies()
    const socket = join(folder, 'socket')
    const server = createServer().listen(socket)
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const opening = openInputs(['-', socket], Readable.from(['one\n']), NEVER_ABORTED)
    await expect(opening).rejects.toMatchObject(UNREADABLE)
    expect(readdirSync(folder)).toEqual(['socket'])
  })
})

async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = temporaryFolder()
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return folder
}

function refusal(reason: string | RegExp) {
  return { code: 'input_unreadable', detail: expect.stringMatching(reason) }
}

test("the archive folder returns a file's bytes unchanged, also through a link to the folder or inside it", async () => {
  const folder = await folderWith({ a: '\ufeff{"x": 1.0}\r\n' })
  symlinkSync('a', join(folder, 'link'))
  const linked = join(temporaryFolder(), 'link')
  symlinkSync(folder, linked)
  const archive = archiveFolder(linked)
  for (const file of ['a', './a', 'link'])
    expect(Buffer.from(await archive.read(file, 15))).toEqual(Buffer.from('\ufeff{"x": 1.0}\r\n'))
})

test('the archive folder refuses a missing file, a special file and a wrong size without blocking', async () => {
  const folder = await folderWith({ a: 'x' })
  mkdirSync(join(folder, 'folder'))
  execFileSync('mkfifo', [join(folder, 'pipe')])
  for (const [file, size, reason] of [
    ['b', 1, '"b": no such file'],
    ['a/b', 1, 'no such file'],
    ['folder', 1, 'not a regular file'],
    ['pipe', 0, 'not a regular file'],
    ['a', 2, 'has 1 bytes instead of 2'],
    ['.', 1, 'outside the folder'],
  ] as const)
    await expect(archiveFolder(folder).read(file, size)).rejects.toMatchObject(refusal(reason))
})

test('the archive folder refuses a link that leads outside, even to a folder with a similar name', async () => {
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

test('a pipe without a writer is waited for until the signal, and blocks no thread', async () => {
  const path = join(temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const controller = new AbortController()
  // More than the threads of the pool, which a blocking open would hold.
  const opened = Array.from({ length: 6 }, () => openInputs([path], Readable.from([]), controller.signal))
  for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve))
  controller.abort(new Error('stopped'))
  const outcomes = await Promise.allSettled(opened)
  expect(outcomes.map(({ status }) => status)).toEqual(outcomes.map(() => 'rejected'))
})

test('a pipe whose writer comes later is read whole', async () => {
  const path = join(temporaryFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const opening = openInputs([path], Readable.from([]), NEVER_ABORTED)
  const writer = spawn('sh', ['-c', `sleep 0.1; { printf 'one\\n'; sleep 0.1; printf two; } > '${path}'`])
  onTestFinished(() => void writer.kill())
  const { sources, close } = await opening
  onTestFinished(close)
  const lines = await Promise.all(sources.map((source) => linesOf(source)))
  expect(lines).toEqual([[text(1, 'one'), text(2, 'two')]])
})
