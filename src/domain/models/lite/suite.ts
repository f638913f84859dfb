import { z } from 'zod'
import type { Day } from '../../time.ts'
import { sha256Hex } from '../../digest.ts'

/** Name of the suite; also part of every day's seed. */
export const LITE_SUITE = 'lite-agent-eval-v1'

export type LiteKind = 'tool' | 'text'

/** One chat request, without model and routing. */
export interface LitePrompt {
  messages: readonly { role: 'system' | 'user'; content: string }[]
  /** `parameters` is JSON Schema draft 7; empty for kind `text`. */
  tools: readonly { name: string; description: string; parameters: Record<string, unknown> }[]
  /** Limit of the response in tokens, including reasoning. */
  maxTokens: number
}

export interface ModelResponse {
  /** The content; '' when missing. */
  text: string
  /** The calls in order; `arguments` verbatim, possibly invalid JSON. */
  toolCalls: readonly { name: string; arguments: string }[]
  finishReason: string | null
}

export interface LiteSuite {
  prompts: Record<LiteKind, LitePrompt>
  /** Grades the tasks of a prompt: the files task, or the shell command and the clock. */
  grade(kind: LiteKind, response: ModelResponse): Promise<TaskResult[]>
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

/** The maxima that consumers of the payload rely on; 750 together. */
const MAX_POINTS: Readonly<Record<TaskId, number>> = {
  task_files_lite: 350,
  task_shell_command_lite: 300,
  babylonian_clock_lite: 100,
}

const TASKS_OF: Readonly<Record<LiteKind, readonly TaskId[]>> = {
  tool: ['task_files_lite'],
  text: ['task_shell_command_lite', 'babylonian_clock_lite'],
}

export interface Grade {
  points: number
  details: Record<string, unknown>
  /** True when nothing could be judged for reasons outside the response. */
  isVoid?: boolean
}

/** Sums the points of the properties that hold. */
export function sumPoints<T extends string>(
  judged: Readonly<Record<T, boolean | null>>,
  points: Readonly<Record<NoInfer<T>, number>>,
): number {
  const holding = (Object.keys(judged) as T[]).filter((name) => judged[name] === true)
  return holding.reduce((sum, name) => sum + points[name], 0)
}

/** The result of a task with a response; a void one counts like a task without a response. */
export function taskResult(id: TaskId, day: Day, { points, details, isVoid }: Grade): TaskResult {
  const maxPoints = MAX_POINTS[id]
  const score = Math.round((points / maxPoints) * 1000) / 1000
  const status = isVoid ? 'http_timeout_or_error' : statusOf(points, maxPoints)
  // `source` lets anyone reproduce the day's items.
  return { id, source: `${LITE_SUITE}/${day}`, points, maxPoints, score, status, details }
}

/** 90 % of a task's points pass it: one property of several may be wrong. */
function statusOf(points: number, maxPoints: number): TaskResult['status'] {
  if (points === 0) return 'failed'
  return points * 10 >= maxPoints * 9 ? 'passed' : 'partial'
}

/** The results of a prompt's tasks without a response: they say nothing about the model's ability. */
export function unansweredTasks(kind: LiteKind, day: Day, details: Record<string, unknown>): TaskResult[] {
  return TASKS_OF[kind].map((id) => taskResult(id, day, { points: 0, details, isVoid: true }))
}

/** Content by path: relative, with `/`. A map, because a model chooses names like `__proto__`. */
export type ShellFiles = ReadonlyMap<string, string>

export interface ShellLimits {
  /** Wall time of one command, and the sum of its `sleep` times. */
  timeMs: number
  /** Bytes of standard output and standard error together, and of the files it leaves. */
  outputBytes: number
}

/**
 * Outcome of a command. `not-executable`: no shell would run it (syntax error or unknown command). `unsupported`: a real
 * shell might run it, but the sandbox cannot. `limit`: it reached a limit of time or size.
 */
export type ShellOutcome = 'ran' | 'not-executable' | 'unsupported' | 'limit'

export interface ShellRun {
  outcome: ShellOutcome
  /** Empty unless `ran`. */
  stdout: string
  stderr: string
  /** Every regular file below the working folder afterwards; empty unless `ran`. */
  files: ShellFiles
  /** Reason why the command did not run to its end, in one line; null for `ran`. */
  reason: string | null
  /** Real tools that the command called and the sandbox does not have. */
  missingTools: readonly string[]
}

const REASON_MAX_LENGTH = 200

/** A run that did not come to its end. */
export function failedRun(
  outcome: Exclude<ShellOutcome, 'ran'>,
  reason: string,
  missingTools: readonly string[] = [],
): ShellRun {
  const nothing = { stdout: '', stderr: '', files: new Map<string, string>() }
  return { outcome, ...nothing, reason: reason.slice(0, REASON_MAX_LENGTH), missingTools }
}

/** A seeded random generator: the same seed gives the same draws on every machine and in every version. */
export interface Draw {
  /** A whole number from `least` to `greatest`, both included. */
  integer(least: number, greatest: number): number
  /** An element of a nonempty list. */
  pick<T>(from: readonly T[]): T
  /** `count` different elements in drawn order; the list must have at least as many. */
  sample<T>(from: readonly T[], count: number): T[]
  /** A word of lower-case letters and digits that begins with a letter. */
  word(length: number): string
}

const LETTERS = Array.from('abcdefghijkmnpqrstuvwxyz')
const LETTERS_AND_DIGITS = [...LETTERS, ...Array.from('23456789')]

/**
 * Creates a generator from a seed text: SHA-256 of the text gives the four initial words of the generator sfc32 (Chris
 * Doty-Humphrey, 32-bit arithmetic only); its first twelve numbers are discarded.
 */
export function drawsFrom(seed: string): Draw {
  const next = sfc32(sha256Hex(seed))
  const integer = (least: number, greatest: number): number =>
    least + Math.floor((next() / 2 ** 32) * (greatest - least + 1))
  const sample = <T>(from: readonly T[], count: number): T[] => {
    const left = [...from]
    return Array.from({ length: count }, () => left.splice(integer(0, left.length - 1), 1)[0] as T)
  }
  const pick = <T>(from: readonly T[]): T => from[integer(0, from.length - 1)] as T
  const word = (length: number): string =>
    pick(LETTERS) + Array.from({ length: length - 1 }, () => pick(LETTERS_AND_DIGITS)).join('')
  return { integer, pick, sample, word }
}

/** Generates unsigned 32-bit numbers. */
function sfc32(hex: string): () => number {
  const word = (index: number): number => Number.parseInt(hex.slice(index * 8, index * 8 + 8), 16) | 0
  let [a, b, c, counter] = [word(0), word(1), word(2), word(3)]
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  for (let skipped = 0; skipped < 12; skipped += 1) next()
  return next
}
