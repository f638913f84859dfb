import { firstCodePoints } from '../../text.ts'
import type {
  Draw,
  Grade,
  LitePrompt,
  ShellFiles,
  ShellLimits,
  ShellRun,
  LiteKind,
  ModelResponse,
} from './suite.ts'
import { SHELL_CASES } from './shell-jobs.ts'
import type { ShellCase, ShellCaseName, ShellJob } from './shell-jobs.ts'
import { sumPoints } from './suite.ts'
import { withoutThoughts } from '../../answers/thoughts.ts'
import { callsFollowFormat } from './file-task.ts'
import { labelledValues, openedFence, withoutPrompts } from './labelled-values.ts'

/** Points; 300 together. */
const POINTS = {
  plausiblyExecutable: 20,
  shellOnly: 20,
  usesGivenTools: 60,
  leavesOtherFilesAlone: 20,
  rightOnShownFiles: 40,
  rightOnOtherFiles: 70,
  rightOnAwkwardFiles: 70,
} as const
const ALL_POINTS = 300

const TOOLS = 'awk, basename, cat, cut, dirname, find, grep, head, mv, sed, sort, tail, tr, uniq, wc, xargs'

/** A hundred times two lines, with room for reasoning. */
const MAX_TOKENS = 4000

/** Limits of one run of a model's command: far above the need of any solution. */
export const SHELL_LIMITS: ShellLimits = { timeMs: 10_000, outputBytes: 65_536 }

export type ShellRuns = Readonly<Record<ShellCaseName, ShellRun>>

export function textPrompt(job: ShellJob, clock: ClockItem): LitePrompt {
  const files = [...job.cases.shown.files].map(([path, content]) => `--- ${path}\n${content}`).join('')
  const content = `Two short tasks that have nothing to do with each other.

Task 1: a shell command. The current folder has these files (--- stands before each path and is not part of the file):
${files}--- end
${job.task} The one command line must do this for any files of this form, spaces in names included, not only for these. Use the shell itself and these tools, no others: ${TOOLS}.

Task 2: a clock. ${clock.task}

${RESPONSE_FORMAT}`
  return { messages: [{ role: 'user', content }], tools: [], maxTokens: MAX_TOKENS }
}

/**
 * Grades a command by its runs. A property that the sandbox could not check is void: it is left out of the details, and
 * its points go to the other properties in proportion. The command earns points only when it was right on a tree that
 * the model did not see. The whole task is void when no unseen tree could be judged, unless the command was wrong on
 * the shown tree or called tools that were not offered.
 *
 * @param runs null without a command
 */
export function gradeShell(job: ShellJob, command: string | null, runs: ShellRuns | null): Grade {
  if (command === null || runs === null) {
    const none = Object.keys(POINTS).map((name) => [name, false])
    return { points: 0, details: { command: '', ...Object.fromEntries(none) } }
  }
  const judged = judge(job, command, runs)
  const { rightOnShownFiles, rightOnOtherFiles, rightOnAwkwardFiles, usesGivenTools } = judged
  const decided = Object.entries(judged).filter(([, holds]) => holds !== null)
  const maxPoints = decided.reduce((sum, [name]) => sum + POINTS[name as keyof Judged], 0)
  const isProved = rightOnOtherFiles === true || rightOnAwkwardFiles === true
  const isUnjudged = rightOnOtherFiles === null && rightOnAwkwardFiles === null
  const unsupported = SHELL_CASES.map((name) => runs[name]).find(({ outcome }) => outcome === 'unsupported')
  return {
    isVoid: isUnjudged && rightOnShownFiles !== false && usesGivenTools === true,
    // Rounded half up.
    points: isProved
      ? Math.floor((2 * ALL_POINTS * sumPoints(judged, POINTS) + maxPoints) / (2 * maxPoints))
      : 0,
    details: {
      command: excerpt(command),
      ...Object.fromEntries(decided),
      ...(unsupported ? { sandboxUnsupported: excerpt(unsupported.reason ?? '') } : {}),
    },
  }
}

/** The beginning of a text for the published details. */
function excerpt(text: string): string {
  return firstCodePoints(text.toWellFormed(), 200)
}

/** null marks a void property. */
type Judged = Record<keyof typeof POINTS, boolean | null>

