import { areSameBytes } from '../../domain/digest.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Clock } from '../../domain/ports.ts'
import type { PublishedHistory } from '../../domain/year/ports.ts'
import { auditLedger } from '../../domain/year/check.ts'
import type { HistoryRefusal } from '../../domain/year/history/history.ts'
import type { LedgerAudit } from '../../domain/year/check.ts'
import { READ_ERROR, finding, isSound } from '../../domain/year/finding.ts'
import type { Finding } from '../../domain/year/finding.ts'
import type { AuditedContents } from '../../domain/year/ledger.ts'
import { auditTiles, tileFinding } from '../../domain/year/log/check-log.ts'
import type { PublishedTile, TilesAudit } from '../../domain/year/log/check-log.ts'
import { entryCount } from '../../domain/year/log/log-proof.ts'
import type { MerkleTree } from '../../domain/year/log/merkle-tree.ts'
import {
  STATIC_HEADERS,
  STATIC_INDEX,
  STATIC_LEGACY_LEDGER,
  staticTilePath,
  staticTiles,
} from '../../domain/year/log/static-layout.ts'
import { entriesOf, tileBytes, tilePath, tilesOfSize } from '../../domain/year/log/tiles.ts'
import type { Tile } from '../../domain/year/log/tiles.ts'
import {
  auditPublishedLedger,
  hasTooManyLines,
  isOvertaken,
  ledgerTextOf,
  linesOf,
  LINES_MAX,
  PUBLISHED_HEAD,
  PUBLISHED_LEDGER,
  PUBLISHED_LEGACY_LEDGER,
  publishedDocument,
  auditIndex,
  auditLegacyFile,
} from '../../domain/year/published-ledger.ts'
import type { PublishedDocument, PublishedResponse, Reference } from '../../domain/year/published-ledger.ts'
import { concurrently } from '../concurrently.ts'
import { NOTHING_READ } from './audit.ts'
import type { AuditOptions, Report } from './audit.ts'
import {
  foreignHost,
  isWebPage,
  mergeNote,
  ownLog,
  readHostNote,
  unavailable,
  unexpectedResponse,
} from './host-log.ts'
import type { HostLogPorts, HostNote, LogReport } from './host-log.ts'

export interface HostLedgerPorts extends HostLogPorts {
  published: PublishedHistory
  clock: Clock
}

/** One request, and the rule for its response. */
export interface HostCheck {
  send(signal: AbortSignal): Promise<PublishedResponse>
  examine(response: PublishedResponse): Finding[]
  /** The findings if there is no response. */
  withoutResponse(reason: string): Finding[]
}

export interface HostRun extends Pick<AuditOptions, 'jobs' | 'signal'> {
  /** Receives every finding. */
  report: Report
  /** The findings so far. */
  findings: Finding[]
  /** Sends a request and examines the response. A missing response is a finding. */
  send: (check: HostCheck, report: Report) => Promise<void>
}

export interface HostLedger {
  audit: LedgerAudit
  /** The ledger as it was read; null if the host has none that can be read. */
  contents: AuditedContents | null
  /** True if the host only serves files: it has a signed log and no API. */
  isStatic: boolean
  comparedWith: 'own' | 'none'
  /** The signed log; null if the host has none, or one that is not valid. */
  log: LogReport | null
}

const NO_LEDGER: HostLedger = {
  audit: NOTHING_READ,
  contents: null,
  isStatic: false,
  comparedWith: 'none',
  log: null,
}

/** Longest ledger or index that is read, in bytes: it has one entry of about 400 bytes a day. */
const FILE_MAX_BYTES = 16 * 1024 * 1024

/** Longest head that is read, in bytes: one short line. */
const HEAD_MAX_BYTES = 1024

/**
 * Reads the signed log and the ledger of a host and audits them: against each other, the trusted policy, the newest
 * checkpoint seen earlier, a head kept earlier and the own ledger. The own ledger replaces one that the host does not
 * publish.
 *
 * @throws Refusal `usage` without a ledger to compare the host with
 */
