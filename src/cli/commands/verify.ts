import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { Refusal, messageOf } from '../../domain/refusal.ts'
import { utf8Text } from '../../domain/text.ts'
import { parseDay } from '../../domain/time.ts'
import { describeFinding, isDamage } from '../../domain/year/finding.ts'
import { parseHead } from '../../domain/year/ledger.ts'
import type { AuditedContents, KeptHead } from '../../domain/year/ledger.ts'
import { newestNoteSize } from '../../domain/year/log/log-history.ts'
import { parsePolicy } from '../../domain/year/log/signed-note.ts'
import type { Checkpoint, VerifierKey } from '../../domain/year/log/signed-note.ts'
import { parseSample } from '../../domain/year/sample.ts'
import { verifyPublication } from '../../domain/year/log/log-proof.ts'
import { audit } from '../../jobs/archive/audit.ts'
import type {
  ArchiveReader,
  AuditOptions,
  AuditProgress,
  VerifyReport,
  VerifyResult,
} from '../../jobs/archive/audit.ts'
import { hostArchive, ownArchive } from '../../jobs/archive/archives.ts'
import type { Container } from '../container.ts'
import type { CommandContext } from '../context.ts'
import { isUnfounded, requireFolders } from '../data-folder.ts'
import { EXIT, describeError, exitCodeOf, exitCodeOfStop } from '../exit-codes.ts'
import { leaveAuditRecord } from '../job-records.ts'
import { flagValue, hostFlag, wholeFlag, readNamedFile } from '../settings/environment.ts'
import { counted, escaped } from '../terminal.ts'
import type { Terminal } from '../terminal.ts'

interface VerifyFlags {
  sample?: string
  since?: string
  expectHead?: string
  url?: string
  policy?: string
  state?: string
  payloads: boolean
  jobs?: string
}

const JOBS_MOST = 64

const SAMPLE_FORM = 'a share above 0% (5%), a size (500M) or a bucket (2/7)'

export async function verifyArchiveCommand(context: CommandContext, flags: VerifyFlags): Promise<number> {
  const { config, container, terminal, signal, cwd } = context
  const options = parseFlags(flags, cwd, signal)
  const base = flags.url === undefined ? null : hostFlag(flags.url)
  const misplaced = (['policy', 'state'] as const).find((name) => base === null && flags[name] !== undefined)
  if (misplaced !== undefined)
    throw new Refusal(
      'usage',
      `--${misplaced} is for the log of another host; add --url or remove --${misplaced}`,
    )
  if (base === null) {
    // An audit in a wrong working directory would look like one of an empty archive.
    if (isUnfounded(config))
      terminal.note(
        `${config.dataDir} is new; name an existing data folder with --data-dir, or a host with --url`,
      )
    requireFolders(config)
  }
  const { archive, hasOwn } =
    base === null
      ? { archive: await openFolder(container, options, terminal.note), hasOwn: false }
      : await openHost(base, context, options, flags)
  const onProgress = (progress: AuditProgress): void => terminal.progress(describeProgress(progress))
  const result = await audit(archive, { clock: Date.now, random: Math.random, onProgress }, options)
  const { report, cause } = result
  showFindings(result, terminal)
  const recorded = base === null && (await leaveAuditRecord(container, report, options, terminal))
  const reason = cause === null ? null : describeError(cause)
  const summary = summarize(report, hasOwn && report.comparedWith === 'none') + forkText(report)
  terminal.result({ ...report, reason, recorded }, summary)
  return exitCode(result, signal)
}

/** The options of both kinds of audit. */
interface ParsedFlags extends AuditOptions {
  /** A head that was kept earlier, and its file. */
  expectedHead: KeptHead | null
  payloads: boolean
}

async function openFolder(
  container: Container,
  options: ParsedFlags,
  onNote: (message: string) => void,
): Promise<ArchiveReader> {
  const lastSigned = await recordOfKey(container, onNote)
  const ledger = await container.ledgerAuditor()
  const objects = await container.objectsAuditor()
  return ownArchive({ ledger, objects }, { ...options, lastSigned })
}

