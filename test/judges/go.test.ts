import { readFileSync, statSync } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inclusionProof, leafHash, merkleTree, rootAt } from '../../src/domain/year/log/merkle-tree.ts'
import {
  checkpointText,
  formatVerifierKey,
  signNote,
  signerKey,
} from '../../src/domain/year/log/signed-note.ts'
import { formatLogProof } from '../../src/domain/year/log/log-proof.ts'
import { tilePath, tilesOfSize } from '../../src/domain/year/log/tiles.ts'
import { LOG_SEED } from '../domain/year/log-vectors.ts'
import { listenLocally } from '../support/api-client.ts'
import { dash, filledFolder, serve } from '../support/dash.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import {
  ARCHIVES,
  copyLog,
  dayAt,
  exportLog,
  proofFiles,
  signedArchive,
  storedNotes,
  write,
  writeLog,
} from './archives.ts'
import type { SignedArchive } from './archives.ts'
import { decodedText, flipped, problemOf } from './changed-bits.ts'
import { buildCheckLog } from './check-log.ts'
import type { CheckLog } from './check-log.ts'

/** A Go program checks the log with Go's own note and tlog packages and none of dash's code. */
let go: CheckLog

beforeAll(() => {
  go = buildCheckLog()
})
afterAll(() => go.remove())

/** Returns the lines of Go about the log as static files, as a server sends it, and as a copy of what it sends. */
async function acceptedLines(archive: SignedArchive, prefix: string, size: number): Promise<string[][]> {
  const notes = storedNotes(archive)
  const places = [await exportLog(archive), prefix, await copyLog(prefix, size)]
  return Promise.all(places.map((place) => go.accept([archive.vkey, place, ...notes])))
}

/** Lines about a sound log of `size` entries and `notes` stored checkpoints. */
const linesOf = (size: number, notes: number): unknown[] => [
  expect.stringContaining(`signed a tree of ${size} entries`),
  expect.stringMatching(/^ok tiles: /),
  `ok entries: all ${size} are in the tree`,
  `ok consistency: every two of ${notes + 1} checkpoints`,
]

async function prefixOf({ app }: SignedArchive): Promise<string> {
  return `${(await listenLocally(app)).url}/tlog/year`
}

describe('logs that Go accepts', () => {
  test('Go accepts every file, entry and pair of checkpoints of a log at the sizes around full tiles', async () => {
    const archive = await signedArchive()
    const prefix = await prefixOf(archive)
    for (const size of [1, 2, 255, 256, 257, 512, 600]) {
      // After missed days, the gaps have a checkpoint of their own.
      await archive.publish(dayAt(size - 1))
      for (const lines of await acceptedLines(archive, prefix, size))
        expect(lines).toEqual(linesOf(size, storedNotes(archive).length))
    }
  })

  test.each(Object.entries(ARCHIVES))('Go accepts every proof file of %s', async (_name, open) => {
    const archive = await open()
    const proofs = await proofFiles(archive)
    const folder = await temporaryFolder()
    const files = proofs.map((text, index) => write(folder, `${index}.tlog-proof`, text))
    const lines = await go.accept([archive.vkey, await exportLog(archive), ...files])
    const { rows } = await archive.workspace.ledger.read()
    const proved = lines.flatMap((line) => /^ok proof .*: entry (\d+) is in the tree/.exec(line)?.[1] ?? [])
    expect(proved).toHaveLength(files.length)
    expect(new Set(proved)).toEqual(new Set(rows.map(({ seq }) => `${seq - 1}`)))
  })
})

/** One inverted bit that no check of the Go program depends on. */
interface IgnoredBit {
  path: string
  at: number
  changed: Buffer
}

/** Lets Go check a log again with every nth bit of all its files inverted, and returns the bits that it ignores. */
async function ignoredBits(folder: string, nth: number, args: readonly string[]): Promise<IgnoredBit[]> {
  const [vkey = '', ...files] = args
  const lines = await go.accept(['-flip', `${nth}`, vkey, folder, ...files])
  const ignored = lines.flatMap((line): IgnoredBit[] => {
    const [, name, at, bit] = /^ignored (.*) byte (\d+) bit (\d)$/.exec(line) ?? []
    if (name === undefined) return []
    const path = isAbsolute(name) ? name : join(folder, name)
    return [{ path, at: Number(at), changed: flipped(readFileSync(path), Number(at), Number(bit)) }]
  })
  const total = Number(/ of (\d+) changed bits were refused$/.exec(lines.at(-1) ?? '')?.[1])
  const size = Number(readFileSync(join(folder, 'checkpoint'), 'utf8').split('\n')[1])
  // An export also has the partial tiles of earlier sizes, which nobody reads who reads the newest tree.
  const log = ['checkpoint', ...tilesOfSize(size).map(tilePath)].map((path) => join(folder, path))
  const bytes = [...new Set([...log, ...files])].map((path) => statSync(path).size)
  expect(total).toBe(Math.floor((bytes.reduce((sum, count) => sum + count, 0) * 8) / nth))
  return ignored
}

