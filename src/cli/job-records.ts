import { existsSync } from 'node:fs'
import { chmod, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterRun } from '../domain/job-run.ts'
import type { Job, JobRun } from '../domain/job-run.ts'
import type { JobMonitor } from '../domain/ports.ts'
import { messageOf } from '../domain/refusal.ts'
import { auditRecord } from '../domain/year/finding.ts'
import type { VerifyOptions, VerifyResult } from '../jobs/verify-archive.ts'
import { Container } from './container.ts'
import type { BareContext, Run } from './context.ts'
import { fileOf, isFileMissing } from './data-folder.ts'
import { describeError, EXIT, exitCodeOfStop } from './exit-codes.ts'
import type { Config } from './settings/config.ts'
import type { Terminal } from './terminal.ts'

/** Which commands create the state database, for messages about a missing one. */
export const STATE_IS_CREATED_BY = 'dash serve and dash evaluate-models create it'

/**
 * Runs a job and reports its start, result and exit code to the configured check, a file of metrics and the state database
 * (docs/monitoring.md). None of them can fail the job, and each takes a bounded time.
 *
 * A run that found another at work did nothing, and reports nothing of the job: the check gets a line for its log.
 *
 * @param run resolves with the exit code whatever happens
 */
export async function runWatched(
  job: Job,
  config: Config,
  context: BareContext,
  run: Run<BareContext>,
): Promise<number> {
  const { terminal, signal, version } = context
  const container = new Container({ config, version })
  const { pingUrl, textfileDir } = config.monitoring
  const watch = pingUrl === null ? null : await container.jobWatch(pingUrl)
  const output = recordOutput(terminal)
  const ping = async (send: (watch: JobMonitor) => Promise<void>): Promise<void> => {
    if (watch === null) return
    try {
      await send(watch)
    } catch (error) {
      const why = messageOf(error)
      // The note names no more than the host of the check: its path may hold a key.
      const { host } = new URL(pingUrl ?? '')
      terminal.note(`the check at ${host} (DASH_HEALTHCHECK_PING_URL) could not be told: ${why}`)
    }
  }
  const startedAt = Date.now()
  try {
    await ping((to) => to.started(job))
    const code = await run({ ...context, terminal: output.terminal })
    const exitCode = code === EXIT.terminated ? exitCodeOfStop(signal) : code
    if (exitCode === EXIT.leaseHeld) {
      await ping((to) => to.notify(job, output.message()))
      return code
    }
    const ended: JobRun = { job, startedAt, endedAt: Date.now(), exitCode }
    if (textfileDir !== null) await leaveTextfile(textfileDir, ended, terminal)
    await ping((to) => to.ended(job, exitCode, output.message()))
    // The job has reported already that a store is unavailable: its record is no second trouble.
    const note = code === EXIT.storage ? (): void => undefined : terminal.note
    await leaveRecord(config, 'run', async () => (await container.jobs()).record(ended), note)
    return code
  } finally {
    await container.close()
  }
}

/** A terminal that remembers the errors and the result line it was given. */
function recordOutput(terminal: Terminal): { terminal: Terminal; message: () => string } {
  const lines: string[] = []
  return {
    message: () => lines.filter((line) => line !== '').join('\n'),
    terminal: {
      ...terminal,
      result(json, line) {
        lines.push(line)
        terminal.result(json, line)
      },
      error(message) {
        lines.push(`error: ${message}`)
        terminal.error(message)
      },
    },
  }
}

/**
 * Leaves the metrics of a run in the file of its job, where a node exporter reads it (docs/monitoring.md#textfile). The file
 * is replaced in one step, and keeps when the job last succeeded; one that cannot be written stays as it is.
 */
async function leaveTextfile(folder: string, run: JobRun, { error: report }: Terminal): Promise<void> {
  const path = join(folder, `dash-${run.job}.prom`)
  // Its name has another end than those that are collected.
  const temporary = join(folder, `.dash-${run.job}.prom.${process.pid}`)
  try {
    // Loaded late: most runs leave no such file.
    const { exposition, jobMetrics, lastSuccessIn } = await import('../server/metrics/catalogue.ts')
    const before = existsSync(path) ? await readFile(path, 'utf8') : ''
    const text = await exposition(jobMetrics([afterRun(run, lastSuccessIn(before))]))
    await writeFile(temporary, text, { flush: true })
    // The exporter that reads it is another user, whatever cron's mask is.
    await chmod(temporary, 0o644)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined)
    const why = describeError(error)
    report(`no metrics of this run could be left in ${folder} (DASH_METRICS_TEXTFILE_DIR): ${why}`)
  }
}

/**
 * Leaves a record in the state database, where there is one: none is created for it, and a failure to leave it is a note.
 *
 * @param what it is a record of, as the note names it
 */
async function leaveRecord(
  { state }: Config,
  what: string,
  record: () => Promise<void>,
  note: Terminal['note'],
): Promise<'recorded' | 'failed' | 'no-database'> {
  if (isFileMissing(state)) return 'no-database'
  try {
    await record()
    return 'recorded'
  } catch (error) {
    note(`no record of this ${what} could be left in the state database: ${describeError(error)}`)
    return 'failed'
  }
}

/**
 * Leaves a record of an audit (docs/auditing.md). One that a signal ended has no verdict but damage.
 *
 * @returns whether a record was left
 */
export async function leaveAuditRecord(
  container: Container,
  { report, cause }: VerifyResult,
  { sample, since, signal }: Pick<VerifyOptions, 'sample' | 'since' | 'signal'>,
  terminal: Pick<Terminal, 'note'>,
): Promise<boolean> {
  const record = auditRecord(report, sample === null && since === null, Date.now())
  if (signal.aborted && record.damage === 0) return false
  const { config } = container
  // The failure that ended the audit is described once.
  const known = cause === null ? null : describeError(cause)
  const note = (message: string): void => {
    if (known === null || !message.endsWith(known)) terminal.note(message)
  }
  const left = await leaveRecord(config, 'audit', async () => (await container.audits()).record(record), note)
  if (left === 'no-database') {
    const path = fileOf(config.state)
    note(`no record of this audit is left: there is no state database ${path}; ${STATE_IS_CREATED_BY}`)
  }
  return left === 'recorded'
}
