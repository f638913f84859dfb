import type { Clock, LogWitnesses, Objects, SignedLog } from '../domain/ports.ts'
import { messageOf, storageDamaged } from '../domain/refusal.ts'
import { shorten, utf8Text } from '../domain/text.ts'
import type { LedgerRow } from '../domain/year/ledger.ts'
import { cosignedSizes, formatAddCheckpoint, readCosignature } from '../domain/year/log/cosigning.ts'
import type { WitnessResponse } from '../domain/year/log/cosigning.ts'
import { ledgerTree, newestNoteSize } from '../domain/year/log/log-history.ts'
import type { MerkleTree } from '../domain/year/log/merkle-tree.ts'
import { openCheckpoint } from '../domain/year/log/signed-note.ts'
import type { VerifierKey } from '../domain/year/log/signed-note.ts'

/** The JSON result of one witness in a report. */
export interface WitnessReport {
  /** Name of the witness's key. */
  name: string
  outcome: 'cosigned' | 'failed'
  /** Reason of a failure; null for a stored cosignature. */
  reason: string | null
}

/** Results of submitting one note to all witnesses. */
export interface AskedWitnesses {
  /** Size of the submitted note; 0 if there was none. */
  size: number
  reports: WitnessReport[]
  /** Statement of a witness that the key signed a tree that the ledger does not continue; null without one. */
  fork: string | null
}

export interface WitnessPorts {
  objects: Pick<Objects, 'logFiles'>
  /** Null if no key is set. */
  log: { signer: Pick<SignedLog['signer'], 'keys'>; witnesses: LogWitnesses | null } | null
  clock: Clock
  onProgress: (message: string) => void
}

/** Results before the first submission. */
export const NOT_ASKED: AskedWitnesses = { size: 0, reports: [], fork: null }

/**
 * Submits the newest stored note to all witnesses at the same time and stores their cosignatures. A witness that states
 * another size than that of its last stored cosignature is asked once more, from that size.
 *
 * @param rows every row of the ledger, which continues that note
 * @param before results of an earlier submission of this run, returned if there is no newer note
 * @throws errors of the object store while it lists and reads notes; a failure of a witness is part of its report
 */
export async function askWitnesses(
  { objects: { logFiles }, log, clock, onProgress }: WitnessPorts,
  rows: readonly LedgerRow[],
  before: AskedWitnesses,
): Promise<AskedWitnesses> {
  if (!log?.witnesses) return before
  const files = await logFiles.list()
  const size = newestNoteSize(files)
  if (size === before.size) return before
  const note = utf8Text(await logFiles.get({ kind: 'note', size }))
  // The newest note can be that of an abandoned log, which this one replaces.
  if (openCheckpoint(note, log.signer.keys).problem !== null) return before
  const { witnesses } = log
  const submission = { witnesses, logFiles, clock, tree: ledgerTree(rows), size, note }
  const results = await Promise.all(
    witnesses.parties.flatMap(({ key, url }) =>
      url === null ? [] : askWitness({ ...submission, key, url, cosigned: cosignedSizes(files, key) }),
    ),
  )
  for (const { name, reason } of results)
    if (reason !== null) onProgress(`the witness ${name} did not cosign tlog/year/${size}: ${reason}`)
  const fork = results.find(({ isFork }) => isFork)
  return {
    size,
    reports: results.map(({ name, reason }) => ({
      name,
      outcome: reason === null ? 'cosigned' : 'failed',
      reason,
    })),
    fork: fork ? `${fork.name} reports a second history: ${fork.reason}` : null,
  }
}

/**
 * Ends a run if a witness states a second history.
 *
 * @throws Refusal `storage_damaged`
 */
export function requireNoFork({ fork }: AskedWitnesses): void {
  if (fork === null) return
  const advice =
    'restore the missing entries, or remove the witness if it is wrong: docs/signed-log.md#a-second-history'
  throw storageDamaged(`the witness ${fork}; ${advice}`)
}

/** One note for one witness. */
interface Submission {
  witnesses: Pick<LogWitnesses, 'addCheckpoint'>
  logFiles: Objects['logFiles']
  clock: Clock
  tree: MerkleTree
  /** Size of the note. */
  size: number
  note: string
  key: VerifierKey
  url: string
  /** Sizes that the witness is known to have cosigned. */
  cosigned: readonly number[]
}

/** Why a witness did not cosign, null if it did, and whether it stated a second history. */
interface Outcome {
  reason: string | null
  isFork: boolean
}

const failure = (reason: string, isFork = false): Outcome => ({ reason: shorten(reason), isFork })

async function askWitness(submission: Submission): Promise<Outcome & { name: string }> {
  const outcome = await submit(submission).catch((error: unknown) => failure(messageOf(error)))
  return { name: submission.key.name, ...outcome }
}

async function submit(submission: Submission): Promise<Outcome> {
  const { size, tree, cosigned } = submission
  const known = Math.max(0, ...cosigned.filter((each) => each <= size))
  const first = await send(submission, known)
  if (first.is !== 'other-size') return settle(submission, first)
  const { size: stated } = first
  const statement = `it has cosigned size ${stated}`
  if (stated > tree.size) return failure(`${statement}, but the ledger has size ${tree.size}`, true)
  if (stated > size || stated === known) return failure(statement)
  const second = await send(submission, stated)
  // A witness whose own cosignature of that size is stored contradicts itself.
  const isFork = second.is === 'refused' && second.inconsistent && stated > 0 && !cosigned.includes(stated)
  return isFork
    ? failure(`${statement}, which the ledger does not continue (${second.reason})`, true)
    : settle(submission, second)
}

function send({ witnesses, url, tree, size, note }: Submission, older: number): Promise<WitnessResponse> {
  return witnesses.addCheckpoint(url, formatAddCheckpoint(tree, older, size, note))
}

/** Stores the cosignature of a response that is final. */
async function settle(
  { logFiles, clock, size, note, key }: Submission,
  response: WitnessResponse,
): Promise<Outcome> {
  if (response.is === 'refused') return failure(response.reason)
  if (response.is === 'other-size') return failure(`it has cosigned size ${response.size}`)
  const read = readCosignature(note, response.lines, key, Math.floor(clock() / 1000))
  if (read.problem !== null) return failure(read.problem)
  const file = { kind: 'cosignature', size, keyId: key.id, time: read.time } as const
  // After a crash before this line, the witness states its size to the next run.
  await logFiles.put(file, new TextEncoder().encode(read.line))
  return { reason: null, isFork: false }
}