describe('changed bits', () => {
  test('Go refuses a log with any changed bit that it decodes, and dash refuses those that Go does not decode', async () => {
    const archive = await signedArchive()
    for (const index of [0, 2]) await archive.publish(dayAt(index))
    const folder = await temporaryFolder()
    const proofs = (await proofFiles(archive)).map((text, index) =>
      write(folder, `${index}.tlog-proof`, text),
    )
    const ignored = await ignoredBits(await exportLog(archive), 1, [
      archive.vkey,
      ...storedNotes(archive),
      ...proofs,
    ])
    for (const { path, at, changed } of ignored) {
      const text = changed.toString()
      expect(decodedText(text), `${path} byte ${at}`).toBe(decodedText(readFileSync(path, 'utf8')))
      expect(problemOf(text, archive.vkey), `${path} byte ${at}`).not.toBeNull()
    }
  })

  test('Go refuses a log of several tiles with a changed bit in any byte of a tile or a bundle', async () => {
    const key = signerKey('dash.example/tlog/year', LOG_SEED)
    const entries = Array.from({ length: 257 }, (_, index) => Buffer.from(`["dash-year-ledger/1",${index}]`))
    const root = rootAt(merkleTree(entries.map(leafHash)), entries.length)
    const note = signNote(checkpointText({ origin: key.name, size: entries.length, root }), key)
    const ignored = await ignoredBits(await writeLog(entries, note), 7, [formatVerifierKey(key)])
    expect(ignored.filter(({ path }) => basename(path) !== 'checkpoint')).toEqual([])
  })
})

describe('texts that differ from the canonical form', () => {
  const key = signerKey('dash.example/tlog/year', LOG_SEED)
  const vkey = formatVerifierKey(key)
  const entries = ['a', 'b', 'c'].map((text) => Buffer.from(text))
  const tree = merkleTree(entries.map(leafHash))
  const text = checkpointText({ origin: key.name, size: 3, root: rootAt(tree, 3) })
  const note = signNote(text, key)
  const hashes = inclusionProof(tree, 2, 3)
  const proof = formatLogProof({ entry: Buffer.from('c'), index: 2, hashes, checkpoint: note })
  const [signature = ''] = note.trimEnd().split('\n').slice(-1)

  test.each([
    ['a checkpoint of size 03', signNote(text.replace('\n3\n', '\n03\n'), key)],
    ['a root that is not canonical', signNote(text.replace(/.=\n$/, changedPadding), key)],
    ['a signature that is not canonical', note.replace(/.=\n$/, changedPadding)],
    ['a second, invalid signature of the key', `${note}${signature.replace(/....=$/, 'AAAA=')}\n`],
    ['an index with zeros before it', proof.replace('index 2', 'index 002')],
    ['an index with a sign', proof.replace('index 2', 'index +2')],
    ['an entry that is not canonical', proof.replace('Yw==', 'Yx==')],
    ['a carriage return after the entry', proof.replace('Yw==', 'Yw==\r')],
  ])('dash refuses %s, which Go accepts', async (_what, changed) => {
    const file = write(await temporaryFolder(), 'changed', changed)
    await go.accept([vkey, await writeLog(entries, note), file])
    expect(problemOf(changed, vkey)).not.toBeNull()
  })

  test.each([
    ['a hash of 33 bytes', proof.replace(/=\n\n/, 'A\n\n')],
    ['carriage returns', note.replaceAll('\n', '\r\n')],
    ['another origin', signNote(text.replace('year', 'month'), key)],
    ['a byte order mark', `\uFEFF${note}`],
    ['an index outside of the tree', proof.replace('index 2', 'index 3')],
    [
      'an invalid signature before the valid one',
      note.replace('\u2014', `${signature.replace(/....=$/, 'AAAA=')}\n\u2014`),
    ],
  ])('Go and dash refuse %s', async (_what, changed) => {
    const file = write(await temporaryFolder(), 'changed', changed)
    await go.refuse([vkey, await writeLog(entries, note), file])
    expect(problemOf(changed, vkey)).not.toBeNull()
  })
})

test('a stranger can check a served archive with Go alone', async () => {
  const data = await filledFolder()
  const path = join(await temporaryFolder(), 'log.key')
  const env = { DASH_BASE_URL: 'https://dash.example', DASH_LOG_KEY_FILE: path, DASH_DATA_DIR: data }
  const key = await dash(['log-key', 'new', '--json'], { env })
  expect((await dash(['publish-year'], { env })).code).toBe(0)
  const { url } = await serve([], { env })
  const proof = await (await fetch(`${url}/tlog/year/proof`)).text()
  const file = write(await temporaryFolder(), 'newest.tlog-proof', proof)
  const { vkey } = JSON.parse(key.stdout) as { vkey: string }
  expect(await go.accept([vkey, `${url}/tlog/year`, file])).toContain('ok entries: all 1 are in the tree')
})

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Sets a bit that base64 does not use, in the last character before the padding. */
function changedPadding(end: string): string {
  return `${BASE64[BASE64.indexOf(end[0] ?? '') + 1]}${end.slice(1)}`
}
