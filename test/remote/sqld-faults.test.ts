import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { migrationsOf } from '../../src/adapters/sqlite/migrate.ts'
import { windowEnding } from '../../src/domain/year/ledger.ts'
import type { LedgerRow } from '../../src/domain/year/ledger.ts'
import { connectFeed } from '../adapters/feed/open-feed.ts'
import { anyLease, appendNow, connectLedger } from '../adapters/ledger/open-ledger.ts'
import { rawClient } from '../adapters/sqlite/lock-holder.ts'
import { DAMAGED, UNAVAILABLE } from '../support/refusals.ts'
import { chainOf, publication } from '../domain/year/ledger-rows.ts'
import { signal } from '../support/signals.ts'
import { startSqld, httpGate } from './sqld.ts'
import type { Sqld } from './sqld.ts'

let sqld: Sqld

beforeAll(async () => {
  sqld = await startSqld()
})
beforeEach(async () => {
  await sqld.start()
  await sqld.empty()
})
afterAll(() => sqld.stop())

const WINDOW = windowEnding('2026-03-01')
const ROW = chainOf([publication('2026-03-01')])[0] as LedgerRow

/** Time an append has in these tests, in milliseconds. */
const WITHIN_MS = 700

const appendOf = (token: string): { token: string; clock: () => number; withinMs: number } => ({
  token,
  clock: () => ROW.recordedAt,
  withinMs: WITHIN_MS,
})

/** A leased ledger behind a gate that can delay requests. */
async function gated() {
  const gate = await httpGate(sqld.url)
  const { ledger } = connectLedger(gate.url)
  return { gate, ledger, token: await anyLease(ledger) }
}

describe('a server that stops', () => {
  test('the server is unavailable while it is down, and works again when it is back', async () => {
    const { ledger } = connectLedger(sqld.url)
    const { feed } = connectFeed(sqld.url)
    const token = await anyLease(ledger)
    expect(await appendNow(ledger, ROW, token)).toBeNull()
    await feed.importSignals([signal()])
    await sqld.kill()
    for (const work of [
      () => ledger.read(),
      () => ledger.attempts('2026-03-01'),
      () => ledger.countAttempt('2026-03-02', 1, ROW.recordedAt, token),
      () => feed.readWindow(WINDOW),
    ])
      await expect(work()).rejects.toMatchObject(UNAVAILABLE)
    await expect(connectLedger(sqld.url).ledger.read()).rejects.toThrow(
      `the database server ${sqld.url} cannot be reached (ECONNREFUSED); start it or correct the variable with this URL`,
    )
    await expect(ledger.append(ROW, { ...appendOf(token), withinMs: 60_000 })).rejects.toMatchObject(
      UNAVAILABLE,
    )
    await sqld.start()
    expect((await ledger.read()).rows).toEqual([ROW])
    expect(await ledger.countAttempt('2026-03-02', 1, ROW.recordedAt, token)).toBe(true)
    expect((await feed.readWindow(WINDOW)).events).toHaveLength(1)
    await feed.importSignals([signal({ sourceId: '2' })])
    expect((await feed.readWindow(WINDOW)).events).toHaveLength(2)
  })

  test('an append whose response was lost is kept, and never sent twice', async () => {
    const { gate, ledger, token } = await gated()
    gate.once('INSERT INTO entries', async (pass, _answer, cut) => {
      await pass()
      await sqld.kill()
      cut()
    })
    await expect(ledger.append(ROW, appendOf(token))).rejects.toMatchObject(UNAVAILABLE)
    await sqld.start()
    expect((await ledger.read()).rows).toEqual([ROW])
    expect(gate.bodies.filter((body) => body.includes('INSERT INTO entries'))).toHaveLength(1)
    expect(await appendNow(ledger, ROW, token)).toBe('ledger-moved')
  })

  test('an import, an attempt and the end of a lease are counted once although their responses were lost', async () => {
    const { gate, ledger, token } = await gated()
    const { feed } = connectFeed(gate.url)
    await feed.ping()
    const loseResponse = (text: string): void =>
      gate.once(text, async (pass, _answer, cut) => {
        await pass()
        cut()
      })
    loseResponse('INSERT INTO attempts')
    const count = (): Promise<boolean> => ledger.countAttempt('2026-03-02', 1, ROW.recordedAt, token)
    await expect(count()).rejects.toMatchObject(UNAVAILABLE)
    expect(await count()).toBe(false)
    loseResponse('COMMIT')
    await expect(feed.importSignals([signal()])).rejects.toMatchObject(UNAVAILABLE)
    expect(await feed.importSignals([signal()])).toEqual({ inserted: 0, replaced: 0, unchanged: 1 })
    loseResponse('DELETE FROM')
    await expect(ledger.releaseLease(token)).rejects.toMatchObject(UNAVAILABLE)
    await ledger.releaseLease(token)
    expect(await anyLease(ledger)).not.toBe(token)
  })
})

