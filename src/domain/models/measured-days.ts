import { compareCodeUnits } from '../order.ts'
import type { Day } from '../time.ts'
import { ANSWER_CLASSES } from './answer-class.ts'
import type { AnswerClass } from './answer-class.ts'
import type { LiteEvaluation } from './evaluation.ts'
import type { AttemptEnd, DayScore, ModelAttempt } from './evaluation-ledger.ts'
import { rememberedDetails } from './failure-details.ts'
import { tasksOfKind, unansweredTasks } from './lite/grade.ts'
import type { LiteKind, TaskResult } from './lite/suite.ts'

/** An attempt that came to its end. */
export type SettledAttempt = ModelAttempt & { end: AttemptEnd & { class: AnswerClass } }

export function isSettled(attempt: ModelAttempt): attempt is SettledAttempt {
  return attempt.end !== null && attempt.end.class !== 'abandoned'
}

const KINDS: readonly LiteKind[] = ['tool', 'text']

/**
 * A model's evaluation of each day, ascending: the one that was kept when it is complete, else what its answers of that
 * day come to, so that nothing measured is lost with a run that ended before both questions did. A day has none while a
 * question was not asked, or the account's limits kept it from the model: the next run asks it (docs/decisions/0056).
 *
 * @param scores of one model
 * @param settled attempts of the same model, ascending
 */
export function evaluationsByDay(
  scores: readonly DayScore[],
  settled: readonly SettledAttempt[],
): { day: Day; evaluation: LiteEvaluation }[] {
  const answered = settled.filter(({ end }) => end.tasks !== null)
  const days = new Set([...scores, ...answered].map(({ day }) => day))
  return [...days].toSorted(compareCodeUnits).flatMap((day) => {
    const kept = scores.find((score) => score.day === day)
    const ofDay = settled.filter((attempt) => attempt.day === day)
    const evaluation = kept?.complete
      ? { updatedAt: kept.evaluatedAt, tasks: kept.tasks }
      : measured(day, kept, ofDay)
    return evaluation === null ? [] : [{ day, evaluation }]
  })
}

/** @returns null while a question has neither an answer nor a failure of the model */
function measured(
  day: Day,
  kept: DayScore | undefined,
  attempts: readonly SettledAttempt[],
): LiteEvaluation | null {
  const ends = attempts.filter(({ end }) => end.tasks !== null).map(({ end }) => end.settledAt)
  const tasks = KINDS.map((kind): readonly TaskResult[] | null => {
    const own = attempts.filter((attempt) => attempt.kind === kind)
    const answer = own.findLast(({ end }) => end.tasks !== null)?.end.tasks
    if (answer) return answer
    const before = tasksOfKind(kind, kept?.tasks ?? [])
    if (before.length > 0) return before
    const end = own.at(-1)?.end
    if (end === undefined || ANSWER_CLASSES[end.class].scope === 'account') return null
    return unansweredTasks(kind, day, rememberedDetails(end))
  })
  if (!tasks.every((each) => each !== null)) return null
  return { updatedAt: Math.max(...ends, ...(kept ? [kept.evaluatedAt] : [])), tasks: tasks.flat() }
}
