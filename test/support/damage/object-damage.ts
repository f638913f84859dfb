import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { objectPath } from '../../../src/domain/year/examine.ts'
import { formatHead } from '../../../src/domain/year/ledger.ts'
import type { Head } from '../../../src/domain/year/ledger.ts'
import { formatPolicy } from '../../../src/domain/year/log/log-policy.ts'
import { signerKey } from '../../../src/domain/year/log/signed-note.ts'
import {
  ENTRY,
  LOG_KEY,
  noteOf,
  damageLog,
  damage,
  rowAt,
  publicationAt,
  publicationNamed,
  headAt,
  objectFile,
  headFile,
  overwrite,
  withFlippedBits,
  damageObject,
  replaceObject,
  damageHead,
  removeHeads,
  changeRow,
  reseal,
} from './damage.ts'
import type { Damage, SampleContents } from './damage.ts'

/** Damage of the object store: a faulty disk, or an attacker with access to this store only. */
export function objectStoreDamage(sample: SampleContents): Damage[] {
  return [...objects(sample), ...heads(), ...logFiles(sample)]
}

const PUBLICATIONS = [
  ENTRY.firstImported,
  ENTRY.lastImported,
  ENTRY.firstOwn,
  ENTRY.beforePrevious,
  ENTRY.previous,
  ENTRY.newest,
]

function objects({ legacy }: SampleContents): Damage[] {
  const positions: Record<string, (size: number) => number> = {
    first: () => 0,
    middle: (size) => size >> 1,
    last: (size) => size - 1,
  }
  return [
    damageObject(ENTRY.firstImported, 'cut by one byte', ['size_mismatch'], (bytes) => bytes.subarray(0, -1)),
    replaceObject(ENTRY.newest, 'gone', ['object_missing'], () => undefined),
    replaceObject(ENTRY.newest, 'a folder in its place', ['object_unreadable'], (path) => mkdirSync(path)),
    replaceObject(ENTRY.newest, 'a link to its own bytes', ['object_unreadable'], (path, bytes) => {
      overwrite(`${path}.moved`, bytes)
      symlinkSync(`${path}.moved`, path)
    }),
    damage('objects: two valid ones swapped', ['digest_mismatch'], (copy) => {
      const [first, second] = [publicationAt(copy, ENTRY.previous), publicationAt(copy, ENTRY.newest)]
      overwrite(objectFile(copy, first), second.bytes)
      overwrite(objectFile(copy, second), first.bytes)
    }),
    // An unreferenced object is only a note: a crash before the commit can leave one too.
    damage('objects: one no entry names', ['orphan_object'], ({ objectsPath }) =>
      overwrite(join(objectsPath, objectPath('ab'.repeat(32))), 'not an object'),
    ),
    ...PUBLICATIONS.flatMap((seq) =>
      Object.entries(positions).map(([place, positionIn]) =>
        damageObject(seq, `a bit of its ${place} byte flipped`, ['digest_mismatch'], (bytes) =>
          withFlippedBits(bytes, positionIn(bytes.byteLength), 1),
        ),
      ),
    ),
    damageObject(ENTRY.newest, 'cut to nothing', ['size_mismatch'], () => ''),
    damageObject(ENTRY.newest, 'a byte appended', ['size_mismatch'], (_bytes, text) => `${text}\n`),
    damageObject(ENTRY.newest, 'its second half zeroed', ['digest_mismatch'], (bytes) =>
      Uint8Array.from(bytes).fill(0, bytes.byteLength >> 1),
    ),
    damageObject(
      ENTRY.newest,
      'another valid envelope of the same size',
      ['digest_mismatch'],
      (_bytes, text) => text.replace(/"title":"./, '"title":"X'),
    ),
    replaceObject(ENTRY.newest, 'moved to another name', ['object_missing'], (path, bytes) =>
      overwrite(`${path}.moved`, bytes),
    ),
    replaceObject(
      ENTRY.newest,
      'a pipe in its place, not to be waited for',
      ['object_unreadable'],
      (path) => void execFileSync('mkfifo', [path]),
    ),
    damage('objects: all gone', ['object_missing'], ({ objectsPath }) =>
      rmSync(join(objectsPath, 'sha256'), { recursive: true }),
    ),
    replaceObject(ENTRY.newest, 'a link to nothing', ['object_unreadable'], (path) =>
      symlinkSync(`${path}.nowhere`, path),
    ),
    replaceObject(ENTRY.newest, 'a socket in its place', ['object_unreadable'], createSocket),
    replaceObject(ENTRY.newest, 'a file in the place of its folder', ['object_unreadable'], (path, _bytes) =>
      overwrite(dirname(path), 'a file'),
    ),
    damage('objects: the newest replaced by the one before', ['digest_mismatch'], (copy) =>
      overwrite(
        objectFile(copy, publicationAt(copy, ENTRY.newest)),
        publicationAt(copy, ENTRY.previous).bytes,
      ),
    ),
    damage('objects: a file whose name is no digest', ['orphan_object'], ({ objectsPath }) =>
      overwrite(join(objectsPath, 'sha256/zz/readme'), 'not an object'),
    ),
    ...legacy.flatMap(({ position, publicationId }) => [
      damage(`legacy object ${position}: gone`, ['object_missing'], (copy) =>
        rmSync(objectFile(copy, publicationNamed(copy.sample, publicationId))),
      ),
      damage(`legacy object ${position}: a bit flipped`, ['digest_mismatch'], (copy) => {
        const publication = publicationNamed(copy.sample, publicationId)
        overwrite(objectFile(copy, publication), withFlippedBits(publication.bytes, 40, 1))
      }),
    ]),
  ]
}

/** A socket remains after it was moved away from the path of its server. */
async function createSocket(path: string): Promise<void> {
  const server = createServer()
  const first = join(dirname(path), 's')
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(first, resolve))
  renameSync(first, path)
  await new Promise((resolve) => server.close(resolve))
}