describe('an append that is delayed on its way', () => {
  test('an append that arrives after its deadline is refused by the server', async () => {
    const { gate, ledger, token } = await gated()
    gate.once('INSERT INTO entries', async (pass, answer) => {
      await sleep(WITHIN_MS + 100)
      await pass()
      answer()
    })
    expect(await ledger.append(ROW, appendOf(token))).toBe('too-late')
    expect((await ledger.read()).rows).toEqual([])
    expect(await appendNow(ledger, ROW, token)).toBeNull()
  })

  test('another fault of the server in the check of the deadline does not count as late', async () => {
    const { gate, ledger, token } = await gated()
    gate.once('INSERT INTO entries', async (pass, answer) => {
      await sleep(WITHIN_MS + 100)
      await pass()
      answer((text) => text.replace('malformed JSON', 'disk I/O error'))
    })
    await expect(ledger.append(ROW, appendOf(token))).rejects.toThrow('disk I/O error')
  })

  test('an append that was reported as lost cannot happen later', async () => {
    const { gate, ledger, token } = await gated()
    let arrive: () => void = () => undefined
    const arriving = new Promise<void>((resolve) => (arrive = resolve))
    const arrived = new Promise<void>((resolve) => {
      gate.once('INSERT INTO entries', async (pass, _answer, cut) => {
        cut()
        await arriving
        await pass()
        resolve()
      })
    })
    await expect(ledger.append(ROW, appendOf(token))).rejects.toMatchObject(UNAVAILABLE)
    expect((await ledger.read()).rows).toEqual([])
    arrive()
    await arrived
    expect((await ledger.read()).rows).toEqual([])
  })

  test.each([
    ['an hour behind ours, it is too late', -3_600, 'too-late'],
    ['an hour ahead of ours, it is in time', 3_600, null],
  ])(
    "the deadline of an append follows the server's clock if that is %s",
    async (_what, seconds, outcome) => {
      const { gate, ledger, token } = await gated()
      const statuses: number[] = []
      gate.once("SELECT unixepoch('subsec') AS now", async (pass, answer) => {
        await pass()
        answer((text) =>
          text.replace(/"value":(\d{10}(?:\.\d+)?)/, (_match, now: string) => {
            statuses.push(Number(now) + seconds)
            return `"value":${statuses[0]}`
          }),
        )
      })
      expect(await ledger.append(ROW, { ...appendOf(token), withinMs: 60_000 })).toBe(outcome)
      expect(statuses).toHaveLength(1)
      expect((await ledger.read()).rows).toEqual(outcome === null ? [ROW] : [])
    },
  )

  test('an append is too late if another process holds the database longer', async () => {
    const { ledger } = connectLedger(sqld.url)
    const token = await anyLease(ledger)
    const other = await rawClient(sqld.url).transaction('write')
    await other.execute('SELECT 1')
    const appending = ledger.append(ROW, appendOf(token))
    await sleep(WITHIN_MS + 100)
    await other.rollback()
    expect(await appending).toBe('too-late')
    expect((await ledger.read()).rows).toEqual([])
  })
})

