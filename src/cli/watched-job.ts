import type { Job, JobRun } from '../domain/job-run.ts'
import type { JobWatch } from '../domain/ports.ts'
import type { CommandContext, Run } from './context.ts'
import { describeError, EXIT, exitCodeOfStop } from './exit-codes.ts'
import { leaveRecord } from './records.ts'
import type { Terminal } from './terminal.ts'

/**
 * Runs a job and tells of it whoever is to know (docs/monitoring.md): the check that the configuration names, a file of
 * metrics, the state database. None of them can fail the job, and each takes a bounded time.
 *
 * A run that found another at work did nothing, and says nothing of the job: its exit code is told the check as a line
 * of its log, and recorded nowhere.
 *
 * @param run resolves with the exit code whatever happens
 */
export async function runWatched(job: Job, context: CommandContext, run: Run): Promise<number> {
  const { config, terminal, signal } = context
  const { pingUrl, textfileDir } = config.monitoring
  const watch = pingUrl === null ? null : (await import('./wire-jobs.ts')).openJobWatch(pingUrl)
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
    await leaveRecord(config, 'run', ({ jobs }) => jobs.record(ended), { note })
    return code
  } finally {
    await watch?.close()
  }
}

async function leaveTextfile(folder: string, run: JobRun, { error: tell }: Terminal): Promise<void> {
  const { writeTextfile } = await import('./metrics-textfile.ts')
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
