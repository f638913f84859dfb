import { describe, expect, test } from 'vitest'
import type { Objects, YearReader } from '../../../src/domain/ports.ts'
import { provedPublications } from '../../../src/server/year/proved-publications.ts'
import { AS_OF, openWorkspace, publishDays, sampleSignals } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

/** Counts how often each store is really read, and lets the test change something in the middle of a reading. */
interface Watched {
  publications: ReturnType<typeof provedPublications>
  reads: { ledger: number; object: number }
  duringReading: { ledger: () => void; object: () => void }
  advance: (ms: number) => void
}

async function watch(memoryMaxBytes?: number): Promise<Watched & { workspace: Workspace }> {
  // A file clock ahead of the real one lets every change token settle at once.
  const workspace = await openWorkspace(() => Date.now() + 60_000)
  await workspace.feed.importSignals(sampleSignals())
  await publishDays(workspace, [AS_OF])
  let now = Date.now()
  const reads = { ledger: 0, object: 0 }
  const duringReading = { ledger: (): void => undefined, object: (): void => undefined }
  const tokens = { ledger: 'l0', object: 'o0' }
  const year: YearReader = {
    async read() {
      reads.ledger += 1
      duringReading.ledger()
      return workspace.year.read()
    },
  }
  const objects: Objects = {
    ...workspace.objects,
    async get(sha256) {
      reads.object += 1
      duringReading.object()
      return workspace.objects.get(sha256)
    },
    objectChangeToken: () => Promise.resolve(tokens.object),
    headChangeToken: () => Promise.resolve('h'),
  }
  const ledger = { changeToken: () => Promise.resolve(tokens.ledger) }
  const ports = { ledger, objects, year, clock: () => now }
  const publications = provedPublications(ports, memoryMaxBytes)
  // What a reading changes is seen by the change token taken after it.
  return {
    workspace,
    publications,
    reads,
    duringReading: {
      set ledger(change: () => void) {
        duringReading.ledger = () => {
          tokens.ledger = `l${reads.ledger}`
          change()
        }
      },
      set object(change: () => void) {
        duringReading.object = () => {
          tokens.object = `o${reads.object}`
          change()
        }
      },
    },
    advance: (ms) => {
      now += ms
    },
  }
}

describe('what was proved', () => {
  test('is used again while its tokens stay the same', async () => {
    const { publications, reads } = await watch()
    for (let request = 0; request < 3; request += 1) await publications.latestAt(Date.now())
    expect(reads).toEqual({ ledger: 1, object: 1 })
  })

  test('is not kept when the ledger changed while it was read', async () => {
    const { publications, reads, duringReading } = await watch()
    duringReading.ledger = () => undefined
    for (let request = 0; request < 3; request += 1) await publications.latestAt(Date.now())
    expect(reads).toEqual({ ledger: 3, object: 1 })
  })

  test('is not kept when the object changed while it was read', async () => {
    const { publications, reads, duringReading } = await watch()
    duringReading.object = () => undefined
    for (let request = 0; request < 3; request += 1) await publications.latestAt(Date.now())
    expect(reads).toEqual({ ledger: 1, object: 3 })
  })

  test('is proved again after a minute', async () => {
    const { publications, reads, advance } = await watch()
    await publications.latestAt(Date.now())
    advance(59_999)
    await publications.latestAt(Date.now())
    expect(reads).toEqual({ ledger: 1, object: 1 })
    advance(1)
    await publications.latestAt(Date.now())
    expect(reads).toEqual({ ledger: 2, object: 2 })
  })

  test('is dropped when it does not fit into the memory it may take', async () => {
    const { publications, reads } = await watch(100)
    for (let request = 0; request < 2; request += 1) await publications.latestAt(Date.now())
    expect(reads).toEqual({ ledger: 1, object: 2 })
  })

  test('is proved at most twice for any number who ask together', async () => {
    const { publications, reads } = await watch()
    await Promise.all(Array.from({ length: 50 }, () => publications.latestAt(Date.now())))
    expect(reads.ledger).toBeLessThanOrEqual(2)
    expect(reads.object).toBeLessThanOrEqual(2)
  })
})
