import { describe, expect, test } from 'vitest'
import { auditLog } from '../../../../src/domain/year/log/check-log.ts'
import type { AuditedLogFile } from '../../../../src/domain/year/log/check-log.ts'
import type { LedgerRow } from '../../../../src/domain/year/ledger.ts'
import { ledgerTree, parseLogFileName } from '../../../../src/domain/year/log/log-history.ts'
import { rootAt } from '../../../../src/domain/year/log/merkle-tree.ts'
import {
  checkpointText,
  formatVerifierKey,
  signNote,
  signerKey,
} from '../../../../src/domain/year/log/signed-note.ts'
import { sampleArchive } from '../../../support/sample-archive.ts'
import { LOG_SEED } from '../log-vectors.ts'

const { rows } = sampleArchive(3).contents
const KEY = signerKey('dash.example/tlog/year', LOG_SEED)

const textAt = (size: number, of: readonly LedgerRow[] = rows): string =>
  checkpointText({ origin: KEY.name, size, root: rootAt(ledgerTree(of), size) })

/** Files of a log that was signed at three sizes. */
const SOUND: Readonly<Record<string, string>> = {
  'policy.1': `log ${formatVerifierKey(KEY)}\nquorum none\n`,
  'policy.2': `log ${formatVerifierKey(KEY)} https://dash.example/tlog/year\nquorum none\n`,
  '2': signNote(textAt(2), KEY),
  '4': signNote(textAt(4), KEY),
  '6': signNote(textAt(6), KEY),
}

function filesOf(texts: Readonly<Record<string, string>>): AuditedLogFile[] {
  return Object.entries(texts).flatMap(([name, text]) => {
    const file = parseLogFileName(name)
    return file ? [{ file, bytes: new TextEncoder().encode(text) }] : []
  })
}

const found = (changes: Record<string, string>, of: readonly LedgerRow[] = rows): string[] =>
  auditLog(of, filesOf({ ...SOUND, ...changes })).map(({ code, path }) => `${code} ${path}`)

describe('an audit of the signed log', () => {
  test('an audit finds nothing in a sound log and in an archive without a log', () => {
    expect(found({})).toEqual([])
    expect(auditLog(rows, [])).toEqual([])
  })

  test('an audit finds that a ledger lost its last entry, by the one note that covers it', () => {
    expect(found({}, rows.slice(0, 5))).toEqual(['log_forked tlog/year/6'])
  })

  test('an audit finds a rewritten ledger by every note that covers the change', () => {
    const rewritten = rows.map((row) => (row.seq === 3 ? { ...row, attempts: 7 } : row))
    expect(found({}, rewritten)).toEqual(['log_forked tlog/year/4', 'log_forked tlog/year/6'])
  })

  test.each([
    ['another key signed', { '4': signNote(textAt(4), signerKey(KEY.name, new Uint8Array(32))) }, '4'],
    [
      'a signature was changed',
      { '4': SOUND['4']?.replace('— dash.example/tlog/year ', '— dash.example/tlog/year A') ?? '' },
      '4',
    ],
    ['a note has the name of another size', { '4': SOUND['2'] ?? '' }, '4'],
    ['a note is empty', { '4': '' }, '4'],
    ['a note begins with a byte order mark', { '4': `\uFEFF${SOUND['4']}` }, '4'],
    ['a policy begins with a byte order mark', { 'policy.1': `\uFEFF${SOUND['policy.1']}` }, 'policy.1'],
    ['a policy is not valid', { 'policy.1': 'hello\n' }, 'policy.1'],
  ])('an audit finds that %s', (_what, changes, name) => {
    expect(found(changes)).toEqual([`note_invalid tlog/year/${name}`])
  })

  test('an audit reports lost or damaged policies once, not by every note, and still compares the trees', () => {
    const { 'policy.1': _first, 'policy.2': _second, ...notes } = SOUND
    expect(auditLog(rows, filesOf(notes))).toMatchObject([
      { code: 'note_invalid', path: 'tlog/year/policy.1', actual: 'no policy is stored' },
    ])
    expect(found({ 'policy.1': 'x\n', 'policy.2': 'y\n' })).toEqual([
      'note_invalid tlog/year/policy.1',
      'note_invalid tlog/year/policy.2',
    ])
    expect(auditLog(rows.slice(0, 5), filesOf(notes)).map(({ code }) => code)).toEqual([
      'note_invalid',
      'log_forked',
    ])
  })

  test('an audit finds a file that is listed but missing', () => {
    const files = [...filesOf(SOUND), { file: { kind: 'note', size: 5 } as const, bytes: null }]
    expect(auditLog(rows, files)).toMatchObject([{ code: 'note_invalid', path: 'tlog/year/5' }])
  })
})
