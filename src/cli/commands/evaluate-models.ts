import type { StoredRun } from '../../domain/models/schema.ts'
import { evaluateModels } from '../../jobs/models/evaluate-models.ts'
import type { EvaluateResult } from '../../jobs/models/evaluate-models.ts'
import { failedReport } from '../../jobs/models/evaluation-run.ts'
import type { EvaluationReport } from '../../jobs/models/evaluation-run.ts'
import { explainModel } from '../../jobs/models/explain-model.ts'
import type { ModelExplanation } from '../../jobs/models/explain-model.ts'
import { existingStores, prepareFolders } from '../data-folder.ts'
import { describeError, EXIT } from '../exit-codes.ts'
import type { CommandContext } from '../context.ts'
import { counted, escaped } from '../terminal.ts'
import type { Terminal } from '../terminal.ts'

export interface EvaluateFlags {
  mode: StoredRun['refreshMode']
  dryRun: boolean
  /** ID of a model to explain instead of evaluating models. */
  why?: string
}

/** `dash evaluate-models`: evaluates free models, or explains the score of one. */
export async function evaluateModelsCommand(
  { config, container, terminal, signal }: CommandContext,
  { mode, dryRun, why }: EvaluateFlags,
): Promise<number> {
  const folders = { ...config, dataDirUsed: config.dataDirUsed || config.stateInDataDir }
  const exists = dryRun || why !== undefined ? existingStores(folders) : undefined
  if (!exists) prepareFolders(folders, false)
  const { progress: onProgress, note: onNote } = terminal
  const ports = await container.evaluatePorts({ onProgress, onNote }, exists)
  if (why !== undefined) {
    const explanation = await explainModel(ports, why, signal)
    terminal.result(explanation, explanationText(explanation))
    return EXIT.done
  }
  const result = await orFailedReport(terminal, { mode, dryRun }, () =>
    evaluateModels(ports, { mode, dryRun, signal }),
  )
  const { report } = result
  if (report.outcome === 'failed') terminal.error(report.reason ?? 'failed')
  else if (report.reason !== null) terminal.note(report.reason)
  if (report.webhook?.failure) terminal.note(`the webhook failed: ${escaped(report.webhook.failure)}`)
  terminal.result(report, summary(report))
  return exitCode(result)
}

/** Prints a failed report under `--json` if `run` throws. */
async function orFailedReport<T>(
  terminal: Terminal,
  flags: Pick<EvaluateFlags, 'mode' | 'dryRun'>,
  run: () => Promise<T>,
): Promise<T> {
  const startedAt = performance.now()
  try {
    return await run()
  } catch (error) {
    const durationMs = Math.round(performance.now() - startedAt)
    if (terminal.json) terminal.result(failedReport(flags, durationMs, describeError(error)), '')
    throw error
  }
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
  return report.webhook === null ? line : `${line}; ${deliverySummary(report.webhook)}`
}

function deliverySummary({ changes, delivered }: NonNullable<EvaluationReport['webhook']>): string {
  return `webhook accepted ${delivered} of ${counted(changes, 'change')}`
}

function explanationText(explanation: ModelExplanation): string {
  const { model, rejection, rank, ranked, score, components, attempts } = explanation
  if (rejection) return `${escaped(model)} is not a candidate: ${rejection.reason}, ${rejection.meaning}`
  const width = Math.max(...components.map(({ name }) => name.length))
  const parts = components.map(({ name, points, most, evidence }) => {
    const share = `${String(points).padStart(5)}${most > 0 ? ` of ${most}` : ''}`
    return `  ${name.padEnd(width)} ${share.padEnd(12)}  ${escaped(evidence)}`
  })
  const requests = attempts.map(
    ({ sentAt, kind, class: meaning, status, latencyMs }) =>
      `  ${sentAt} ${kind}: ${meaning}${status === null ? '' : `, status ${status}`}${latencyMs === null ? '' : `, ${latencyMs} ms`}`,
  )
  const requestLines = requests.length > 0 ? ['requests of the last three days:', ...requests] : []
  return [`${escaped(model)}: rank ${rank} of ${ranked}, score ${score}`, ...parts, ...requestLines].join(
    '\n',
  )
}
