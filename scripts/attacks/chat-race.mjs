/**
 * Several processes ask one state database to admit turns and to extend them, all at the same time, while one more is killed
 * in the middle of its turns. Counts what was admitted beyond any limit: none may be.
 *
 *     npm run build && node scripts/attacks/chat-race.mjs [--tries 12000] [--processes 4] [--only keyDay,session,money] [--budget 1300000] [--json]
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import {
  admittedOf,
  createKeys,
  DAY,
  LEASE_MS,
  openState,
  PRICE,
  revokeKey,
  SCOPES,
  SHARED_FLAGS,
} from './chat-race-rules.mjs'

const WORKER = fileURLToPath(new URL('chat-race-worker.mjs', import.meta.url))

const { values } = parseArgs({
  options: {
    tries: { type: 'string', default: '12000' },
    only: { type: 'string' },
    budget: { type: 'string' },
    processes: { type: 'string', default: '4' },
    json: { type: 'boolean', default: false },
  },
})
const processes = Number(values.processes)
const folder = mkdtempSync(join(tmpdir(), 'dash-chat-race-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

const path = join(folder, 'state.db')
const { ledger, keys, rows, close } = openState(path)
await createKeys(keys)

/** Filled once a process is half done, with the time after which the revoked key must not be admitted. */
const revoking = []

/** One process: its tries, and whether it is killed before it has made them all. */
function run(tries, killed) {
  return new Promise((resolve, reject) => {
    const child = fork(WORKER, [path, String(tries), ...SHARED_FLAGS])
    let report = null
    child.on('message', (message) => {
      if (message === 'half' && revoking.length === 0) revoking.push(revokeKey(keys))
      if (message === 'half' && killed) child.kill('SIGKILL')
      else if (message !== 'half') report = message
    })
    child.once('error', reject)
    child.once('exit', (code) =>
      code === 0 || killed ? resolve(report) : reject(new Error(`ended with ${code}`)),
    )
  })
}

/** Looks at the money while it goes on: it must never be beyond the budget, not even for a moment. */
const watched = { looks: 0, beyond: 0, done: false }
async function watch() {
  const { settled, reserved } = await ledger.spending(DAY)
  watched.looks += 1
  if (settled + reserved > PRICE.budget) watched.beyond += 1
  if (watched.done) return
  await new Promise((resolve) => setTimeout(resolve, 5))
  await watch()
}
const watching = watch()

// The one that is killed makes tries beside those that are counted.
const each = Math.ceil(Number(values.tries) / processes)
const startedAt = performance.now()
const reports = (
  await Promise.all([...Array.from({ length: processes }, () => run(each, false)), run(each, true)])
).filter((report) => report !== null)
const seconds = (performance.now() - startedAt) / 1000
watched.done = true
await watching

const [revokedAt] = await Promise.all(revoking)
const turns = await rows()
const over = SCOPES.map(({ name, overAdmitted }) => [name, overAdmitted(turns, revokedAt)])
const open = turns.filter(({ cost }) => cost === null)
const before = await ledger.spending(DAY)
const swept = await ledger.sweep(Date.now() + LEASE_MS + 1, DAY)
const after = await ledger.spending(DAY)
const all = await rows()
const sum = (list, name) => list.reduce((total, row) => total + row[name], 0)
const known = reports.flatMap(({ admitted }) => admitted)
const stored = new Set(turns.map(({ id }) => id))
const latencies = reports.flatMap(({ latencies: list }) => list).sort((left, right) => left - right)
const at = (share) => Number((latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(2))

const result = {
  tries: reports.reduce((total, report) => total + report.tries, 0),
  seconds: Number(seconds.toFixed(1)),
  cores: availableParallelism(),
  admitted: Object.fromEntries(SCOPES.map((scope) => [scope.name, admittedOf(turns, scope)])),
  overAdmitted: Object.fromEntries(over),
  extended: reports.reduce((total, report) => total + report.extended, 0),
  notExtended: reports.reduce((total, report) => total + report.notExtended, 0),
  lost: known.filter((id) => !stored.has(id)).length,
  settledTwice: reports.reduce((total, report) => total + report.settledTwice, 0),
  errors: reports.flatMap(({ errors }) => errors),
  looks: watched.looks,
  looksBeyondBudget: watched.beyond,
  taken: before.settled + before.reserved,
  openOfTheKilled: open.length,
  swept,
  wrongTotals:
    Number(before.settled !== sum(turns, 'cost')) +
    Number(before.reserved !== sum(open, 'reserved')) +
    Number(after.settled !== sum(all, 'cost')) +
    Number(after.reserved !== 0),
  admitMs: { p50: at(0.5), p95: at(0.95), p99: at(0.99), worst: at(1 - 1e-9) },
}
close()
console.log(JSON.stringify(result, null, values.json ? 0 : 2))
const failed =
  Object.values(result.overAdmitted).some((count) => count > 0) ||
  result.lost + result.settledTwice + result.errors.length + watched.beyond + result.wrongTotals > 0 ||
  swept !== open.length
process.exitCode = failed ? 1 : 0
