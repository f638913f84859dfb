/** Shared code of the benchmarks: a temporary folder, child processes that always end, and one table at the end. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const REPORT_USAGE = fileURLToPath(new URL('report-usage.mjs', import.meta.url))
const DASH = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))

/** Time in which a stopped child must end. */
const STOP_MS = 5_000

const DAY_MS = 86_400_000
const SIGNALS_PER_SOURCE = 450

const children = new Set()

/**
 * Runs a bench in its own temporary folder. Folder and children are gone when it ends, fails or is
 * interrupted.
 *
 * @param {(folder: string) => Promise<void>} bench
 */
export async function runBench(bench) {
  const folder = mkdtempSync(join(tmpdir(), 'dash-bench-'))
  process.once('SIGINT', () => process.exit(130))
  process.once('SIGTERM', () => process.exit(143))
  // The last resort of every way out; the usual one has stopped the children before.
  process.once('exit', () => {
    for (const child of children) child.kill('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  })
  try {
    await bench(folder)
  } catch (error) {
    console.error(error)
    process.exitCode = 1
  } finally {
    await Promise.all([...children].map(stopChild))
  }
}

/**
 * Starts a process that is stopped with the bench at the latest.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 */
export function startChild(command, args, options = {}) {
  const child = spawn(command, args, options)
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/**
 * Ends a process as its operator would, then by force.
 *
 * @param {import('node:child_process').ChildProcess} child
 */
export async function stopChild(child) {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const deadline = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await exited
  clearTimeout(deadline)
}

/**
 * Runs a command to its end.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<string>} its standard output
 * @throws when it cannot be started or does not exit with 0
 */
export async function run(command, args, options = {}) {
  const child = startChild(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => (output[name] += text))
  }
  const code = await new Promise((resolve, reject) => {
    child.once('error', (cause) => reject(new Error(`${command} cannot be started`, { cause })))
    child.once('close', resolve)
  })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} exited with ${code}: ${output.stderr}`)
  return output.stdout
}

/**
 * Runs a Node program to its end and measures it.
 *
 * @param {readonly string[]} args script and its arguments
 * @param {string} folder a temporary folder, which is also the working folder
 * @param {Record<string, string>} env further settings
 * @returns {Promise<{ stdout: string, wallMs: number, peakBytes: number }>}
 */
export async function measureNode(args, folder, env = {}) {
  const usageFile = join(folder, 'usage.json')
  const startedAt = performance.now()
  const stdout = await run(process.execPath, ['--import', REPORT_USAGE, ...args], {
    cwd: folder,
    env: { ...plainEnvironment(), ...env, BENCH_USAGE_FILE: usageFile },
  })
  const wallMs = performance.now() - startedAt
  const { peakBytes } = JSON.parse(readFileSync(usageFile, 'utf8'))
  return { stdout, wallMs, peakBytes }
}

/**
 * Runs the built `dash` to its end with `--json` and measures it.
 *
 * @param {readonly string[]} args
 * @param {string} folder
 * @param {Record<string, string>} env further settings
 * @returns {Promise<{ report: any, wallMs: number, peakBytes: number }>}
 */
export async function runDash(args, folder, env = {}) {
  const { stdout, ...measured } = await measureNode([DASH, ...args, '--json'], folder, env)
  return { report: JSON.parse(stdout), ...measured }
}

/**
 * Starts `dash serve` on a free port and waits until it listens.
 *
 * @param {string} dataDir
 * @param {{ logLevel: string, logFile: number, env?: Record<string, string> }} options `logFile` is a descriptor that
 *   takes the log, `env` further settings
 * @returns {Promise<string>} its URL
 */
export async function startDash(dataDir, { logLevel, logFile, env = {} }) {
  const child = startChild(
    process.execPath,
    [DASH, 'serve', '--port', '0', '--data-dir', dataDir, '--json'],
    {
      cwd: dataDir,
      env: { ...plainEnvironment(), ...env, DASH_LOG_LEVEL: logLevel },
      stdio: ['ignore', 'pipe', logFile],
    },
  )
  return JSON.parse(await firstLine(child)).url
}

/**
 * Imports a synthetic year of the three news sources and publishes it: about 250 KB.
 *
 * @param {string} folder
 * @param {string} dataDir
 */
export async function publishSyntheticYear(folder, dataDir) {
  for (const source of ['hn', 'lobsters', 'lesswrong']) {
    const file = join(folder, `${source}.ndjson`)
    writeFileSync(
      file,
      signals(source)
        .map((signal) => `${JSON.stringify(signal)}\n`)
        .join(''),
    )
    const vouched = ['--title-provenance', `${source}:bench`]
    await runDash(['import', 'signals', file, ...vouched, '--data-dir', dataDir], folder)
  }
  const { report } = await runDash(['publish-year', '--once', '--data-dir', dataDir], folder)
  note(`published ${report.publicationId}, ${report.byteSize} bytes`)
}

/** Signals spread evenly over the last complete year, with titles and links of the length that makes 250 KB. */
function signals(source) {
  const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS
  return Array.from({ length: SIGNALS_PER_SOURCE }, (_, index) => {
    const publishedAt = new Date(midnight - 1 - Math.floor((index * 364.9 * DAY_MS) / SIGNALS_PER_SOURCE))
    const words = `${source} story ${index} ${'about a rather long and winding subject '.repeat(3)}`
    return {
      source,
      sourceId: `${index}`,
      day: publishedAt.toISOString().slice(0, 10),
      title: words.trim(),
      url: `https://${source}.example/${index}/${words.trim().replaceAll(' ', '-')}`,
      points: 10 + ((index * 7919) % 4001),
      comments: (index * 104729) % 997,
      publishedAt: publishedAt.toISOString(),
    }
  })
}

