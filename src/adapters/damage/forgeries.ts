import { formatHead } from '../../domain/year/head-file.ts'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { sealLegacy } from '../../domain/year/chain.ts'
import type { LedgerRow, LegacyRow } from '../../domain/year/ledger.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Mutation } from '../../domain/ports.ts'
import {
  consistentForgery,
  damage,
  ENTRY,
  headFile,
  objectFile,
  overwrite,
  publicationAt,
  rowAt,
} from './damage.ts'
import type { Copy, Damage } from './damage.ts'
import { rechained } from './entry-damage.ts'
import { withText } from './publications.ts'
import type { Publication } from './publications.ts'
import { changeLedger, replaceEntries, replaceLegacy } from './raw-ledger.ts'

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
