import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { DamageSample, Mutation } from '../../domain/year/finding.ts'
import type { Objects, Ledger } from '../../domain/ports.ts'
import { DAY_MS } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { GENESIS_LEAF, sealEntry } from '../../domain/year/chain.ts'
import type { EntryContent, Head, LedgerRow } from '../../domain/year/ledger.ts'
import { planFounding, sealFounding } from '../../domain/year/legacy-import.ts'
import type { Founding } from '../../domain/year/legacy-import.ts'
import { libsqlLedger } from '../ledger/ledger.ts'
import { fileObjects } from '../objects/open.ts'
import { database } from '../sqlite/database.ts'
import { migrationsOf } from '../sqlite/migrate.ts'
import { olderPublication, ownPublication, publishedAtOf, rememberFolder } from './damage.ts'
import type { Damage, Publication, SampleContents } from './damage.ts'
import { headDamage, ledgerFileDamage, objectDamage } from './file-damage.ts'
import { forgeries, legacyDamage, rollbacks } from './forgeries.ts'
import { entryDamage } from './ledger-damage.ts'

const LEGACY_DAYS = ['2025-12-28', '2025-12-29', '2025-12-30']
const IMPORTED_DAYS = ['2025-12-31', '2026-01-01']

/** When the sample's founding was sealed, after the last publication that came with it. */
const FOUNDED_AT: Instant = publishedAtOf('2026-01-01') + 3_600_000

/** Entries after which a copy of the ledger file is kept, to be rolled back to. */
const KEPT_AFTER = 7

/**
 * Writes the sample by the adapters that write an operator's archive: three publications of version 1 and two of
 * version 2 with their seal, four of today's version, and a gap of each kind.
 *
 * @param parent folder in which the sample's own temporary one is made
 */
export async function makeDamageSample(parent: string = tmpdir()): Promise<DamageSample> {
  const root = mkdtempSync(join(parent, 'dash-self-test-'))
  const remove = async (): Promise<void> => rmSync(root, { recursive: true, force: true })
  try {
    const folder = join(root, 'data')
    const sample = await fill(folder)
    const restore = rememberFolder(folder)
    const newest = sample.heads.at(-1)
    if (!newest) throw new Error('the sample has no head')
    return {
      mutations: allDamage(sample).map((each) => bind(each, sample)),
      keptHead: { ...newest, path: 'the head kept from before' },
      async restored() {
        restore()
        return folder
      },
      remove,
    }
  } catch (error) {
    await remove()
    throw error
  }
}

function allDamage(sample: SampleContents): Damage[] {
  return [
    ...objectDamage(sample),
    ...headDamage(),
    ...entryDamage(sample),
    ...legacyDamage(sample),
    ...rollbacks(),
    ...forgeries(),
    ...ledgerFileDamage(),
  ]
}

function bind({ apply, ...mutation }: Damage, sample: SampleContents): Mutation {
  return {
    ...mutation,
    apply: async (folder) => apply({ sample, folder, ...pathsIn(folder) }),
  }
}

function pathsIn(folder: string): { ledgerPath: string; objectsPath: string } {
  return { ledgerPath: join(folder, 'ledger.db'), objectsPath: join(folder, 'objects') }
}

async function fill(folder: string): Promise<SampleContents> {
  const { ledgerPath, objectsPath } = pathsIn(folder)
  mkdirSync(objectsPath, { recursive: true })
  const store = database({
    location: { url: pathToFileURL(ledgerPath).href, authToken: null },
    store: 'ledger',
    migrationsFolder: migrationsOf('ledger'),
    nativeBusyMs: 1_000,
    retryMs: 1_000,
  })
  try {
    return await write(libsqlLedger(store), fileObjects(objectsPath), () => readFileSync(ledgerPath))
  } finally {
    store.close()
  }
}

async function write(
  ledger: Ledger,
  archive: Objects,
  ledgerFile: () => Uint8Array,
): Promise<SampleContents> {
  const own = ['2026-01-02', '2026-01-05', '2026-01-06', '2026-01-07'].map((day) =>
    ownPublication(day, `title of ${day}`),
  )
  const older = [
    ...LEGACY_DAYS.map((day) => ({ ledger: 'v1' as const, ...olderPublication(1, day) })),
    ...IMPORTED_DAYS.map((day) => ({ ledger: 'versioned' as const, ...olderPublication(2, day) })),
  ]
  for (const { manifest, bytes } of [...older, ...own]) await archive.put(manifest.sha256, bytes)
  const token = await leaseOf(ledger)
  const listed = older.map((each, index) => ({ ...each, line: index + 1, file: 'sample' }))
  const { rows, heads, legacy } = await found(ledger, archive, planFounding(listed), token)
  const olderLedgers = new Map<number, Uint8Array>()
  for (const content of ownEntries(own)) {
    const last = rows.at(-1)
    const row = sealEntry(content, rows.length + 1, timeOf(content), last?.leaf ?? GENESIS_LEAF)
    const refused = await ledger.append(row, { token, clock: () => row.recordedAt, withinMs: 10_000 })
    if (refused !== null) throw new Error(`the sample's entry ${row.seq} was refused: ${refused}`)
    rows.push(row)
    heads.push(await putHead(archive, row))
    if (row.seq >= KEPT_AFTER) olderLedgers.set(row.seq, ledgerFile())
  }
  const publications = new Map([...older, ...own].map((each) => [each.manifest.publicationId, each]))
  return { rows, legacy, publications, heads, olderLedgers }
}

async function leaseOf(ledger: Ledger): Promise<string> {
  const grant = await ledger.takeLease(
    { name: 'the self-test', process: null },
    0,
    1_000 * 365 * DAY_MS,
    () => false,
  )
  if (!grant.granted) throw new Error(`the sample's lease is held by ${grant.heldBy}`)
  return grant.token
}

async function found(
  ledger: Ledger,
  archive: Objects,
  founding: Founding,
  token: string,
): Promise<Pick<SampleContents, 'legacy'> & { rows: LedgerRow[]; heads: Head[] }> {
  const guard = { token, now: FOUNDED_AT }
  const last = founding.rows.at(-1)
  if (!last) throw new Error('the sample imports nothing')
  const mark = { seq: last.seq, leaf: last.leaf, beganAt: FOUNDED_AT }
  const seal = sealFounding(founding, FOUNDED_AT)
  const refused = (await ledger.beginFounding(mark, guard)) ?? (await ledger.found(founding, seal, guard))
  if (refused !== null) throw new Error(`the sample's founding was refused: ${refused}`)
  const heads = [await putHead(archive, last), await putHead(archive, seal)]
  return { legacy: founding.legacy, rows: [...founding.rows, seal], heads }
}

function ownEntries(own: readonly Publication[]): EntryContent[] {
  const [first, ...others] = own.map(({ manifest }) => ({ kind: 'publication' as const, manifest }))
  if (!first) throw new Error('the sample publishes nothing')
  return [
    first,
    { kind: 'gap', asOfDay: '2026-01-03', reason: 'missed', attempts: 0 },
    { kind: 'gap', asOfDay: '2026-01-04', reason: 'attempts_spent', attempts: 3 },
    ...others,
  ]
}

function timeOf(content: EntryContent): Instant {
  if (content.kind === 'publication') return content.manifest.publishedAt
  return publishedAtOf(content.kind === 'gap' ? content.asOfDay : '2026-01-01')
}

async function putHead(archive: Objects, { seq, leaf, recordedAt }: LedgerRow): Promise<Head> {
  const head = { seq, leaf, time: recordedAt + 5 }
  await archive.putHead(head)
  return head
}