describe('a snapshot of the feed', () => {
  const fill = async (): Promise<Awaited<ReturnType<typeof httpGate>>> => {
    const gate = await httpGate(sqld.url)
    await connectFeed(sqld.url).feed.importSignals([signal(), signal({ sourceId: '2' })])
    return gate
  }

  test('the snapshot starts again after a concurrent import', async () => {
    const gate = await fill()
    const writer = connectFeed(sqld.url).feed
    gate.once('FROM page', async (pass, answer) => {
      await pass()
      await writer.importSignals([signal({ points: 77 }), signal({ source: 'lobsters' })])
      answer()
    })
    const { events, observed } = await connectFeed(gate.url).feed.readWindow(WINDOW)
    expect(events.map(({ points }) => points)).toContain(77)
    expect(events).toHaveLength(3)
    expect(observed.map(({ source }) => source)).toEqual(['hn', 'lobsters'])
  })

  test('the snapshot fails after repeated concurrent imports', async () => {
    const gate = await fill()
    const writer = connectFeed(sqld.url).feed
    let points = 100
    const disturb = (): void =>
      gate.once('FROM page', async (pass, answer) => {
        await pass()
        await writer.importSignals([signal({ points: (points += 1) })])
        disturb()
        answer()
      })
    disturb()
    const reading = connectFeed(gate.url).feed.readWindow(WINDOW)
    await expect(reading).rejects.toThrow('changed during each of')
    await expect(reading).rejects.not.toMatchObject({ name: 'Refusal' })
    expect(points).toBe(105)
  })
})

test('the client sends no pragma to a server, and only leases, foundings and imports are interactive transactions, which end with it', async () => {
  const { gate, ledger, token } = await gated()
  const begun = gate.bodies.length
  const { feed } = connectFeed(gate.url)
  await ledger.renewLease(token, 1, 1_000_000_000_000_000)
  await appendNow(ledger, ROW, token)
  await ledger.countAttempt('2026-03-02', 1, ROW.recordedAt, token)
  await ledger.failAttempt('2026-03-02', 1, ROW.recordedAt, 'x')
  await ledger.releaseLease(token)
  await ledger.read()
  await ledger.ping()
  await feed.saveVerifiedTitle('hn', '1', { title: 'x', provenance: 'hn:x' }, 1)
  await feed.verifiedTitles([])
  await feed.readWindow(WINDOW)
  await feed.ping()
  expect(gate.bodies.length - begun).toBeGreaterThan(10)
  // A request that ends its stream leaves no transaction open.
  expect(gate.bodies[begun - 1]).toContain('"type":"close"')
  expect(gate.bodies.slice(begun).filter((body) => !body.includes('"type":"close"'))).toEqual([])
  await feed.importSignals([signal()])
  expect(gate.bodies.at(-1)).toContain('"type":"close"')
  expect(gate.bodies.filter((body) => /pragma/i.test(body))).toEqual([])
})

test('a database on a server has no change token', async () => {
  const { ledger } = connectLedger(sqld.url)
  await ledger.ping()
  expect(await ledger.changeToken()).toBeNull()
})

test('a table that disappears while the server runs is damage', async () => {
  const { ledger } = connectLedger(sqld.url)
  await ledger.ping()
  await sqld.empty()
  await expect(ledger.read()).rejects.toMatchObject(DAMAGED)
  await expect(ledger.ping()).rejects.toMatchObject(DAMAGED)
})

describe('migrations on a server', () => {
  test('migrations are applied once when five clients open every store at the same time', async () => {
    const opened = Array.from({ length: 5 }, () => [
      connectLedger(sqld.url).ledger,
      connectFeed(sqld.url).feed,
    ])
    await Promise.all(opened.flat().map((store) => store.ping()))
    const raw = rawClient(sqld.url)
    for (const store of ['ledger', 'feed'] as const) {
      const known = readdirSync(migrationsOf(store)).filter((name) => name.endsWith('.sql'))
      const { rows } = await raw.execute(`SELECT id FROM migrations_${store} ORDER BY id`)
      expect(rows.map(({ id }) => id)).toEqual(known.map((_name, index) => index + 1))
    }
  })

  test("migrations ignore another product's list of migrations", async () => {
    const raw = rawClient(sqld.url)
    await raw.execute(
      'CREATE TABLE "__drizzle_migrations" (id INTEGER PRIMARY KEY, hash TEXT, created_at NUMERIC)',
    )
    await raw.execute("INSERT INTO __drizzle_migrations VALUES (1, 'foreign', 1)")
    const { ledger } = connectLedger(sqld.url)
    await expect(ledger.ping()).resolves.toBeUndefined()
    expect((await raw.execute('SELECT hash FROM __drizzle_migrations')).rows).toEqual([{ hash: 'foreign' }])
  })
})
