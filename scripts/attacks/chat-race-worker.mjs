/** One process of `chat-race.mjs`: asks for turns as fast as it can, extends them, and settles most of them, some twice. */
import { DAY, LEASE_MS, openState, PRICE, SCOPES } from './chat-race-rules.mjs'

const [path, given] = process.argv.slice(2)
const tries = Number(given)
const { ledger, close } = openState(path)

const report = {
  tries: 0,
  admitted: [],
  extended: 0,
  notExtended: 0,
  settledTwice: 0,
  errors: [],
  latencies: [],
}

async function tryOnce({ name, caller, limits }) {
  const now = Date.now()
  const claim = {
    server: `server-${process.pid}`,
    network: null,
    key: null,
    ...caller(),
    sessionEndsAt: now + 1_800_000,
    formerAddress: null,
    now,
    day: DAY,
    firstCall: { withTools: PRICE.call, withoutTools: PRICE.call },
    shortestCall: { withTools: PRICE.call, withoutTools: PRICE.call },
    requestsPerAddress: null,
    leaseMs: LEASE_MS,
    limits,
  }
  const startedAt = performance.now()
  const admission = await ledger.admit(claim)
  report.latencies.push(performance.now() - startedAt)
  if (!admission.admitted) return
  report.admitted.push(admission.turn)
  const upTo = 2 * PRICE.call
  const extended = await ledger.extend({ turn: admission.turn, upTo, requestsPerAddress: null, limits })
  report[extended ? 'extended' : 'notExtended'] += 1
  if (name === 'streams' || report.admitted.length % 10 === 0) return
  const most = extended ? upTo : PRICE.call
  const settlings = [most - 1, most].map((cost) => ledger.settle(admission.turn, cost, Date.now()))
  const settled = await Promise.all(settlings)
  if (settled.filter(Boolean).length !== 1) report.settledTwice += 1
}

for (; report.tries < tries; report.tries += 1) {
  if (report.tries === Math.floor(tries / 2)) process.send('half')
  try {
    await tryOnce(SCOPES[report.tries % SCOPES.length])
  } catch (error) {
    report.errors.push(String(error))
  }
}
process.send(report, () => {
  close()
  process.disconnect()
})
