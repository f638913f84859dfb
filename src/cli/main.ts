#!/usr/bin/env node
import { isatty } from 'node:tty'
import { EXIT, EXIT_OF_SIGNAL } from './exit-codes.ts'
import { runProgram } from './program.ts'

// The state holds salts and hashes of addresses: what is made without a mode of its own is for its owner alone.
process.umask(0o077)

// A reader that went away (`dash … | head`) is no reason to stop half way, nor to hide how the command ended; neither is a
// terminal that did, which sends a signal besides.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE' && !(code === 'EIO' && process.stdout.isTTY)) process.exit(EXIT.storage)
})

// What cannot be said on standard error must not end what is being done.
process.stderr.on('error', () => undefined)

const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor))

const stopping = new AbortController()
let stoppedWith: number | null = null
for (const name of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) {
  const code = EXIT_OF_SIGNAL[name]
  process.on(name, () => {
    // A terminal that goes away is told of twice, by the system and by the shell.
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

// Node aborts where it cannot restore a terminal at its end, which one that went away does not let it; a signal's end has none
// of that.
if (terminals.some((descriptor) => !isatty(descriptor))) {
  process.removeAllListeners('SIGHUP')
  process.kill(process.pid, 'SIGHUP')
}