export async function readHostLedger(
  ports: HostLedgerPorts,
  reference: Reference,
  run: HostRun,
): Promise<HostLedger> {
  const { published } = ports
  const { signal } = run
  // The checkpoint and the head are requested first: a concurrent publication only makes the ledger longer.
  const signed = await readHostNote(ports, signal)
  run.report(signed?.findings ?? [])
  const note = signed?.note ?? null
  const head = await readDocument(published, PUBLISHED_HEAD, signal, HEAD_MAX_BYTES)
  const ledger = await readDocument(published, PUBLISHED_LEDGER, signal)
  const isStatic = signed !== null && ledger.bytes === null && ledger.findings.length === 0
  if (isStatic) return readStaticLedger(ports, note, reference, run)
  run.report(ledger.findings)
  if (ledger.bytes === null) {
    if (ledger.findings.length === 0) await requireHistory(ports, signal)
    const audit = auditOwnLedger(ledger, published.base, reference)
    run.report(audit.findings)
    return { ...NO_LEDGER, audit, comparedWith: reference.own ? 'own' : 'none' }
  }
  const legacy = await readDocument(published, PUBLISHED_LEGACY_LEDGER, signal)
  run.report(legacy.findings)
  const laterHead = isOvertaken(head.bytes, ledger.bytes)
    ? await readDocument(published, PUBLISHED_HEAD, signal, HEAD_MAX_BYTES)
    : null
  const lines = { path: PUBLISHED_LEDGER.slice(1), lines: linesOf(ledger.bytes).lines }
  const tiles = note && (await auditHostTiles(ports, note, lines, signal))
  const texts = { ledger: ledger.bytes, legacy: legacy.bytes, head, laterHead }
  return auditTexts(ports, texts, { note, tiles, isStatic }, reference, run)
}

/** Reads the ledger of a static host: the entries of the signed log. */
async function readStaticLedger(
  ports: HostLedgerPorts,
  note: HostNote | null,
  reference: Reference,
  run: HostRun,
): Promise<HostLedger> {
  const isStatic = true
  // Without a valid checkpoint nothing tells how many entries there are.
  if (note === null) return { ...NO_LEDGER, isStatic }
  const tiles = await auditHostTiles(ports, note, null, run.signal)
  const texts = {
    ledger: ledgerTextOf(tiles.entries),
    legacy: await readFile(ports, STATIC_LEGACY_LEDGER, run.signal),
    head: null,
    laterHead: null,
  }
  const read = await auditTexts(ports, texts, { note, tiles, isStatic }, reference, run)
  if (tiles.tree !== null && tiles.findings.length === 0)
    await auditOlderTiles(ports, tiles.tree, tiles.entries, run)
  ports.onNote(
    `${STATIC_HEADERS}, pages and feeds of ${ports.published.base} are not signed and were not checked`,
  )
  if (read.contents === null) return read
  run.report(auditLegacyFile(read.contents, texts.legacy))
  const indexBytes = await readFile(ports, STATIC_INDEX, run.signal)
  // An index of a damaged ledger proves nothing.
  if (!isSound(run.findings)) return read
  const { findings, later } = auditIndex(read.contents, indexBytes)
  run.report(findings)
  if (later > 0)
    ports.onNote(
      `${STATIC_INDEX} lists ${entryCount(later)} beyond the checkpoint of ${ports.published.base}`,
    )
  return read
}

/** @returns null if the host does not have the file */
async function readFile(
  { published }: HostLedgerPorts,
  path: string,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const response = await published.file(`/${path}`, FILE_MAX_BYTES, signal)
  if (response.is === 'absent') return null
  if (response.is !== 'text') throw unexpectedResponse(published.base, path, response)
  const { bytes } = response
  if (hasTooManyLines(bytes))
    throw unavailable(`the host ${published.base} sent more than an archive can have for ${path}`)
  return bytes
}

async function auditTexts(
  ports: HostLedgerPorts,
  texts: Parameters<typeof auditPublishedLedger>[0],
  { note, tiles, isStatic }: { note: HostNote | null; tiles: TilesAudit | null; isStatic: boolean },
  reference: Reference,
  run: HostRun,
): Promise<HostLedger> {
  run.report(tiles?.findings ?? [])
  const { isOwnUnrelated, contents, ...audit } = auditPublishedLedger(texts, reference)
  run.report(audit.findings)
  if (isOwnUnrelated)
    ports.onNote(
      `the archive in the data folder has no entry and no publication in common with ${ports.published.base}; the host was not compared with it`,
    )
  const comparedWith = reference.own === null || isOwnUnrelated ? 'none' : 'own'
  const ledger = { ...NO_LEDGER, audit, contents, isStatic, comparedWith } as const
  if (note === null || tiles === null) return ledger
  const own = ownLog(reference, note.policy)
  const { findings, report } = await mergeNote(ports, note, tiles.tree, isSound(run.findings), own)
  run.report(findings)
  return { ...ledger, log: report }
}

