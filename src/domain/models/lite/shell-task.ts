import { ANSWER_FORM } from './answer.ts'
import type { ClockItem } from './clock-task.ts'
import type { Draw, Graded } from './grade.ts'
import { cutText } from './grade.ts'
import type { ShellFiles, ShellLimits, ShellRun, LiteQuestion } from './suite.ts'
import type { ShellCase, ShellCases, ShellJob } from './shell-jobs.ts'
import { count, distinct, rename, replace, search } from './shell-searches.ts'
import { column, frequency, sum, top } from './shell-jobs.ts'
/** A name for each of a job's trees, and for the property that it judges. */
const CASES = {
  shown: 'rightOnShownFiles',
  other: 'rightOnOtherFiles',
  awkward: 'rightOnAwkwardFiles',
} as const

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

const JOBS = [search, count, replace, distinct, rename, column, top, sum, frequency] as const

const TOOLS = 'awk, basename, cat, cut, dirname, find, grep, head, mv, sed, sort, tail, tr, uniq, wc, xargs'

/** Enough for two lines a hundred times over, and for models that reason first. */
const MAX_TOKENS = 4000

/** What one run of a model's command may use: a thousand times what any solution needs. */
export const SHELL_LIMITS: ShellLimits = { timeMs: 10_000, outputBytes: 65_536 }

/** The names of a job's trees, in the order in which a command is run on them. */
export const SHELL_CASES = Object.keys(CASES) as (keyof ShellCases)[]

/** One run for each of a job's trees. */
export type ShellRuns = Readonly<Record<keyof ShellCases, ShellRun>>

/** Draws the job. Names and values are drawn anew while two of its trees would have the same result. */
export function drawShell(draw: Draw): ShellJob {
  const job = draw.pick(JOBS)
  let drawn = job(draw)
  while (!allDifferent(drawn.cases)) drawn = job(draw)
  return drawn
}

/** The text question: the shell job and the clock in one request. */
export function textQuestion(job: ShellJob, clock: ClockItem): LiteQuestion {
  const files = [...job.cases.shown.files].map(([path, content]) => `--- ${path}\n${content}`).join('')
  const content = `Two short tasks that have nothing to do with each other.

Task 1: a shell command. The current folder has these files (--- stands before each path and is not part of the file):
${files}--- end
${job.task} The one command line must do this for any files of this form, spaces in names included, not only for these. Use the shell itself and these tools, no others: ${TOOLS}.

Task 2: a clock. ${clock.task}

${ANSWER_FORM}`
  return { kind: 'text', messages: [{ role: 'user', content }], tools: [], maxTokens: MAX_TOKENS }
}

/**
 * Grades a command by its runs. What the sandbox could not run voids the property: it is left out of the details, and
 * its points go to the other properties in proportion. Nothing is earned until the command was right on a tree that the
 * model did not see: a written-out result shows nothing, and neither does a command that could be judged nowhere. Such a
 * task is void, unless the command was wrong where it could be judged, or calls what was not offered.
 *
 * @param runs null when there was no command
 */
export function gradeShell(job: ShellJob, command: string | null, runs: ShellRuns | null): Graded {
  if (command === null || runs === null) return { points: 0, details: { command: '', ...ofNoCommand() } }
  const properties = judge(job, command, runs)
  const decided = PROPERTIES.filter((name) => properties[name] !== null)
  const proved = properties.rightOnOtherFiles === true || properties.rightOnAwkwardFiles === true
  const earned = sumOf(decided.filter((name) => properties[name] === true))
  const unsupported = SHELL_CASES.flatMap((name) =>
    runs[name].outcome === 'unsupported' ? [runs[name].why] : [],
  )[0]
  const isUnjudged = properties.rightOnOtherFiles === null && properties.rightOnAwkwardFiles === null
  return {
    isVoid: isUnjudged && properties.rightOnShownFiles !== false && properties.usesGivenTools === true,
    points: proved ? rounded(ALL_POINTS * earned, sumOf(decided)) : 0,
    details: {
      command: cutText(command),
      ...Object.fromEntries(decided.map((name) => [name, properties[name]])),
      ...(unsupported === undefined ? {} : { sandboxUnsupported: cutText(unsupported ?? '') }),
    },
  }
}

type Property = keyof typeof POINTS
const PROPERTIES = Object.keys(POINTS) as Property[]

/** null: void. */
type Judged = Record<Property, boolean | null>

function judge({ cases, ordered }: ShellJob, command: string, runs: ShellRuns): Judged {
  const everyRun = SHELL_CASES.map((name) => runs[name])
  const right = (name: keyof ShellCases): boolean | null =>
    unlessVoid(runs[name], () => resultIsRight(cases[name], runs[name], ordered))
  const alone = new Set(
    SHELL_CASES.map((name) => unlessVoid(runs[name], () => othersUntouched(cases[name], runs[name].files))),
  )
  return {
    plausiblyExecutable: everyRun.every(({ outcome }) => outcome !== 'not-executable'),
    shellOnly: !/[\r\n]/.test(command),
    usesGivenTools: everyRun.every(({ missingTools }) => missingTools.length === 0),
    leavesOtherFilesAlone: alone.has(false) ? false : alone.has(true) || null,
    rightOnShownFiles: right('shown'),
    rightOnOtherFiles: right('other'),
    rightOnAwkwardFiles: right('awkward'),
  }
}

function unlessVoid(run: ShellRun, judged: () => boolean): boolean | null {
  if (run.outcome === 'unsupported') return null
  return run.outcome === 'ran' && judged()
}

function resultIsRight({ files, prints, after }: ShellCase, run: ShellRun, ordered: boolean): boolean {
  if (prints !== null && !sameLines(run.stdout, prints, ordered)) return false
  const changed = [...new Set([...files.keys(), ...after.keys()])].filter(
    (path) => files.get(path) !== after.get(path),
  )
  return changed.every((path) => run.files.get(path) === after.get(path))
}

/** True when what the job leaves as it is stayed so, and nothing came that the job does not ask for. */
function othersUntouched({ files, after }: ShellCase, found: ShellFiles): boolean {
  const kept = [...files].filter(([path, content]) => after.get(path) === content)
  const known = [...found.keys()].every((path) => files.has(path) || after.has(path))
  return known && kept.every(([path, content]) => found.get(path) === content)
}

/** Compares words, not columns: the widths that tools pad to differ. A leading `./` means nothing. */
function sameLines(stdout: string, expected: readonly string[], ordered: boolean): boolean {
  const plain = (line: string): string => line.trim().replace(/\s+/g, ' ').replace(/^\.\//, '')
  const given = stdout
    .split('\n')
    .map(plain)
    .filter((line) => line !== '')
  const wanted = expected.map(plain)
  const [one, two] = ordered ? [given, wanted] : [given.sort(), wanted.sort()]
  return one.length === two.length && one.every((line, index) => line === two[index])
}

function allDifferent(cases: ShellCases): boolean {
  const results = SHELL_CASES.map((name) => cases[name]).map(({ prints, after }) =>
    JSON.stringify(prints === null ? [...after] : prints.toSorted()),
  )
  return new Set(results).size === results.length
}

function ofNoCommand(): Record<string, boolean> {
  return Object.fromEntries(PROPERTIES.map((name) => [name, false]))
}

function sumOf(properties: readonly Property[]): number {
  return properties.reduce((total, name) => total + POINTS[name], 0)
}

/** `dividend / divisor` to the nearest whole number, halves up. */
function rounded(dividend: number, divisor: number): number {
  return Math.floor((2 * dividend + divisor) / (2 * divisor))
}
