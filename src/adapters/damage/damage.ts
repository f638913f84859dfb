import { join } from 'node:path'
import { rmSync, writeFileSync } from 'node:fs'
import type { Mutation } from '../../domain/ports.ts'
import { objectPath } from '../../domain/year/finding.ts'
import type { Head, LedgerRow, LegacyRow } from '../../domain/year/ledger.ts'
import type { Publication } from './publications.ts'

/** What the sample holds, by which a mutation knows what to damage. */
export interface SampleContents {
  rows: readonly LedgerRow[]
  legacy: readonly LegacyRow[]
  /** Every publication by its id. */
  publications: ReadonlyMap<string, Publication>
  /** Ascending. */
  heads: readonly Head[]
  /** The ledger file as it was after an entry, by the entry's number. */
  olderLedgers: ReadonlyMap<number, Uint8Array>
}

/** A copy of the sample that is to be damaged. */
export interface Copy {
  sample: SampleContents
  folder: string
  ledgerPath: string
  objectsPath: string
}

/** A mutation before it is bound to a sample. */
export interface Damage extends Omit<Mutation, 'apply'> {
  apply: (copy: Copy) => void | Promise<void>
}

/** Damage that the archive itself betrays. */
export function damage(name: string, expects: Mutation['expects'], apply: Damage['apply']): Damage {
  return { name, expects, sound: false, needsKeptHead: false, apply }
}

/** Damage to both stores that fits together, so that only a head kept elsewhere betrays it. */
export function consistentForgery(name: string, apply: Damage['apply']): Damage {
  return { name, expects: ['head_mismatch'], sound: false, needsKeptHead: true, apply }
}

/** Which entry of the sample is what; see {@link sampleContents}. */
export const ENTRY = {
  firstImported: 1,
  lastImported: 2,
  seal: 3,
  firstOwn: 4,
  missedGap: 5,
  spentGap: 6,
  beforePrevious: 7,
  previous: 8,
  newest: 9,
} as const

export function rowAt(rows: readonly LedgerRow[], seq: number): LedgerRow {
  const row = rows[seq - 1]
  if (row?.seq !== seq) throw new Error(`the sample has no entry ${seq}`)
  return row
}

/** The publication in an entry of the sample. */
export function publicationAt({ sample }: Pick<Copy, 'sample'>, seq: number): Publication {
  return publicationNamed(sample, rowAt(sample.rows, seq).publicationId)
}

export function publicationNamed(sample: SampleContents, id: string | null | undefined): Publication {
  const publication = id ? sample.publications.get(id) : undefined
  if (!publication) throw new Error(`the sample has no publication ${id}`)
  return publication
}

/** Where the object of a publication lies. */
export function objectFile({ objectsPath }: Copy, { manifest }: Publication): string {
  return join(objectsPath, objectPath(manifest.sha256))
}

export function headFile({ objectsPath }: Copy, seq: number): string {
  return join(objectsPath, 'heads', String(seq))
}

/** Puts other bytes in a file's place; objects are read-only, so the file is made anew. */
export function overwrite(path: string, bytes: Uint8Array | string): void {
  rmSync(path, { force: true, recursive: true })
  writeFileSync(path, bytes)
}

/** The bytes with some bits of one byte turned over. */
export function withFlippedBits(bytes: Uint8Array, position: number, bits: number): Uint8Array {
  const flipped = Uint8Array.from(bytes)
  flipped[position] = (flipped[position] ?? 0) ^ bits
  return flipped
}
