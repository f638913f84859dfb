import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sha256Hex } from '../../../src/domain/digest.ts'
import type { Ledger } from '../../../src/domain/ports.ts'
import { DAY_MS, addDays, formatInstant, startOfDay } from '../../../src/domain/time.ts'
import type { Day, Instant } from '../../../src/domain/time.ts'
import { GENESIS_LEAF, sealEntry } from '../../../src/domain/year/chain.ts'
import { sealYear } from '../../../src/domain/year/envelope.ts'
import { windowEnding } from '../../../src/domain/year/ledger.ts'
import type { EntryContent, KeptHead, LedgerContents } from '../../../src/domain/year/ledger.ts'
import { planFounding, sealFounding } from '../../../src/domain/year/legacy-import.ts'
import { formatPolicy } from '../../../src/domain/year/log/log-policy.ts'
import { coverageOf, rankYear } from '../../../src/domain/year/rank.ts'
import type { YearEvent } from '../../../src/domain/year/rank.ts'
import { libsqlLedger } from '../../../src/adapters/ledger/ledger.ts'
import { fileObjects } from '../../../src/adapters/objects/open.ts'
import { database } from '../../../src/adapters/sqlite/database.ts'
import { ENTRY, LOG_KEY, headAt, noteOf } from './damage.ts'
import type { Copy, Publication, SampleContents } from './damage.ts'

/** Milliseconds from the end of a publication's day to its publication. */
const PUBLISHED_AFTER_MS = 600_000

const LEGACY_DAYS = ['2025-12-28', '2025-12-29', '2025-12-30']
const IMPORTED_DAYS = ['2025-12-31', '2026-01-01']
const OWN_DAYS = ['2026-01-02', '2026-01-05', '2026-01-06', '2026-01-07']
const GAPS: EntryContent[] = [
  { kind: 'gap', asOfDay: '2026-01-03', reason: 'missed', attempts: 0 },
  { kind: 'gap', asOfDay: '2026-01-04', reason: 'attempts_spent', attempts: 3 },
]

/** Time of the sample's founding seal, after the last imported publication. */
const FOUNDED_AT: Instant = publishedAtOf('2026-01-01') + 3_600_000

/** First entry after which a copy of the ledger file is kept for roll-backs. */
const KEEP_LEDGERS_FROM = 7

/** A small sound archive in a temporary folder, for repeated damage. */
export interface DamageSample {
  contents: SampleContents
  /** The newest head, as an auditor keeps it. */
  keptHead: KeptHead
  /** Replaces the copy by an undamaged one. */
  restore(): Copy
  remove(): void
}

/**
 * Writes the sample with the same adapters as an operator's archive: three publications of version 1 and two of
 * version 2 with their seal, four of the current version, a gap of each kind, and the notes of a signed log.
 */
