import { z } from 'zod'
import { ANSWER_CLASSES } from '../../domain/models/answer-class.ts'
import type { AnswerClass } from '../../domain/models/answer-class.ts'
import type { AttemptEnd, DayScore, ModelAttempt } from '../../domain/models/evaluation-ledger.ts'
import type { TaskResult } from '../../domain/models/lite/suite.ts'
import { storageDamaged } from '../../domain/storage.ts'
import type { evaluationAttempts, evaluationScores } from './schema.ts'

type AttemptRow = typeof evaluationAttempts.$inferSelect
type ScoreRow = typeof evaluationScores.$inferSelect

const tasksSchema = z.array(
  z.object({
    id: z.enum(['task_files_lite', 'task_shell_command_lite', 'babylonian_clock_lite']),
    source: z.string(),
    points: z.number(),
    maxPoints: z.number(),
    score: z.number(),
    status: z.enum(['passed', 'partial', 'failed', 'http_timeout_or_error']),
    details: z.record(z.string(), z.unknown()),
  }),
)

/** @throws Refusal `storage_damaged` when a row cannot be what was written */
export function attemptOf(row: AttemptRow): ModelAttempt {
  const { id, run, model, kind, day, sentAt } = row
  if (kind !== 'tool' && kind !== 'text') throw damaged(`an attempt of kind ${JSON.stringify(kind)}`)
  return { id, run, model, kind, day, sentAt, end: endOf(row) }
}

function endOf(row: AttemptRow): AttemptEnd | null {
  const { settledAt, status, latencyMs, asAsked, tasks } = row
  if (settledAt === null) return null
  return {
    settledAt,
    class: classOf(row.class),
    status,
    latencyMs,
    asAsked: asAsked === null ? null : asAsked === 1,
    tasks: tasks === null ? null : tasksOf(tasks),
  }
}

function classOf(name: string | null): AttemptEnd['class'] {
  if (name === 'abandoned') return name
  if (name !== null && Object.hasOwn(ANSWER_CLASSES, name)) return name as AnswerClass
  throw damaged(`an attempt of class ${JSON.stringify(name)}`)
}

/** The columns of an attempt's end. */
export function endColumns(end: AttemptEnd): Partial<AttemptRow> {
  const { asAsked, tasks, ...columns } = end
  return {
    ...columns,
    asAsked: asAsked === null ? null : Number(asAsked),
    tasks: tasks === null ? null : JSON.stringify(tasks),
  }
}

/** @throws Refusal `storage_damaged` when a row cannot be what was written */
export function scoreOfRow({ model, day, evaluatedAt, complete, tasks }: ScoreRow): DayScore {
  return { model, day, evaluatedAt, complete: complete === 1, tasks: tasksOf(tasks) }
}

function tasksOf(text: string): TaskResult[] {
  try {
    return tasksSchema.parse(JSON.parse(text))
  } catch (cause) {
    throw damaged('tasks of another shape', cause)
  }
}

function damaged(what: string, cause?: unknown): Error {
  return storageDamaged(`the state database holds ${what}`, cause)
}
