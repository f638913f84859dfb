import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, watch, writeFileSync, statSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TOOLS } from '../../src/server/docs/markdown.ts'
import { commandsOf, isRun } from './examples.ts'
import type { Example } from './examples.ts'

/** The program that `dash` runs in an example. */
const EXAMPLE_DASH = fileURLToPath(new URL('example-dash.mjs', import.meta.url))

/** Timeout of a block, in milliseconds. */
const BLOCK_TIMEOUT_MS = 120_000

/** The result of a block. */
interface BlockResult {
  /** Exit code; null after a timeout. */
  code: number | null
  stdout: string
  stderr: string
}

/** The shell session in which the examples of one page run. */
interface ExampleSession {
  /** Runs a part of a `sh` block in the page's shell, which ends at the first failure, also within a pipe. */
  shell(script: string): Promise<BlockResult>
  /** Runs a separate program. */
  program(command: string, file: string, text: string): Promise<BlockResult>
  /** URL of the server that an example started last; null before. */
  served(): string | null
  /** Log file of that server. */
  serverLog: string
  /** Ends the shell and every started server. */
  close(): Promise<void>
}

/**
 * Opens a session. @param folder working directory; `home` and `run` beside it hold the home directory and the session's
 * files
 * @param settings environment variables other than PATH and HOME
 */
export function openExampleSession(
  folder: string,
  settings: Readonly<Record<string, string>>,
): ExampleSession {
  const run = join(folder, '..', 'run')
  const home = join(folder, '..', 'home')
  for (const path of [run, home]) mkdirSync(path, { recursive: true })
  const env = {
    ...settings,
    EXAMPLES: run,
    HOME: home,
    PATH: `${commandFolder(run)}${delimiter}${process.env['PATH']}`,
  }
  const shell = spawn('bash', ['--posix', '-e', '-o', 'pipefail', '-s'], { cwd: folder, env })
  shell.stdin.on('error', () => undefined)
  const ended = once(shell, 'close').then(([code]) => code as number | null)
  const [block, stdout, stderr] = ['block', 'stdout', 'stderr'].map((name) => join(run, name)) as [
    string,
    string,
    string,
  ]
  const resultOf = (code: number | null): BlockResult => ({
    code,
    stdout: readFileSync(stdout, 'utf8'),
    stderr: readFileSync(stderr, 'utf8'),
  })
  return {
    async shell(script) {
      writeFileSync(block, script)
      shell.stdin.write(
        `{ . "$EXAMPLES/block"; } < /dev/null > "$EXAMPLES/stdout" 2> "$EXAMPLES/stderr"\necho\n`,
      )
      const done = once(shell.stdout, 'data').then(() => 0)
      return resultOf(await killAfterTimeout(Promise.race([done, ended]), shell))
    },
    async program(command, file, text) {
      writeFileSync(join(run, file), text)
      const child = spawn(command, [join(run, file)], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
      const output = { stdout: '', stderr: '' }
      child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
      const closed = once(child, 'close').then(([code]) => code as number | null)
      return { code: await killAfterTimeout(closed, child), ...output }
    },
    served: () => (existsSync(join(run, 'served')) ? readFileSync(join(run, 'served'), 'utf8') : null),
    serverLog: join(run, 'server.log'),
    async close() {
      shell.stdin.end()
      await killAfterTimeout(ended, shell)
      const pids = existsSync(join(run, 'pids'))
        ? readFileSync(join(run, 'pids'), 'utf8').trim().split('\n')
        : []
      for (const pid of pids) endProcess(Number(pid))
    },
  }
}

/** Makes a folder for PATH with the names by which examples call the program. */
function commandFolder(run: string): string {
  const folder = join(run, 'bin')
  mkdirSync(folder, { recursive: true })
  const dash = `exec "${process.execPath}" "${EXAMPLE_DASH}" "$@"\n`
  const npx = `case $1 in dash | dashctl) shift ;; *) echo "no example runs npx $1" >&2; exit 64 ;; esac\n${dash}`
  for (const [name, script] of Object.entries({ dash, dashctl: dash, npx })) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}`)
    chmodSync(join(folder, name), 0o755)
  }
  return folder
}

/** Waits for the end of a process and kills it after the timeout. */
async function killAfterTimeout(end: Promise<number | null>, child: ChildProcess): Promise<number | null> {
  const timer = setTimeout(() => child.kill('SIGKILL'), BLOCK_TIMEOUT_MS)
  try {
    return await end
  } finally {
    clearTimeout(timer)
  }
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** One request in the server's log. */
interface LoggedRequest {
  method: string
  path: string
  status: number
}

let requestCount = 0

/**
 * The requests that a server has logged after the first `start` characters. A request of this function marks the end; the
 * log may aggregate it with others of its route, and writes all pending lines then.
 */
async function requestsSince(url: string, log: string, start: number): Promise<LoggedRequest[]> {
  const id = `examples-${(requestCount += 1)}`
  const before = readFileSync(log, 'utf8').length
  await fetch(`${url}/healthz`, { headers: { 'x-request-id': id } })
  const text = await contentWith(log, before, new RegExp(`"${id}"|"route":"/healthz"[^\\n]*"count":`))
  return text
    .slice(start)
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}') && !line.includes(`"${id}"`))
    .map((line) => JSON.parse(line) as LoggedRequest & { msg: string })
    .filter(({ msg }) => msg === 'request')
}

/** Waits until the content of a file after `start` matches; returns the whole content. */
function contentWith(file: string, start: number, pattern: RegExp): Promise<string> {
  return new Promise((resolve) => {
    const check = (): void => {
      const content = readFileSync(file, 'utf8')
      if (!pattern.test(content.slice(start))) return
      watcher.close()
      resolve(content)
    }
    const watcher = watch(dirname(file), check)
    check()
  })
}

/** Starts the demo for pages that start no server. */
export async function startExampleDemo(
  run: string,
): Promise<{ url: string; log: string; close: () => void }> {
  mkdirSync(run, { recursive: true })
  const child = spawn(process.execPath, [EXAMPLE_DASH, 'serve', '--demo'], {
    // A reader does not run the examples of three languages within a minute.
    env: { PATH: process.env['PATH'], EXAMPLES: run, DASH_V1: '1', DASH_CHAT_BURST_PER_MINUTE: '60' },
    stdio: 'ignore',
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the demo did not start: ${readFileSync(join(run, 'server.log'), 'utf8')}`)
  return {
    url: readFileSync(join(run, 'served'), 'utf8'),
    log: join(run, 'server.log'),
    close: () => endProcess(Number(readFileSync(join(run, 'pids'), 'utf8'))),
  }
}

