#!/usr/bin/env node
import { isatty } from 'node:tty'
import { EXIT, EXIT_OF_SIGNAL } from './exit-codes.ts'
import { runProgram } from './program.ts'

// The state database holds salts and hashes of addresses: by default, only the owner may read files.
process.umask(0o077)

// A closed pipe (`dash … | head`) must neither stop a command half way nor change its exit code; nor must a closed
// terminal, which also sends a signal.
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE' || (code === 'EIO' && process.stdout.isTTY)) return
  process.stderr.write(`error: the result cannot be written to standard output (${message})\n`)
  process.exit(EXIT.storage)
})

// A closed standard error must not end the command either.
process.stderr.on('error', () => undefined)

const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor))

/** Time within which an equal signal is the same one: npm passes on a Ctrl-C, which the terminal sends to all. */
const REPEATED_MS = 300

const stopping = new AbortController()
let stoppedWith: number | null = null
let stoppedAt = 0
for (const name of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) {
  const code = EXIT_OF_SIGNAL[name]
  process.on(name, () => {
    // When a terminal closes, the system and the shell each send SIGHUP, at any distance.
    const isRepeated = name === 'SIGHUP' || performance.now() - stoppedAt < REPEATED_MS
    if (stoppedWith === code && isRepeated) return
    // A second signal exits at once.
    if (stoppedWith !== null) process.exit(code)
    stoppedWith = code
    stoppedAt = performance.now()
    stopping.abort(new DOMException(`stopped by ${name}`, 'AbortError'))
  })
}

process.exitCode = await runProgram(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: currentFolder(),
  signal: stopping.signal,
})

/** The current folder; null if it was removed. */
function currentFolder(): string | null {
  try {
    return process.cwd()
  } catch {
    return null
  }
}

// If a terminal is gone, Node aborts while restoring it. Exiting by signal skips that step.
if (terminals.some((descriptor) => !isatty(descriptor))) {
  process.removeAllListeners('SIGHUP')
  process.kill(process.pid, 'SIGHUP')
}
