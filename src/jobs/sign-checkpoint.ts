import type { LogSigner, Objects, YearReader } from '../domain/ports.ts'
import { storageDamaged } from '../domain/refusal.ts'
import { headIsBehind } from '../domain/year/chain.ts'
import type { LedgerRow } from '../domain/year/ledger.ts'
import {
  forkOf,
  ledgerTree,
  newestNoteSize,
  newestPolicyNumber,
  readStoredNote,
} from '../domain/year/log/log-history.ts'
import type { LogFile } from '../domain/year/log/log-history.ts'
import { rootAt } from '../domain/year/log/merkle-tree.ts'
import type { Checkpoint } from '../domain/year/log/signed-note.ts'
import { withPublisherLease } from './lease.ts'
import type { LeasePorts } from './lease.ts'

/** The log that a publisher signs. */
export interface SignedLog {
  signer: LogSigner
  /** Text of the policy that readers should verify with. */
  policy: string
}

export interface SignPorts {
  objects: Pick<Objects, 'logFiles'>
  /** null: no key is set, and nothing is signed. */
  log: SignedLog | null
}

/** Earlier checkpoints of the log, each with the place that holds it, as messages name it. */
export type SignedBefore = { checkpoint: Checkpoint; where: string }[]

/** Reads the earlier checkpoints. Call it before reading the ledger, so that the ledger is at least as long. */
export async function readSigned({ objects, log }: SignPorts): Promise<SignedBefore> {
  if (log === null) return []
  const { key } = log.signer
  const last = { checkpoint: await log.signer.lastSigned(), where: "the record of the log's key" }
  const size = newestNoteSize(await objects.logFiles.list())
  if (size === 0) return [last]
  const where = `the note tlog/year/${size}`
  const read = readStoredNote(await objects.logFiles.get({ kind: 'note', size }), size, key)
  if (read.problem !== null) throw storageDamaged(`${where} ${read.problem}`)
  return [last, { checkpoint: read.checkpoint, where }]
}

/**
 * Requires one history: a ledger that does not continue every signed checkpoint is an older copy or a different ledger,
 * and must not grow.
 *
 * @throws Refusal `storage_damaged`
 */
export function requireOneHistory(signed: SignedBefore, rows: readonly LedgerRow[]): void {
  if (signed.length === 0) return
  const tree = ledgerTree(rows)
  for (const { checkpoint, where } of signed) {
    const fork = forkOf(tree, checkpoint)
    if (fork === null) continue
    const advice = 'restore the missing entries, or found a new log: docs/backup.md#a-second-history'
    throw storageDamaged(`the ledger does not continue the tree in ${where}: ${fork}; ${advice}`)
  }
}

/**
 * Signs the checkpoint of the whole ledger and stores the note, unless one of this size is stored already. The heads up
 * to its end must be written.
 */
export async function signCheckpoint(
  { objects: { logFiles }, log }: SignPorts,
  rows: readonly LedgerRow[],
): Promise<void> {
  if (log === null || rows.length === 0) return
  const files = await logFiles.list()
  const size = rows.length
  if (newestNoteSize(files) >= size) return
  // A crash after it: a policy without a note, or one beside an older note.
  await storePolicy(logFiles, files, log.policy)
  const checkpoint = { origin: log.signer.key.name, size, root: rootAt(ledgerTree(rows), size) }
  // A crash after it: the record is ahead of the notes, and the next run signs the same again.
  const note = await log.signer.sign(checkpoint)
  await logFiles.put({ kind: 'note', size }, new TextEncoder().encode(note))
}

async function storePolicy(
  logFiles: Objects['logFiles'],
  files: readonly LogFile[],
  policy: string,
): Promise<void> {
  const bytes = new TextEncoder().encode(policy)
  const number = newestPolicyNumber(files)
  const stored = number === 0 ? null : await logFiles.get({ kind: 'policy', number })
  if (stored !== null && Buffer.compare(stored, bytes) === 0) return
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
  /** Entries of the log; 0: there is nothing to sign yet. */
  size: number
  /** Root of the tree, in hex. */
  root: string
}

/**
 * Signs the checkpoint of the ledger as it is, if that was not done.
 *
 * @throws Refusal `lease_held` while somebody publishes; `storage_damaged` for a ledger that would give the log a second
 *   history
 */
export async function signLedger(ports: CheckpointPorts): Promise<CheckpointReport> {
  const { objects, year, log, clock } = ports
  // A crash from here on: the lease expires.
  return withPublisherLease(ports, async () => {
    const signed = await readSigned(ports)
    const { contents, proved, head } = await year.read()
    const { rows } = contents
    requireOneHistory(signed, rows)
    // The head that a crash after a commit left unwritten.
    if (headIsBehind(proved.entries, head))
      await objects.putHead({ seq: rows.length, leaf: proved.lastLeaf, time: clock() })
    await signCheckpoint(ports, rows)
    const root = Buffer.from(rootAt(ledgerTree(rows), rows.length)).toString('hex')
    return { origin: log.signer.key.name, size: rows.length, root }
  })
}