/** A missing newest head is not damage: a crash after a commit leaves it missing. */
function heads(): Damage[] {
  const gone: Record<string, readonly number[]> = {
    'that of the founding gone': [ENTRY.lastImported],
    'that of the seal gone': [ENTRY.seal],
    'all but the newest gone': [2, 3, 4, 5, 6, 7, 8],
  }
  const contents: Record<string, (head: Head) => string | Uint8Array> = {
    'the leaf edited': (head) =>
      formatHead({ ...head, leaf: head.leaf.slice(0, -1) + (head.leaf.endsWith('0') ? '1' : '0') }),
    'the number of another entry': (head) => formatHead({ ...head, seq: head.seq - 1 }),
    'the leaf in upper case': (head) => formatHead({ ...head, leaf: head.leaf.toUpperCase() }),
    'not UTF-8': (head) => withFlippedBits(new TextEncoder().encode(formatHead(head)), 40, 0x80),
    cut: (head) => formatHead(head).slice(0, -2),
    'a member too many': (head) => formatHead(head).replace('{', '{"more":1,'),
    'no time': (head) => formatHead(head).replace(/"time":"[^"]*"/, '"time":"yesterday"'),
    empty: () => '',
  }
  const added: Record<string, (head: Head) => [name: string, text: string]> = {
    'one of entry 1 with another leaf': (head) => ['1', formatHead({ ...head, seq: 1 })],
    'a file with another name among them': (head) => ['newest', formatHead(head)],
    'a number written another way': (head) => ['09', formatHead(head)],
  }
  return [
    removeHeads('a middle one gone', [ENTRY.missedGap]),
    removeHeads('the two newest gone', [ENTRY.previous, ENTRY.newest]),
    damageHead(ENTRY.newest, 'no JSON', () => 'seq 9'),
    damageHead(ENTRY.previous, 'the leaf of the entry before', (head, { sample }) =>
      formatHead({ ...head, leaf: rowAt(sample.rows, head.seq - 1).leaf }),
    ),
    damage('heads: one for an entry that is not there', ['head_mismatch'], (copy) =>
      overwrite(
        headFile(copy, ENTRY.newest + 1),
        formatHead({ seq: ENTRY.newest + 1, leaf: 'ab'.repeat(32), time: 0 }),
      ),
    ),
    ...Object.entries(gone).map(([what, seqs]) => removeHeads(what, seqs)),
    damage('heads: all gone', ['head_mismatch'], ({ objectsPath }) =>
      rmSync(join(objectsPath, 'heads'), { recursive: true }),
    ),
    ...[ENTRY.newest, ENTRY.previous].flatMap((seq) => [
      ...Object.entries(contents).map(([what, content]) => damageHead(seq, what, content)),
      damage(`head ${seq}: a folder in its place`, ['head_mismatch'], (copy) => {
        rmSync(headFile(copy, seq))
        mkdirSync(headFile(copy, seq))
      }),
    ]),
    damage('heads: a link in the place of one', ['head_mismatch'], (copy) => {
      const path = headFile(copy, ENTRY.previous)
      renameSync(path, join(copy.folder, 'moved-head'))
      symlinkSync(join(copy.folder, 'moved-head'), path)
    }),
    damage('heads: two swapped', ['head_mismatch'], (copy) => {
      overwrite(headFile(copy, ENTRY.previous), formatHead(headAt(copy, ENTRY.newest)))
      overwrite(headFile(copy, ENTRY.newest), formatHead(headAt(copy, ENTRY.previous)))
    }),
    ...Object.entries(added).map(([what, made]) =>
      damage(`heads: ${what}`, ['head_mismatch'], (copy) => {
        const [name, text] = made(headAt(copy, ENTRY.newest))
        overwrite(join(copy.objectsPath, 'heads', name), text)
      }),
    ),
  ]
}