async function readDocument(
  published: PublishedHistory,
  path: string,
  signal: AbortSignal,
  maxBytes = FILE_MAX_BYTES,
): Promise<PublishedDocument> {
  const document = publishedDocument(path, await published.file(path, maxBytes, signal))
  if ('description' in document) throw unexpectedResponse(published.base, path, document)
  if (document.bytes && isWebPage(new TextDecoder().decode(document.bytes.subarray(0, 1_024))))
    throw unavailable(
      `the host ${published.base} sent a web page for ${path}; it must answer 404 for a file that it does not have`,
    )
  if (document.bytes && hasTooManyLines(document.bytes))
    throw unavailable(
      `the host ${published.base} sent more than ${LINES_MAX} lines for ${path}, more than a ledger can have`,
    )
  return document
}

/** @throws Refusal `usage` for a host without the interface of the history */
async function requireHistory({ published, clock }: HostLedgerPorts, signal: AbortSignal): Promise<void> {
  const response = await published.at(clock(), [], signal)
  if (response.is === 'absent' && !response.description.includes(NO_PUBLICATION))
    throw foreignHost(published.base, '/api/feed/history', response.description)
}

/** Refusal of a history that has no publication yet. */
const NO_PUBLICATION: HistoryRefusal = 'year_history_not_found'

function auditOwnLedger(
  { findings }: PublishedDocument,
  base: string,
  { own, expectedHead }: Reference,
): LedgerAudit {
  if (own === null && findings.length === 0)
    throw new Refusal(
      'usage',
      `the host ${base} publishes no ledger (404 for ${PUBLISHED_LEDGER}), and the data folder has none to compare with; set --data-dir to a copy of its archive`,
    )
  return own ? auditLedger(own, null, expectedHead) : NOTHING_READ
}

/** Most bytes of all tiles and bundles of a host together. */
const TILES_MAX_BYTES = 16 * 1024 * 1024

/**
 * Reads all tiles and bundles of a checkpoint and compares them with its root.
 *
 * @param ledger lines of the host's ledger, read after the checkpoint; null if the host has no ledger text
 * @throws Refusal `source_unavailable` if they have more than {@link TILES_MAX_BYTES} together
 */
async function auditHostTiles(
  { published }: HostLogPorts,
  { checkpoint }: HostNote,
  ledger: Parameters<typeof auditTiles>[2],
  signal: AbortSignal,
): Promise<TilesAudit> {
  const files: PublishedTile[] = []
  const unread: Finding[] = []
  let remaining = TILES_MAX_BYTES
  for (const tile of tilesOfSize(checkpoint.size)) {
    const path = staticTilePath(tile)
    const response = await published.file(`/${path}`, remaining, signal)
    if (response.is === 'text') {
      remaining -= response.byteSize
      files.push({ tile, bytes: response.bytes })
    } else if (response.is === 'absent') files.push({ tile, bytes: null })
    else unread.push(unreadable(path, `the host responded with ${response.description}`))
  }
  const audit = auditTiles(checkpoint, files, ledger)
  return { ...audit, findings: [...unread, ...audit.findings] }
}

/** Audits the partial tiles and bundles that an export keeps for readers of older checkpoints. */
async function auditOlderTiles(
  { published }: HostLedgerPorts,
  tree: MerkleTree,
  entries: readonly Uint8Array[],
  { report, send, jobs, signal }: HostRun,
): Promise<void> {
  const current = new Set(tilesOfSize(tree.size).map(tilePath))
  const older = staticTiles(tree.size).filter((tile) => !current.has(tilePath(tile)))
  await concurrently(older, jobs, signal, (tile) => {
    const path = staticTilePath(tile)
    const expected = tileBytes(tree, tile, (bundle) => entriesOf(entries, bundle))
    return send(
      {
        send: (sendSignal) => published.file(`/${path}`, FILE_MAX_BYTES, sendSignal),
        examine: (response) => auditOlderTile(tile, expected, response),
        withoutResponse: (reason) => [unreadable(path, reason)],
      },
      // They are not counted as objects.
      (findings) => report(findings),
    )
  })
}

function auditOlderTile(tile: Tile, expected: Uint8Array, response: PublishedResponse): Finding[] {
  if (response.is === 'text' && areSameBytes(response.bytes, expected)) return []
  if (response.is === 'text') return [tileFinding({ tile, bytes: response.bytes })]
  return response.is === 'absent'
    ? [tileFinding({ tile, bytes: null })]
    : [unreadable(staticTilePath(tile), `the host responded with ${response.description}`)]
}

function unreadable(path: string, reason: string): Finding {
  return finding('object_unreadable', path, null, `${READ_ERROR}${reason}`)
}
