import { expect, test } from 'vitest'
import type { Objects, YearReader } from '../../../src/domain/year/ports.ts'
import { provedPublications } from '../../../src/server/year/proved-publications.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../../support/workspace.ts'

interface Watched {
  /** Requests the newest publication so often, one time after the other. */
  ask: (times: number) => Promise<void>
  askAtOnce: (times: number) => Promise<unknown>
  /** How often each store was really read. */
  reads: { ledger: number; object: number }
  advance: (ms: number) => void
}

/** @param changing store that changes during each of its reads, which the change token taken after it shows */
async function watch(changing?: 'ledger' | 'object', memoryMaxBytes?: number): Promise<Watched> {
  // A file clock ahead of the real one lets every change token settle at once.
  const workspace = await openWorkspace(() => Date.now() + 60_000)
  await workspace.feed.importSignals(sampleSignals())
  await publishDays(workspace, [AS_OF])
  let now = Date.now()
  const reads = { ledger: 0, object: 0 }
  const tokenOf = (store: 'ledger' | 'object') => (): Promise<string> =>
    Promise.resolve(store === changing ? String(reads[store]) : store)
  const year: YearReader = { read: () => ((reads.ledger += 1), workspace.year.read()) }
  const objects: Objects = {
    ...workspace.objects,
    get: (sha256) => ((reads.object += 1), workspace.objects.get(sha256)),
    objectChangeToken: tokenOf('object'),
    headChangeToken: () => Promise.resolve('h'),
  }
  const ports = { ledger: { changeToken: tokenOf('ledger') }, objects, year, clock: () => now }
  const publications = provedPublications(ports, memoryMaxBytes)
  return {
    async ask(times) {
      for (let request = 0; request < times; request += 1) await publications.latestAt(Date.now())
    },
    askAtOnce: (times) => Promise.all(Array.from({ length: times }, () => publications.latestAt(Date.now()))),
    reads,
    advance: (ms) => void (now += ms),
  }
}

test.each([
  ['is reused while its tokens are equal', undefined, { ledger: 1, object: 1 }],
  ['is not cached if the ledger changed during the read', 'ledger', { ledger: 3, object: 1 }],
  ['is not cached if the object changed during the read', 'object', { ledger: 1, object: 3 }],
] as const)('a proof %s', async (_what, changing, expected) => {
  const { ask, reads } = await watch(changing)
  await ask(3)
  expect(reads).toEqual(expected)
})

test('a proof is renewed after a minute, and dropped if it does not fit the cache', async () => {
  const { ask, reads, advance } = await watch()
  await ask(1)
  advance(59_999)
  await ask(1)
  expect(reads).toEqual({ ledger: 1, object: 1 })
  advance(1)
  await ask(1)
  expect(reads).toEqual({ ledger: 2, object: 2 })
  const small = await watch(undefined, 100)
  await small.ask(2)
  expect(small.reads).toEqual({ ledger: 1, object: 2 })
})

test('a publication is verified at most twice for any number of concurrent requests', async () => {
  const { askAtOnce, reads } = await watch()
  await askAtOnce(50)
  expect(reads.ledger).toBeLessThanOrEqual(2)
  expect(reads.object).toBeLessThanOrEqual(2)
})