/** The checkpoint that the log key signed last; null, with a note, if the key or its record cannot be read. */
async function recordOfKey(
  container: Container,
  note: (message: string) => void,
): Promise<Checkpoint | null> {
  try {
    const log = await container.signedLog()
    return log && (await log.signer.lastSigned())
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    note(`the ledger was not compared with the record of the log key (${error.detail ?? error.code})`)
    return null
  }
}

/** Opens another host, to be compared with the local ledger if there is one. */
async function openHost(
  base: string,
  { config, container, terminal, cwd }: CommandContext,
  { payloads, expectedHead }: ParsedFlags,
  { policy, state }: VerifyFlags,
): Promise<{ archive: ArchiveReader; hasOwn: boolean }> {
  if (payloads) throw new Refusal('usage', '--payloads needs the stored objects; remove --payloads or --url')
  const ports = {
    published: await container.publishedHistory(base),
    seenLogs: await container.seenLogs(
      state === undefined ? join(config.stateHome, 'dash', 'logs') : resolve(cwd, state),
    ),
    policy: policy === undefined ? null : readPolicy(policy, cwd).text,
    clock: Date.now,
    onNote: terminal.note,
  }
  const own = await readOwnLedger(container)
  const ownNote = own && (await readOwnNote(container))
  return { archive: hostArchive(ports, { own, ownNote, expectedHead }), hasOwn: own !== null }
}

/** Reads the local ledger; null if this machine has no archive, or an empty one. */
async function readOwnLedger(container: Container): Promise<AuditedContents | null> {
  const { config } = container
  if (isUnfounded(config)) return null
  requireFolders(config)
  const own = await (await container.ledgerAuditor()).read()
  return own && own.rows.length + own.unreadable.length > 0 ? own : null
}

/** Reads the newest signed note of the local archive; null without one. */
async function readOwnNote(container: Container): Promise<string | null> {
  const { logFiles } = await container.objects()
  const size = newestNoteSize(await logFiles.list())
  return size === 0 ? null : utf8Text(await logFiles.get({ kind: 'note', size }))
}

function parseFlags(flags: VerifyFlags, cwd: string, signal: AbortSignal): ParsedFlags {
  const { sample, since, expectHead, jobs, payloads } = flags
  return {
    sample: sample === undefined ? null : flagValue('--sample', sample, SAMPLE_FORM, parseSample),
    since: since === undefined ? null : flagValue('--since', since, 'a day such as 2026-01-31', parseDay),
    expectedHead: expectHead === undefined ? null : readExpectedHead(expectHead, cwd),
    jobs: jobs === undefined ? availableParallelism() : wholeFlag('--jobs', jobs, JOBS_MOST),
    payloads,
    signal,
  }
}

/** Reads the head file. An unreadable head is refused: it must not count as confirmed. */
function readExpectedHead(file: string, cwd: string): KeptHead {
  const head = parseHead(readFile(file, cwd, '--expect-head'))
  if (head === null)
    throw new Refusal(
      'usage',
      `--expect-head ${JSON.stringify(file)} is not a head file: {"seq":…,"leaf":"…","time":"…"}`,
    )
  return { ...head, path: file }
}

/** Returns the exit code: damage comes before the failure that ended the audit. */
function exitCode({ report, cause }: VerifyResult, signal: AbortSignal): number {
  if (signal.aborted) return exitCodeOfStop(signal)
  if (report.findings.some(isDamage)) return EXIT.damaged
  if (cause !== null) return exitCodeOf(cause)
  return report.ok ? EXIT.done : EXIT.storage
}

/** Most findings printed; `--json` prints all. */
const FINDINGS_SHOWN = 50

function describeProgress({ done, of, bytes, findings }: AuditProgress): string {
  return `${done} of ${of} objects, ${megabytes(bytes)} read, ${findings} findings`
}

