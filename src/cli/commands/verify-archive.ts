import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { Refusal } from '../../domain/refusal.ts'
import { parseDay } from '../../domain/time.ts'
import { isDamage } from '../../domain/year/audit.ts'
import type { Finding } from '../../domain/year/audit.ts'
import { parseSample } from '../../domain/year/audit-sample.ts'
import { parseHead } from '../../domain/year/head-file.ts'
import { verifyArchive } from '../../jobs/verify-archive.ts'
import type { VerifyOptions, VerifyProgress, VerifyReport, VerifyResult } from '../../jobs/verify-archive.ts'
import { prepareFolders } from '../data-folder.ts'
import { describeError, EXIT, exitCodeOf } from '../exit-codes.ts'
import type { CommandContext } from '../program.ts'
import { testAudit } from '../self-test.ts'
import type { Terminal } from '../terminal.ts'
import { openAuditors } from '../wire.ts'

export interface VerifyFlags {
  sample?: string
  since?: string
  expectHead?: string
  payloads: boolean
  jobs?: string
  selfTest: boolean
}

/** Findings shown to a person; `--json` has them all. */
const FINDINGS_SHOWN = 50

const JOBS_MOST = 64

/** A progress line at most this often. */
const PROGRESS_EVERY_MS = 100

/** `dash verify-archive` */
export async function verifyArchiveCommand(
  { config, terminal, signal, cwd }: CommandContext,
  flags: VerifyFlags,
): Promise<number> {
  const options = parseFlags(flags, cwd, signal)
  prepareFolders(config, false)
  const auditors = openAuditors(config)
  const ports = {
    ...auditors,
    clock: Date.now,
    random: Math.random,
    onProgress: everySoOften((progress: VerifyProgress) => terminal.progress(describeProgress(progress))),
    onNote: terminal.note,
  }
  try {
    const result = await verifyArchive(ports, options)
    show(result, terminal)
    const tested = flags.selfTest && !signal.aborted ? await runSelfTest(config, terminal, signal) : null
    const report = tested ? { ...result.report, selfTest: tested } : result.report
    terminal.result(report, [summary(result.report), ...(tested ? [verdictOf(tested)] : [])].join('\n'))
    const code = exitCode(result, signal)
    return code === EXIT.done && tested && tested.detected < tested.mutations ? EXIT.internal : code
  } finally {
    await auditors.close()
  }
}

/** The self-test as the result shows it; what was missed is named only when there is something. */
interface TestedAudit {
  mutations: number
  detected: number
  missed?: string[]
}

