import type { Draw, ShellFiles } from './suite.ts'

/**
 * The file trees that grade a command. The model sees only `shown`; `other` has other names and contents; `awkward` has
 * names with spaces, look-alike files and values of other lengths.
 */
export const SHELL_CASES = ['shown', 'other', 'awkward'] as const
export type ShellCaseName = (typeof SHELL_CASES)[number]

/** A file tree of a job, and the expected result. */
export interface ShellCase {
  files: ShellFiles
  /** Lines of standard output; null when only the files count. */
  prints: readonly string[] | null
  /** The tree afterwards; the same as `files` for a job that only prints. */
  after: ShellFiles
}

export interface ShellJob {
  kind: string
  task: string
  ordered: boolean
  cases: Readonly<Record<ShellCaseName, ShellCase>>
  /** A command that solves the job in any shell. */
  solution: string
}

/** Draws the job; draws names and values again while two trees have the same result. */
export function drawShellJob(draw: Draw): ShellJob {
  const drawJob = draw.pick(JOBS)
  for (;;) {
    const drawn = drawJob(draw)
    const results = SHELL_CASES.map((name) => drawn.cases[name]).map(({ prints, after }) =>
      JSON.stringify(prints === null ? [...after] : prints.toSorted()),
    )
    if (new Set(results).size === results.length) return drawn
  }
}

/** A tree of text files, each given by its lines. */
type Tree = Readonly<Record<string, readonly string[]>>

/** Draws the parameters of a job, with one of `replacements` when the job has them, and its trees. */
type Field<W> = (draw: Draw, replacements: readonly string[] | undefined) => [W, Record<ShellCaseName, Tree>]

/** A job definition. Its expected result comes from its own function, so that no command judges another. */
interface JobRow<W> {
  task(params: W): string
  ordered?: boolean
  solution(params: W): string
  prints?(tree: Tree, params: W): string[]
  changes?(file: [path: string, lines: readonly string[]], params: W): [string, readonly string[]]
  replacements?: readonly string[]
}

function job<W>(kind: string, field: Field<W>, row: JobRow<W>): (draw: Draw) => ShellJob {
  return (draw) => {
    const [params, trees] = field(draw, row.replacements)
    const shellCase = (tree: Tree): ShellCase => {
      const after = Object.entries(tree).map((file) => row.changes?.(file, params) ?? file)
      return {
        files: filesOf(Object.entries(tree)),
        prints: row.prints?.(tree, params) ?? null,
        after: filesOf(after),
      }
    }
    const { shown, other, awkward } = trees
    const cases = { shown: shellCase(shown), other: shellCase(other), awkward: shellCase(awkward) }
    const { ordered = false } = row
    return { kind, task: row.task(params), ordered, cases, solution: row.solution(params) }
  }
}

function filesOf(files: readonly (readonly [string, readonly string[]])[]): ShellFiles {
  return new Map(files.map(([path, lines]) => [path, lines.map((line) => `${line}\n`).join('')]))
}

const FOLDERS = ['app', 'core', 'data', 'edge', 'home', 'jobs', 'keys', 'logs']
const EXTENSIONS = ['log', 'txt', 'cfg', 'out', 'lst', 'rec']
const MARKS = ['FATAL', 'ALERT', 'PANIC', 'ABORT', 'CRASH', 'ERROR']
const PLAIN = ['ready', 'start', 'sleep', 'check', 'reset', 'close']
const TREES = ['amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heron']

/** Lines with and without a mark, spread over files in nested folders. */
const marked: Field<{ ext: string; mark: string; put: string }> = (draw, replacements) => {
  const [ext = '', otherExt = ''] = draw.sample(EXTENSIONS, 2)
  const [first = '', second = '', third = ''] = draw.sample(FOLDERS, 3)
  const mark = draw.pick(MARKS)
  const [a = '', b = '', c = '', d = ''] = draw.sample(PLAIN, 4)
  const replacement = replacements ? draw.pick(replacements) : ''
  const [one, two, three, four] = [draw.word(4), draw.word(4), draw.word(4), draw.word(4)]
  const shown = {
    [`${first}/${one}.${ext}`]: [a, `${mark}: ${b}`, c],
    [`${first}/${second}/${two}.${ext}`]: [a, b, d],
    [`${third}/${three}.${ext}`]: [`${mark}: ${c}`, `${mark}: ${d}`],
    [`${third}/${four}.${otherExt}`]: [`${mark}: ${a}`, b],
  }
  const other = {
    [`${first}/${two}.${ext}`]: [a, b, c],
    [`${second}/${four}.${ext}`]: [`${mark}: ${a}`, c, `${mark}: ${c}`],
    [`${second}/${third}/${first}/${one}.${ext}`]: [d, `${mark}: ${b}`],
    [`${three}.${ext}`]: [b, `${mark}: ${d}`, a, `${mark}: ${d}`],
    [`${three}.${otherExt}`]: [`${mark}: ${d}`],
  }
  const awkward = {
    [`${first} ${third}/${one} ${two}.${ext}`]: [`${a} ${mark}: ${b}`, c],
    [`${second}/${three}.${ext}.old`]: [`${mark}: ${c}`],
    [`${second}/${three}${ext}`]: [`${mark}: ${d}`],
    [`${second}/${four}.${ext}`]: [`${mark.toLowerCase()}: ${b}`, `${mark} ${c}`, `${mark}: ${c}`],
    [`${second}/${two}.${ext}`]: [],
    [`${third}/${two} ${four}.${ext}`]: [a, `${mark}: ${a}`, `${mark}: ${mark}: ${d}`],
  }
  return [
    { ext, mark, put: replacement },
    { shown, other, awkward },
  ]
}

