import type { Job, JobRun } from '../domain/jobs.ts'
import { messageOf } from '../domain/refusal.ts'
import { auditRecord } from '../domain/year/finding.ts'
import type { AuditOptions, VerifyReport } from '../jobs/archive/audit.ts'
import { Container } from './container.ts'
import type { BareContext, Run } from './context.ts'
import { fileOf, isFileMissing } from './data-folder.ts'
import { describeError, EXIT } from './exit-codes.ts'
import type { Config } from './settings/config.ts'
import type { Terminal } from './terminal.ts'

/** Names the commands that create the state database, for messages about a missing one. */
export const STATE_IS_CREATED_BY = 'dash serve and dash evaluate-models create it'

/**
 * Runs a job and reports its start, result and exit code to the configured job monitor and the state database
 * (docs/monitoring.md). Neither can fail the job, and each takes a bounded time.
 *
 * A run that could not take its lease did nothing: only the monitor's log gets a line.
 *
 * @param run must resolve with the exit code and never reject
 */
export async function runWatched(
  job: Job,
  config: Config,
  context: BareContext,
  run: Run<BareContext>,
): Promise<number> {
  const { terminal, version } = context
  const container = new Container({ config, version })
  const { pingUrl } = config.monitoring
  const watch = pingUrl === null ? null : await container.jobWatch(pingUrl)
  const output = recordOutput(terminal)
  const ping = async (send: (monitor: NonNullable<typeof watch>) => Promise<void>): Promise<void> => {
    if (watch === null) return
    try {
      await send(watch)
    } catch (error) {
      const why = messageOf(error)
      // The note names only the host: the path of the URL may hold a key.
      const { host } = new URL(pingUrl ?? '')
      terminal.note(`the ping to ${host} (DASH_HEALTHCHECK_PING_URL) failed: ${why}`)
    }
  }
  const startedAt = Date.now()
  try {
    await ping((to) => to.started(job))
    const exitCode = await run({ ...context, terminal: output.terminal })
    if (exitCode === EXIT.leaseHeld) {
      await ping((to) => to.notify(job, output.message()))
      return exitCode
    }
    const ended: JobRun = { job, startedAt, endedAt: Date.now(), exitCode }
    await ping((to) => to.ended(job, exitCode, output.message()))
    // The job has already reported an unavailable store: a note would repeat it.
    const note = exitCode === EXIT.storage ? (): void => undefined : terminal.note
    await leaveRecord(config, 'run', async () => (await container.jobs()).record(ended), note)
    return exitCode
  } finally {
    await container.close()
  }
}

/** Wraps a terminal, and records the errors and the result line printed on it. */
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
 * Stores a record in the state database if that exists. A failure is only noted.
 *
 * @param what subject of the record, for the note
 */
async function leaveRecord(
  { state }: Config,
  what: string,
  record: () => Promise<void>,
  note: Terminal['note'],
): Promise<'recorded' | 'failed' | 'no-database'> {
  try {
    if (isFileMissing(state)) return 'no-database'
    await record()
    return 'recorded'
  } catch (error) {
    note(`this ${what} could not be recorded in the state database: ${describeError(error)}`)
    return 'failed'
  }
}

/**
 * Stores the record of an audit (docs/auditing.md). An audit that a signal ended is recorded only if it found
 * damage.
 *
 * @returns true if the record was stored
 */
export async function leaveAuditRecord(
  container: Container,
  report: VerifyReport,
  { sample, since, signal }: Pick<AuditOptions, 'sample' | 'since' | 'signal'>,
  terminal: Pick<Terminal, 'note'>,
): Promise<boolean> {
  const record = auditRecord(report, sample === null && since === null, Date.now())
  if (signal.aborted && record.damage === 0) return false
  const { config } = container
  const store = async (): Promise<void> => (await container.audits()).record(record)
  const outcome = await leaveRecord(config, 'audit', store, terminal.note)
  if (outcome === 'no-database') {
    const path = fileOf(config.state)
    terminal.note(
      `this audit was not recorded: the state database ${path} does not exist; ${STATE_IS_CREATED_BY}`,
    )
  }
  return outcome === 'recorded'
}