export async function makeDamageSample(): Promise<DamageSample> {
  const root = mkdtempSync(join(tmpdir(), 'dash-damage-'))
  const [sound, folder] = [join(root, 'sound'), join(root, 'data')]
  const sample = await writeSample(sound)
  return {
    contents: sample,
    keptHead: { ...headAt({ sample }, ENTRY.newest), path: 'the head kept from before' },
    restore() {
      rmSync(folder, { recursive: true, force: true })
      cpSync(sound, folder, { recursive: true })
      return { sample, folder, ...pathsIn(folder) }
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

function pathsIn(folder: string): { ledgerPath: string; objectsPath: string } {
  return { ledgerPath: join(folder, 'ledger.db'), objectsPath: join(folder, 'objects') }
}

async function writeSample(folder: string): Promise<SampleContents> {
  const { ledgerPath, objectsPath } = pathsIn(folder)
  mkdirSync(objectsPath, { recursive: true })
  const objects = fileObjects(objectsPath)
  const store = database({
    location: { url: pathToFileURL(ledgerPath).href, authToken: null },
    store: 'ledger',
    nativeBusyMs: 1_000,
    retryMs: 1_000,
  })
  try {
    const { publications, contents, heads } = makeContents()
    for (const { manifest, bytes } of publications.values()) await objects.put(manifest.sha256, bytes)
    const olderLedgers = await writeLedger(libsqlLedger(store), contents, () => readFileSync(ledgerPath))
    for (const head of heads) await objects.putHead(head)
    const utf8 = new TextEncoder()
    await objects.logFiles.put({ kind: 'policy', number: 1 }, utf8.encode(formatPolicy([LOG_KEY], null)))
    for (const size of [ENTRY.previous, ENTRY.newest])
      await objects.logFiles.put({ kind: 'note', size }, utf8.encode(noteOf(contents.rows.slice(0, size))))
    return { rows: contents.rows, legacy: contents.legacy, publications, heads, olderLedgers }
  } finally {
    store.close()
  }
}

/** Creates the sample's contents: the founding with its seal, then an entry a day. */
function makeContents(): Pick<SampleContents, 'publications' | 'heads'> & { contents: LedgerContents } {
  const older = [
    ...LEGACY_DAYS.map((day) => ({ ledger: 'v1' as const, ...olderPublication(1, day) })),
    ...IMPORTED_DAYS.map((day) => ({ ledger: 'versioned' as const, ...olderPublication(2, day) })),
  ]
  const own = OWN_DAYS.map((day) => ownPublication(day, `title of ${day}`))
  const founding = planFounding(older.map((each, index) => ({ ...each, line: index + 1, file: 'sample' })))
  const rows = [...founding.rows, sealFounding(founding, FOUNDED_AT)]
  const daily = [...own.map(({ manifest }): EntryContent => ({ kind: 'publication', manifest })), ...GAPS]
  for (const content of daily.sort((a, b) => recordedAtOf(a) - recordedAtOf(b)))
    rows.push(sealEntry(content, rows.length + 1, recordedAtOf(content), rows.at(-1)?.leaf ?? GENESIS_LEAF))
  const imported = founding.rows.length
  const mark = { seq: imported, leaf: rows[imported - 1]?.leaf ?? GENESIS_LEAF, beganAt: FOUNDED_AT }
  return {
    publications: new Map([...older, ...own].map((each) => [each.manifest.publicationId, each])),
    contents: { rows, legacy: founding.legacy, founding: mark },
    heads: rows.slice(imported - 1).map(({ seq, leaf, recordedAt }) => ({ seq, leaf, time: recordedAt + 5 })),
  }
}

/** Writes the ledger step by step and returns the state of its file after each of the last entries. */
async function writeLedger(
  ledger: Ledger,
  contents: LedgerContents,
  ledgerFile: () => Uint8Array,
): Promise<Map<number, Uint8Array>> {
  const holder = { name: 'the sample', process: null }
  const grant = await ledger.takeLease(holder, 0, FOUNDED_AT, () => false)
  if (!grant.granted) throw new Error(`the sample's lease is held by ${grant.heldBy}`)
  const files = new Map<number, Uint8Array>()
  let before: LedgerContents = { rows: [], legacy: [], founding: null }
  for (let seq = KEEP_LEDGERS_FROM; seq <= contents.rows.length; seq += 1) {
    const next = { ...contents, rows: contents.rows.slice(0, seq) }
    const refused = await ledger.adopt(next, [], before, { token: grant.token, now: 1 })
    if (refused !== null) throw new Error(`the sample's entry ${seq} was refused: ${refused}`)
    files.set(seq, ledgerFile())
    before = next
  }
  return files
}

function recordedAtOf(content: EntryContent): Instant {
  if (content.kind === 'publication') return content.manifest.publishedAt
  return publishedAtOf(content.kind === 'gap' ? content.asOfDay : '2026-01-01')
}

/** Creates a small, completely valid publication of the current version. */
function ownPublication(asOfDay: Day, title: string): Publication {
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
      titleProvenance: `${source}:test`,
    })),
  )
  const ranked = rankYear(events, new Map())
  if (ranked.do !== 'ranked') throw new Error('the ranking of the sample requested titles')
  const publishedAt = publishedAtOf(asOfDay)
  const coverage = coverageOf(window, [], ranked.year)
  const { manifest, bytes } = sealYear(window, ranked.year, coverage, publishedAt - 1, publishedAt)
  return { manifest, bytes }
}

/** Creates a publication of version 1 or 2 in the layout of an earlier writer. */
function olderPublication(version: 1 | 2, asOfDay: Day): Publication {
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

function publishedAtOf(asOfDay: Day): Instant {
  return startOfDay(addDays(asOfDay, 1)) + PUBLISHED_AFTER_MS
}
