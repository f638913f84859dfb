import { open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterRun } from '../domain/job-run.ts'
import type { JobRun } from '../domain/job-run.ts'
import { exposition, jobMetrics, lastSuccessIn } from '../server/metrics/catalogue.ts'

/**
 * Leaves the metrics of a run in a file of its job's own, where a node exporter reads it (docs/monitoring.md#textfile).
 * The file is replaced in one step, and keeps when the job last succeeded.
 *
 * @throws whatever keeps the file from being written; the one before stays then
 */
export async function writeTextfile(folder: string, run: JobRun): Promise<void> {
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
