import { compareCodeUnits } from '../order.ts'
import type { Day } from '../time.ts'
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
 * day come to, so that nothing measured is lost with a run that ended before both questions did.
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
  return [...days].toSorted(compareCodeUnits).map((day) => {
    const kept = scores.find((score) => score.day === day)
    const ofDay = settled.filter((attempt) => attempt.day === day)
    const evaluation = kept?.complete
      ? { updatedAt: kept.evaluatedAt, tasks: kept.tasks }
      : measured(day, kept, ofDay)
    return { day, evaluation }
  })
}

function measured(day: Day, kept: DayScore | undefined, attempts: readonly SettledAttempt[]): LiteEvaluation {
  const ends = attempts.filter(({ end }) => end.tasks !== null).map(({ end }) => end.settledAt)
  const tasks = KINDS.flatMap((kind): readonly TaskResult[] => {
    const own = attempts.filter((attempt) => attempt.kind === kind)
    const answer = own.findLast(({ end }) => end.tasks !== null)?.end.tasks
    if (answer) return answer
    const before = tasksOfKind(kind, kept?.tasks ?? [])
    return before.length > 0 ? before : unansweredTasks(kind, day, rememberedDetails(own.at(-1)?.end ?? null))
  })
  return { updatedAt: Math.max(...ends, ...(kept ? [kept.evaluatedAt] : [])), tasks }
}
