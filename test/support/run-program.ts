import { PassThrough } from 'node:stream'
import { runProgram } from '../../src/cli/program.ts'

/** How a command ended that ran inside the test's own process. */
export interface RunResult {
  code: number
  stdout: string
  stderr: string
}

/** Runs a command line from the sources, without a terminal and with nothing of the environment but `env`. */
export async function run(
  argv: readonly string[],
  { env = {}, cwd = '/', stdin = '' }: { env?: Record<string, string>; cwd?: string; stdin?: string } = {},
): Promise<RunResult> {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    streams[name].on('data', (chunk: Buffer) => (output[name] += chunk.toString()))
  streams.stdin.end(stdin)
  const code = await runProgram(argv, {
    stdin: streams.stdin as unknown as NodeJS.ReadStream,
    stdout: streams.stdout as unknown as NodeJS.WriteStream,
    stderr: streams.stderr as unknown as NodeJS.WriteStream,
    env,
    cwd,
    signal: new AbortController().signal,
  })
  return { code, ...output }
}