function judge({ cases, ordered }: ShellJob, command: string, runs: ShellRuns): Judged {
  const every = SHELL_CASES.map((name) => ({ expected: cases[name], run: runs[name] }))
  const [shown = null, other = null, awkward = null] = every.map(({ expected, run }) =>
    unlessVoid(run, () => resultIsRight(expected, run, ordered)),
  )
  const othersUnchanged = new Set(
    every.map(({ expected, run }) => unlessVoid(run, () => othersUntouched(expected, run.files))),
  )
  return {
    plausiblyExecutable: every.every(({ run }) => run.outcome !== 'not-executable'),
    shellOnly: !/[\r\n]/.test(command),
    usesGivenTools: every.every(({ run }) => run.missingTools.length === 0),
    leavesOtherFilesAlone: othersUnchanged.has(false) ? false : othersUnchanged.has(true) || null,
    rightOnShownFiles: shown,
    rightOnOtherFiles: other,
    rightOnAwkwardFiles: awkward,
  }
}

function unlessVoid(run: ShellRun, judged: () => boolean): boolean | null {
  if (run.outcome === 'unsupported') return null
  return run.outcome === 'ran' && judged()
}

function resultIsRight({ files, prints, after }: ShellCase, run: ShellRun, ordered: boolean): boolean {
  if (prints !== null && !sameLines(run.stdout, prints, ordered)) return false
  const paths = [...files.keys(), ...after.keys()]
  const changed = paths.filter((path) => files.get(path) !== after.get(path))
  return changed.every((path) => run.files.get(path) === after.get(path))
}

/** True when every file that the job does not change is unchanged, and no other file exists. */
function othersUntouched({ files, after }: ShellCase, found: ShellFiles): boolean {
  const kept = [...files].filter(([path, content]) => after.get(path) === content)
  const known = [...found.keys()].every((path) => files.has(path) || after.has(path))
  return known && kept.every(([path, content]) => found.get(path) === content)
}