/**
 * The first line a process prints: how servers say that they listen.
 *
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<string>}
 */
export function firstLine(child) {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')))
    })
    child.once('error', reject)
    child.once('exit', (code) =>
      reject(new Error(`${child.spawnfile} ended with ${code} before it listened`)),
    )
  })
}

/** @returns {Promise<number>} a port of loopback that was free a moment ago */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** @returns {string} the folder named by DASH_BENCH_DATA */
export function dataFolder() {
  const folder = process.env.DASH_BENCH_DATA
  if (folder && statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return folder
  throw new Error('set DASH_BENCH_DATA to the folder of the NDJSON data set')
}

/** @param {readonly number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** @param {number} ms */
export const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`

/** @param {number} bytes */
export const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`

/** @param {number} count */
export const grouped = (count) => Math.round(count).toLocaleString('en-US')

/** The 50th, 95th and 99th percentile of milliseconds, as words. */
export function percentiles(values) {
  return percentilesOf(values).map(ms)
}

/** The same as numbers. @param {readonly number[]} values @returns {number[]} */
export function percentilesOf(values) {
  return [50, 95, 99].map((percent) => percentile(values, percent))
}

/** Returns the differences of the percentiles of two series, as texts. */
export function differences(values, others) {
  return [50, 95, 99].map((percent) => ms(percentile(values, percent) - percentile(others, percent)))
}

function percentile(values, percent) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * percent) / 100) - 1)]
}

/** Milliseconds, as words. */
export const ms = (value) => `${value.toFixed(2)} ms`

/**
 * Prints the result: one caption that says what it holds for, one Markdown table.
 *
 * @param {string} caption
 * @param {readonly string[]} headings
 * @param {readonly (readonly (string | number)[])[]} rows
 */
export function printTable(caption, headings, rows) {
  const lines = [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  const machine = `Node ${process.versions.node}, ${availableParallelism()} processors`
  console.log(`${caption} (${machine})\n\n${lines.join('\n')}`)
}

/** Says on standard error what is being done. @param {string} message */
export function note(message) {
  console.error(message)
}

/** The environment without settings that would steer the product. */
export function plainEnvironment() {
  const steers = /^(DASH_|HOST$|PORT$|NODE_OPTIONS$)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !steers.test(name)))
}
