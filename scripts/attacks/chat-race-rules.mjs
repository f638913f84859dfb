/** What `chat-race.mjs` and its processes share: the callers, the limits that hold each kind back, and how that shows. */
import { pathToFileURL } from 'node:url'
import { database } from '../../dist/adapters/libsql/database.js'
import { migrationsOf } from '../../dist/adapters/libsql/migrations.js'
import { libsqlChatLedger } from '../../dist/adapters/state/chat-ledger.js'
import { dayOf } from '../../dist/domain/time.js'

export const DAY = dayOf(Date.now())
export const LEASE_MS = 3_600_000

/** Micro-dollars: a thousand turns of all callers together, and no more. */
export const PRICE = { turn: 1_000, budget: 1_000_000 }

const WIDE = {
  messagesPerSession: 1_000_000,
  messagesPerDay: 1_000_000,
  burstPerMinute: 1_000_000,
  minGapMs: 0,
  maxOpenTurns: 1_000_000,
  budgetPerDay: PRICE.budget,
}

const CALLERS = 3
const some = () => Math.floor(Math.random() * CALLERS)
const unlike = () => Math.random().toString(36).slice(2)

const grouped = (turns, kind, by) => {
  const groups = new Map()
  for (const turn of turns.filter(({ address }) => address.startsWith(kind))) {
    groups.set(turn[by], [...(groups.get(turn[by]) ?? []), turn.admittedAt])
  }
  return [...groups.values()].map((times) => times.sort((left, right) => left - right))
}

const beyond = (turns, kind, by, most) =>
  grouped(turns, kind, by).reduce((total, times) => total + Math.max(0, times.length - most), 0)

/** One kind of caller a scope: who asks, which limits hold it back, and how many turns it has beyond them. */
export const SCOPES = [
  {
    name: 'burst',
    caller: () => ({ address: `burst-${some()}`, session: unlike() }),
    limits: { ...WIDE, burstPerMinute: 10 },
    overAdmitted: (turns) =>
      grouped(turns, 'burst', 'address').reduce(
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
      grouped(turns, 'gap', 'session').reduce(
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
    name: 'money',
    caller: () => ({ address: `money-${unlike()}`, session: unlike() }),
    limits: WIDE,
    overAdmitted: (turns) => {
      const taken = turns.reduce((total, { cost, reserved }) => total + (cost ?? reserved), 0)
      return Math.max(0, Math.ceil((taken - PRICE.budget) / PRICE.turn))
    },
  },
]

/** The state database as a server opens it, but for a patience that no scheduler exhausts; `rows` are its turns. */
export function openState(path) {
  const state = database({
    location: { url: pathToFileURL(path).href, authToken: null },
    store: 'state',
    migrationsFolder: migrationsOf('state'),
    nativeBusyMs: 10,
    retryMs: 60_000,
    fast: true,
  })
  const rows = () =>
    state.use(async ({ client }) => {
      const sql = 'SELECT id, session, address, server, admitted_at, reserved, cost FROM chat_turns'
      const found = await client.execute(sql)
      return found.rows.map(({ id, session, address, server, admitted_at: admittedAt, reserved, cost }) => ({
        id,
        session,
        address,
        server,
        admittedAt,
        reserved,
        cost,
      }))
    })
  return { ledger: libsqlChatLedger(state), rows, close: () => state.close() }
}
