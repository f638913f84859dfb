import type { Draw } from './grade.ts'
import { shellJob } from './shell-jobs.ts'
import type { JobMaker, Tree } from './shell-jobs.ts'

/** Jobs over a folder of files: search, count, distinct lines, rename, replace. */

const FOLDERS = ['app', 'core', 'data', 'edge', 'home', 'jobs', 'keys', 'logs']
const EXTENSIONS = ['log', 'txt', 'cfg', 'out', 'lst', 'rec']
const MARKS = ['FATAL', 'ALERT', 'PANIC', 'ABORT', 'CRASH', 'ERROR']
const PLAIN = ['ready', 'start', 'sleep', 'check', 'reset', 'close']

interface Names {
  folders: readonly string[]
  ext: string
  otherExt: string
  mark: string
  plain: readonly string[]
}

function drawNames(draw: Draw): Names {
  const [ext = '', otherExt = ''] = draw.sample(EXTENSIONS, 2)
  return {
    folders: draw.sample(FOLDERS, 3),
    ext,
    otherExt,
    mark: draw.pick(MARKS),
    plain: draw.sample(PLAIN, 4),
  }
}

const endsWith = (path: string, ext: string): boolean => path.endsWith(`.${ext}`)

/** Three trees in which lines with and without a mark are spread over files in nested folders. */
function markedTrees(draw: Draw, names: Names): { shown: Tree; other: Tree; awkward: Tree } {
  const { folders, ext, otherExt, mark, plain } = names
  const [first = '', second = '', third = ''] = folders
  const [a = '', b = '', c = '', d = ''] = plain
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
  return { shown, other, awkward }
}

export const search: JobMaker = (draw) => {
  const names = drawNames(draw)
  const { ext, mark } = names
  return shellJob({
    kind: 'search',
    task: `Print the path of every file below the current folder, at any depth, whose name ends in .${ext} and which has the text ${mark}: (in capitals, with the colon) anywhere in it. One path a line, each path once, in any order.`,
    ordered: false,
    solution: `grep -rlF --include='*.${ext}' '${mark}:' .`,
    ...markedTrees(draw, names),
    prints: (tree) =>
      Object.entries(tree).flatMap(([path, lines]) =>
        endsWith(path, ext) && lines.some((line) => line.includes(`${mark}:`)) ? [path] : [],
      ),
  })
}

export const count: JobMaker = (draw) => {
  const names = drawNames(draw)
  const { ext, mark } = names
  return shellJob({
    kind: 'count',
    task: `Print one number and nothing else: how many lines contain the text ${mark}: (in capitals, with the colon), over all files below the current folder, at any depth, whose names end in .${ext}.`,
    ordered: true,
    solution: `find . -type f -name '*.${ext}' -exec cat {} + | grep -cF '${mark}:'`,
    ...markedTrees(draw, names),
    prints(tree) {
      const matching = Object.entries(tree)
        .filter(([path]) => endsWith(path, ext))
        .flatMap(([, lines]) => lines.filter((line) => line.includes(`${mark}:`)))
      return [String(matching.length)]
    },
  })
}

export const replace: JobMaker = (draw) => {
  const names = drawNames(draw)
  const { ext, mark } = names
  const put = draw.pick(PLAIN).toUpperCase()
  return shellJob({
    kind: 'replace',
    task: `In every file below the current folder, at any depth, whose name ends in .${ext}: replace every occurrence of ${mark}: (in capitals, with the colon) by ${put}: and save the file in place. Change no other file and create none.`,
    ordered: false,
    solution: `find . -type f -name '*.${ext}' -exec sed -i 's/${mark}:/${put}:/g' {} +`,
    ...markedTrees(draw, names),
    changes: (tree) =>
      Object.fromEntries(
        Object.entries(tree).map(([path, lines]) => [
          path,
          endsWith(path, ext) ? lines.map((line) => line.replaceAll(`${mark}:`, `${put}:`)) : lines,
        ]),
      ),
  })
}

/** Trees with one folder of files whose names matter. */
function listTrees(
  draw: Draw,
  folder: string,
  ext: string,
  otherExt: string,
): { shown: Tree; other: Tree; awkward: Tree } {
  const [a = '', b = '', c = '', d = '', e = '', f = ''] = draw.sample(
    ['amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heron'],
    6,
  )
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
  return { shown, other, awkward }
}

function drawList(draw: Draw): { folder: string; ext: string; otherExt: string } {
  const [ext = '', otherExt = ''] = draw.sample(EXTENSIONS, 2)
  return { folder: draw.pick(FOLDERS), ext, otherExt }
}

export const distinct: JobMaker = (draw) => {
  const { folder, ext, otherExt } = drawList(draw)
  return shellJob({
    kind: 'distinct',
    task: `Print every different line that occurs in the files directly in the folder ${folder} whose names end in .${ext}. Each line once, sorted ascending.`,
    ordered: true,
    solution: `cat ${folder}/*.${ext} | LC_ALL=C sort -u`,
    ...listTrees(draw, folder, ext, otherExt),
    prints(tree) {
      const files = Object.entries(tree).filter(
        ([path]) => path.startsWith(`${folder}/`) && endsWith(path, ext),
      )
      return [...new Set(files.flatMap(([, lines]) => lines))].sort()
    },
  })
}

export const rename: JobMaker = (draw) => {
  const { folder, ext, otherExt } = drawList(draw)
  const put = draw.pick(['bak', 'old', 'new', 'tmp'])
  return shellJob({
    kind: 'rename',
    task: `Rename every file directly in the folder ${folder} whose name ends in .${ext} so that this last .${ext} becomes .${put}. Leave every other file as it is.`,
    ordered: false,
    solution: `for f in ${folder}/*.${ext}; do mv -- "$f" "\${f%.${ext}}.${put}"; done`,
    ...listTrees(draw, folder, ext, otherExt),
    changes: (tree) =>
      Object.fromEntries(
        Object.entries(tree).map(([path, lines]) => {
          const meant = path.startsWith(`${folder}/`) && endsWith(path, ext)
          return [meant ? `${path.slice(0, -ext.length)}${put}` : path, lines]
        }),
      ),
  })
}
