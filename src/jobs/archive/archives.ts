import type { LedgerAuditor, ObjectsAuditor, PublishedHistory } from '../../domain/year/ports.ts'
import { isDamaged, isRefusal, messageOf, OBJECT_MAX_BYTES } from '../../domain/refusal.ts'
import { auditLedger } from '../../domain/year/check.ts'
import type { AuditedHead, LedgerAudit } from '../../domain/year/check.ts'
import { examineSummary, objectFindings, objectPath } from '../../domain/year/examine.ts'
import type { ObjectOutcome } from '../../domain/year/examine.ts'
import { finding, isReadError } from '../../domain/year/finding.ts'
import type { Finding, FindingCode } from '../../domain/year/finding.ts'
import { parseHead } from '../../domain/year/ledger.ts'
import type { AuditedContents, KeptHead, Manifest } from '../../domain/year/ledger.ts'
import { auditLog, logFilePath } from '../../domain/year/log/check-log.ts'
import type { Checkpoint } from '../../domain/year/log/signed-note.ts'
import { staticObjectPath } from '../../domain/year/log/static-layout.ts'
import {
  examineFile,
  examineResponse,
  fileWithoutResponse,
  queryAboutEnd,
  queriesAbout,
  withoutResponse,
} from '../../domain/year/history/published-response.ts'
import type { SelectionQuery } from '../../domain/year/history/published-response.ts'
import type { PublishedResponse, Reference } from '../../domain/year/published-ledger.ts'
import { concurrently } from '../concurrently.ts'
import { NOTHING_READ } from './audit.ts'
import type { ArchiveReader } from './audit.ts'
import { readHostLedger } from './host-ledger.ts'
import type { HostCheck, HostLedgerPorts, HostRun } from './host-ledger.ts'

/** The stores of an archive as an audit reads them. */
export interface AuditedStores {
  ledger: LedgerAuditor
  objects: ObjectsAuditor
}

export interface OwnArchiveOptions {
  /** A head that was kept earlier, and its file. */
  expectedHead: KeptHead | null
  /** True to prove every payload as a server does, not only the newest. */
  payloads: boolean
  /** The checkpoint that the log key signed last, read before the ledger; null or undefined if no key is set. */
  lastSigned?: Checkpoint | null
}

/**
 * Heads and files of the log that are read at a time. An interrupted audit reads all of them: without them it has no
 * results to report.
 */
const FILES_CONCURRENCY = 16

/** Most reads of the heads while a publisher adds new ones. */
const READINGS_MAX = 5

const NO_LEDGER: AuditedContents = { rows: [], legacy: [], founding: null, unreadable: [] }

/**
 * The own stores (docs/auditing.md): heads, both ledgers, the chain, the selection, the files of the log, the objects and
 * orphans. Damage that makes a whole store unreadable is a finding; another failure of a store ends the audit.
 */
export function ownArchive(stores: AuditedStores, options: OwnArchiveOptions): ArchiveReader {
  const { objects } = stores
  const { payloads, lastSigned = null } = options
  return {
    isOwn: true,
    async read(report) {
      const unlessDamaged = async <T>(
        code: FindingCode,
        path: string,
        read: () => Promise<T>,
      ): Promise<T | null> => {
        try {
          return await read()
        } catch (error) {
          if (!isDamaged(error)) throw error
          report([finding(code, path, null, messageOf(error))])
          return null
        }
      }
      // Listed before the ledger is read, so that concurrent publications are not orphans. Without the list everything
      // else is still audited, and the audit ends as incomplete.
      const [listed] = await Promise.allSettled([
        unlessDamaged('object_unreadable', 'sha256', () => objects.keys('sha256')),
      ])
      // The files are read before the ledger, so that a sound ledger continues every note.
      const files = await unlessDamaged('note_invalid', 'tlog/year', () => objects.logFiles.list())
      const logFiles = await concurrently(files ?? [], FILES_CONCURRENCY, null, (file) =>
        unlessDamaged('note_invalid', logFilePath(file), async () => ({
          file,
          bytes: await objects.logFiles.get(file),
        })),
      )
      const read = await unlessDamaged('row_tampered', 'ledger', () => readLedger(stores, options))
      const ledger = read?.audit ?? NOTHING_READ
      report(ledger.findings)
      // The tree needs every entry.
      if (read?.contents.unreadable.length === 0)
        report(
          auditLog(
            read.contents.rows,
            logFiles.flatMap((file) => file ?? []),
            lastSigned,
          ),
        )
      const newest = ledger.timeline.at(-1)
      return {
        ledger,
        async examine(item, reportItem) {
          const outcome = await examineObject(objects, item.manifest, payloads || item === newest)
          const bytes = outcome.found === 'bytes' ? outcome.byteSize : 0
          reportItem(objectFindings(item.manifest, outcome), { objects: 1, bytes })
        },
        async rest(reportRest) {
          if (listed.status === 'rejected') throw listed.reason
          if (read !== null) reportRest(orphans(listed.value ?? [], ledger))
        },
      }
    },
    close: () => undefined,
  }
}

