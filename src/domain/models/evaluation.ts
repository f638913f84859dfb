import { DAY_MS, dayOf, startOfDay } from '../time.ts'
import type { Instant } from '../time.ts'
import type { TaskResult } from './lite/suite.ts'

/** One evaluation of a model by the lite suite, as it was graded. */
export interface LiteEvaluation {
  updatedAt: Instant
  tasks: readonly TaskResult[]
}

/** An evaluation that still counts, and how much. */
export interface CountedEvaluation extends LiteEvaluation {
  status: 'completed' | 'cached_recent'
  /** Whole UTC days since it was made. */
  ageDays: number
  /** 1, or less with each day (docs/free-models.md). */
  multiplier: number
  /** Sum over the tasks, before the multiplier. */
  points: number
  /** What tasks without an answer that could be judged could still bring; 0 for a complete evaluation. */
  openPoints: number
}

/** By age in UTC days; what is older does not count. */
const MULTIPLIERS = [1, 0.9, 0.8, 0.7] as const

/** What the suite can bring, and with it `liteEvalScore`. */
export const LITE_POINTS_MOST = 750

/**
 * An evaluation as it counts now: in full on its own UTC day, with 0.9, 0.8 and 0.7 on the three days after, then not
 * at all.
 *
 * @returns null when there is none that counts
 */
export function countedEvaluation(evaluation: LiteEvaluation | null, now: Instant): CountedEvaluation | null {
  if (evaluation === null || evaluation.tasks.length === 0) return null
  const days = (startOfDay(dayOf(now)) - startOfDay(dayOf(evaluation.updatedAt))) / DAY_MS
  const ageDays = Math.max(0, days)
  const multiplier = MULTIPLIERS[ageDays]
  if (multiplier === undefined) return null
  const points = evaluation.tasks.reduce((sum, task) => sum + task.points, 0)
  const openPoints = evaluation.tasks.filter(isOpen).reduce((sum, task) => sum + task.maxPoints, 0)
  const status = ageDays === 0 ? 'completed' : 'cached_recent'
  return { ...evaluation, status, ageDays, multiplier, points, openPoints }
}

/** True when both questions were answered, and the answers could be judged. */
export function isComplete({ tasks }: Pick<LiteEvaluation, 'tasks'>): boolean {
  return !tasks.some(isOpen)
}

/** True when at least one question was answered: only then there is something to score. */
export function hasAnswer({ tasks }: Pick<LiteEvaluation, 'tasks'>): boolean {
  return tasks.some((task) => !isOpen(task))
}

function isOpen({ status }: TaskResult): boolean {
  return status === 'http_timeout_or_error'
}

/** Points times multiplier, half up. In tenths, since 0.7 and 0.9 have no exact binary form. */
export function liteScoreOf({
  points,
  multiplier,
}: Pick<CountedEvaluation, 'points' | 'multiplier'>): number {
  return Math.floor((points * Math.round(multiplier * 10) + 5) / 10)
}

/** Whether a model used a tool when it was asked to: measured, not claimed; nothing measured is unknown. */
export type ToolUse = 'proven' | 'disproven' | 'unknown'

export function toolUseOf(evaluation: LiteEvaluation | null): ToolUse {
  const task = evaluation?.tasks.find(({ id }) => id === 'task_files_lite')
  const usedTool = task?.details['usedTool']
  if (typeof usedTool !== 'boolean') return 'unknown'
  return usedTool ? 'proven' : 'disproven'
}