/**
 * Compares a shown output with the actual one; null if it matches. JSON is compared with standard output: every shown
 * member must exist with the same type (null matches any); of lists, the first element. Text lines must occur in order;
 * numbers and digests may differ, `…` matches anything within a line, and a line `…` or `[…]` any number of lines.
 */
function outputMismatch(language: string, shown: string, { stdout, stderr }: BlockResult): string | null {
  if (language === 'json') {
    const actual = parsed(stdout)
    return actual === undefined
      ? `it prints no JSON:\n${stdout}`
      : shapeMismatch(parsed(shown), actual, 'the output')
  }
  const actual = stdout + stderr
  return textPattern(shown).test(actual.replaceAll(/[ \t]+$/gm, ''))
    ? null
    : `it prints\n${actual.trimEnd()}\ninstead of\n${shown.trimEnd()}`
}

/** Parses JSON; undefined if it is invalid. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function shapeMismatch(shown: unknown, actual: unknown, path: string): string | null {
  if (shown === null || actual === null) return null
  if (kindOf(shown) !== kindOf(actual)) return `${path} is ${kindOf(actual)}, not ${kindOf(shown)}`
  if (Array.isArray(shown) && Array.isArray(actual)) {
    return shown.length === 0 || actual.length === 0 ? null : shapeMismatch(shown[0], actual[0], `${path}[0]`)
  }
  if (typeof shown !== 'object') return null
  for (const [name, value] of Object.entries(shown)) {
    if (!Object.hasOwn(actual as object, name)) return `${path}.${name} is not there`
    const flaw = shapeMismatch(value, (actual as Record<string, unknown>)[name], `${path}.${name}`)
    if (flaw !== null) return flaw
  }
  return null
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'a list' : typeof value
}

function textPattern(shown: string): RegExp {
  const lines = shown
    .trimEnd()
    .split('\n')
    .map((line) => {
      if (/^(?:…|\[…\])$/.test(line)) return '(?:.*\\n)*'
      const pattern = line
        .trimEnd()
        .replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
        .replaceAll(/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/g, '\u0000')
        .replaceAll(/\d+/g, '\\d+')
        .replaceAll('\u0000', '[0-9a-f]+')
        .replaceAll('…', '.*')
      return `${pattern}\\n`
    })
  return new RegExp(`^${lines.join('').replace(/\\n$/, '(?:\\n|$)')}`, 'm')
}

/** The environment of a page's examples. */
interface PageContext {
  session: ExampleSession
  folder: string
  /** The server for requests until the page starts one. */
  demo: { url: string; log: string }
  /** URL of a local model engine, in place of the one in the page. */
  provider: string
}

/** The result of a page. */
export interface PageResult {
  /** Mismatches, one line each that starts with page and line; the first one in a shell ends the page. */
  flaws: string[]
  /** The blocks that ran, each with its requests to the server. */
  ran: { example: Example; requests: LoggedRequest[] }[]
}