/** One folder of files whose names matter. */
const listed: Field<{ folder: string; ext: string; put: string }> = (draw, replacements) => {
  const [ext = '', otherExt = ''] = draw.sample(EXTENSIONS, 2)
  const folder = draw.pick(FOLDERS)
  const replacement = replacements ? draw.pick(replacements) : ''
  const [a = '', b = '', c = '', d = '', e = '', f = ''] = draw.sample(TREES, 6)
  const [one, two, three] = [draw.word(4), draw.word(4), draw.word(4)]
  const shown = {
    [`${folder}/${one}.${ext}`]: [b, a, c],
    [`${folder}/${two}.${ext}`]: [c, b, d],
    [`${folder}/${three}.${otherExt}`]: [e, f],
    [`${three}.${ext}`]: [f],
  }
  const other = {
    [`${folder}/${three}.${ext}`]: [f, a, f],
    [`${folder}/${two}.${ext}`]: [e, d],
    [`${folder}/${one}.${ext}`]: [d, b],
    [`${folder}/${one}.${otherExt}`]: [c],
  }
  const awkward = {
    [`${folder}/${one} ${two}.${ext}`]: [`${e} ${a}`, `${a} ${e}`, `${e} ${a}`],
    [`${folder}/${two}.${ext}.${ext}`]: [b, `${b}${b}`, c],
    [`${folder}/${three}${ext}`]: [d],
    [`${folder}/${three}.${ext}.${otherExt}`]: [f],
  }
  return [
    { folder, ext, put: replacement },
    { shown, other, awkward },
  ]
}

const SEPARATORS = [
  { sign: ',', signs: 'commas' },
  { sign: ';', signs: 'semicolons' },
  { sign: ':', signs: 'colons' },
] as const

const GROUPS = ['north', 'south', 'east', 'west', 'inner', 'outer']
const PEOPLE = ['ada', 'bea', 'cyr', 'dov', 'eli', 'fay', 'gus', 'hal', 'ivy', 'jon', 'kim', 'lou']

interface TableParams {
  path: string
  sign: string
  group: string
  /** The first sentence of every task over a table. */
  described: string
}

/** One table of values. Points differ within a table, and in the awkward one by their number of digits. */
const tabular: Field<TableParams> = (draw) => {
  const { sign, signs } = draw.pick(SEPARATORS)
  const path = `${draw.word(4)}/${draw.word(5)}.dat`
  const [a = '', b = '', c = ''] = draw.sample(GROUPS, 3)
  const names = draw.sample(PEOPLE, PEOPLE.length)
  const points = (least: number, greatest: number, count: number): number[] =>
    draw.sample(
      Array.from({ length: greatest - least + 1 }, (_, index) => least + index),
      count,
    )
  const rows = (groups: readonly string[], values: readonly number[], first: number, odd = false): Tree => {
    const name = (index: number): string =>
      `${names[(first + index) % names.length]}${odd ? ` ${index}` : ''}`
    return { [path]: groups.map((group, index) => [name(index), group, values[index]].join(sign)) }
  }
  const shown = rows([a, b, a, c, b, a], points(11, 99, 6), 0)
  const other = rows([c, a, a, b, a, a, c], points(11, 99, 7), 6)
  const digits = [
    draw.integer(2, 9),
    ...points(100, 998, 2),
    ...points(11, 99, 3),
    draw.integer(1001, 1999),
    1,
  ]
  const awkward = rows([a, `${a}${b}`, b, a, `${b}${a}`, a, b, b], digits, 3, true)
  const described = `The file ${path} has one row a line, without a header: name, group, points, separated by ${signs}.`
  return [
    { path, sign, group: a, described },
    { shown, other, awkward },
  ]
}

function rowsOf(tree: Tree, { path, sign }: TableParams): [name: string, group: string, points: number][] {
  return (tree[path] ?? []).map((line) => {
    const [name = '', group = '', points] = line.split(sign)
    return [name, group, Number(points)]
  })
}

/** Files below the folder, at any depth, by their extension. */
function withExtension(tree: Tree, ext: string): [path: string, lines: readonly string[]][] {
  return Object.entries(tree).filter(([path]) => path.endsWith(`.${ext}`))
}

