import type { Clock, PublicHost } from '../domain/ports.ts'
import { Refusal } from '../domain/refusal.ts'
import { auditLedger } from '../domain/year/audit.ts'
import type { AuditedContents, LedgerAudit } from '../domain/year/audit.ts'
import type { Finding } from '../domain/year/finding.ts'
import { GENESIS_LEAF } from '../domain/year/chain.ts'
import type { Manifest } from '../domain/year/ledger.ts'
import {
  examineAnswer,
  questionAboutEnd,
  questionsAbout,
  unanswered,
} from '../domain/year/published-answer.ts'
import type { Question } from '../domain/year/published-answer.ts'
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
import type {
  PublishedDocument,
  Reference,
  PublishedAnswer,
  PublishedRefusal,
} from '../domain/year/published-ledger.ts'

/** Findings after which a host is not audited further: what it is, is plain, and each of them takes memory. */
const FINDINGS_MAX = 1_000

/** Questions in a row that may go without an answer before the host counts as gone. */
const UNANSWERED_MAX = 5

export interface PublishedAuditPorts {
  published: PublicHost['history']
  /** The auditor's own ledgers, when there are any. */
  ledger: AuditedContents | null
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

/** What an audit of a host's answers found. */
export interface PublishedAuditReport {
  findings: Finding[]
  publications: number
  /** Bodies that were fetched, and their bytes together. */
  objects: number
  bytes: number
  gaps: number
  head: LedgerAudit['head']
  /** The local ledger that the host was held against, or none: the host was audited alone. */
  comparedWith: 'own' | 'none'
}

/** A report, and what ended the audit early, or null. */
export interface PublishedAuditResult {
  report: PublishedAuditReport
  cause: unknown
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
): Promise<PublishedAuditResult> {
  const head = { seq: 0, leaf: GENESIS_LEAF }
  const report: PublishedAuditReport = {
    findings: [],
    publications: 0,
    objects: 0,
    bytes: 0,
    gaps: 0,
    head,
    comparedWith: 'none',
  }
  try {
    const startedAt = ports.clock()
    const { audit, isTheirs, comparedWith } = await auditLedgers(ports, options)
    report.comparedWith = comparedWith
    addFindings(report, audit.findings)
    report.publications = audit.timeline.length
    report.gaps = audit.gaps
    report.head = audit.head
    const chosen = new Set(options.chosen(audit.timeline.map(({ manifest }) => manifest)))
    const rounds: Round[] = audit.timeline
      .filter(({ manifest }) => chosen.has(manifest))
      .map((item) => () => questionsAbout(item, audit.timeline, startedAt))
    // Our own ledger may be an older copy of theirs; theirs must list whatever they answer with.
    if (isTheirs) {
      rounds.push(() => ({ questions: [questionAboutEnd(audit.timeline, startedAt)], findings: [] }))
    }
    await auditAnswers(ports, options, rounds, report)
    return { report, cause: null }
  } catch (cause) {
    if (cause instanceof Refusal && cause.code === 'usage') throw cause
    return { report, cause }
  }
}

/** What to ask about one publication, made when its turn comes. */
type Round = () => { questions: readonly Question[]; findings: readonly Finding[] }

/** @throws Refusal `source_unavailable` when these are more than are reported of one host */
function addFindings(report: PublishedAuditReport, findings: readonly Finding[]): void {
  const room = FINDINGS_MAX - report.findings.length
  report.findings.push(...findings.slice(0, room))
  if (findings.length > room) throw tooManyFindings()
}

function tooManyFindings(): Refusal<PublishedRefusal> {
  return new Refusal<PublishedRefusal>(
    'source_unavailable',
    `the host has more than ${FINDINGS_MAX} findings; the rest of it was not audited`,
  )
}

/** `isTheirs` tells whose ledger the answers are held against. */
async function auditLedgers(
  { published, ledger: own, onNote }: PublishedAuditPorts,
  { expectedHead, signal }: PublishedAuditOptions,
): Promise<{ audit: LedgerAudit; isTheirs: boolean } & Pick<PublishedAuditReport, 'comparedWith'>> {
  const askHead = (): Promise<PublishedDocument> =>
    documentFrom(published, PUBLISHED_HEAD, () => published.head(signal))
  // The head is asked for first: whatever is published in between only makes the ledger longer.
  const head = await askHead()
  const ledger = await documentFrom(published, PUBLISHED_LEDGER, () => published.ledger(signal))
  if (ledger.bytes === null) {
    const reference = { own, expectedHead }
    const audit = withoutTheirLedger(published, ledger.findings, reference)
    return { audit, isTheirs: false, comparedWith: own ? 'own' : 'none' }
  }
  const legacy = await documentFrom(published, PUBLISHED_LEGACY_LEDGER, () => published.legacyLedger(signal))
  const laterHead = isOvertaken(head.bytes, ledger.bytes) ? await askHead() : null
  const texts = { ledger: ledger.bytes, legacy: legacy.bytes, head, laterHead }
  const audit = auditPublishedLedger(texts, { own, expectedHead })
  if (audit.isOwnUnrelated) {
    onNote(
      `the archive in the data folder shares no entry and no publication with ${published.base}: the host was audited alone`,
    )
  }
  const findings = [...ledger.findings, ...legacy.findings, ...audit.findings]
  const comparedWith = own === null || audit.isOwnUnrelated ? 'none' : 'own'
  return { audit: { ...audit, findings }, isTheirs: true, comparedWith }
}

/** Our own ledger stands in for one that the host does not publish. */
function withoutTheirLedger(
  { base }: PublicHost['history'],
  findings: readonly Finding[],
  { own, expectedHead }: Reference,
): LedgerAudit {
  if (own) {
    const audit = auditLedger(own, null, expectedHead)
    return { ...audit, findings: [...findings, ...audit.findings] }
  }
  if (findings.length === 0) {
    throw new Refusal(
      'usage',
      `the host ${base} publishes no ledger (404 for ${PUBLISHED_LEDGER}), and there is none in the data folder to hold its answers against: name the data folder of a copy of its archive with --data-dir`,
    )
  }
  return { findings: [...findings], timeline: [], gaps: 0, head: { seq: 0, leaf: GENESIS_LEAF } }
}

async function documentFrom(
  { base }: PublicHost['history'],
  path: string,
  ask: () => Promise<PublishedAnswer>,
): Promise<PublishedDocument> {
  const answer = await ask()
  const document = publishedDocument(path, answer)
  if (document?.bytes && hasTooManyLines(document.bytes)) {
    throw new Refusal<PublishedRefusal>(
      'source_unavailable',
      `the host ${base} sent more than ${LINES_MAX} lines for ${path}, more than a ledger has`,
    )
  }
  if (document) return document
  const said = answer.error === null ? '' : ` ${answer.error}`
  throw new Refusal<PublishedRefusal>(
    'source_unavailable',
    `the host ${base} answered ${answer.status}${said} for ${path}; run the audit again when it answers`,
  )
}

/** Adds to the report what the answers say, however far it came. */
async function auditAnswers(
  { published, onProgress }: PublishedAuditPorts,
  { jobs, signal }: PublishedAuditOptions,
  rounds: readonly Round[],
  report: PublishedAuditReport,
): Promise<void> {
  /** By round, so that the report has them in the order of the ledger. */
  const findings: Finding[][] = []
  let found = 0
  const add = (index: number, more: readonly Finding[]): void => {
    if (more.length === 0) return
    ;(findings[index] ??= []).push(...more)
    found += more.length
    if (found > FINDINGS_MAX) throw tooManyFindings()
  }
  const stopped = new AbortController()
  const stop = (): void => stopped.abort(signal.reason)
  const ask = patientAsker(published, stopped.signal)
  const waiting = rounds.entries()
  let done = 0

  const work = async (): Promise<void> => {
    for (const [index, round] of waiting) {
      const { questions, findings: unasked } = round()
      add(index, unasked)
      for (const question of questions) {
        const { answer, found: shown } = await ask(question)
        add(index, shown)
        if (answer?.status === 200) report.objects += 1
        report.bytes += answer?.seen.byteSize ?? 0
      }
      done += 1
      onProgress(done, rounds.length)
    }
  }

  signal.throwIfAborted()
  signal.addEventListener('abort', stop, { once: true })
  try {
    await Promise.all(Array.from({ length: jobs }, work))
  } catch (error) {
    stopped.abort(error)
    throw error
  } finally {
    const room = FINDINGS_MAX - report.findings.length
    report.findings.push(...distinct(findings.flat()).slice(0, room))
    signal.removeEventListener('abort', stop)
  }
}

/** A publication that cannot be had is one finding, however often it was asked for. */
function distinct(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((finding) => [JSON.stringify(finding), finding])).values()]
}

/** Asks, and tells a question without an answer as a finding, until too many in a row go without one. */
function patientAsker(
  published: PublicHost['history'],
  signal: AbortSignal,
): (question: Question) => Promise<{ answer: PublishedAnswer | null; found: Finding[] }> {
  let unansweredInARow = 0
  return async (question) => {
    signal.throwIfAborted()
    try {
      const answer = await published.at(question.at, question.held, signal)
      unansweredInARow = 0
      return { answer, found: examineAnswer(question, answer) }
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof Refusal) || error.code !== 'source_unavailable') throw error
      unansweredInARow += 1
      if (unansweredInARow >= UNANSWERED_MAX) throw error
      return { answer: null, found: [unanswered(question, error.detail ?? error.code)] }
    }
  }
}
