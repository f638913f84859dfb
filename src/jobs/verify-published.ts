import type { Clock, PublicHost } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { auditLedger } from '../domain/year/check.ts'
import type { LedgerAudit } from '../domain/year/check.ts'
import { isSound } from '../domain/year/finding.ts'
import type { Finding } from '../domain/year/finding.ts'
import type { LedgerContents, Manifest } from '../domain/year/ledger.ts'
import {
  examineResponse,
  queryAboutEnd,
  queriesAbout,
  withoutResponse,
} from '../domain/year/published-response.ts'
import type { SelectionQuery } from '../domain/year/published-response.ts'
import {
  auditPublishedLedger,
  hasTooManyLines,
  isOvertaken,
  LINES_MAX,
  PUBLISHED_HEAD,
  PUBLISHED_LEDGER,
  PUBLISHED_LEGACY_LEDGER,
  publishedDocument,
} from '../domain/year/published-ledger.ts'
import type { PublishedDocument, PublishedRefusal, Reference } from '../domain/year/published-ledger.ts'
import { NOTHING_READ } from './verify-archive.ts'
import type { VerifyResult } from './verify-archive.ts'

/** Most findings of one host; more of them only use memory. */
const FINDINGS_MAX = 1_000

/** Consecutive queries without a response after which the host counts as unavailable. */
const UNANSWERED_MAX = 5

export interface PublishedAuditPorts {
  published: PublicHost['history']
  /** The auditor's own ledgers, or null. */
  ledger: LedgerContents | null
  clock: Clock
  onProgress: (done: number, total: number) => void
  /** Reports a note that is not a finding. */
  onNote: (note: string) => void
}

export interface PublishedAuditOptions {
  /** A head that was kept earlier. */
  expectedHead: Reference['expectedHead']
  /** Selects the publications to query; the ledger is always proved completely. */
  chosen: (manifests: readonly Manifest[]) => readonly Manifest[]
  /** Concurrent publications. */
  jobs: number
  signal: AbortSignal
}

interface Run {
  ports: PublishedAuditPorts
  options: PublishedAuditOptions
  findings: Finding[]
  /** Number of fetched bodies, and their total bytes. */
  objects: number
  bytes: number
}

/**
 * Audits another host by its public responses (docs/auditing.md): the ledger it publishes, against itself, a head kept
 * earlier and the own ledger; then every response against that ledger. The own ledger replaces one that the host does
 * not publish. Findings from before a host became unavailable are still reported.
 *
 * @throws Refusal `usage` without a ledger to compare the host with
 */
export async function verifyPublished(
  ports: PublishedAuditPorts,
  options: PublishedAuditOptions,
): Promise<VerifyResult> {
  const { published, ledger: own, clock, onNote } = ports
  const { expectedHead, chosen, signal } = options
  const startedAt = clock()
  const run: Run = { ports, options, findings: [], objects: 0, bytes: 0 }
  let audit = NOTHING_READ
  let comparedWith: 'own' | 'none' = 'none'
  let cause: unknown = null
  try {
    // The head is requested first: a concurrent publication only makes the ledger longer.
    const head = await readDocument(published, 'head', signal)
    const ledger = await readDocument(published, 'ledger', signal)
    const rounds: QueryRound[] = []
    if (ledger.bytes === null) {
      // The own ledger replaces one that the host does not publish.
      audit = auditOwnLedger(ledger, published.base, { own, expectedHead })
      comparedWith = own ? 'own' : 'none'
    } else {
      const legacy = await readDocument(published, 'legacyLedger', signal)
      const laterHead = isOvertaken(head.bytes, ledger.bytes)
        ? await readDocument(published, 'head', signal)
        : null
      const texts = { ledger: ledger.bytes, legacy: legacy.bytes, head, laterHead }
      const { isOwnUnrelated, ...theirs } = auditPublishedLedger(texts, { own, expectedHead })
      audit = { ...theirs, findings: [...ledger.findings, ...legacy.findings, ...theirs.findings] }
      comparedWith = own === null || isOwnUnrelated ? 'none' : 'own'
      if (isOwnUnrelated)
        onNote(
          `the archive in the data folder has no entry and no publication in common with ${published.base}; the host was not compared with it`,
        )
      // The own ledger may be an older copy; the host's ledger must list everything it serves.
      rounds.push(() => ({ queries: [queryAboutEnd(audit.timeline, startedAt)], findings: [] }))
    }
    addFindings(run, audit.findings)
    // Each publication is requested at its own time and a millisecond before and after; the end of the ledger last.
    const chosenManifests = new Set(chosen(audit.timeline.map(({ manifest }) => manifest)))
    const items = audit.timeline.filter(({ manifest }) => chosenManifests.has(manifest))
    rounds.unshift(...items.map((item) => () => queriesAbout(item, audit.timeline, startedAt)))
    await sendAll(run, rounds)
  } catch (error) {
    if (error instanceof Refusal && error.code === 'usage') throw error
    cause = error
  }
  const { findings, objects, bytes } = run
  const complete = cause === null
  const ok = complete && isSound(findings)
  const [publications, durationMs] = [audit.timeline.length, clock() - startedAt]
  const { gaps, head } = audit
  const counts = { publications, objects, bytes, gaps, head, comparedWith }
  return { report: { ok, complete, findings, ...counts, durationMs }, cause }
}

