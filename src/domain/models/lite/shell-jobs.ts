import type { Draw } from './grade.ts'
import type { ShellFiles } from './shell.ts'

/** One file tree of a job, and what the job's command must leave there. */
export interface ShellCase {
  files: ShellFiles
  /** Lines of standard output; null when only the files count. */
  prints: readonly string[] | null
  /** The tree afterwards; the same as `files` for a job that only prints. */
  after: ShellFiles
}

/** The trees on which a command is judged. Only the first is shown to the model. */
export interface ShellCases {
  shown: ShellCase
  /** Other names and contents. */
  other: ShellCase
  /** Names with spaces, files that only look like those that are meant, values of other lengths. */
  awkward: ShellCase
}

/** One day's job. */
export interface ShellJob {
  kind: string
  /** What the command shall do, in words. */
  task: string
  /** True when the lines must come in the order given. */
  ordered: boolean
  cases: ShellCases
  /** A command that does the job in any shell. */
  solution: string
}

/** A tree of text files, each given by its lines. */
export type Tree = Readonly<Record<string, readonly string[]>>

/** A job as its maker writes it: the rule is a program of its own, so that no command judges another. */
export interface JobPlan {
  kind: string
  task: string
  ordered: boolean
  solution: string
  shown: Tree
  other: Tree
  awkward: Tree
  /** The lines that a tree must give. */
  prints?(tree: Tree): string[]
  /** The tree that a tree must become. */
  changes?(tree: Tree): Tree
}

/** Makes a plan's cases. */
export function shellJob(plan: JobPlan): ShellJob {
  const shellCase = (tree: Tree): ShellCase => ({
    files: filesOf(tree),
    prints: plan.prints?.(tree) ?? null,
    after: filesOf(plan.changes?.(tree) ?? tree),
  })
  const { kind, task, ordered, solution } = plan
  const cases = {
    shown: shellCase(plan.shown),
    other: shellCase(plan.other),
    awkward: shellCase(plan.awkward),
  }
  return { kind, task, ordered, cases, solution }
}

export type JobMaker = (draw: Draw) => ShellJob

/** Every file but the last line's end is text; the last line ends too. */
function filesOf(tree: Tree): ShellFiles {
  return new Map(
    Object.entries(tree).map(([path, lines]) => [path, lines.map((line) => `${line}\n`).join('')]),
  )
}