/** Prints the findings of a result and the failure that ended it. */
function showFindings({ report, cause }: VerifyResult, { error, note }: Terminal): void {
  const orphans = report.findings.filter(({ code }) => code === 'orphan_object')
  const damage = report.findings.filter(({ code }) => code !== 'orphan_object')
  for (const finding of damage.slice(0, FINDINGS_SHOWN)) error(describeFinding(finding))
  if (damage.length > FINDINGS_SHOWN)
    error(`and ${damage.length - FINDINGS_SHOWN} more findings; --json lists them all`)
  for (const finding of orphans.slice(0, FINDINGS_SHOWN)) note(describeFinding(finding))
  if (orphans.length > FINDINGS_SHOWN) note(`and ${orphans.length - FINDINGS_SHOWN} more orphans`)
  if (cause !== null) error(`the audit ended early: ${describeError(cause)}`)
}

/**
 * Returns the summary line of an audit.
 *
 * @param isOwnUnrelated true if the local archive could not be compared with the audited host
 */
function summarize(
  { ok, complete, publications, objects, bytes, gaps, head, findings }: VerifyReport,
  isOwnUnrelated: boolean,
): string {
  const read = `${counted(publications, 'publication')}, ${counted(objects, 'object')} with ${megabytes(bytes)} read, ${counted(gaps, 'gap')}, head ${head.seq} ${head.leaf.slice(0, 16)}`
  const alone = isOwnUnrelated ? ' (not compared with the local archive, which is a different one)' : ''
  if (ok && publications === 0) return `sound${alone}, but nothing is published: ${read}`
  if (ok) return `sound${alone}: ${read}`
  const damage = findings.filter(isDamage).length
  const verdict = damage > 0 ? `DAMAGED, ${counted(damage, 'finding')}` : 'NOT PROVED'
  return `${verdict}${complete ? '' : ', ended early'}: ${read}`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

/** Returns the notes of a forked log below the summary; empty without a fork. */
function forkText({ log }: Pick<VerifyReport, 'log'>): string {
  return (log?.fork ?? []).map(({ file, note }) => `\n${file}:\n${note}`).join('')
}

/** `dash verify`. Without a policy, any signer is accepted and the result is not verified. */
export async function verifyProofCommand(
  { terminal, cwd }: CommandContext,
  { policy: policyFile }: { policy?: string },
  files: readonly string[],
): Promise<number> {
  const [publication, proof, ...more] = files
  if (publication === undefined || proof === undefined || more.length > 0)
    throw new Refusal('usage', 'name two files: the publication, then its proof file')
  const keys = policyFile === undefined ? null : readPolicy(policyFile, cwd).keys
  const bytes = readFile(publication, cwd)
  const verdict = verifyPublication(bytes, utf8Text(readFile(proof, cwd)), keys)
  const { ok, problem, entry } = verdict
  const sentences = [
    ...verdict.proved.map(({ text }) => `proved: ${text}`),
    ...verdict.notProved.map(({ text }) => `not proved: ${text}`),
  ]
  const outcome = problem === null ? (ok ? 'verified' : 'NOT VERIFIED') : `WRONG: ${problem}`
  const proved = verdict.proved.map(({ code }) => code)
  const notProved = verdict.notProved.map(({ code }) => code)
  terminal.result(
    { ok, proved, notProved, entry, problem, sentences },
    [outcome, ...sentences.map((sentence) => `  ${sentence}`)].map(escaped).join('\n'),
  )
  return ok ? EXIT.done : EXIT.damaged
}

/** Reads a file that a flag or an argument names. */
function readFile(file: string, cwd: string, flag = ''): Buffer {
  try {
    return readNamedFile(resolve(cwd, file))
  } catch (error) {
    throw new Refusal(
      'usage',
      `${flag} ${JSON.stringify(file)} cannot be read (${messageOf(error)})`.trimStart(),
    )
  }
}

function readPolicy(file: string, cwd: string): { text: string; keys: VerifierKey[] } {
  const text = utf8Text(readFile(file, cwd))
  const parsed = parsePolicy(text)
  if (parsed.problem !== null)
    throw new Refusal('usage', `--policy ${JSON.stringify(file)} is not a valid policy: ${parsed.problem}`)
  return { text, keys: parsed.keys }
}
