import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { Refusal } from '../../domain/refusal.ts'
import { ED25519_KEY_BYTES } from '../../domain/digest.ts'
import { publishReport } from '../../jobs/publish-report.ts'
import type { PublishReport } from '../../jobs/publish-report.ts'
import { publishYear } from '../../jobs/publish-year.ts'
import type { PublishResult } from '../../jobs/publish-year.ts'
import { signLedger } from '../../jobs/sign-checkpoint.ts'
import { prepareFolders, rehearse } from '../data-folder.ts'
import { describeError, EXIT, exitCodeOf, exitCodeOfStop } from '../exit-codes.ts'
import type { Container } from '../container.ts'
import type { CommandContext } from '../context.ts'
import { wholeFlag } from '../settings/environment.ts'
import { counted, escaped } from '../terminal.ts'
import { requireOrigin } from '../settings/config.ts'
import { THIS_RUN } from '../process-identity.ts'

interface PublishFlags {
  retryDelay: string
  once: boolean
  dryRun: boolean
  allowEmpty: boolean
  recordGaps?: string
}

const NUMBER_MAX = 999_999

export async function publishYearCommand(
  { config, container, terminal, signal }: CommandContext,
  flags: PublishFlags,
): Promise<number> {
  const startedAt = Date.now()
  const seconds = wholeFlag('--retry-delay', flags.retryDelay, NUMBER_MAX, 0)
  const recordGaps =
    flags.recordGaps === undefined ? null : wholeFlag('--record-gaps', flags.recordGaps, NUMBER_MAX, 0)
  const run = async (used: Container): Promise<number> => {
    try {
      const ports = await used.publishPorts(Date.now, terminal.note)
      const result = await publishYear(ports, { ...flags, recordGaps, retryDelayMs: seconds * 1000, signal })
      const { outcome, reason } = result.report
      const isWrong = outcome === 'failed' || outcome === 'gap' || result.cause !== null
      const isFault = outcome === 'failed' && result.cause !== null
      if (isWrong) terminal.error(isFault ? describeError(result.cause) : (reason ?? 'failed'))
      terminal.result(result.report, escaped(summary(result.report)))
      return exitCode(result, signal)
    } catch (error) {
      const reason = describeError(error)
      terminal.result(publishReport('failed', startedAt, Date.now(), { reason }), '')
      throw error
    }
  }
  if (flags.dryRun) return rehearse(container, run)
  prepareFolders(config, false)
  return run(container)
}

function exitCode({ report, cause }: PublishResult, signal: AbortSignal): number {
  switch (report.outcome) {
    case 'dry-run':
      return EXIT.done
    case 'already-published':
    case 'published':
      return cause === null ? EXIT.done : exitCodeOf(cause)
    case 'gap':
      return EXIT.gap
    case 'failed':
      if (signal.aborted) return exitCodeOfStop(signal)
      return workFailed(cause) ? EXIT.failed : exitCodeOf(cause)
  }
}

/** Returns true if a run failed for another reason than a store or a source. */
function workFailed(cause: unknown): boolean {
  return cause === null || (!(cause instanceof Refusal) && exitCodeOf(cause) === EXIT.internal)
}

function summary(report: PublishReport): string {
  const { gapsRecorded } = report
  const gaps = gapsRecorded === 0 ? '' : `; ${counted(gapsRecorded, 'gap')} recorded`
  return `${outcomeText(report)}${gaps}`
}

function outcomeText(report: PublishReport): string {
  const { outcome, asOfDay, publicationId, publishedAt, reason } = report
  switch (outcome) {
    case 'published':
      return `published ${asOfDay}: ${extent(report)}`
    case 'already-published':
      return `already published: ${publicationId} at ${publishedAt}`
    case 'dry-run':
      return `would publish ${asOfDay}: ${extent(report)}${reason === null ? '' : `; ${reason}`}; nothing was written`
    case 'gap':
      return `${asOfDay} is a permanent gap: all attempts failed`
    case 'failed':
      return `${asOfDay} was not published`
  }
}

/** Size of a publication: its distinct items, and the days that have signals. */
function extent({ distinctItems, coverage }: PublishReport): string {
  const days = `${coverage?.materializedDays} of ${coverage?.targetDays} days`
  return `${counted(distinctItems ?? 0, 'item')}, ${days}`
}

export async function checkpointCommand({ config, container, terminal }: CommandContext): Promise<number> {
  const log = await container.signedLog()
  if (log === null)
    throw new Refusal(
      'configuration',
      'no log key is set; create one with dash log-key new and set DASH_LOG_KEY_FILE to its path',
    )
  prepareFolders(config, false)
  const report = await signLedger({
    ledger: await container.ledger(),
    year: await container.year(),
    objects: await container.objects(),
    log,
    ...THIS_RUN,
    onProgress: terminal.note,
  })
  const { signed, reason, origin, size, root } = report
  const entries = counted(size, 'entry', 'entries')
  const outcome = signed ? 'signed' : 'already signed'
  const text = `${outcome}: ${origin}, ${entries}, root ${root.slice(0, 16)}`
  terminal.result(report, reason === null ? text : `nothing was signed: ${reason}`)
  return EXIT.done
}

export async function newLogKeyCommand(
  { config, container, cwd, terminal }: CommandContext,
  { replaces }: { replaces?: string },
  [file]: readonly string[],
): Promise<number> {
  const origin = requireOrigin(config)
  const path = file === undefined ? config.log.keyFile : resolve(cwd, file)
  if (path === null) throw new Refusal('usage', 'no key file given; name one or set DASH_LOG_KEY_FILE')
  const replaced = replaces === undefined ? null : resolve(cwd, replaces)
  const vkey = await container.newLogKey(path, origin, randomBytes(ED25519_KEY_BYTES), replaced)
  terminal.result({ vkey, path, origin }, `created ${path}; its verifier key is ${vkey}`)
  return EXIT.done
}
