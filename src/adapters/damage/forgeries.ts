import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { getTableColumns } from 'drizzle-orm'
import type { Mutation } from '../../domain/year/finding.ts'
import { formatInstant } from '../../domain/time.ts'
import { sealLegacy } from '../../domain/year/chain.ts'
import { formatHead } from '../../domain/year/ledger.ts'
import type { LedgerRow, LegacyRow } from '../../domain/year/ledger.ts'
import { legacyPublications } from '../ledger/schema.ts'
import {
  ENTRY,
  consistentForgery,
  damage,
  headFile,
  objectFile,
  overwrite,
  publicationAt,
  rowAt,
  withText,
} from './damage.ts'
import type { Copy, Damage, Publication, SampleContents } from './damage.ts'
import {
  CELL_DAMAGE,
  changeLedger,
  editedCell,
  rechained,
  replaceEntries,
  replaceLegacy,
  untyped,
} from './ledger-damage.ts'

/** Both stores in the hands of one forger, who makes chain, seal and heads anew after every change. */
export function forgeries(): Damage[] {
  return [...betrayedByObjects(), ...betrayedByRules(), ...betrayedByKeptHead()]
}

/** Forgeries that no longer fit the envelopes, which the forger left as they were. */
function betrayedByObjects(): Damage[] {
  return [
    forged('an entry names another publication’s object', ['identity_mismatch'], ({ rows }, copy) => {
      const { sha256, byteSize } = publicationAt(copy, ENTRY.beforePrevious).manifest
      return { rows: changed(rows, ENTRY.previous, { sha256, byteSize }) }
    }),
    forged('an entry back-dated', ['identity_mismatch'], ({ rows }) => {
      const publishedAt = (rowAt(rows, ENTRY.newest).publishedAt ?? 0) - 1
      return { rows: changed(rows, ENTRY.newest, { publishedAt }) }
    }),
    forged('an entry with a time that is no date', ['identity_mismatch'], ({ rows }) => ({
      rows: changed(rows, ENTRY.newest, { publishedAt: 8_640_000_000_000_001 }),
    })),
    forged('an entry of another day', ['identity_mismatch'], ({ rows }) => ({
      rows: changed(rows, ENTRY.newest, { asOfDay: '2026-01-08' }),
    })),
    forged('an entry of another size', ['size_mismatch'], ({ rows }) => ({
      rows: changed(rows, ENTRY.newest, { byteSize: 1 }),
    })),
    forged('a legacy row of another day', ['identity_mismatch'], ({ legacy }) => ({
      legacy: legacy.map((row) => (row.position === 2 ? { ...row, asOfDay: '2025-11-11' } : row)),
    })),
    forged('a legacy row of another size', ['size_mismatch'], ({ legacy }) => ({
      legacy: legacy.map((row) => (row.position === 2 ? { ...row, byteSize: 1 } : row)),
    })),
    forgedObject('an object that is no JSON', ['envelope_invalid'], ({ text }) => text.slice(1)),
    forgedObject('an object whose titles nobody verified', ['envelope_invalid'], ({ text }) =>
      text.replace('"event_title_verified":true', '"event_title_verified":false'),
    ),
    forgedObject('an object of another version', ['identity_mismatch'], ({ text }) =>
      text.replace('"schemaVersion":3', '"schemaVersion":2'),
    ),
  ]
}

/** Forgeries that no ledger could have come to by its own rules. */
function betrayedByRules(): Damage[] {
  return [
    forged('a path in a digest column', ['row_tampered'], ({ rows }) => ({
      rows: changed(rows, ENTRY.newest, { sha256: '../../etc/passwd' }),
    })),
    forged('a digest in upper case', ['row_tampered'], ({ rows }) => ({
      rows: changed(rows, ENTRY.newest, { sha256: rowAt(rows, ENTRY.newest).sha256?.toUpperCase() ?? null }),
    })),
    forged('an entry of an unknown kind', ['row_tampered'], ({ rows }) => ({
      rows: changed(rows, ENTRY.missedGap, { kind: 'hole' }),
    })),
    forged('a gap without a reason', ['row_tampered'], ({ rows }) => ({
      rows: changed(rows, ENTRY.missedGap, { reason: null }),
    })),
    forged('a gap on a day that is none', ['row_tampered'], ({ rows }) => ({
      rows: changed(rows, ENTRY.missedGap, { asOfDay: '2026-02-30' }),
    })),
    forged('an entry published before the one before it', ['chain_broken'], ({ rows }) => ({
      rows: changed(rows, ENTRY.newest, { publishedAt: (rowAt(rows, ENTRY.previous).publishedAt ?? 0) - 1 }),
    })),
    forged('an entry recorded before the one before it', ['chain_broken'], ({ rows }) => ({
      rows: changed(rows, ENTRY.newest, { recordedAt: rowAt(rows, ENTRY.previous).recordedAt - 1 }),
    })),
    forged('the seal taken out', ['row_tampered'], ({ rows }) => ({
      rows: rows.filter(({ kind }) => kind !== 'legacy-seal'),
    })),
    forged('a second seal', ['chain_broken'], ({ rows }) => ({
      rows: [...rows, { ...rowAt(rows, ENTRY.seal), recordedAt: rowAt(rows, ENTRY.newest).recordedAt }],
    })),
  ]
}