function logFiles({ rows }: SampleContents): Damage[] {
  const texts = { [`${ENTRY.newest}`]: noteOf(rows), 'policy.1': formatPolicy([LOG_KEY], null) }
  return [
    damageLog(`${ENTRY.newest}`, 'a character of its signature changed', ['note_invalid'], (text) =>
      text.replace(/.(?==*\n$)/, (last) => (last === 'A' ? 'E' : 'A')),
    ),
    damageLog(`${ENTRY.newest}`, 'signed by another key', ['note_invalid'], (_text, { sample }) =>
      noteOf(sample.rows, signerKey(LOG_KEY.name, new Uint8Array(32).fill(1))),
    ),
    damageLog(`${ENTRY.newest}`, 'a second history, signed by the key', ['log_forked'], (_text, { sample }) =>
      noteOf(
        changeRow(sample.rows, ENTRY.newest, (row) => reseal({ ...row, recordedAt: row.recordedAt + 1 })),
      ),
    ),
    damageLog('policy.1', 'gone', ['note_invalid'], () => null),
    damageLog('policy.1', 'not a policy', ['note_invalid'], (text) => text.replace('log ', 'logs ')),
    damageLog(`${ENTRY.newest}`, 'the note of a shorter ledger', ['note_invalid'], () =>
      noteOf(rows.slice(0, ENTRY.previous)),
    ),
    // Every character of a note and of the policy, changed by one bit.
    ...Object.entries(texts).flatMap(([name, text]) =>
      Array.from(text, (character, position) =>
        damageLog(name, `character ${position} changed by a bit`, ['note_invalid', 'log_forked'], () => {
          const other = String.fromCharCode((character.codePointAt(0) ?? 0) ^ 1)
          return text.slice(0, position) + other + text.slice(position + 1)
        }),
      ),
    ),
  ]
}
