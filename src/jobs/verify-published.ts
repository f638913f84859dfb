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

/** Findings after which a host is not audited further: what it is, is plain, and each of them takes memory. */
const FINDINGS_MAX = 1_000

/** Questions in a row that may go without an answer before the host counts as gone. */
const UNANSWERED_MAX = 5

export interface PublishedAuditPorts {
  published: PublicHost['history']
  /** The auditor's own ledgers, when there are any. */
  ledger: LedgerContents | null
  clock: Clock
  onProgress: (done: number, total: number) => void
  /** Something a person should know that is no finding. */
  onNote: (note: string) => void
}

export interface PublishedAuditOptions {
  /** A head kept from before. */
  expectedHead: Reference['expectedHead']
  /** Which of the publications are asked for; the ledger is proved whole in any case. */
  chosen: (manifests: readonly Manifest[]) => readonly Manifest[]
  /** Publications asked for at a time. */
  jobs: number
  signal: AbortSignal
}

interface Run {
  ports: PublishedAuditPorts
  options: PublishedAuditOptions
  findings: Finding[]
  /** Bodies that were fetched, and their bytes together. */
  objects: number
  bytes: number
}

/**
 * Audits another host by its public answers (docs/auditing.md): the ledger it publishes, against itself, a head kept from
 * before and our own ledger; then every answer against that ledger. A host that publishes no ledger is held against our
 * own. What was found before the host stopped answering is reported all the same.
 *
 * @throws Refusal `usage` when there is nothing to hold the host's answers against
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
    // The head is asked for first: whatever is published in between only makes the ledger longer.
    const head = await readDocument(published, 'head', signal)
    const ledger = await readDocument(published, 'ledger', signal)
    const rounds: Round[] = []
    if (ledger.bytes === null) {
      // Our own ledger stands in for one that the host does not publish.
      audit = standInFor(ledger, published.base, { own, expectedHead })
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
          `the archive in the data folder shares no entry and no publication with ${published.base}: the host was audited alone`,
        )
      // Our own ledger may be an older copy of theirs; theirs must list whatever they answer with.
      rounds.push(() => ({ questions: [queryAboutEnd(audit.timeline, startedAt)], findings: [] }))
    }
    addFindings(run, audit.findings)
    // Each publication is asked for at its own time and a millisecond before and after; the end of the ledger last.
    const some = new Set(chosen(audit.timeline.map(({ manifest }) => manifest)))
    const items = audit.timeline.filter(({ manifest }) => some.has(manifest))
    rounds.unshift(...items.map((item) => () => queriesAbout(item, audit.timeline, startedAt)))
    await askAll(run, rounds)
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

/** The texts a host publishes, by what asks for them. */
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
  const answer = await published[name](signal)
  const document = publishedDocument(path, answer)
  if (document === null) {
    const said = answer.error === null ? '' : ` ${answer.error}`
    throw unavailable(
      `the host ${published.base} answered ${answer.status}${said} for ${path}; run the audit again when it answers`,
    )
  }
  if (document.bytes && hasTooManyLines(document.bytes))
    throw unavailable(
      `the host ${published.base} sent more than ${LINES_MAX} lines for ${path}, more than a ledger has`,
    )
  return document
}

function unavailable(why: string): Refusal<PublishedRefusal> {
  return new Refusal('source_unavailable', why)
}

function standInFor(
  { findings }: PublishedDocument,
  base: string,
  { own, expectedHead }: Reference,
): LedgerAudit {
  if (own === null && findings.length === 0)
    throw new Refusal(
      'usage',
      `the host ${base} publishes no ledger (404 for ${PUBLISHED_LEDGER}), and there is none in the data folder to hold its answers against: name the data folder of a copy of its archive with --data-dir`,
    )
  const audit = own ? auditLedger(own, null, expectedHead) : NOTHING_READ
  return { ...audit, findings: [...findings, ...audit.findings] }
}

/** @throws Refusal `source_unavailable` when these are more than are reported of one host */
function addFindings(run: Run, findings: readonly Finding[]): void {
  const room = FINDINGS_MAX - run.findings.length
  run.findings.push(...findings.slice(0, room))
  if (findings.length > room) throw tooManyFindings()
}

function tooManyFindings(): Refusal<PublishedRefusal> {
  return unavailable(`the host has more than ${FINDINGS_MAX} findings; the rest of it was not audited`)
}

/** What to ask about one publication, made when its turn comes. */
type Round = () => { questions: readonly SelectionQuery[]; findings: readonly Finding[] }

/** Asks every question and adds to the run what the answers say, however far it came. */
async function askAll(run: Run, rounds: readonly Round[]): Promise<void> {
  const { onProgress } = run.ports
  const { jobs, signal } = run.options
  /** By round, so that the report has them in the order of the ledger. */
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
      const { questions, findings } = round()
      add(index, findings)
      for (const question of questions) add(index, await ask(run, question, state, until))
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
    const room = FINDINGS_MAX - run.findings.length
    run.findings.push(...distinct(found.flat()).slice(0, room))
  }
}

/** A publication that cannot be had is one finding, however often it was asked for. */
function distinct(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((one) => [JSON.stringify(one), one])).values()]
}

/**
 * What one answer shows. A question without an answer is a finding.
 *
 * @throws when too many questions in a row go without one
 */
async function ask(
  run: Run,
  question: SelectionQuery,
  state: { unansweredInARow: number },
  signal: AbortSignal,
): Promise<Finding[]> {
  signal.throwIfAborted()
  try {
    const answer = await run.ports.published.at(question.at, question.held, signal)
    state.unansweredInARow = 0
    if (answer.status === 200) run.objects += 1
    run.bytes += answer.seen.byteSize
    return examineResponse(question, answer)
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof Refusal) || error.code !== 'source_unavailable') throw error
    state.unansweredInARow += 1
    if (state.unansweredInARow >= UNANSWERED_MAX) throw error
    return [withoutResponse(question, error.detail ?? error.code)]
  }
}