/** URLs in examples of a server and of a local model engine. */
const SERVER = /https?:\/\/(?:127\.0\.0\.1:3000|localhost:3000|dash\.example\.org)(?![\w.-])/g
const MODEL_ENGINE = /http:\/\/127\.0\.0\.1:11434\/v1/g

/** Runs every runnable block of a page in order, as in one terminal. */
export async function followPage(examples: readonly Example[], context: PageContext): Promise<PageResult> {
  const result: PageResult = { flaws: [], ran: [] }
  let last: BlockResult | null = null
  for (const example of examples) {
    const at = `${example.page}:${example.line}`
    if (example.file !== null) {
      writeFileSync(join(context.folder, example.file), example.text)
    } else if (example.isOutput) {
      const flaw: string | null = last && outputMismatch(example.language, example.text, last)
      if (flaw !== null) result.flaws.push(`${at}: ${flaw}`)
    } else if (!isRun(example) || toolsOf(example).some((tool) => !isInstalled(tool))) {
      last = null
    } else {
      const { ran, flaw, requests } = await runBlock(example, context)
      last = ran
      result.ran.push({ example, requests })
      if (flaw !== null) result.flaws.push(`${at}: ${flaw}`)
      if (ran !== null && ran.code !== 0) break
    }
  }
  return result
}

/** The programs that an example requires. */
function toolsOf({ language, needs }: Example): string[] {
  return [...needs.filter((need) => TOOLS.includes(need)), ...(language === 'python' ? ['python3'] : [])]
}

/** True if this machine has the program. */
export function isInstalled(tool: string): boolean {
  return spawnSync(tool, ['--version']).status === 0
}

interface BlockOutcome {
  ran: BlockResult | null
  flaw: string | null
  requests: LoggedRequest[]
}

async function runBlock(example: Example, context: PageContext): Promise<BlockOutcome> {
  if (example.language === 'json') {
    return { ran: null, flaw: parsed(example.text) === undefined ? 'it is no JSON' : null, requests: [] }
  }
  const before = serverOf(context)
  const start = statSync(before.log).size
  const { ran, flaw } = await runText(example, context)
  if (flaw !== null) return { ran, flaw, requests: [] }
  const after = serverOf(context)
  const requests = await requestsSince(after.url, after.log, after.url === before.url ? start : 0)
  return { ran, flaw: statusMismatch(example, requests), requests }
}

function serverOf({ session, demo }: PageContext): { url: string; log: string } {
  const url = session.served()
  return url === null || !existsSync(session.serverLog) ? demo : { url, log: session.serverLog }
}

async function runText(
  example: Example,
  context: PageContext,
): Promise<{ ran: BlockResult; flaw: string | null }> {
  const { session, folder, provider } = context
  const adaptText = (text: string): string =>
    text
      .replaceAll(SERVER, serverOf(context).url)
      .replaceAll(MODEL_ENGINE, provider)
      .replaceAll('sk-or-v1-the-key', 'test-key')
      .replaceAll('/usr/bin/node', process.execPath)
      .replaceAll('/opt/dash/dist/cli/main.js', EXAMPLE_DASH)
      .replaceAll('/srv/dash', folder)
  if (example.language === 'js')
    return checkExitCode(await session.program(process.execPath, 'example.mjs', adaptText(example.text)))
  if (example.language === 'python')
    return checkExitCode(await session.program('python3', 'example.py', adaptText(example.text)))
  let ran: BlockResult = { code: 0, stdout: '', stderr: '' }
  for (const { script, shown } of commandsOf(example)) {
    ran = await session.shell(adaptText(script))
    const flaw = shown === null || shown.trim() === '' ? null : outputMismatch('text', shown, ran)
    if (ran.code !== 0 || flaw !== null) return { ran, flaw: checkExitCode(ran).flaw ?? flaw }
  }
  return { ran, flaw: null }
}

function checkExitCode(ran: BlockResult): { ran: BlockResult; flaw: string | null } {
  if (ran.code === 0) return { ran, flaw: null }
  const problem = ran.code === null ? 'did not end by itself' : `ended with ${ran.code}`
  return { ran, flaw: `it ${problem}\n${ran.stdout.slice(-2000)}${ran.stderr.slice(-2000)}` }
}

/** Requests must succeed, except with the statuses that the block marks as refused, each of which must occur. */
function statusMismatch({ refused }: Example, requests: readonly LoggedRequest[]): string | null {
  const unexpected = requests.find(({ status }) => status >= 400 && !refused.includes(status))
  if (unexpected) return `${unexpected.method} ${unexpected.path} was answered with ${unexpected.status}`
  const missing = refused.find((status) => !requests.some((request) => request.status === status))
  return missing === undefined ? null : `nothing was answered with ${missing}`
}