/** Archives that hold together in every way, but are not the one they were. */
function betrayedByKeptHead(): Damage[] {
  return [
    keptHeadOnly('a gap taken out', ({ rows }) => ({
      rows: rows.filter(({ seq }) => seq !== ENTRY.spentGap),
    })),
    keptHeadOnly('a gap given another reason', ({ rows }) => ({
      rows: changed(rows, ENTRY.spentGap, { reason: 'missed', attempts: 0 }),
    })),
    keptHeadOnly('a legacy row and its object taken out', ({ legacy }, copy) => {
      const last = copy.sample.publications.get(legacy.at(-1)?.publicationId ?? '')
      if (last) rmSync(objectFile(copy, last))
      return { legacy: legacy.slice(0, -1) }
    }),
    consistentForgery('forger of both stores: the newest publication given other titles', (copy) =>
      forgeObject(copy, ({ text }) => text.replaceAll('title of', 'another of')),
    ),
    consistentForgery('forger of both stores: the newest publication back-dated with its envelope', (copy) =>
      forgeObject(copy, ({ text, publication: { manifest } }) =>
        text.replaceAll(formatInstant(manifest.publishedAt), formatInstant(manifest.publishedAt - 1)),
      ),
    ),
  ]
}

interface Ledgers {
  rows: readonly LedgerRow[]
  legacy: readonly LegacyRow[]
}

type Forge = (ledgers: Ledgers, copy: Copy) => Partial<Ledgers>

function forged(what: string, expects: Mutation['expects'], forge: Forge): Damage {
  return damage(`forger of both stores: ${what}`, expects, (copy) => write(copy, forge(copy.sample, copy)))
}

function keptHeadOnly(what: string, forge: Forge): Damage {
  return consistentForgery(`forger of both stores: ${what}`, (copy) => write(copy, forge(copy.sample, copy)))
}

type ForgeText = (forged: { text: string; publication: Publication }) => string

function forgedObject(what: string, expects: Mutation['expects'], change: ForgeText): Damage {
  return damage(`forger of both stores: ${what}`, expects, (copy) => forgeObject(copy, change))
}

/** The newest publication's object made anew, and everything that names it. */
async function forgeObject(copy: Copy, change: ForgeText): Promise<void> {
  const publication = publicationAt(copy, ENTRY.newest)
  const forgery = withText(publication, (text) => change({ text, publication }))
  const text = new TextDecoder().decode(forgery.bytes)
  const archivedAt = /"archivedAt":"([^"]+)"/.exec(text)?.[1]
  const publishedAt = archivedAt === undefined ? publication.manifest.publishedAt : Date.parse(archivedAt)
  rmSync(objectFile(copy, publication))
  const path = objectFile(copy, forgery)
  mkdirSync(dirname(path), { recursive: true })
  overwrite(path, forgery.bytes)
  const { sha256, byteSize } = forgery.manifest
  await write(copy, {
    rows: changed(copy.sample.rows, ENTRY.newest, { sha256, byteSize, publishedAt, recordedAt: publishedAt }),
  })
}

function changed(rows: readonly LedgerRow[], seq: number, columns: Partial<LedgerRow>): LedgerRow[] {
  return rows.map((row) => (row.seq === seq ? { ...row, ...columns } : row))
}

/** Both ledgers as forged, with seal, chain and heads that fit them. */
async function write(copy: Copy, forgery: Partial<Ledgers>): Promise<void> {
  const legacy = forgery.legacy ?? copy.sample.legacy
  const sealed = sealLegacy(legacy)
  const rows = rechained(
    (forgery.rows ?? copy.sample.rows).map((row) =>
      row.kind === 'legacy-seal' ? { ...row, legacyRows: sealed.rows, legacyDigest: sealed.digest } : row,
    ),
  )
  await changeLedger(copy.ledgerPath, [...replaceEntries(rows), ...replaceLegacy(legacy)])
  for (const { seq, leaf, recordedAt } of rows) {
    if (seq > 1) overwrite(headFile(copy, seq), formatHead({ seq, leaf, time: recordedAt }))
  }
  for (let seq = rows.length + 1; existsSync(headFile(copy, seq)); seq += 1) rmSync(headFile(copy, seq))
}

