import type { PublishedHistory } from '../../domain/ports.ts'
import { OBJECT_MAX_BYTES, Refusal } from '../../domain/refusal.ts'
import type { Finding } from '../../domain/year/finding.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
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
import type { ArchiveReader } from './audit.ts'
import { readHostLedger } from './host-ledger.ts'
import type { HostCheck, HostLedgerPorts, HostRun } from './host-ledger.ts'

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
      if (!(error instanceof Refusal) || error.code !== 'source_unavailable') throw error
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
