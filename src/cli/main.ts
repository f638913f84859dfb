#!/usr/bin/env node
import { isatty } from 'node:tty'
import { EXIT, EXIT_OF_SIGNAL } from './exit-codes.ts'
import { runProgram } from './program.ts'

// The state holds salts and hashes of addresses: files without a mode of their own are for their owner alone.
process.umask(0o077)

// A reader that went away (`dash … | head`) must not stop a command half way, nor hide how it ended; neither must a terminal
// that went away, which sends a signal besides.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE' && !(code === 'EIO' && process.stdout.isTTY)) process.exit(EXIT.storage)
})

// A closed standard error must not end the command either.
process.stderr.on('error', () => undefined)

const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor))

const stopping = new AbortController()
let stoppedWith: number | null = null
for (const name of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) {
  const code = EXIT_OF_SIGNAL[name]
  process.on(name, () => {
    // When a terminal goes away, the system and the shell each send this signal.
    if (name === 'SIGHUP' && stoppedWith === code) return
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

// If a terminal is gone, Node aborts while restoring it. Exiting by signal skips that step.
if (terminals.some((descriptor) => !isatty(descriptor))) {
  process.removeAllListeners('SIGHUP')
  process.kill(process.pid, 'SIGHUP')
}
