import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inclusionProof, leafHash, merkleTree, rootAt } from '../../src/domain/year/log/merkle-tree.ts'
import {
  checkpointText,
  formatVerifierKey,
  signNote,
  signerKey,
} from '../../src/domain/year/log/signed-note.ts'
import { formatLogProof } from '../../src/domain/year/log/log-proof.ts'
import { LOG_SEED } from '../domain/year/log-vectors.ts'
import { listenLocally } from '../support/api-client.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import {
  ARCHIVES,
  dayAt,
  exportLog,
  proofFiles,
  signedArchive,
  storedNotes,
  write,
  writeLog,
} from './archives.ts'
import type { SignedArchive } from './archives.ts'
import { buildCheckLog } from './check-log.ts'
import type { CheckLog } from './check-log.ts'

/** A Go program checks the log with Go's own note and tlog packages and none of dash's code. */
let go: CheckLog

beforeAll(() => {
  go = buildCheckLog()
})
afterAll(() => go.remove())

/** Returns the lines of Go about the log as static files and as a server sends it. */
async function acceptedLines(archive: SignedArchive, prefix: string): Promise<string[][]> {
  const notes = storedNotes(archive)
  const places = [await exportLog(archive), prefix]
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
      for (const lines of await acceptedLines(archive, prefix))
        expect(lines).toEqual(linesOf(size, storedNotes(archive).length))
    }
  })

  test.each(Object.entries(ARCHIVES))('Go accepts every proof file of %s', async (_name, open) => {
    const archive = await open()
    const proofs = await proofFiles(archive)
    const folder = temporaryFolder()
    const files = proofs.map((text, index) => write(folder, `${index}.tlog-proof`, text))
    const lines = await go.accept([archive.vkey, await exportLog(archive), ...files])
    const { rows } = await archive.workspace.ledger.read()
    const proved = lines.flatMap((line) => /^ok proof .*: entry (\d+) is in the tree/.exec(line)?.[1] ?? [])
    expect(proved).toHaveLength(files.length)
    expect(new Set(proved)).toEqual(new Set(rows.map(({ seq }) => `${seq - 1}`)))
  })
})

/** A signed log of three entries, and the proof of its last one. */
function smallLog(): { vkey: string; entries: Uint8Array[]; note: string; proof: string } {
  const key = signerKey('dash.example/tlog/year', LOG_SEED)
  const entries = ['a', 'b', 'c'].map((text) => Buffer.from(text))
  const tree = merkleTree(entries.map(leafHash))
  const note = signNote(checkpointText({ origin: key.name, size: 3, root: rootAt(tree, 3) }), key)
  const hashes = inclusionProof(tree, 2, 3)
  const proof = formatLogProof({ entry: Buffer.from('c'), index: 2, hashes, checkpoint: note })
  return { vkey: formatVerifierKey(key), entries, note, proof }
}

test('Go refuses another checkpoint, another entry and another proof', async () => {
  const { vkey, entries, note, proof } = smallLog()
  const folder = await writeLog(entries, note)
  const refuse = (log: string, text: string) => go.refuse([vkey, log, write(folder, 'changed', text)])
  expect(await refuse(folder, note.replace('\n3\n', '\n4\n'))).toContain('invalid signature')
  expect(await refuse(folder, proof.replace('index 2', 'index 1'))).toContain('changed')
  const forged = await writeLog(entries.with(1, Buffer.from('x')), note)
  expect(await refuse(forged, note)).toMatch(/tile|hash/)
})
