import type { Draw } from './grade.ts'
import type { ShellFiles } from './suite.ts'

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

/** Jobs over one table of values: a column, the greatest, a sum, how often. */

const SEPARATORS = [
  { sign: ',', name: 'commas' },
  { sign: ';', name: 'semicolons' },
  { sign: ':', name: 'colons' },
] as const

const GROUPS = ['north', 'south', 'east', 'west', 'inner', 'outer']

/** Name, group, points. */
type Row = readonly [string, string, number]

interface Table {
  path: string
  sign: string
  signName: string
  group: string
  shown: Tree
  other: Tree
  awkward: Tree
  rows(tree: Tree): Row[]
}

/** Three tables of the same form. Points differ within a table, and in the awkward one by their number of digits. */
function drawTable(draw: Draw): Table {
  const { sign, name: signName } = draw.pick(SEPARATORS)
  const path = `${draw.word(4)}/${draw.word(5)}.dat`
  const [a = '', b = '', c = ''] = draw.sample(GROUPS, 3)
  const names = draw.sample(
    ['ada', 'bea', 'cyr', 'dov', 'eli', 'fay', 'gus', 'hal', 'ivy', 'jon', 'kim', 'lou'],
    12,
  )
  const rows = (groups: readonly string[], points: readonly number[], first: number, blank = ''): Tree => ({
    [path]: groups.map((group, index) => {
      const name = names[(first + index) % names.length] ?? ''
      return [`${name}${blank}${blank === '' ? '' : index}`, group, points[index]].join(sign)
    }),
  })
  const twoDigits = (count: number): number[] => draw.sample(range(11, 99), count)
  return {
    path,
    sign,
    signName,
    group: a,
    shown: rows([a, b, a, c, b, a], twoDigits(6), 0),
    other: rows([c, a, a, b, a, a, c], twoDigits(7), 6),
    awkward: rows(
      [a, `${a}${b}`, b, a, `${b}${a}`, a, b, b],
      [draw.integer(2, 9), ...draw.sample(range(100, 998), 2), ...twoDigits(3), draw.integer(1001, 1999), 1],
      3,
      ' ',
    ),
    rows: (tree) =>
      (tree[path] ?? []).map((line): Row => {
        const [name = '', group = '', points] = line.split(sign)
        return [name, group, Number(points)]
      }),
  }
}

const trees = ({ shown, other, awkward }: Table): Pick<Table, 'shown' | 'other' | 'awkward'> => ({
  shown,
  other,
  awkward,
})

const described = ({ path, signName }: Table): string =>
  `The file ${path} has one row a line, without a header: name, group, points, separated by ${signName}.`

export const column: JobMaker = (draw) => {
  const table = drawTable(draw)
  const { path, sign, group } = table
  return shellJob({
    kind: 'column',
    task: `${described(table)} Print the name (nothing else) of every row whose group is exactly ${group}, in the order of the file.`,
    ordered: true,
    solution: `awk -F'${sign}' '$2 == "${group}" { print $1 }' ${path}`,
    ...trees(table),
    prints: (tree) => table.rows(tree).flatMap(([name, of]) => (of === group ? [name] : [])),
  })
}

export const top: JobMaker = (draw) => {
  const table = drawTable(draw)
  const { path, sign } = table
  return shellJob({
    kind: 'top',
    task: `${described(table)} Print the three whole rows with the most points, the greatest first.`,
    ordered: true,
    solution: `sort -t '${sign}' -k 3,3nr ${path} | head -n 3`,
    ...trees(table),
    prints: (tree) =>
      table
        .rows(tree)
        .sort((one, two) => two[2] - one[2])
        .slice(0, 3)
        .map((row) => row.join(sign)),
  })
}

export const sum: JobMaker = (draw) => {
  const table = drawTable(draw)
  const { path, sign, group } = table
  return shellJob({
    kind: 'sum',
    task: `${described(table)} Print one number and nothing else: the sum of the points of all rows whose group is exactly ${group}.`,
    ordered: true,
    solution: `awk -F'${sign}' '$2 == "${group}" { sum += $3 } END { print sum }' ${path}`,
    ...trees(table),
    prints(tree) {
      const points = table.rows(tree).flatMap(([, of, value]) => (of === group ? [value] : []))
      return [String(points.reduce((total, value) => total + value, 0))]
    },
  })
}

export const frequency: JobMaker = (draw) => {
  const table = drawTable(draw)
  const { path, sign } = table
  return shellJob({
    kind: 'frequency',
    task: `${described(table)} For every group that occurs, print one line: how many rows it has, a space, and the group. Any order of the lines.`,
    ordered: false,
    solution: `cut -d '${sign}' -f 2 ${path} | sort | uniq -c`,
    ...trees(table),
    prints(tree) {
      const counts = new Map<string, number>()
      for (const [, group] of table.rows(tree)) counts.set(group, (counts.get(group) ?? 0) + 1)
      return [...counts].map(([group, rows]) => `${rows} ${group}`)
    },
  })
}

function range(least: number, greatest: number): number[] {
  return Array.from({ length: greatest - least + 1 }, (_, index) => least + index)
}
