import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseLeafText } from '../../../../src/domain/year/ledger.ts'
import {
  entryBytes,
  forkOf,
  ledgerTree,
  logFileName,
  newestNoteSize,
  newestPolicyNumber,
  parseLogFileName,
  readStoredNote,
} from '../../../../src/domain/year/log/log-history.ts'
import type { LogFile } from '../../../../src/domain/year/log/log-history.ts'
import { rootAt } from '../../../../src/domain/year/log/merkle-tree.ts'
import { parseVerifierKey, signNote, signerKey } from '../../../../src/domain/year/log/signed-note.ts'
import type { VerifierKey } from '../../../../src/domain/year/log/signed-note.ts'
import { CHECKPOINT_TEXT, LOG_SEED, LOG_VKEY, SIGNED_CHECKPOINT } from '../log-vectors.ts'

const LINES = readFileSync(new URL('../../../fixtures/tiled-log/ledger.ndjson', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
const ROWS = LINES.flatMap((line) => parseLeafText(line) ?? [])

test('the tree of a ledger is the tree over its published lines', () => {
  expect(ROWS.map((row) => Buffer.from(entryBytes(row)).toString())).toEqual(LINES)
  const root = Buffer.from(rootAt(ledgerTree(ROWS), 30)).toString('base64')
  expect(root).toBe('Do9aXIifqXx3eo6K5eLqJxtytP1mrzmQqz3eEX/4xXI=')
})

describe('names of log files', () => {
  test.each<[string, LogFile | null]>([
    ['30', { kind: 'note', size: 30 }],
    ['policy.2', { kind: 'policy', number: 2 }],
    ['-1', null],
    ['1e3', null],
  ])('the name %s is that of the log file %j', (name, file) => {
    expect(parseLogFileName(name)).toEqual(file)
    if (file) expect(logFileName(file)).toBe(name)
  })

  test('the newest note and the policy in force have the greatest numbers', () => {
    const files = ['9', '10', '11.bak', 'policy.9', 'policy.10'].flatMap(
      (name) => parseLogFileName(name) ?? [],
    )
    expect([newestNoteSize(files), newestPolicyNumber(files)]).toEqual([10, 10])
    expect([newestNoteSize([]), newestPolicyNumber([])]).toEqual([0, 0])
  })
})

describe('stored notes', () => {
  const key = parseVerifierKey(LOG_VKEY) as VerifierKey
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

  test('a stored note of an abandoned log is accepted', () => {
    const former = signerKey('dash.example/former', LOG_SEED)
    const note = signNote(CHECKPOINT_TEXT.replace('dash.example/year', former.name), former)
    expect(readStoredNote(bytes(note), 3, [key])).toMatchObject({
      problem: null,
      checkpoint: { origin: former.name },
    })
  })

  const other = signerKey('dash.example/year', new Uint8Array(32).fill(9))
  const strangers = bytes(signNote(CHECKPOINT_TEXT, other))

  test.each([
    ['no bytes', null, 3, 'is not a signed checkpoint'],
    ['no signature', bytes(CHECKPOINT_TEXT), 3, 'is not a signed checkpoint'],
    ['another size', bytes(SIGNED_CHECKPOINT), 4, 'is a checkpoint of 3 entries'],
    ['the signature of another key', strangers, 3, 'is not signed by the key of dash.example/year'],
  ])('a stored note with %s is refused', (_what, stored, size, problem) => {
    expect(readStoredNote(stored, size, [key])).toEqual({ problem })
  })
})

describe('forks', () => {
  const whole = ledgerTree(ROWS)
  const signedAt = (size: number) => ({ origin: 'any', size, root: rootAt(whole, size) })

  test('a ledger continues the checkpoint of each of its sizes', () => {
    for (let size = 0; size <= 30; size += 1) expect(forkOf(whole, signedAt(size))).toBeNull()
  })

  const changed = ROWS.map((row) => (row.seq === 1 ? { ...row, recordedAt: row.recordedAt + 1 } : row))

  test.each([
    ['a longer one', ROWS.slice(0, 29), 30, 'the checkpoint has 30 entries, the ledger only 29'],
    ['a shorter, different one', changed, 20, 'its 20 entries differ from the first 20 of the ledger'],
  ])('a ledger does not continue the checkpoint of %s', (_of, rows, size, fork) => {
    expect(forkOf(ledgerTree(rows), signedAt(size))).toBe(fork)
  })
})
