import type { StoredRun } from '../../domain/models/schema.ts'
import { evaluateModels } from '../../jobs/models/evaluate-models.ts'
import type { EvaluateResult } from '../../jobs/models/evaluate-models.ts'
import { failedReport } from '../../jobs/models/evaluation-run.ts'
import type { EvaluationReport } from '../../jobs/models/evaluation-run.ts'
import { prepareFolders, rehearse } from '../data-folder.ts'
import { describeError, EXIT } from '../exit-codes.ts'
import type { Container } from '../container.ts'
import type { CommandContext } from '../context.ts'
import { counted, escaped } from '../terminal.ts'

export async function evaluateModelsCommand(
  { config, container, terminal, signal }: CommandContext,
  { mode, dryRun }: { mode: StoredRun['refreshMode']; dryRun: boolean },
): Promise<number> {
  const folders = { ...config, dataDirUsed: config.dataDirUsed || config.stateInDataDir }
  const { progress: onProgress, note: onNote } = terminal
  const run = async (used: Container): Promise<number> => {
    const ports = await used.evaluatePorts({ onProgress, onNote })
    const startedAt = performance.now()
    try {
      const result = await evaluateModels(ports, { mode, dryRun, signal })
      const { report } = result
      if (report.outcome === 'failed') terminal.error(report.reason ?? 'failed')
      else if (report.reason !== null) terminal.note(report.reason)
      if (report.webhook?.failure) terminal.note(`the webhook failed: ${escaped(report.webhook.failure)}`)
      terminal.result(report, summary(report))
      return exitCode(result)
    } catch (error) {
      const durationMs = Math.round(performance.now() - startedAt)
      terminal.result(failedReport(ports, { mode, dryRun }, durationMs, describeError(error)), '')
      throw error
    }
  }
  if (dryRun) return rehearse(container.withConfig(folders), run)
  prepareFolders(folders, false)
  return run(container)
}

function exitCode({ report, blame }: EvaluateResult): number {
  if (report.outcome !== 'failed') return EXIT.done
  if (blame === 'settings') return EXIT.configuration
  return blame === 'service' ? EXIT.unavailable : EXIT.failed
}

function summary(report: EvaluationReport): string {
  const { outcome, rankingVersion, primary, ranked, requests, evaluated, dryRun } = report
  if (outcome === 'failed') return 'evaluation failed; nothing was stored'
  if (dryRun)
    return `would send ${counted(requests, 'request')}; currently first of ${counted(ranked, 'model')}: ${escaped(String(primary))}; nothing was written`
  const after = `${counted(requests, 'request')}, ${counted(evaluated, 'model')} evaluated`
  const line = `${outcome} ${rankingVersion}: ${escaped(String(primary))} of ${counted(ranked, 'model')}; ${after}`
  if (report.webhook === null) return line
  const { changes, delivered } = report.webhook
  return `${line}; webhook accepted ${delivered} of ${counted(changes, 'change')}`
}
