/** Shared code of `chat-race.mjs` and its processes: the callers, the limit of each kind of caller, and the checks. */
import { pathToFileURL } from 'node:url'
import { database } from '../../dist/adapters/sqlite/database.js'
import { libsqlChatLedger } from '../../dist/adapters/state/chat-ledger.js'
import { dayOf } from '../../dist/domain/time.js'

export const DAY = dayOf(Date.now())
export const LEASE_MS = 3_600_000

/** Micro-dollars: a thousand calls of all callers together, and no more; a turn has two. */
export const PRICE = { call: 1_000, budget: 1_000_000 }

/** Share of the budget for one address under the small share, in millionths: nineteen and a half calls. */
const SHARE = 19_500
const PER_ADDRESS = (PRICE.budget * SHARE) / 1_000_000

const WIDE = {
  messagesPerSession: 1_000_000,
  messagesPerDay: 1_000_000,
  burstPerMinute: 1_000_000,
  minGapMs: 0,
  maxOpenTurns: 1_000_000,
  budgetPerDay: PRICE.budget,
  budgetShare: 1_000_000,
}

const CALLERS = 3
const some = () => Math.floor(Math.random() * CALLERS)
const unlike = () => Math.random().toString(36).slice(2)

const grouped = (turns, kind, by) => {
  const groups = new Map()
  for (const turn of turns.filter(({ address }) => address.startsWith(kind)))
    groups.set(turn[by], [...(groups.get(turn[by]) ?? []), turn])
  return [...groups.values()]
}

const timesOf = (turns, kind, by) =>
  grouped(turns, kind, by).map((group) =>
    group.map(({ admittedAt }) => admittedAt).sort((left, right) => left - right),
  )

const beyond = (turns, kind, by, most) =>
  grouped(turns, kind, by).reduce((total, group) => total + Math.max(0, group.length - most), 0)

const taken = (turns) => turns.reduce((total, { cost, reserved }) => total + (cost ?? reserved), 0)

/** Micro-dollars of the kind's callers beyond what each of them may take. */
const paidBeyond = (turns, kind, by, most) =>
  grouped(turns, kind, by).reduce((total, group) => total + Math.max(0, taken(group) - most), 0)

/** One kind of caller a scope: who asks, which limits hold it back, and how many turns it has beyond them. */
export const SCOPES = [
  {
    name: 'burst',
    caller: () => ({ address: `burst-${some()}`, session: unlike() }),
    limits: { ...WIDE, burstPerMinute: 10 },
    overAdmitted: (turns) =>
      timesOf(turns, 'burst', 'address').reduce(
        (total, times) => total + times.filter((time, index) => time - times[index - 10] < 60_000).length,
        0,
      ),
  },
  {
    name: 'day',
    caller: () => ({ address: `day-${some()}`, session: unlike() }),
    limits: { ...WIDE, messagesPerDay: 60 },
    overAdmitted: (turns) => beyond(turns, 'day', 'address', 60),
  },
  {
    name: 'session',
    caller: () => ({ address: `session-${unlike()}`, session: `session-${some()}` }),
    limits: { ...WIDE, messagesPerSession: 20 },
    overAdmitted: (turns) => beyond(turns, 'session', 'session', 20),
  },
  {
    name: 'gap',
    caller: () => ({ address: `gap-${unlike()}`, session: `gap-${some()}` }),
    limits: { ...WIDE, minGapMs: 1_500 },
    overAdmitted: (turns) =>
      timesOf(turns, 'gap', 'session').reduce(
        (total, times) => total + times.filter((time, index) => time - times[index - 1] < 1_500).length,
        0,
      ),
  },
  {
    name: 'streams',
    caller: () => ({ address: `streams-${unlike()}`, session: unlike(), server: 'one' }),
    limits: { ...WIDE, maxOpenTurns: 25 },
    // They are never settled, so that every one of them is open.
    overAdmitted: (turns) => beyond(turns, 'streams', 'server', 25),
  },
  {
    name: 'share',
    caller: () => ({ address: `share-${some()}`, session: unlike() }),
    limits: { ...WIDE, budgetShare: SHARE },
    overAdmitted: (turns) => paidBeyond(turns, 'share', 'address', PER_ADDRESS),
  },
  {
    name: 'network',
    caller: () => ({ address: `network-${unlike()}`, network: `network-${some()}`, session: unlike() }),
    limits: { ...WIDE, budgetShare: SHARE },
    overAdmitted: (turns) => paidBeyond(turns, 'network', 'network', 2 * PER_ADDRESS),
  },
  {
    name: 'money',
    caller: () => ({ address: `money-${unlike()}`, session: unlike() }),
    limits: WIDE,
    overAdmitted: (turns) => Math.max(0, taken(turns) - PRICE.budget),
  },
]

/** The state database as a server opens it, but for a patience that no scheduler exhausts; `rows` are its turns. */
export function openState(path) {
  const state = database({
    location: { url: pathToFileURL(path).href, authToken: null },
    store: 'state',
    nativeBusyMs: 10,
    retryMs: 60_000,
    fast: true,
  })
  const rows = () =>
    state.use(async ({ client }) => {
      const sql = 'SELECT id, session, address, network, server, admitted_at, reserved, cost FROM chat_turns'
      const found = await client.execute(sql)
      return found.rows.map(({ admitted_at: admittedAt, ...row }) => ({ ...row, admittedAt }))
    })
  return { ledger: libsqlChatLedger(state), rows, close: () => state.close() }
}