/** Stores put back to where they once stood, one of them or both. */
export function rollbacks(): Damage[] {
  return [
    damage('roll-back of the ledger file by one entry', ['head_mismatch'], (copy) =>
      rollBackLedger(copy, ENTRY.previous),
    ),
    damage('roll-back of the ledger file by two entries', ['head_mismatch'], (copy) =>
      rollBackLedger(copy, ENTRY.beforePrevious),
    ),
    damage('roll-back of the ledger by deleting its newest entry', ['head_mismatch'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, [`DELETE FROM entries WHERE seq = ${ENTRY.newest}`]),
    ),
    damage('roll-back of the object store by one publication', ['object_missing'], (copy) =>
      rollBackObjects(copy, [ENTRY.newest]),
    ),
    damage('roll-back of the object store by two publications', ['head_mismatch'], (copy) =>
      rollBackObjects(copy, [ENTRY.previous, ENTRY.newest]),
    ),
    consistentForgery('roll-back of both stores by one publication', (copy) => {
      rollBackLedger(copy, ENTRY.previous)
      rollBackObjects(copy, [ENTRY.newest])
    }),
    consistentForgery('roll-back of both stores by two publications', (copy) => {
      rollBackLedger(copy, ENTRY.beforePrevious)
      rollBackObjects(copy, [ENTRY.previous, ENTRY.newest])
    }),
    consistentForgery('both stores emptied', ({ ledgerPath, objectsPath }) => {
      overwrite(ledgerPath, '')
      for (const area of ['sha256', 'heads']) rmSync(`${objectsPath}/${area}`, { recursive: true })
    }),
  ]
}

function rollBackLedger({ ledgerPath, sample }: Copy, seq: number): void {
  const older = sample.olderLedgers.get(seq)
  if (!older) throw new Error(`the sample kept no ledger of entry ${seq}`)
  overwrite(ledgerPath, older)
}

function rollBackObjects(copy: Copy, seqs: readonly number[]): void {
  for (const seq of seqs) {
    rmSync(objectFile(copy, publicationAt(copy, seq)))
    rmSync(headFile(copy, seq))
  }
}

/** Damage to the legacy ledger, which the seal covers row by row. */
export function legacyDamage({ legacy }: SampleContents): Damage[] {
  const [first, middle, last] = legacy
  if (!first || !middle || !last) throw new Error('the sample has too few legacy rows')
  return [
    ...columnEdits(middle),
    ...impossibleCells(),
    legacyRows('the first one deleted', ['row_tampered'], () => [middle, last]),
    legacyRows('the middle one deleted', ['row_tampered'], () => [first, last]),
    legacyRows('the last one deleted', ['row_tampered'], () => [first, middle]),
    legacyRows('all deleted', ['row_tampered'], () => []),
    legacyRows('one inserted', ['row_tampered'], (rows) => [...rows, another(last)]),
    legacyRows('two in each other’s place', ['row_tampered'], () => [
      first,
      { ...last, position: middle.position },
      { ...middle, position: last.position },
    ]),
    legacyRows('one replaced by another', ['row_tampered'], () => [first, middle, another(middle)]),
    legacyRows('one back-dated', ['row_tampered'], () => [
      first,
      middle,
      { ...last, publishedAt: first.publishedAt - 1 },
    ]),
    damage('legacy ledger: its table dropped', ['row_tampered'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, ['DROP TABLE legacy_publications']),
    ),
  ]
}

function columnEdits(row: LegacyRow): Damage[] {
  return Object.entries(getTableColumns(legacyPublications)).map(([property, { name, dataType }]) => {
    const value = editedCell(new Map<string, unknown>(Object.entries(row)).get(property), dataType)
    return damage(`legacy row ${row.position}: ${name} edited`, ['row_tampered'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, [
        `UPDATE legacy_publications SET ${name} = ${value} WHERE position = ${row.position}`,
      ]),
    )
  })
}

function impossibleCells(): Damage[] {
  const cells = [
    ...CELL_DAMAGE.texts.map((cell) => ({ ...cell, column: 'publication_id' })),
    ...CELL_DAMAGE.numbers.map((cell) => ({ ...cell, column: 'published_at' })),
    ...CELL_DAMAGE.digests
      .filter(({ what }) => what !== 'nothing')
      .map((cell) => ({ ...cell, column: 'sha256' })),
  ]
  return cells.map(({ what, column, value, needsUntyped }) =>
    damage(`legacy row 2: ${what} in ${column}`, ['row_tampered'], ({ ledgerPath }) =>
      changeLedger(ledgerPath, [
        ...(needsUntyped ? untyped('legacy_publications') : []),
        `UPDATE legacy_publications SET ${column} = ${value(column)} WHERE position = 2`,
      ]),
    ),
  )
}

function legacyRows(
  what: string,
  expects: Mutation['expects'],
  change: (rows: readonly LegacyRow[]) => readonly LegacyRow[],
): Damage {
  return damage(`legacy ledger: ${what}`, expects, ({ ledgerPath, sample }) =>
    changeLedger(ledgerPath, replaceLegacy(change(sample.legacy))),
  )
}

function another(row: LegacyRow): LegacyRow {
  return { ...row, position: row.position + 1, publicationId: `${row.publicationId}-again` }
}
