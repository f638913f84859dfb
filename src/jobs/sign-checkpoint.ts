import { areSameBytes } from '../domain/digest.ts'
import type { Objects, SignedLog, YearReader } from '../domain/year/ports.ts'
import { utf8Text } from '../domain/text.ts'
import { storageDamaged } from '../domain/refusal.ts'
import { headIsBehind } from '../domain/year/chain.ts'
import type { LedgerRow } from '../domain/year/ledger.ts'
import { LOG_RECORD } from '../domain/year/log/check-log.ts'
import {
  forkOf,
  ledgerTree,
  newestNoteSize,
  newestPolicyNumber,
  readStoredNote,
} from '../domain/year/log/log-history.ts'
import type { LogFile } from '../domain/year/log/log-history.ts'
import { parsePolicy, openCheckpoint } from '../domain/year/log/signed-note.ts'
import { rootAt } from '../domain/year/log/merkle-tree.ts'
import type { Checkpoint } from '../domain/year/log/signed-note.ts'
import { withPublisherLease } from './lease.ts'
import type { LeasePorts } from './lease.ts'

export interface SignPorts {
  objects: Pick<Objects, 'logFiles'>
  /** Null if no key is set; nothing is signed then. */
  log: SignedLog | null
}

/** Earlier checkpoints of the log, each with its location as messages name it. */
export type SignedBefore = { checkpoint: Checkpoint; where: string }[]

/**
 * Reads the ledger, which must continue every signed checkpoint; one that does not must not grow.
 *
 * @throws Refusal `storage_damaged` if it does not, or a checkpoint is invalid; `storage_unavailable` if the record of the
 *   key is missing
 */
export async function readContinued(
  ports: SignPorts & { year: YearReader },
): Promise<Awaited<ReturnType<YearReader['read']>> & { signed: SignedBefore }> {
  // The ledger is read after the checkpoints, so that it is at least as long.
  const signed = await readSigned(ports)
  const read = await ports.year.read()
  const other = secondHistory(signed, read.contents.rows)
  if (other !== null) throw storageDamaged(`${other}; ${SECOND_HISTORY_ADVICE}`)
  return { ...read, signed }
}

/**
 * Reads the checkpoint in the key's record and the newest stored one. Call it before reading the ledger, so that the
 * ledger is at least as long.
 *
 * @returns no checkpoint if no key is set
 * @throws Refusal `storage_damaged` if one of them is invalid, `storage_unavailable` if the record is missing
 */
async function readSigned({ objects, log }: SignPorts): Promise<SignedBefore> {
  if (log === null) return []
  const { keys } = log.signer
  const last = { checkpoint: await log.signer.lastSigned(), where: LOG_RECORD }
  const size = newestNoteSize(await objects.logFiles.list())
  if (size === 0) return [last]
  const where = `the note tlog/year/${size}`
  const read = readStoredNote(await objects.logFiles.get({ kind: 'note', size }), size, keys)
  if (read.problem !== null) throw storageDamaged(`${where} ${read.problem}`)
  return [last, { checkpoint: read.checkpoint, where }]
}

/** What to do if the ledger does not continue a signed checkpoint. */
export const SECOND_HISTORY_ADVICE =
  'restore the missing entries, or found a new log: docs/signed-log.md#a-second-history'

/** Returns how the ledger contradicts a signed checkpoint, as an older copy or a different ledger does; null if not. */
export function secondHistory(signed: SignedBefore, rows: readonly LedgerRow[]): string | null {
  if (signed.length === 0) return null
  const tree = ledgerTree(rows)
  for (const { checkpoint, where } of signed) {
    const fork = forkOf(tree, checkpoint)
    if (fork !== null) return `the ledger does not continue the tree in ${where}: ${fork}`
  }
  return null
}

/**
 * Signs the checkpoint of the whole ledger and stores the note, unless a note of this size is already stored. Stores the
 * policy again if the newest note is of this log and no stored policy has its key. The caller must have written all heads.
 *
 * @returns true if a checkpoint was signed
 */
