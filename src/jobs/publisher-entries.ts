import type { AppendRefusal, Archive, Clock, Ledger } from '../domain/ports.ts'
import type { Instant } from '../domain/time.ts'
import { sealEntry } from '../domain/year/chain.ts'
import type { ProvedLedger } from '../domain/year/chain.ts'
import type { EntryContent, Head, LedgerRow } from '../domain/year/ledger.ts'
import { COMMIT_WITHIN_MS } from '../domain/year/plan.ts'
import { leaseLost } from './publisher-lease.ts'

/** The writing of entries and their heads by whoever holds the lease (docs/publishing.md). */
interface EntryPorts {
  ledger: Pick<Ledger, 'append'>
  archive: Pick<Archive, 'putHead'>
  clock: Clock
}

/** Where a chain stands: the sequence number and the leaf that the next entry continues. */
export type ChainEnd = Pick<Head, 'seq' | 'leaf'>

export type Gap = Omit<Extract<EntryContent, { kind: 'gap' }>, 'kind'>

/** Sealing again when a commit came too late is bounded; a machine this slow fails the attempt instead. */
export const SEAL_TRIES = 5

export function endOf({ entries, lastLeaf }: ProvedLedger): ChainEnd {
  return { seq: entries.length, leaf: lastLeaf }
}

/**
 * Appends one entry. The append itself checks that the chain still ends where it is continued.
 *
 * @returns the row that was to be appended, and why it was not, or null
 */
export async function appendEntry(
  { ledger, clock }: EntryPorts,
  end: ChainEnd,
  content: EntryContent,
  recordedAt: Instant,
  token: string,
): Promise<{ refusal: AppendRefusal | null; row: LedgerRow }> {
  const row = sealEntry(content, end.seq + 1, recordedAt, end.leaf)
  return { refusal: await ledger.append(row, { token, clock, withinMs: COMMIT_WITHIN_MS }), row }
}

/** Writes the head of the entry a chain ends with. */
export async function putHead({ archive, clock }: EntryPorts, { seq, leaf }: ChainEnd): Promise<void> {
  await archive.putHead({ seq, leaf, time: clock() })
}

/**
 * Records a day as one without a publication, and its head.
 *
 * @returns where the chain stands then
 * @throws Refusal `lease_lost`, and faults; nothing else stands in for an entry that was not appended
 */
export async function recordGap(
  ports: EntryPorts,
  end: ChainEnd,
  gap: Gap,
  token: string,
): Promise<ChainEnd> {
  const { refusal, row } = await appendEntry(ports, end, { kind: 'gap', ...gap }, ports.clock(), token)
  if (refusal !== null) throw appendFailure(refusal)
  await putHead(ports, row)
  return row
}

/** What a refused append ends its attempt, or its run, with. */
export function appendFailure(refusal: AppendRefusal): Error {
  switch (refusal) {
    case 'lease-lost':
    case 'ledger-moved':
      return leaseLost()
    case 'clock-went-back':
      return new Error('the clock went back while the publication was made')
    case 'too-late':
      return new Error(
        `the commit came more than ${COMMIT_WITHIN_MS} ms after its publication time, ${SEAL_TRIES} times`,
      )
  }
}
