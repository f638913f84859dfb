/** Label of the lite suite and of the format of its summaries (docs/free-models.md). */
export const LITE_SUITE = 'lite-agent-eval-v1'

/** One task of the suite, graded (docs/free-models.md). */
export interface TaskResult {
  id: 'task_files_lite' | 'task_shell_command_lite' | 'babylonian_clock_lite'
  source: string
  points: number
  maxPoints: number
  /** points / maxPoints, three decimals. */
  score: number
  status: 'passed' | 'partial' | 'failed' | 'http_timeout_or_error'
  details: Readonly<Record<string, unknown>>
}
