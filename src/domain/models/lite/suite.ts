import { z } from 'zod'
import { firstCodePoints } from '../../text.ts'
import type { Day } from '../../time.ts'

/** Name of the suite, the form of its summaries, and part of every day's seed. */
export const LITE_SUITE = 'lite-agent-eval-v1'

/** Refusals of the maker of a day's suite: an item that its own solution does not solve, or that junk does. */
export type LiteRefusal = 'lite_suite_refused'

/** Which of the two chat requests a question goes out with. */
export type LiteKind = 'tool' | 'text'

/** One chat request, without model and routing. */
export interface LiteQuestion {
  kind: LiteKind
  messages: readonly { role: 'system' | 'user'; content: string }[]
  /** `parameters` is JSON Schema draft 7; empty for kind `text`. */
  tools: readonly { name: string; description: string; parameters: Record<string, unknown> }[]
  /** Tokens of the whole answer, reasoning included. */
  maxTokens: number
}

/** What a model answered to one question. */
export interface ModelResponse {
  /** The content; '' when there is none. */
  text: string
  /** The calls in the order they came; `arguments` verbatim as sent, JSON text that may be broken. */
  toolCalls: readonly { name: string; arguments: string }[]
  finishReason: string | null
}

/** The suite of one UTC day, tested against its own solutions before any model is asked. */
export interface LiteSuite {
  day: Day
  questions: Record<LiteKind, LiteQuestion>
  /** The results of a question's tasks: the files task, or the shell command and the clock. */
  grade(kind: LiteKind, reply: ModelResponse): Promise<TaskResult[]>
}

/** The result of one task, as it is stored and published (docs/lite-suite.md). */
export const taskSchema = z.object({
  id: z.enum(['task_files_lite', 'task_shell_command_lite', 'babylonian_clock_lite']),
  source: z.string(),
  points: z.number().min(0),
  maxPoints: z.number().min(0),
  score: z.number().min(0).max(1).describe('points / maxPoints, three decimals'),
  status: z.enum(['passed', 'partial', 'failed', 'http_timeout_or_error']),
  details: z.record(z.string(), z.unknown()),
})
export type TaskResult = z.infer<typeof taskSchema>
type TaskId = TaskResult['id']

/** The maxima that readers of the payload rely on; 750 together. */
const MAX_POINTS: Readonly<Record<TaskId, number>> = {
  task_files_lite: 350,
  task_shell_command_lite: 300,
  babylonian_clock_lite: 100,
}

const TASKS_OF: Readonly<Record<LiteKind, readonly TaskId[]>> = {
  tool: ['task_files_lite'],
  text: ['task_shell_command_lite', 'babylonian_clock_lite'],
}

/** The findings of a task's grader. */
export interface Graded {
  points: number
  details: Record<string, unknown>
  /** True when nothing could be judged, by no fault of the answer. */
  isVoid?: boolean
}

/** The points of the properties that hold. */
export function sumOf<T extends string>(
  judged: Readonly<Record<T, boolean | null>>,
  points: Readonly<Record<NoInfer<T>, number>>,
): number {
  const held = (Object.keys(judged) as T[]).filter((name) => judged[name] === true)
  return held.reduce((sum, name) => sum + points[name], 0)
}

/** The result of a task that was answered; one that could not be judged stays as open as one without an answer. */
export function taskResult(id: TaskId, day: Day, { points, details, isVoid }: Graded): TaskResult {
  const maxPoints = MAX_POINTS[id]
  const score = Math.round((points / maxPoints) * 1000) / 1000
  const status = isVoid ? 'http_timeout_or_error' : statusOf(points, maxPoints)
  // Anyone can draw a day's items again from the text of `source`.
  return { id, source: `${LITE_SUITE}/${day}`, points, maxPoints, score, status, details }
}

/** Nine tenths of a task's points pass it: one property of several may be wrong. */
function statusOf(points: number, maxPoints: number): TaskResult['status'] {
  if (points === 0) return 'failed'
  return points * 10 >= maxPoints * 9 ? 'passed' : 'partial'
}

/** The results of a question's tasks without a reply: no points, and no say on what the model can. */
export function unansweredTasks(kind: LiteKind, day: Day, details: Record<string, unknown>): TaskResult[] {
  return TASKS_OF[kind].map((id) => taskResult(id, day, { points: 0, details, isVoid: true }))
}

/** Those of a list of results that belong to a question. */
export function tasksOfKind(kind: LiteKind, tasks: readonly TaskResult[]): TaskResult[] {
  return tasks.filter(({ id }) => TASKS_OF[kind].includes(id))
}

/** The most of a model's own text that is kept, in code points. */
const KEPT_CODE_POINTS = 200

/** The beginning of a text, cut between code points, with lone halves of a pair replaced. */
export function cutText(text: string): string {
  return firstCodePoints(text.toWellFormed(), KEPT_CODE_POINTS)
}

/** Content by path: relative, with `/`. A map, because a model chooses names like `__proto__`. */
export type ShellFiles = ReadonlyMap<string, string>

export interface ShellLimits {
  /** Wall time of one command, and the time that its `sleep`s may add up to. */
  timeMs: number
  /** Standard output and standard error together, and the files it leaves. */
  outputBytes: number
}

/**
 * How a command ended. `not-executable`: no shell would run it (syntax, or a command that exists nowhere).
 * `unsupported`: a real shell might have run it, the sandbox cannot.
 */
export type ShellOutcome = 'ran' | 'not-executable' | 'unsupported' | 'timeout' | 'too-much-output'

export interface ShellRun {
  outcome: ShellOutcome
  /** Empty unless `ran`. */
  stdout: string
  stderr: string
  /** null unless `ran`. */
  exitCode: number | null
  /** Every regular file below the working folder afterwards; empty unless `ran`. */
  files: ShellFiles
  /** What the sandbox could not do or would not allow, in one line; null when `ran`. */
  why: string | null
  /** Real tools that the command called and the sandbox does not have. */
  missingTools: readonly string[]
}
