#!/usr/bin/env node
import { EXIT } from './exit-codes.ts'
import { runProgram } from './program.ts'

// A reader that went away (`dash … | head`) is no reason to stop half way, nor to hide how the command ended.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.exit(EXIT.storage)
})

// What cannot be said on standard error must not end what is being done.
process.stderr.on('error', () => undefined)

const stopping = new AbortController()
let stoppedWith: number | null = null
for (const [name, code] of [
  ['SIGINT', EXIT.interrupted],
  ['SIGTERM', EXIT.terminated],
] as const) {
  process.on(name, () => {
    // The second signal does not wait for anything.
    if (stoppedWith !== null) process.exit(code)
    stoppedWith = code
    stopping.abort(new DOMException(`stopped by ${name}`, 'AbortError'))
  })
}

const exitCode = await runProgram(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  signal: stopping.signal,
})
process.exitCode = exitCode === EXIT.terminated ? (stoppedWith ?? exitCode) : exitCode