export async function signCheckpoint(
  { objects: { logFiles }, log }: SignPorts,
  rows: readonly LedgerRow[],
): Promise<boolean> {
  if (log === null || rows.length === 0) return false
  const files = await logFiles.list()
  const size = rows.length
  if (newestNoteSize(files) >= size) {
    if (await lacksPolicy(logFiles, files, log)) await storePolicy(logFiles, files, log.policy)
    return false
  }
  // After a crash here, the new policy is stored without its note.
  await storePolicy(logFiles, files, log.policy)
  const checkpoint = { origin: log.signer.key.name, size, root: rootAt(ledgerTree(rows), size) }
  // After a crash here, the record is ahead of the notes, and the next run signs the same checkpoint again.
  const note = await log.signer.sign(checkpoint)
  await logFiles.put({ kind: 'note', size }, new TextEncoder().encode(note))
  return true
}

/** Returns true if the key signed the newest note, but the policy in force is lost, damaged, or lacks the key. */
async function lacksPolicy(
  logFiles: Objects['logFiles'],
  files: readonly LogFile[],
  { signer: { keys } }: SignedLog,
): Promise<boolean> {
  const note = await textOf(logFiles, { kind: 'note', size: newestNoteSize(files) })
  if (openCheckpoint(note, keys).problem !== null) return false
  const parsed = parsePolicy(await textOf(logFiles, { kind: 'policy', number: newestPolicyNumber(files) }))
  return parsed.problem !== null || openCheckpoint(note, parsed.keys).problem !== null
}

async function textOf(logFiles: Objects['logFiles'], file: LogFile): Promise<string> {
  return utf8Text(await logFiles.get(file))
}

async function storePolicy(
  logFiles: Objects['logFiles'],
  files: readonly LogFile[],
  policy: string,
): Promise<void> {
  const bytes = new TextEncoder().encode(policy)
  const number = newestPolicyNumber(files)
  const stored = number === 0 ? null : await logFiles.get({ kind: 'policy', number })
  if (stored !== null && areSameBytes(stored, bytes)) return
  await logFiles.put({ kind: 'policy', number: number + 1 }, bytes)
}

export interface CheckpointPorts extends LeasePorts {
  year: YearReader
  objects: Pick<Objects, 'logFiles' | 'putHead'>
  log: SignedLog
}

/** The JSON result of `checkpoint` (docs/operations.md). */
export interface CheckpointReport {
  origin: string
  /** Number of entries of the log; 0 if there is nothing to sign yet. */
  size: number
  /** True if this run signed the checkpoint. */
  signed: boolean
  /** Why nothing could be signed; null if this or an earlier run signed it. */
  reason: string | null
  /** Root of the tree in hex. */
  root: string
}

/**
 * Signs the checkpoint of the current ledger, if it is not signed yet.
 *
 * @throws Refusal `lease_held` while another process publishes, `storage_damaged` if the ledger does not continue a
 *   signed checkpoint
 */
export async function signLedger(ports: CheckpointPorts): Promise<CheckpointReport> {
  const { objects, log, clock } = ports
  // After a crash from here on, the lease expires.
  return withPublisherLease(ports, async () => {
    const { signed: signedBefore, contents, proved, head } = await readContinued(ports)
    const { rows } = contents
    // Write the head that a crash after a commit left out.
    if (headIsBehind(proved.entries, head))
      await objects.putHead({ seq: rows.length, leaf: proved.lastLeaf, time: clock() })
    const signed = await signCheckpoint(ports, rows)
    const root = Buffer.from(rootAt(ledgerTree(rows), rows.length)).toString('hex')
    const { name: origin } = log.signer.key
    const reason = signed ? null : whyNotSigned(origin, rows, signedBefore)
    return { origin, size: rows.length, root, signed, reason }
  })
}

/** Returns null if the log has signed these rows before. */
function whyNotSigned(origin: string, rows: readonly LedgerRow[], signed: SignedBefore): string | null {
  if (rows.length === 0) return 'the ledger has no entries yet'
  const stored = signed.find(
    ({ checkpoint }) => checkpoint.size === rows.length && checkpoint.origin !== origin,
  )
  return stored
    ? `${stored.where} is of the log ${stored.checkpoint.origin}; ${origin} signs with the next entry`
    : null
}