/** Paths of the published texts, by method of the port. */
const DOCUMENTS = {
  head: PUBLISHED_HEAD,
  ledger: PUBLISHED_LEDGER,
  legacyLedger: PUBLISHED_LEGACY_LEDGER,
} as const

async function readDocument(
  published: PublicHost['history'],
  name: keyof typeof DOCUMENTS,
  signal: AbortSignal,
): Promise<PublishedDocument> {
  const path = DOCUMENTS[name]
  const response = await published[name](signal)
  const document = publishedDocument(path, response)
  if (document === null) {
    const errorText = response.error === null ? '' : ` ${response.error}`
    throw unavailable(
      `the host ${published.base} responded with ${response.status}${errorText} for ${path}; run the audit again later`,
    )
  }
  if (document.bytes && hasTooManyLines(document.bytes))
    throw unavailable(
      `the host ${published.base} sent more than ${LINES_MAX} lines for ${path}, more than a ledger can have`,
    )
  return document
}

function unavailable(reason: string): Refusal<PublishedRefusal> {
  return new Refusal('source_unavailable', reason)
}

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
  const audit = own ? auditLedger(own, null, expectedHead) : NOTHING_READ
  return { ...audit, findings: [...findings, ...audit.findings] }
}

/** @throws Refusal `source_unavailable` when the host has too many findings */
function addFindings(run: Run, findings: readonly Finding[]): void {
  const remaining = FINDINGS_MAX - run.findings.length
  run.findings.push(...findings.slice(0, remaining))
  if (findings.length > remaining) throw tooManyFindings()
}

function tooManyFindings(): Refusal<PublishedRefusal> {
  return unavailable(`the host has more than ${FINDINGS_MAX} findings; the rest was not audited`)
}

/** Creates the queries about one publication. */
type QueryRound = () => { queries: readonly SelectionQuery[]; findings: readonly Finding[] }

/** Sends every query and adds the findings to the run, also after an error. */
async function sendAll(run: Run, rounds: readonly QueryRound[]): Promise<void> {
  const { onProgress } = run.ports
  const { jobs, signal } = run.options
  /** Findings by round, which keeps the order of the ledger. */
  const found = rounds.map((): Finding[] => [])
  const stopped = new AbortController()
  const until = AbortSignal.any([signal, stopped.signal])
  const state = { unansweredInARow: 0, findings: 0, done: 0 }
  const waiting = rounds.entries()
  const add = (index: number, findings: readonly Finding[]): void => {
    found[index]?.push(...findings)
    state.findings += findings.length
    if (state.findings > FINDINGS_MAX) throw tooManyFindings()
  }
  const work = async (): Promise<void> => {
    for (const [index, round] of waiting) {
      const { queries, findings } = round()
      add(index, findings)
      for (const query of queries) add(index, await sendQuery(run, query, state, until))
      state.done += 1
      onProgress(state.done, rounds.length)
    }
  }
  signal.throwIfAborted()
  try {
    await Promise.all(Array.from({ length: jobs }, work))
  } catch (error) {
    stopped.abort(error)
    throw error
  } finally {
    const remaining = FINDINGS_MAX - run.findings.length
    run.findings.push(...distinct(found.flat()).slice(0, remaining))
  }
}

/** A missing publication is one finding, although several queries find it. */
function distinct(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((one) => [JSON.stringify(one), one])).values()]
}

/**
 * Sends one query and examines the response. A missing response is a finding.
 *
 * @throws after too many consecutive queries without a response
 */
async function sendQuery(
  run: Run,
  query: SelectionQuery,
  state: { unansweredInARow: number },
  signal: AbortSignal,
): Promise<Finding[]> {
  signal.throwIfAborted()
  try {
    const response = await run.ports.published.at(query.at, query.held, signal)
    state.unansweredInARow = 0
    if (response.status === 200) run.objects += 1
    run.bytes += response.summary.byteSize
    return examineResponse(query, response)
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof Refusal) || error.code !== 'source_unavailable') throw error
    state.unansweredInARow += 1
    if (state.unansweredInARow >= UNANSWERED_MAX) throw error
    return [withoutResponse(query, error.detail ?? error.code)]
  }
}
