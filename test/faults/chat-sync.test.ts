import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'

const RULES = new URL('../../scripts/attacks/chat-race-rules.mjs', import.meta.url).href

/**
 * Admits and settles turns, then sweeps; looks for files of certain names to mark the beginning of each step in the
 * trace.
 */
const SCRIPT = `
  import { existsSync } from 'node:fs'
  import { DAY, openState, SCOPES } from ${JSON.stringify(RULES)}
  const { ledger, close } = openState(process.argv[1])
  await ledger.ping()
  const { caller, limits } = SCOPES.find(({ name }) => name === 'money')
  const now = Date.now()
  const cost = { withTools: 9, withoutTools: 9 }
  existsSync('/mark-turns')
  for (let turn = 0; turn < 20; turn += 1) {
    const admission = await ledger.admit({
      ...caller(), server: 'one', sessionEndsAt: now, network: null, key: null, formerAddress: null, now, day: DAY,
      firstCall: cost, shortestCall: cost, requestsPerAddress: null, leaseMs: 60000, limits,
    })
    await ledger.settle(admission.turn, 5, now)
  }
  existsSync('/mark-sweep')
  await ledger.sweep(now, DAY)
  existsSync('/mark-end')
  close()`

test('a turn syncs nothing, and a sweep syncs the log in another thread than that of responses', async () => {
  const folder = temporaryFolder()
  const trace = join(folder, 'trace')
  const calls = 'trace=fsync,fdatasync,access,faccessat,faccessat2,stat,statx,newfstatat'
  const node = [process.execPath, '--input-type=module', '-e', SCRIPT, join(folder, 'state.db')]
  await promisify(execFile)('strace', ['-f', '-y', '-e', calls, '-o', trace, ...node], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
  })
  const lines = (await readFile(trace, 'utf8')).split('\n')
  const at = (mark: string): number => lines.findIndex((line) => line.includes(`/mark-${mark}"`))
  const syncs = (from: string, to: string): string[] =>
    lines.slice(at(from), at(to)).filter((line) => /f(data)?sync\(/.test(line))
  expect(at('turns')).toBeGreaterThan(0)
  expect(syncs('turns', 'sweep')).toEqual([])
  const ofSweep = syncs('sweep', 'end')
  expect(ofSweep.some((line) => line.includes('/state.db-wal>'))).toBe(true)
  expect(ofSweep.some((line) => line.includes(`${folder}>`))).toBe(true)
  const main = lines[at('turns')]?.split(' ')[0]
  expect(ofSweep.filter((line) => line.split(' ')[0] === main)).toEqual([])
})
