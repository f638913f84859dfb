import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What `dash` is in an example. */
export const EXAMPLE_DASH = fileURLToPath(new URL('example-dash.mjs', import.meta.url))

/** A block that has not ended by then waits for somebody. */
const BLOCK_MS = 120_000

/** What a block did. */
export interface Ran {
  /** Exit code; null when it was ended because it took too long. */
  code: number | null
  stdout: string
  stderr: string
}

/** The terminal in which one page is followed from its beginning to its end. */
export interface ExampleSession {
  /** Runs a part of a `sh` block in the page's one shell, where every failure of a pipe counts and ends it. */
  shell(script: string): Promise<Ran>
  /** Runs a program of its own. */
  program(command: string, file: string, text: string): Promise<Ran>
  /** Address of the server an example started last; null before. */
  served(): string | null
  /** What that server has logged. */
  serverLog: string
  /** Ends the shell, and every server that was started. */
  close(): Promise<void>
}

/**
 * @param folder where the page is followed; `home` in it is the reader's home, `run` what the run itself keeps
 * @param settings environment variables beside PATH and HOME
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
  const said = (code: number | null): Ran => ({
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
      return said(await inTime(Promise.race([done, ended]), shell))
    },
    async program(command, file, text) {
      writeFileSync(join(run, file), text)
      const child = spawn(command, [join(run, file)], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
      const output = { stdout: '', stderr: '' }
      child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
      const closed = once(child, 'close').then(([code]) => code as number | null)
      return { code: await inTime(closed, child), ...output }
    },
    served: () => (existsSync(join(run, 'served')) ? readFileSync(join(run, 'served'), 'utf8') : null),
    serverLog: join(run, 'server.log'),
    async close() {
      shell.stdin.end()
      await inTime(ended, shell)
      const pids = existsSync(join(run, 'pids'))
        ? readFileSync(join(run, 'pids'), 'utf8').trim().split('\n')
        : []
      for (const pid of pids) endProcess(Number(pid))
    },
  }
}

/** The names under which examples call the program, in a folder for PATH. */
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

/** Waits for the end of a process, which is ended when it takes too long. */
async function inTime(end: Promise<number | null>, child: ChildProcess): Promise<number | null> {
  const timer = setTimeout(() => child.kill('SIGKILL'), BLOCK_MS)
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

/** One request as the server's log tells it. */
export interface LoggedRequest {
  method: string
  path: string
  status: number
}

let asked = 0

/**
 * The requests a server has answered since its log had so many characters; a request of this function marks the end. The
 * log may sum that one with others of its route: every line that waited is written then.
 */
export async function requestsSince(url: string, log: string, start: number): Promise<LoggedRequest[]> {
  const id = `examples-${(asked += 1)}`
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

/** The content of a file as soon as what follows its first characters matches. */
function contentWith(file: string, start: number, wanted: RegExp): Promise<string> {
  return new Promise((resolve) => {
    const look = (): void => {
      const content = readFileSync(file, 'utf8')
      if (!wanted.test(content.slice(start))) return
      watcher.close()
      resolve(content)
    }
    const watcher = watch(dirname(file), look)
    look()
  })
}

/** Starts the demo that pages ask which start no server of their own. */
export async function startExampleDemo(
  run: string,
): Promise<{ url: string; log: string; close: () => void }> {
  mkdirSync(run, { recursive: true })
  const child = spawn(process.execPath, [EXAMPLE_DASH, 'serve', '--demo'], {
    env: { PATH: process.env['PATH'], EXAMPLES: run },
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