const JOBS = [
  job('search', marked, {
    task: ({ ext, mark }) =>
      `Print the path of every file below the current folder, at any depth, whose name ends in .${ext} and which has the text ${mark}: (in capitals, with the colon) anywhere in it. One path a line, each path once, in any order.`,
    solution: ({ ext, mark }) => `grep -rlF --include='*.${ext}' '${mark}:' .`,
    prints: (tree, { ext, mark }) =>
      withExtension(tree, ext).flatMap(([path, lines]) =>
        lines.some((line) => line.includes(`${mark}:`)) ? [path] : [],
      ),
  }),
  job('count', marked, {
    task: ({ ext, mark }) =>
      `Print one number and nothing else: how many lines contain the text ${mark}: (in capitals, with the colon), over all files below the current folder, at any depth, whose names end in .${ext}.`,
    ordered: true,
    solution: ({ ext, mark }) => `find . -type f -name '*.${ext}' -exec cat {} + | grep -cF '${mark}:'`,
    prints(tree, { ext, mark }) {
      const lines = withExtension(tree, ext).flatMap(([, each]) => each)
      return [String(lines.filter((line) => line.includes(`${mark}:`)).length)]
    },
  }),
  job('replace', marked, {
    replacements: PLAIN.map((word) => word.toUpperCase()),
    task: ({ ext, mark, put: replacement }) =>
      `In every file below the current folder, at any depth, whose name ends in .${ext}: replace every occurrence of ${mark}: (in capitals, with the colon) by ${replacement}: and save the file in place. Change no other file and create none.`,
    solution: ({ ext, mark, put: replacement }) =>
      `find . -type f -name '*.${ext}' -exec sed -i 's/${mark}:/${replacement}:/g' {} +`,
    changes: ([path, lines], { ext, mark, put: replacement }) => [
      path,
      path.endsWith(`.${ext}`) ? lines.map((line) => line.replaceAll(`${mark}:`, `${replacement}:`)) : lines,
    ],
  }),
  job('distinct', listed, {
    task: ({ folder, ext }) =>
      `Print every different line that occurs in the files directly in the folder ${folder} whose names end in .${ext}. Each line once, sorted ascending.`,
    ordered: true,
    solution: ({ folder, ext }) => `cat ${folder}/*.${ext} | LC_ALL=C sort -u`,
    prints(tree, { folder, ext }) {
      const files = withExtension(tree, ext).filter(([path]) => path.startsWith(`${folder}/`))
      return [...new Set(files.flatMap(([, lines]) => lines))].sort()
    },
  }),
  job('rename', listed, {
    replacements: ['bak', 'old', 'new', 'tmp'],
    task: ({ folder, ext, put: replacement }) =>
      `Rename every file directly in the folder ${folder} whose name ends in .${ext} so that this last .${ext} becomes .${replacement}. Leave every other file as it is.`,
    solution: ({ folder, ext, put: replacement }) =>
      `for f in ${folder}/*.${ext}; do mv -- "$f" "\${f%.${ext}}.${replacement}"; done`,
    changes([path, lines], { folder, ext, put: replacement }) {
      const isAffected = path.startsWith(`${folder}/`) && path.endsWith(`.${ext}`)
      return [isAffected ? `${path.slice(0, -ext.length)}${replacement}` : path, lines]
    },
  }),
  job('column', tabular, {
    task: ({ described, group }) =>
      `${described} Print the name (nothing else) of every row whose group is exactly ${group}, in the order of the file.`,
    ordered: true,
    solution: ({ path, sign, group }) => `awk -F'${sign}' '$2 == "${group}" { print $1 }' ${path}`,
    prints: (tree, params) =>
      rowsOf(tree, params).flatMap(([name, group]) => (group === params.group ? [name] : [])),
  }),
  job('top', tabular, {
    task: ({ described }) =>
      `${described} Print the three whole rows with the most points, the greatest first.`,
    ordered: true,
    solution: ({ path, sign }) => `sort -t '${sign}' -k 3,3nr ${path} | head -n 3`,
    prints(tree, params) {
      const best = rowsOf(tree, params).sort((one, two) => two[2] - one[2])
      return best.slice(0, 3).map((row) => row.join(params.sign))
    },
  }),
  job('sum', tabular, {
    task: ({ described, group }) =>
      `${described} Print one number and nothing else: the sum of the points of all rows whose group is exactly ${group}.`,
    ordered: true,
    solution: ({ path, sign, group }) =>
      `awk -F'${sign}' '$2 == "${group}" { sum += $3 } END { print sum }' ${path}`,
    prints(tree, params) {
      const own = rowsOf(tree, params).filter(([, group]) => group === params.group)
      return [String(own.reduce((total, [, , points]) => total + points, 0))]
    },
  }),
  job('frequency', tabular, {
    task: ({ described }) =>
      `${described} For every group that occurs, print one line: how many rows it has, a space, and the group. Any order of the lines.`,
    solution: ({ path, sign }) => `cut -d '${sign}' -f 2 ${path} | sort | uniq -c`,
    prints(tree, params) {
      const groups = rowsOf(tree, params).map(([, group]) => group)
      return [...new Set(groups)].map((each) => `${groups.filter((group) => group === each).length} ${each}`)
    },
  }),
] as const
