/**
 * The command `dash` of an example: the built program. A server starts on a free port and continues; the command ends when
 * it listens, as if it had been started in another terminal. `$EXAMPLES` is the folder of the run: `served` then holds the
 * server's address and `server.log` its output; `pids` lists the processes to end.
 */
import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, closeSync, openSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const folder = process.env['EXAMPLES'] ?? '.'
const args = process.argv.slice(2)

if (args[0] === 'serve' && !args.includes('--help')) {
  const said = join(folder, 'server.out')
  const log = join(folder, 'server.log')
  rmSync(join(folder, 'served'), { force: true })
  const files = [openSync(said, 'w'), openSync(log, 'w')]
  const child = spawn(process.execPath, [PROGRAM, ...args, '--port', '0'], {
    detached: true,
    stdio: ['ignore', ...files],
  })
  files.forEach(closeSync)
  appendFileSync(join(folder, 'pids'), `${child.pid}\n`)
  child.on('exit', () => {
    process.stderr.write(`the server did not start: ${readFileSync(log, 'utf8')}\n`)
    process.exit(69)
  })
  const look = () => {
    const [, address] = /listening on (\S+)\n/.exec(readFileSync(said, 'utf8')) ?? []
    if (address === undefined) return
    writeFileSync(join(folder, 'served'), address)
    child.unref()
    process.exit(0)
  }
  watch(folder, look)
  look()
} else {
  const { status, signal } = spawnSync(process.execPath, [PROGRAM, ...args], { stdio: 'inherit' })
  process.exit(signal === null ? (status ?? 70) : 143)
}
