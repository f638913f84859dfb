/** Shared code of `chat-race.mjs` and its processes: the callers, the limit of each kind of caller, and the checks. */
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { database } from '../../dist/adapters/sqlite/database.js'
import { libsqlChatKeys, libsqlChatLedger } from '../../dist/adapters/state/chat-stores.js'
import { dayOf } from '../../dist/domain/time.js'

export const DAY = dayOf(Date.now())
export const LEASE_MS = 3_600_000

/** Options of the race that its processes get too. */
const { values } = parseArgs({
  strict: false,
  options: { budget: { type: 'string', default: '1300000' }, only: { type: 'string' } },
})
export const SHARED_FLAGS = [`--budget=${values.budget}`, ...(values.only ? [`--only=${values.only}`] : [])]

/** Micro-dollars: so many thousandths of them calls of all callers together, and no more; a turn has two. */
export const PRICE = { call: 1_000, budget: Number(values.budget) }

/** Micro-dollars of one address under the small share, nineteen and a half calls, and the share in millionths. */
const PER_ADDRESS = 19_500
const SHARE = (PER_ADDRESS * 1_000_000) / PRICE.budget

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

/** Numbers of the keys that `createKeys` stores, by the scope that uses them. */
const KEYS = { day: [1, 2, 3], minute: [4, 5, 6], revoked: [7] }
const withKey = (ids) => {
  const key = ids[Math.floor(Math.random() * ids.length)]
  return { key, address: `key:${key}`, session: unlike() }
}

const unlike = () => Math.random().toString(36).slice(2)

/** @param kind start of the addresses of a scope, or the numbers of its keys */
const turnsOf = (turns, kind) =>
  turns.filter(({ address }) =>
    typeof kind === 'string' ? address.startsWith(kind) : kind.some((id) => address === `key:${id}`),
  )

const grouped = (turns, kind, by) => {
  const groups = new Map()
  for (const turn of turnsOf(turns, kind)) groups.set(turn[by], [...(groups.get(turn[by]) ?? []), turn])
  return [...groups.values()]
}

const timesOf = (turns, kind, by) =>
  grouped(turns, kind, by).map((group) =>
    group.map(({ admittedAt }) => admittedAt).sort((left, right) => left - right),
  )

const beyond = (turns, kind, by, most) =>
  grouped(turns, kind, by).reduce((total, group) => total + Math.max(0, group.length - most), 0)

const beyondMinute = (turns, kind, most) =>
  timesOf(turns, kind, 'address').reduce(
    (total, times) => total + times.filter((time, index) => time - times[index - most] < 60_000).length,
    0,
  )

const taken = (turns) => turns.reduce((total, { cost, reserved }) => total + (cost ?? reserved), 0)

/** Micro-dollars of the kind's callers beyond what each of them may take. */
const paidBeyond = (turns, kind, by, most) =>
  grouped(turns, kind, by).reduce((total, group) => total + Math.max(0, taken(group) - most), 0)

/** One kind of caller a scope: who asks, which limits hold it back, and how many turns it has beyond them. */
const ALL_SCOPES = [
  {
    name: 'burst',
    caller: () => ({ address: `burst-${some()}`, session: unlike() }),
    limits: { ...WIDE, burstPerMinute: 10 },
    overAdmitted: (turns) => beyondMinute(turns, 'burst', 10),
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
  {
    name: 'keyDay',
    kind: KEYS.day,
    caller: () => withKey(KEYS.day),
    limits: { ...WIDE, messagesPerDay: 20 },
    overAdmitted: (turns) => beyond(turns, KEYS.day, 'address', 20),
  },
  {
    name: 'keyMinute',
    kind: KEYS.minute,
    caller: () => withKey(KEYS.minute),
    limits: { ...WIDE, burstPerMinute: 10 },
    overAdmitted: (turns) => beyondMinute(turns, KEYS.minute, 10),
  },
  {
    name: 'keyRevoked',
    kind: KEYS.revoked,
    caller: () => withKey(KEYS.revoked),
    limits: WIDE,
    overAdmitted: (turns, revokedAt) =>
      turnsOf(turns, KEYS.revoked).filter(({ admittedAt }) => admittedAt > revokedAt).length,
  },
]

const only = values.only?.split(',')
export const SCOPES = ALL_SCOPES.filter(({ name }) => only?.includes(name) ?? true)

/** Number of admitted turns of a scope. */
export const admittedOf = (turns, { name, kind = name }) => turnsOf(turns, kind).length

/** Stores every key of the race, in the order of their numbers. */
export async function createKeys(keys) {
  for (const id of Object.values(KEYS).flat()) {
    const quota = { perDay: 1, perMinute: 1 }
    await keys.create({ name: `key-${id}`, digest: `digest-${id}`, ...quota, createdAt: Date.now() })
  }
}

/** Ends the key of the scope `keyRevoked`; the time at which no process may admit it any more. */
export async function revokeKey(keys) {
  await keys.revoke(`key-${KEYS.revoked[0]}`, Date.now())
  return Date.now()
}

/** The state database as a server opens it, but for a patience that no scheduler exhausts; `rows` are its turns. */
export function openState(path) {
  const state = database({
    location: { url: pathToFileURL(path).href, authToken: null },
    store: 'state',
    nativeBusyMs: 10,
    retryMs: 60_000,
    fast: true,
  })
  const rows = async () => {
    const sql = 'SELECT id, session, address, network, server, admitted_at, reserved, cost FROM chat_turns'
    const found = await state.execute(sql)
    return found.rows.map(({ admitted_at: admittedAt, ...row }) => ({ ...row, admittedAt }))
  }
  return { ledger: libsqlChatLedger(state), keys: libsqlChatKeys(state), rows, close: () => state.close() }
}