/** Compares words, not columns, because tools pad to different widths; ignores a leading `./`. */
function sameLines(stdout: string, expected: readonly string[], ordered: boolean): boolean {
  const plain = (line: string): string => line.trim().replace(/\s+/g, ' ').replace(/^\.\//, '')
  const inOrder = (lines: readonly string[]): string => {
    const words = lines.map(plain)
    return (ordered ? words : words.sort()).join('\n')
  }
  return inOrder(stdout.split('\n').filter((line) => plain(line) !== '')) === inOrder(expected)
}

/** The puzzle of a day: a time written with wedges in base 60, by a clock that runs ahead. */
export interface ClockItem {
  task: string
  /** `hh:mm:ss` */
  expected: string
}

/** Pairs of signs, for ten and for one. */
const SIGNS = ['<Y', '#o', 'xi', 'Lv', '=-', '@t'].map((pair) => Array.from(pair))

/** Number of signs in all three places: the same every day, so that every day is equally hard to count. */
const WEDGES = 24

/**
 * Draws the puzzle. The hours have one ten, every number has at least one of each sign, and subtracting the clock's lead
 * always borrows exactly one hour.
 */
export function drawClock(draw: Draw): ClockItem {
  const [ten = '', one = ''] = draw.pick(SIGNS)
  const [hours, minutes, seconds] = draw.pick(READINGS)
  const lead = draw.integer(40, 59)
  const smallestFirst = draw.pick([true, false])
  const places = [hours, minutes, seconds].map(
    (value) => ten.repeat(Math.floor(value / 10)) + one.repeat(value % 10),
  )
  const written = (smallestFirst ? places.toReversed() : places).join(' / ')
  const task = `A Babylonian clock writes a time of day as three numbers. In each number "${ten}" counts ten and "${one}" counts one. The order is ${smallestFirst ? 'seconds / minutes / hours' : 'hours / minutes / seconds'}. It shows: ${written}
The clock is exactly ${lead} minutes ahead of the true time. Give the true time as hh:mm:ss on the 24-hour clock.`
  const right = [hours - 1, minutes + 60 - lead, seconds]
  return { task, expected: right.map((value) => String(value).padStart(2, '0')).join(':') }
}

/** Grades a time: full points when it is right, some for two right places. A null `received` is a missing time. */
export function gradeClock({ expected }: ClockItem, received: string | null): Grade {
  const places = /^(\d{1,2}):(\d{1,2}):(\d{1,2})$/.exec(received ?? '')?.slice(1) ?? []
  const right = expected.split(':').filter((place, index) => Number(places[index]) === Number(place)).length
  return {
    points: right === 3 ? 100 : right === 2 ? 40 : 0,
    details: { expected, received: received ?? '' },
  }
}

/** Every time of day with that many signs. */
const READINGS = range(13, 19).flatMap((hours) =>
  range(11, 39).flatMap((minutes) =>
    range(11, 59).flatMap((seconds): [number, number, number][] => {
      const digits = Array.from(`${hours}${minutes}${seconds}`, Number)
      const signs = digits.reduce((sum, digit) => sum + digit, 0)
      return signs === WEDGES && !digits.includes(0) ? [[hours, minutes, seconds]] : []
    }),
  ),
)

function range(least: number, greatest: number): number[] {
  return Array.from({ length: greatest - least + 1 }, (_, index) => least + index)
}

interface TextResponse {
  /** The command, possibly of several lines; null when missing. */
  command: string | null
  /** The time as written; null when missing. */
  time: string | null
  /** True for exactly the two requested lines. */
  followsFormat: boolean
}

/** The last lines of the text prompt: the format that {@link parseTextResponse} reads. */
const RESPONSE_FORMAT = `Answer with exactly two lines and nothing else, no Markdown:
COMMAND: the one-line shell command
TIME: the true time as hh:mm:ss`

/**
 * Parses a response. The format is two labelled lines. Other forms are read as a person reads them
 * ({@link labelledValues}); the last value of each label counts, because models reason aloud first. Without labels, the only
 * fenced block and the only time count.
 */
export function parseTextResponse(text: string): TextResponse {
  const answer = withoutThoughts(text).trim()
  const lines = answer.split(/\r?\n/)
  const followsFormat =
    lines.length === 2 && /^COMMAND: \S/.test(lines[0] ?? '') && /^TIME: \d\d:\d\d:\d\d$/.test(lines[1] ?? '')
  const times = labelledValues(answer, 'TIME')
  return {
    command: labelledValues(answer, 'COMMAND').at(-1) ?? onlyBlock(lines),
    time:
      times.length > 0
        ? (times.flatMap((value) => timesIn(value)[0] ?? []).at(-1) ?? null)
        : onlyTime(answer),
    followsFormat,
  }
}

/** Finds times; full-width digits, other colons and spaces around them count. */
function timesIn(text: string): string[] {
  const plain = text.normalize('NFKC').replace(/(?<=\d) ?[:∶] ?(?=\d)/g, ':')
  return plain.match(/(?<![\d:])\d{1,2}:\d{2}:\d{2}(?![\d:])/g) ?? []
}

function onlyTime(text: string): string | null {
  const [first = null, ...others] = new Set(timesIn(text))
  return others.length === 0 ? first : null
}

/** The content of the only closed fence with more than a time in it. */
function onlyBlock(lines: readonly string[]): string | null {
  const fences = lines.flatMap((line, index) => (openedFence(line) ? [index] : []))
  const contentOf = (at: number, end: number): string =>
    lines
      .slice(at + 1, end)
      .join('\n')
      .trim()
  const blocks = fences.flatMap((at, index) => {
    const end = fences[index + 1]
    return index % 2 === 0 && end !== undefined ? [contentOf(at, end)] : []
  })
  const [only = null, ...others] = blocks.filter((block) => !/^[\d:\s]*$/.test(block))
  return others.length > 0 || only === null ? null : withoutPrompts(only)
}

/** True when a response has the requested form, whatever its content. */
export function responseFollowsFormat(kind: LiteKind, response: ModelResponse): boolean {
  return kind === 'tool' ? callsFollowFormat(response) : parseTextResponse(response.text).followsFormat
}

/**
 * True for a response that reached its token limit before it answered the prompt: it proves nothing about the model.
 */
export function isCutShort(kind: LiteKind, { text, toolCalls, finishReason }: ModelResponse): boolean {
  if (finishReason !== 'length') return false
  if (kind === 'tool') return toolCalls.length === 0
  const { command, time } = parseTextResponse(text)
  return command === null && time === null
}
