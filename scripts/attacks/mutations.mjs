/**
 * Changes src in small ways, one at a time in a copy of the repository, and tells which changes no test notices: first
 * the tests that import the changed file, then the rest of the suite. `--related` leaves out the rest. With
 * `--suite slow` the program is built from each change. `--again FILE` takes from the same sample only the changes that
 * survived a run, of which FILE is the output.
 *
 * usage: node scripts/attacks/mutations.mjs [--count 80] [--seed 1] [--under src/domain] [--suite fast|slow] [--related]
 *   [--again FILE]
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs, stripVTControlCharacters } from 'node:util'

const ROOT = resolve(import.meta.dirname, '../..')
const RUN_SECONDS = '300'

const { values: flags } = parseArgs({
  options: {
    count: { type: 'string', default: '80' },
    seed: { type: 'string', default: '1' },
    under: { type: 'string', default: 'src' },
    suite: { type: 'string', default: 'fast' },
    related: { type: 'boolean', default: false },
    again: { type: 'string' },
  },
})
if (!/^\d+$/.test(flags.count + flags.seed) || !['fast', 'slow'].includes(flags.suite)) {
  console.error(
    'usage: mutations.mjs [--count N] [--seed N] [--under PATH] [--suite fast|slow] [--related] [--again FILE]',
  )
  process.exit(64)
}

/** The text with comments, texts and regular expressions blanked, so that places in it are places of code. */
function codeOf(text) {
  const hidden =
    /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[(=,:]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\//g
  return text.replace(hidden, (found) => found.replace(/[^\n]/g, '_'))
}

const SWAPPED = { '<': '<=', '<=': '<', '>': '>=', '>=': '>', '&&': '||', '||': '&&' }

const isBalanced = (code) => {
  let depth = 0
  for (const character of code) {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (depth < 0) return false
  }
  return depth === 0
}

/** A statement of its own: the line before neither waits for a value nor is the head of a declaration. */
const CALL =
  /^(\s+)(?:void |await )?(?!return\b|throw\b|if\b|for\b|while\b|switch\b|super\b)[\w#$][\w#$.?!]*\(.*\)$/
const isStatement = (line, before) =>
  CALL.test(line) && isBalanced(line) && !/[(,=?:&|[.+]\s*$|=>\s*$/.test(before)

/** Every mutation of one kind in a file: its line, and the lines that take the place of `taken` ones. */
const KINDS = {
  negate: (line, code) => {
    const [, before, condition, after] = /^(\s*(?:\} else )?if \()(.*)(\)[^)]*)$/.exec(code) ?? []
    if (condition === undefined || !isBalanced(condition)) return []
    const end = before.length + condition.length
    return [`${before}!(${line.slice(before.length, end)})${line.slice(line.length - after.length)}`]
  },
  compare: (line, code) => replaced(line, code, / (<=?|>=?) /g, (operator) => SWAPPED[operator]),
  logic: (line, code) => replaced(line, code, /(?:^\s*| )(&&|\|\|) /g, (operator) => SWAPPED[operator]),
  number: (line, code) =>
    replaced(
      line,
      code,
      /(?<![\w.#$\]])(\d[\d_]*)(?![\w.])/g,
      (number) => `${Number(number.replaceAll('_', '')) + 1}`,
    ),
  drop: (line, code, { before }) => (isStatement(code, before) ? [`${/^\s*/.exec(line)[0]};`] : []),
  swap: (line, code, { before, next, nextCode }) => {
    const isAwaited = (text) => /^\s*await .*\)$/.test(text) && isBalanced(text)
    const isPair = isAwaited(code) && isAwaited(nextCode) && isStatement(code, before)
    return isPair && /^\s*/.exec(line)[0] === /^\s*/.exec(next)[0] ? [`${next}\n${line}`] : []
  },
}

function replaced(line, code, pattern, swap) {
  return [...code.matchAll(pattern)].map(({ 0: whole, 1: part, index }) => {
    const at = index + whole.indexOf(part)
    return line.slice(0, at) + swap(part) + line.slice(at + part.length)
  })
}

function mutationsOf(file) {
  const text = readFileSync(join(ROOT, file), 'utf8')
  const lines = text.split('\n')
  const code = codeOf(text).split('\n')
  return lines.flatMap((line, index) => {
    if (/^\s*(?:import|export type|type|interface|\*|\/)/.test(line)) return []
    const around = {
      before: code[index - 1] ?? '',
      next: lines[index + 1] ?? '',
      nextCode: code[index + 1] ?? '',
    }
    return Object.entries(KINDS).flatMap(([kind, make]) =>
      make(line, code[index], around).map((to) => {
        const taken = kind === 'swap' ? 2 : 1
        return { kind, file, index, from: lines.slice(index, index + taken).join('\n'), to, taken }
      }),
    )
  })
}

/** Numbers from 0 to 1 that are the same for the same seed. */
function randomOf(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Kinds are drawn first, so that there are not numbers alone. */
function sample(mutations, count, random) {
  const pools = Object.keys(KINDS).map((kind) => mutations.filter((one) => one.kind === kind))
  const chosen = []
  while (chosen.length < count && pools.some((pool) => pool.length > 0)) {
    const pool = pools[Math.floor(random() * pools.length)]
    if (pool.length > 0) chosen.push(...pool.splice(Math.floor(random() * pool.length), 1))
  }
  return chosen
}

const git = (...args) =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean)

function copyRepository() {
  const copy = mkdtempSync(`${ROOT}-mutations-`)
  // Some tests run the program as another user.
  chmodSync(copy, 0o755)
  for (const file of git('ls-files', '-z', '--cached', '--others', '--exclude-standard'))
    if (existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(copy, file))
  if (!existsSync(join(ROOT, 'dist'))) execFileSync('npm', ['run', 'build'], { cwd: ROOT, stdio: 'ignore' })
  cpSync(join(ROOT, 'dist'), join(copy, 'dist'), { recursive: true })
  // Links to the files, not to the folder: the sandbox of the lite suite may read below its own package alone.
  execFileSync('cp', ['-al', join(ROOT, 'node_modules'), copy])
  rmSync(join(copy, 'node_modules/.vite'), { recursive: true, force: true })
  return copy
}

/** Runs a command to its end, with all its processes; returns its exit code and output. */
function run(args, cwd) {
  const options = { cwd, encoding: 'utf8', maxBuffer: 2 ** 30 }
  const { status, signal, stdout, stderr } = spawnSync(
    'timeout',
    ['-s', 'KILL', RUN_SECONDS, ...args],
    options,
  )
  const isOver = signal === 'SIGKILL' || status === 137
  return { end: isOver ? 'timeout' : status === 0 ? 'passed' : 'failed', output: stdout + stderr }
}

/**
 * @returns `survived`, `killed` with the test that failed first, `timeout`, or `invalid` for a change that is no program
 */
function fate(copy, file) {
  const config = flags.suite === 'slow' ? ['--config', 'vitest.slow.config.ts'] : []
  const shared = ['--run', '--bail', '1', '--passWithNoTests', ...config]
  const steps = [
    ...(flags.suite === 'slow' ? [['node', 'scripts/build/build.mjs']] : []),
    ['npx', 'vitest', 'related', file, ...shared],
    ...(flags.related ? [] : [['npx', 'vitest', ...shared]]),
  ]
  for (const args of steps) {
    const { end, output } = run(args, copy)
    if (end === 'timeout') return { told: end }
    const isBuild = args[0] === 'node'
    if (/PARSE_ERROR|Transform failed/.test(output) || (isBuild && end === 'failed'))
      return { told: 'invalid' }
    const [, by = args.join(' ')] = /^ *FAIL +(.*)$/m.exec(stripVTControlCharacters(output)) ?? []
    if (end === 'failed') return { told: 'killed', by }
  }
  // The tests strip the types.
  return { told: run(['npx', 'tsc', '-p', 'tsconfig.json'], copy).end === 'failed' ? 'invalid' : 'survived' }
}

/** The line of a mutation in the output. */
function nameOf(told, { kind, file, index }) {
  return `${told.padEnd(8)} ${kind.padEnd(7)} ${file}:${index + 1}\n`
}

const copy = copyRepository()
process.once('exit', () => rmSync(copy, { recursive: true, force: true }))
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

const files = git('ls-files', '-z', '--', flags.under).filter((file) => /^src\/.*\.ts$/.test(file))
const sampled = sample(files.flatMap(mutationsOf), Number(flags.count), randomOf(Number(flags.seed)))
const output = flags.again === undefined ? null : readFileSync(flags.again, 'utf8')
const mutations = sampled.filter((one) => output?.includes(nameOf('survived', one)) ?? true)
const fates = {}
for (const mutation of mutations) {
  const { file, index, from, to, taken } = mutation
  const path = join(copy, file)
  const original = readFileSync(path, 'utf8')
  writeFileSync(path, original.split('\n').toSpliced(index, taken, to).join('\n'))
  const { told, by } = fate(copy, file)
  writeFileSync(path, original)
  fates[told] = (fates[told] ?? 0) + 1
  process.stdout.write(nameOf(told, mutation))
  if (told === 'killed') console.log(`  by ${by}`)
  if (told === 'survived') console.log(`${from.replace(/^/gm, '  - ')}\n${to.replace(/^/gm, '  + ')}`)
}
console.log(
  `${mutations.length} mutations: ${Object.entries(fates)
    .map(([name, count]) => `${count} ${name}`)
    .join(', ')}`,
)
