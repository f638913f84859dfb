import { sha256Hex } from '../../digest.ts'
import type { Day } from '../../time.ts'
import { LITE_SUITE } from './suite.ts'
import type { LiteKind, LiteTaskId, TaskResult, TaskStatus } from './suite.ts'

/** What a task's grader found. */
export interface Graded {
  points: number
  details: Readonly<Record<string, unknown>>
  /** True when nothing could be judged, by no fault of the answer. */
  isVoid?: boolean
}

/** The maxima that readers of the payload rely on; 750 together. */
const MAX_POINTS: Readonly<Record<LiteTaskId, number>> = {
  task_files_lite: 350,
  task_shell_command_lite: 300,
  babylonian_clock_lite: 100,
}

/** The tasks that ride on one question. */
const TASKS_OF: Readonly<Record<LiteKind, readonly LiteTaskId[]>> = {
  tool: ['task_files_lite'],
  text: ['task_shell_command_lite', 'babylonian_clock_lite'],
}

/** Nine tenths of a task's points pass it: one property of several may be wrong. */
const PASSED_TENTHS = 9

/** The most of a model's own text that is kept, in code points. */
const KEPT_CODE_POINTS = 200

/** The result of a task that was answered; one that could not be judged stays as open as one without an answer. */
export function taskResult(id: LiteTaskId, day: Day, { points, details, isVoid }: Graded): TaskResult {
  const maxPoints = MAX_POINTS[id]
  const score = Math.round((points / maxPoints) * 1000) / 1000
  const status = isVoid ? 'http_timeout_or_error' : statusOf(points, maxPoints)
  return { id, source: sourceOf(day), points, maxPoints, score, status, details }
}

/** Those of a list of results that belong to a question. */
export function tasksOfKind(kind: LiteKind, tasks: readonly TaskResult[]): TaskResult[] {
  return tasks.filter(({ id }) => TASKS_OF[kind].includes(id))
}

/** The results of a question's tasks when there is nothing to grade: no points, and no say on what the model can. */
export function unansweredTasks(
  kind: LiteKind,
  day: Day,
  why: Readonly<Record<string, unknown>>,
): TaskResult[] {
  return TASKS_OF[kind].map((id) => ({
    id,
    source: sourceOf(day),
    points: 0,
    maxPoints: MAX_POINTS[id],
    score: 0,
    status: 'http_timeout_or_error',
    details: why,
  }))
}

/** The beginning of a text, cut between code points, with lone halves of a pair replaced. */
export function cutText(text: string): string {
  return Array.from(text.slice(0, 2 * KEPT_CODE_POINTS).toWellFormed())
    .slice(0, KEPT_CODE_POINTS)
    .join('')
}

function statusOf(points: number, maxPoints: number): TaskStatus {
  if (points === 0) return 'failed'
  return points * 10 >= maxPoints * PASSED_TENTHS ? 'passed' : 'partial'
}

/** Items are made from this text: anyone can make a day's items again. */
function sourceOf(day: Day): string {
  return `${LITE_SUITE}/${day}`
}

/** Numbers drawn from a seed: the same seed gives the same draws, on every machine and in every version. */
export interface Draw {
  /** A whole number from `least` to `greatest`, both included. */
  integer(least: number, greatest: number): number
  pick<T>(from: readonly T[]): T
  /** `count` different ones, in drawn order. */
  sample<T>(from: readonly T[], count: number): T[]
  /** Lower-case letters and digits, beginning with a letter. */
  word(length: number): string
}

const LETTERS = Array.from('abcdefghijkmnpqrstuvwxyz')
const LETTERS_AND_DIGITS = [...LETTERS, ...Array.from('23456789')]

/**
 * The draws of a seed text: SHA-256 of the text gives the four words with which the generator sfc32 (Chris
 * Doty-Humphrey's, 32-bit arithmetic only) begins; its first twelve numbers are thrown away.
 */
export function drawsFrom(seed: string): Draw {
  const next = sfc32(sha256Hex(seed))
  const integer = (least: number, greatest: number): number =>
    least + Math.floor((next() / 2 ** 32) * (greatest - least + 1))
  const pick = <T>(from: readonly T[]): T => {
    const picked = from[integer(0, from.length - 1)]
    if (picked === undefined) throw new RangeError('nothing to pick from')
    return picked
  }
  const sample = <T>(from: readonly T[], count: number): T[] => {
    const left = [...from]
    return Array.from({ length: count }, () => {
      const place = integer(0, left.length - 1)
      const [taken] = left.splice(place, 1)
      if (taken === undefined) throw new RangeError(`fewer than ${count} to choose from`)
      return taken
    })
  }
  const word = (length: number): string =>
    pick(LETTERS) + Array.from({ length: length - 1 }, () => pick(LETTERS_AND_DIGITS)).join('')
  return { integer, pick, sample, word }
}

/** Unsigned 32-bit numbers. */
function sfc32(hex: string): () => number {
  const word = (place: number): number => Number.parseInt(hex.slice(place * 8, place * 8 + 8), 16) | 0
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