async function runSelfTest(
  config: CommandContext['config'],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<TestedAudit> {
  const { mutations, detected, missed } = await testAudit(
    config,
    everySoOften((progress) =>
      terminal.progress(`self-test: ${progress.mutations} of ${progress.ofMutations} mutations`),
    ),
    signal,
  )
  for (const { name, reported } of missed) {
    terminal.error(`the verifier missed a mutation: ${name}; it reported ${reported.join(', ') || 'nothing'}`)
  }
  return { mutations, detected, ...(missed.length > 0 ? { missed: missed.map(({ name }) => name) } : {}) }
}

function verdictOf({ mutations, detected }: TestedAudit): string {
  return `self-test: ${detected} of ${mutations} mutations detected`
}

function parseFlags(flags: VerifyFlags, cwd: string, signal: AbortSignal): VerifyOptions {
  const { sample = null, since = null, expectHead = null, jobs = null, payloads } = flags
  return {
    sample: required(sample, '--sample', 'a share (5%), a size (500M) or a bucket (2/7)', parseSample),
    since: required(since, '--since', 'a day, as in 2026-01-31', parseDay),
    expectedHead: expectHead === null ? null : readExpectedHead(expectHead, cwd),
    jobs:
      required(jobs, '--jobs', `a whole number from 1 to ${JOBS_MOST}`, parseJobs) ?? availableParallelism(),
    payloads,
    signal,
  }
}

function required<T>(
  text: string | null,
  flag: string,
  what: string,
  parse: (text: string) => T | null,
): T | null {
  if (text === null) return null
  const value = parse(text)
  if (value === null) throw new Refusal('usage', `${flag} ${JSON.stringify(text)} must be ${what}`)
  return value
}

function parseJobs(text: string): number | null {
  const jobs = /^\d{1,3}$/.test(text) ? Number(text) : 0
  return jobs >= 1 && jobs <= JOBS_MOST ? jobs : null
}

/** A head that cannot be read must not pass for one that holds. */
function readExpectedHead(file: string, cwd: string): NonNullable<VerifyOptions['expectedHead']> {
  const refuse = (why: string): Refusal =>
    new Refusal('usage', `--expect-head ${JSON.stringify(file)} ${why}`)
  let bytes
  try {
    bytes = readFileSync(resolve(cwd, file))
  } catch (error) {
    throw refuse(`cannot be read (${error instanceof Error ? error.message : String(error)})`)
  }
  const head = parseHead(bytes)
  if (head === null) throw refuse('is not a head file: {"seq":…,"leaf":"…","time":"…"}')
  return { ...head, path: file }
}

function everySoOften<T>(report: (value: T) => void): (value: T) => void {
  let next = 0
  return (value) => {
    if (performance.now() < next) return
    next = performance.now() + PROGRESS_EVERY_MS
    report(value)
  }
}

function describeProgress({ objects, ofObjects, bytes, findings }: VerifyProgress): string {
  return `${objects} of ${ofObjects} objects, ${megabytes(bytes)} read, ${findings} findings`
}

function show({ report, cause }: VerifyResult, { error, note }: Terminal): void {
  const damage = report.findings.filter(({ code }) => code !== 'orphan_object')
  for (const finding of damage.slice(0, FINDINGS_SHOWN)) error(describeFinding(finding))
  if (damage.length > FINDINGS_SHOWN) {
    error(`and ${damage.length - FINDINGS_SHOWN} more findings; --json lists them all`)
  }
  const orphans = report.findings.filter(({ code }) => code === 'orphan_object')
  for (const finding of orphans.slice(0, FINDINGS_SHOWN)) note(describeFinding(finding))
  if (orphans.length > FINDINGS_SHOWN) note(`and ${orphans.length - FINDINGS_SHOWN} more orphans`)
  if (cause !== null) error(`the audit ended early: ${describeError(cause)}`)
}

function describeFinding({ code, publicationId, path, expected, actual }: Finding): string {
  const where = [path, publicationId === null ? null : `(${publicationId})`].filter(Boolean).join(' ')
  if (code === 'orphan_object') return `${code} ${where}: no entry names it, which harms nothing`
  const what = [
    expected === null ? null : `expected ${expected}`,
    actual === null ? 'there is nothing' : `found ${actual}`,
  ]
  return `${code} ${where}: ${what.filter(Boolean).join(', ')}`
}

function summary({ ok, complete, publications, objects, bytes, gaps, head, findings }: VerifyReport): string {
  const read = `${publications} publications, ${objects} objects with ${megabytes(bytes)} read, ${gaps} gaps, head ${head.seq} ${head.leaf.slice(0, 16)}`
  if (ok) return `sound: ${read}`
  const damage = findings.filter(isDamage).length
  const verdict = damage > 0 ? `DAMAGED, ${damage} findings` : 'NOT PROVED'
  return `${verdict}${complete ? '' : ', ended early'}: ${read}`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

/** Damage outweighs what ended the audit; bytes that could not be read are the store's failure. */
function exitCode({ report, cause }: VerifyResult, signal: AbortSignal): number {
  if (signal.aborted) return EXIT.terminated
  if (report.findings.some(isDamage)) return EXIT.damaged
  if (cause !== null) return exitCodeOf(cause)
  return report.ok ? EXIT.done : EXIT.storage
}
