import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sha256Hex } from '../../domain/digest.ts'
import type { Mutation } from '../../domain/year/finding.ts'
import { DAY_MS, addDays, formatInstant, startOfDay } from '../../domain/time.ts'
import type { Day, Instant } from '../../domain/time.ts'
import { sealYear } from '../../domain/year/envelope.ts'
import { objectPath } from '../../domain/year/finding.ts'
import { windowEnding } from '../../domain/year/ledger.ts'
import type { Head, LedgerRow, LegacyRow, Manifest } from '../../domain/year/ledger.ts'
import { coverageOf, rankYear } from '../../domain/year/rank.ts'
import type { YearEvent } from '../../domain/year/rank.ts'

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

/** A publication of the sample: the bytes of its object and the manifest that names them. */
export interface Publication {
  manifest: Manifest
  bytes: Uint8Array
}

/** Every publication of the sample is made this long after the midnight that ends its day. */
const PUBLISHED_AFTER_MS = 600_000

/** A small publication of today's version, valid down to its last item. */
export function ownPublication(asOfDay: Day, title: string): Publication {
  const window = windowEnding(asOfDay)
  const events = ['hn', 'lobsters', 'lesswrong'].flatMap((source) =>
    [1, 2].map((number): YearEvent => ({
      source,
      sourceId: `${source}${number}`,
      title: `${title} ${number} of ${source}`,
      url: `https://example.org/${source}/${number}`,
      points: 10 * number,
      comments: number,
      publishedAt: window.windowEnd - number * DAY_MS,
      titleProvenance: `${source}:self-test`,
    })),
  )
  const ranked = rankYear(events, new Map())
  if (ranked.do !== 'ranked') throw new Error('the sample asks for titles')
  const publishedAt = publishedAtOf(asOfDay)
  const coverage = coverageOf(window, [], ranked.year)
  const { manifest, bytes } = sealYear(window, ranked.year, coverage, publishedAt - 1, publishedAt)
  return { manifest, bytes }
}

/** A publication of version 1 or 2, as another writer laid it out. */
export function olderPublication(version: 1 | 2, asOfDay: Day): Publication {
  const { windowStart, windowEnd } = windowEnding(asOfDay)
  const algorithmVersion = `top-year-v${version}`
  const publishedAt = publishedAtOf(asOfDay)
  const envelope = {
    schemaVersion: version,
    kind: 'top-year-publication',
    publicationId: `${algorithmVersion}-${asOfDay}`,
    algorithmVersion,
    asOfDay,
    generatedAt: formatInstant(publishedAt - 1),
    windowStart: formatInstant(windowStart),
    windowEnd: formatInstant(windowEnd),
    coverage: { targetDays: 365 },
    feed: { popular: [{ title: `of version ${version} on ${asOfDay}` }] },
    archivedAt: formatInstant(publishedAt),
  }
  const bytes = new TextEncoder().encode(`${JSON.stringify(envelope)}\n`)
  const { publicationId, schemaVersion, kind } = envelope
  const instants = { windowStart, windowEnd, generatedAt: publishedAt - 1, publishedAt }
  const identity = { publicationId, algorithmVersion, schemaVersion, kind, asOfDay, ...instants }
  return { manifest: { ...identity, sha256: sha256Hex(bytes), byteSize: bytes.byteLength }, bytes }
}

export function publishedAtOf(asOfDay: Day): Instant {
  return startOfDay(addDays(asOfDay, 1)) + PUBLISHED_AFTER_MS
}

/** The same publication with other bytes, named by its manifest as if they had always been its own. */
export function withText(publication: Publication, change: (text: string) => string): Publication {
  const bytes = new TextEncoder().encode(change(new TextDecoder().decode(publication.bytes)))
  const identity = { sha256: sha256Hex(bytes), byteSize: bytes.byteLength }
  return { manifest: { ...publication.manifest, ...identity }, bytes }
}

/**
 * Remembers a small folder and puts it back as it was, file by file: much less work for the file system than a fresh
 * copy each time. What is there is compared by its bytes, because several changes may share one timestamp.
 *
 * @returns a function that undoes every change made since
 */
export function rememberFolder(folder: string): () => void {
  const remembered = new Map<string, Buffer>()
  for (const { path, isFile } of entriesOf(folder)) if (isFile) remembered.set(path, readFileSync(path))
  const folders = new Set([...remembered.keys()].flatMap((path) => foldersAbove(path, folder)))
  return () => {
    const left = new Set<string>()
    for (const { path, isFile, isFolder } of entriesOf(folder)) {
      const same = isFolder ? folders.has(path) : isFile && remembered.get(path)?.equals(readFileSync(path))
      if (same) left.add(path)
      else rmSync(path, { recursive: true, force: true })
    }
    for (const [path, bytes] of remembered) {
      if (left.has(path)) continue
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, bytes)
    }
  }
}

function entriesOf(folder: string): { path: string; isFile: boolean; isFolder: boolean }[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => ({
    path: join(entry.parentPath, entry.name),
    isFile: entry.isFile(),
    isFolder: entry.isDirectory(),
  }))
}

function foldersAbove(path: string, top: string): string[] {
  const folder = dirname(path)
  return folder === top ? [] : [folder, ...foldersAbove(folder, top)]
}