/** Reads the heads first: a commit in between leaves the ledger one entry ahead, which is sound. */
async function readLedger(
  { ledger, objects }: AuditedStores,
  { expectedHead }: Pick<OwnArchiveOptions, 'expectedHead'>,
): Promise<{ contents: AuditedContents; audit: LedgerAudit }> {
  let heads = await readHeads(objects)
  for (let reading = 1; ; reading += 1) {
    const contents = (await ledger.read()) ?? NO_LEDGER
    const audit = auditLedger(contents, heads, expectedHead)
    if (audit.findings.length === 0 || reading === READINGS_MAX) return { contents, audit }
    const again = await readHeads(objects)
    if (again.at(-1)?.seq === heads.at(-1)?.seq) return { contents, audit }
    heads = again
  }
}

/** Reads every head, ascending. */
export async function readHeads(objects: Pick<ObjectsAuditor, 'keys' | 'headFile'>): Promise<AuditedHead[]> {
  const keys = await objects.keys('heads')
  const heads = await concurrently(keys, FILES_CONCURRENCY, null, async (path): Promise<AuditedHead> => {
    const seq = Number(/^heads\/([1-9]\d{0,14})$/.exec(path)?.[1] ?? 0)
    if (seq === 0) return { path, seq, head: null }
    const read = await objects.headFile(path)
    const head = read.found === 'bytes' ? parseHead(read.bytes) : null
    const audited = { path, seq, head: head?.seq === seq ? head : null }
    const isFailed = read.found === 'something else' && isReadError(read.why)
    return isFailed ? { ...audited, readError: read.why } : audited
  })
  return heads.sort((a, b) => a.seq - b.seq)
}

/** Compares an object with its manifest: the whole text if that is asked for, or if only it can tell. */
async function examineObject(
  objects: ObjectsAuditor,
  manifest: Manifest,
  isProved: boolean,
): Promise<ObjectOutcome> {
  const read = isProved ? null : await objects.summarize(objectPath(manifest.sha256))
  if (read !== null && read.found !== 'bytes') return read
  const problems = read && examineSummary(manifest, read)
  return problems && read ? { found: 'bytes', byteSize: read.byteSize, problems } : objects.prove(manifest)
}

/** Objects without an entry: left by a crash before the commit, or foreign. */
function orphans(keys: readonly string[], { timeline }: LedgerAudit): Finding[] {
  const named = new Set(timeline.map(({ manifest }) => objectPath(manifest.sha256)))
  const unnamed = keys.filter((key) => !named.has(key)).sort()
  return unnamed.map((path) => finding('orphan_object', path, null, null))
}

/**
 * The archive of another host, by its public responses (docs/auditing.md): the ledger and the signed log it publishes,
 * against themselves, the newest checkpoint seen earlier, a head kept earlier and the own ledger; then every response
 * against that ledger, or every file of a static host.
 */
export function hostArchive(ports: HostLedgerPorts, reference: Reference): ArchiveReader {
  const { published, clock } = ports
  const stopped = new AbortController()
  return {
    isOwn: false,
    /** @throws Refusal `usage` without a ledger to compare the host with */
    async read(report, { jobs, signal }) {
      const startedAt = clock()
      const until = AbortSignal.any([signal, stopped.signal])
      const send = checkSender(until, stopped)
      const findings: Finding[] = []
      const { audit, contents, isStatic, comparedWith, log } = await readHostLedger(ports, reference, {
        report(found) {
          findings.push(...found)
          report(found)
        },
        findings,
        send,
        jobs,
        signal: until,
      })
      const { timeline } = audit
      return {
        ledger: audit,
        // Each publication is requested at its own time and a millisecond before and after.
        async examine(item, reportItem) {
          if (isStatic) return send(fileCheck(published, item.manifest), reportItem)
          const about = queriesAbout(item, timeline, startedAt)
          reportItem(about.findings)
          for (const query of about.queries) await send(queryCheck(published, query), reportItem)
        },
        // The own ledger may be an older copy; the host's ledger must list everything it serves.
        async rest(reportRest) {
          if (contents !== null && !isStatic)
            await send(queryCheck(published, queryAboutEnd(timeline, startedAt)), reportRest)
        },
        ofHost: { comparedWith, log },
      }
    },
    close: () => stopped.abort(),
  }
}

function fileCheck(published: PublishedHistory, manifest: Manifest): HostCheck {
  return {
    send: (signal) => published.file(`/${staticObjectPath(manifest.sha256)}`, OBJECT_MAX_BYTES, signal),
    examine: (response) => examineFile(manifest, response),
    withoutResponse: (reason) => fileWithoutResponse(manifest, reason),
  }
}

function queryCheck(published: PublishedHistory, query: SelectionQuery): HostCheck {
  return {
    send: (signal) => published.at(query.at, query.held, signal),
    examine: (response) => examineResponse(query, response),
    withoutResponse: (reason) => [withoutResponse(query, reason)],
  }
}

/** Consecutive requests without a response after which the host counts as unavailable. */
const UNANSWERED_MAX = 5

/** Returns a function that sends a request. It throws after too many consecutive requests without a response. */
function checkSender(signal: AbortSignal, stopped: AbortController): HostRun['send'] {
  let unansweredInARow = 0
  return async (check, report) => {
    signal.throwIfAborted()
    let response: PublishedResponse
    try {
      response = await check.send(signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!isRefusal(error, 'source_unavailable')) throw error
      unansweredInARow += 1
      if (unansweredInARow >= UNANSWERED_MAX) {
        // Other publications are examined at the same time.
        stopped.abort(error)
        throw error
      }
      report(check.withoutResponse(error.detail ?? error.code))
      return
    }
    unansweredInARow = 0
    report(check.examine(response), { objects: response.is === 'text' ? 1 : 0, bytes: response.byteSize })
  }
}
