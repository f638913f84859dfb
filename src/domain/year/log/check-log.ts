import { finding } from '../finding.ts'
import { utf8Text } from '../../text.ts'
import type { Finding } from '../finding.ts'
import type { LedgerRow } from '../ledger.ts'
import { forkOf, ledgerTree, logFileName } from './log-history.ts'
import type { LogFile } from './log-history.ts'
import { parsePolicy } from './log-policy.ts'
import type { MerkleTree } from './merkle-tree.ts'
import { openCheckpoint, readCheckpoint } from './signed-note.ts'
import type { Checkpoint, VerifierKey } from './signed-note.ts'

/** A file of the signed log as an audit reads it; `bytes` is null if the file is listed but missing. */
export interface AuditedLogFile {
  file: LogFile
  bytes: Uint8Array | null
}

/** The record of the last signed checkpoint beside the key, as findings and messages name it. */
export const LOG_RECORD = 'the record of the log key'

/** Returns the path of a log file in the object store. */
export function logFilePath(file: LogFile): string {
  return `tlog/year/${logFileName(file)}`
}

/**
 * Audits the stored files of the signed log. Each policy must parse. Each note must be signed by a log key of a stored
 * policy, and the ledger must continue it, so that all notes are consistent with each other.
 *
 * @param rows every row of the ledger, read after the files were listed
 * @param record the checkpoint that the key signed last, which the ledger must continue too; null if it is not known
 * @returns one finding for each rule that a file violates
 */
export function auditLog(
  rows: readonly LedgerRow[],
  files: readonly AuditedLogFile[],
  record: Checkpoint | null = null,
): Finding[] {
  if (files.length === 0 && record === null) return []
  const tree = ledgerTree(rows)
  const behind = record === null ? null : forkOf(tree, record)
  const findings =
    behind === null ? [] : [finding('log_forked', LOG_RECORD, 'the tree of the ledger', behind)]
  return files.length === 0 ? findings : [...findings, ...auditFiles(tree, files)]
}

function auditFiles(tree: MerkleTree, files: readonly AuditedLogFile[]): Finding[] {
  const texts = new Map(files.map(({ file, bytes }) => [logFilePath(file), utf8Text(bytes)]))
  const keys: VerifierKey[] = []
  let hasPolicy = false
  const findings: Finding[] = []
  for (const { file } of files) {
    if (file.kind !== 'policy') continue
    const parsed = parsePolicy(texts.get(logFilePath(file)) ?? '')
    hasPolicy = true
    if (parsed.problem === null) keys.push(...parsed.keys)
    else findings.push(invalid(file, 'a policy', parsed.problem))
  }
  // Without a policy, one finding says so instead of one for each note.
  if (!hasPolicy) findings.push(invalid({ kind: 'policy', number: 1 }, 'a policy', 'no policy is stored'))
  for (const { file } of files) {
    const text = texts.get(logFilePath(file)) ?? ''
    if (file.kind === 'note') findings.push(...auditNote(file, text, keys, tree))
  }
  return findings
}

function invalid(file: LogFile, expected: string, actual: string): Finding {
  return finding('note_invalid', logFilePath(file), expected, actual)
}

function auditNote(
  file: Extract<LogFile, { kind: 'note' }>,
  text: string,
  keys: readonly VerifierKey[],
  tree: MerkleTree,
): Finding[] {
  const opened = keys.length === 0 ? readCheckpoint(text) : openCheckpoint(text, keys)
  const expected = `a signed checkpoint of ${file.size} entries`
  if (opened.problem !== null) return [invalid(file, expected, opened.problem)]
  const { checkpoint } = opened
  if (checkpoint.size !== file.size)
    return [invalid(file, expected, `a checkpoint of ${checkpoint.size} entries`)]
  const fork = forkOf(tree, checkpoint)
  return fork === null ? [] : [finding('log_forked', logFilePath(file), 'the tree of the ledger', fork)]
}
