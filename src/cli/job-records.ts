import { existsSync } from 'node:fs'
import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterRun } from '../domain/job-run.ts'
import type { Job, JobRun } from '../domain/job-run.ts'
import type { JobWatch } from '../domain/ports.ts'
import { auditRecord } from '../domain/year/finding.ts'
import type { VerifyOptions, VerifyResult } from '../jobs/verify-archive.ts'
import { Container } from './container.ts'
import type { BareContext, Run } from './context.ts'
import { describeError, EXIT, exitCodeOfStop } from './exit-codes.ts'
import type { Config } from './settings/config.ts'
import type { Terminal } from './terminal.ts'

/** Which commands create the state database, for messages about a missing one. */
export const STATE_IS_CREATED_BY = 'dash serve and dash evaluate-models create it'

/**
 * Runs a job and tells of it whoever is to know (docs/monitoring.md): the check that the configuration names, a file of
 * metrics, the state database. None of them can fail the job, and each takes a bounded time.
 *
 * A run that found another at work did nothing, and says nothing of the job: its exit code is told the check as a line
 * of its log, and recorded nowhere.
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
  const heard = hearing(terminal)
  const tell = telling(terminal, pingUrl)
  const startedAt = Date.now()
  try {
    await tell(() => watch?.started(job))
    const code = await run({ ...context, terminal: heard.terminal })
    const exitCode = code === EXIT.terminated ? exitCodeOfStop(signal) : code
    if (exitCode === EXIT.leaseHeld) {
      await tell(() => watch?.told(job, heard.message()))
      return code
    }
    const ended: JobRun = { job, startedAt, endedAt: Date.now(), exitCode }
    if (textfileDir !== null) await leaveTextfile(textfileDir, ended, terminal)
    await tell(() => watch?.ended(job, exitCode, heard.message()))
    // That a store cannot be had was said of the job already: of its record it is no second trouble.
    const { note } = code === EXIT.storage ? { note: () => undefined } : terminal
    await leaveRecord(config, 'run', async () => (await container.jobs()).record(ended), note)
    return code
  } finally {
    await container.close()
  }
}

async function leaveTextfile(folder: string, run: JobRun, { error: tell }: Terminal): Promise<void> {
  try {
    await writeTextfile(folder, run)
  } catch (error) {
    tell(
      `no metrics of this run could be left in ${folder} (DASH_METRICS_TEXTFILE_DIR): ${describeError(error)}`,
    )
  }
}

/** Tells the check something; that it could not be told is a note, which names no more than its host. */
function telling(
  { note }: Terminal,
  pingUrl: string | null,
): (ping: () => ReturnType<JobWatch['started']> | undefined) => Promise<void> {
  return async (ping) => {
    try {
      await ping()
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      const host = pingUrl === null ? '' : new URL(pingUrl).host
      note(`the check at ${host} (DASH_HEALTHCHECK_PING_URL) could not be told: ${why}`)
    }
  }
}

/** A terminal that remembers the errors and the result line it was given. */
function hearing(terminal: Terminal): { terminal: Terminal; message: () => string } {
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
 * Leaves the metrics of a run in a file of its job's own, where a node exporter reads it (docs/monitoring.md#textfile).
 * The file is replaced in one step, and keeps when the job last succeeded.
 *
 * @throws whatever keeps the file from being written; the one before stays then
 */
async function writeTextfile(folder: string, run: JobRun): Promise<void> {
  // Loaded late: most runs leave no such file.
  const { exposition, jobMetrics, lastSuccessIn } = await import('../server/metrics/catalogue.ts')
  const path = join(folder, `dash-${run.job}.prom`)
  const text = exposition(jobMetrics([afterRun(run, lastSuccessIn(await readText(path)))]))
  // Its name has another end than those that are collected.
  const temporary = join(folder, `.dash-${run.job}.prom.${process.pid}`)
  try {
    const file = await open(temporary, 'w')
    try {
      await file.writeFile(text)
      // Whatever cron's mask is, the exporter is another user.
      await file.chmod(0o644)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw error
  }
}

/**
 * Leaves a record in the state database, where there is one: none is created for it. What was done stands whether it could
 * be left or not.
 *
 * @param what it is a record of, as a note names it
 * @returns `failed` after a note, `no-database` without one
 */
async function leaveRecord(
  { state: { url } }: Config,
  what: string,
  record: () => Promise<void>,
  note: Terminal['note'],
): Promise<'recorded' | 'failed' | 'no-database'> {
  if (url.startsWith('file:') && !existsSync(fileURLToPath(url))) return 'no-database'
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
  // The failure that ended the audit is described once.
  const said = cause === null ? null : describeError(cause)
  const note = (message: string): void => {
    if (said === null || !message.endsWith(said)) terminal.note(message)
  }
  const record = auditRecord(report, sample === null && since === null, Date.now())
  if (signal.aborted && record.damage === 0) return false
  const left = await leaveRecord(
    container.config,
    'audit',
    async () => (await container.audits()).record(record),
    note,
  )
  if (left !== 'no-database') return left === 'recorded'
  const path = fileURLToPath(container.config.state.url)
  note(`no record of this audit is left: there is no state database ${path}; ${STATE_IS_CREATED_BY}`)
  return false
}
