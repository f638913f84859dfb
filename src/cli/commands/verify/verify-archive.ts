import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { messageOf, Refusal } from '../../../domain/refusal.ts'
import { parseDay } from '../../../domain/time.ts'
import { isDamage } from '../../../domain/year/finding.ts'
import { parseHead } from '../../../domain/year/ledger.ts'
import { parseSample } from '../../../domain/year/sample.ts'
import { verifyArchive } from '../../../jobs/verify-archive.ts'
import type { VerifyOptions, VerifyProgress, VerifyResult } from '../../../jobs/verify-archive.ts'
import type { Container } from '../../container.ts'
import type { CommandContext } from '../../context.ts'
import { requireFolders } from '../../data-folder.ts'
import { EXIT, describeError, exitCodeOf } from '../../exit-codes.ts'
import { leaveAuditRecord } from '../../job-records.ts'
import { flagValue, parseBase } from '../../settings/environment.ts'
import type { Terminal } from '../../terminal.ts'
import type { TestedAudit } from './self-test.ts'
import { describeProgress, throttled, showFindings, summarize, summarizeSelfTest } from './verify-output.ts'

export interface VerifyFlags {
  sample?: string
  since?: string
  expectHead?: string
  url?: string
  payloads: boolean
  jobs?: string
  selfTest: boolean
}

const JOBS_MOST = 64

/** `dash verify-archive` */
export async function verifyArchiveCommand(
  { config, container, terminal, signal, cwd }: CommandContext,
  flags: VerifyFlags,
): Promise<number> {
  const options = parseFlags(flags, cwd, signal)
  const base = required(flags.url ?? null, '--url', 'an absolute http(s) URL', parseBase)
  if (base === null) requireFolders(config)
  const result: VerifyResult & { isOwnUnrelated?: boolean } =
    base === null
      ? await auditFolder(container, options, terminal)
      : await (await import('./verify-host.ts')).auditHost(base, container, options, terminal)
  showFindings(result, terminal)
  // An audit with a self-test says nothing on standard error unless something is wrong; the result has `recorded`.
  const noted = flags.selfTest ? { note: (): void => undefined } : terminal
  const recorded = base === null && (await leaveAuditRecord(container, result, options, noted))
  const tested =
    flags.selfTest && !signal.aborted
      ? await (await import('./self-test.ts')).testAudit(container, terminal, signal)
      : null
  const reason = result.cause === null ? null : describeError(result.cause)
  const report = { ...result.report, reason, recorded, ...(tested ? { selfTest: tested } : {}) }
  const summary = summarize(result.report, result.isOwnUnrelated === true)
  terminal.result(report, tested ? `${summary}\n${summarizeSelfTest(tested)}` : summary)
  return exitCode(result, tested, signal)
}

async function auditFolder(
  container: Container,
  options: VerifyOptions,
  terminal: Terminal,
): Promise<VerifyResult> {
  const { ledger, objects } = await container.auditors()
  const { note: onNote } = terminal
  const onProgress = throttled((progress: VerifyProgress) => terminal.progress(describeProgress(progress)))
  return verifyArchive({ ledger, objects, clock: Date.now, random: Math.random, onProgress, onNote }, options)
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
  return text === null ? null : flagValue(flag, text, what, parse)
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
    throw refuse(`cannot be read (${messageOf(error)})`)
  }
  const head = parseHead(bytes)
  if (head === null) throw refuse('is not a head file: {"seq":…,"leaf":"…","time":"…"}')
  return { ...head, path: file }
}

/** Damage outweighs what ended the audit, and both a verifier that missed something. */
function exitCode({ report, cause }: VerifyResult, tested: TestedAudit | null, signal: AbortSignal): number {
  if (signal.aborted) return EXIT.terminated
  if (report.findings.some(isDamage)) return EXIT.damaged
  if (cause !== null) return exitCodeOf(cause)
  if (!report.ok) return EXIT.storage
  return tested && tested.detected < tested.mutations ? EXIT.internal : EXIT.done
}
