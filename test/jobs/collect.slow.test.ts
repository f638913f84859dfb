import { describe, expect, test } from 'vitest'
import { LIVE_SOURCES } from '../../src/domain/feed/live-source.ts'
import type { LiveSource } from '../../src/domain/ports.ts'
import type { ItemDetails } from '../../src/domain/feed/live-source.ts'
import type { Signal } from '../../src/domain/feed/signal.ts'
import { windowEnding } from '../../src/domain/year/ledger.ts'
import { collectSources } from '../../src/jobs/collect.ts'
import type { CollectPorts, SourcesReport } from '../../src/jobs/collect.ts'
import { openFeed } from '../adapters/feed/open-feed.ts'
import { DAY, NOW, replay, sourcesOf } from '../support/replay/live-world.ts'
import { IDS_OF, REPLAYED } from '../support/replay/responses.ts'
import type { Replayed } from '../support/replay/responses.ts'
import { noTitles, openWorkspace, publish, publishPortsOf, tickingClock } from '../support/workspace.ts'
import { memoryOfSources } from '../adapters/sources/client.ts'

/** The source in a signal that each replayed server belongs to. */
const SOURCE_OF: Record<Replayed, (typeof LIVE_SOURCES)[number]> = {
  hn: 'hn',
  'hn-search': 'hn',
  lobsters: 'lobsters',
  lesswrong: 'lesswrong',
  github: 'hype:github',
  huggingface: 'hype:huggingface',
  replicate: 'hype:replicate',
  reddit: 'hype:reddit',
}

/** A feed that remembers what it was given, in a real store. */
async function openPorts(clock = NOW) {
  const { feed } = await openFeed()
  const signals: Signal[] = []
  const details: ItemDetails[] = []
  const ports: Pick<CollectPorts, 'feed' | 'clock' | 'onItems'> = {
    feed: {
      ...feed,
      importSignals(batch) {
        signals.push(...batch)
        return feed.importSignals(batch)
      },
      saveDetails(batch) {
        details.push(...batch)
        return feed.saveDetails(batch)
      },
    },
    clock: () => clock,
    onItems: () => undefined,
  }
  const stored = async (): Promise<Record<string, string[]>> => {
    const { events } = await feed.readWindow(windowEnding(DAY))
    const ids: Record<string, string[]> = {}
    for (const { source, sourceId } of events) ids[source] = [...(ids[source] ?? []), sourceId].sort()
    return ids
  }
  return { ports, signals, details, stored }
}

const never = new AbortController().signal

const sorted = (ids: readonly string[] = []): string[] => [...ids].sort()

function expectWhole(report: SourcesReport, stored: Record<string, string[]>, but: string[] = []): void {
  for (const source of LIVE_SOURCES) {
    if (but.includes(source)) continue
    expect(report.sources[source], source).toMatchObject({
      outcome: 'collected',
      items: IDS_OF[source]?.length,
      reason: null,
      badRows: 0,
    })
    expect(stored[source], source).toEqual(sorted(IDS_OF[source]))
  }
}

describe('a collection', () => {
  test('a collection stores what every source shows today, with verified titles and details', async () => {
    const { ports, signals, details, stored } = await openPorts()
    const report = await collectSources(ports, sourcesOf(await replay()), never)
    expect(report).toMatchObject({ day: DAY, outcome: 'collected' })
    expect(Object.keys(report.sources)).toEqual([...LIVE_SOURCES])
    expectWhole(report, await stored())
    for (const { source, day, titleProvenance } of signals) {
      expect([day, titleProvenance?.startsWith(`${source}:`)]).toEqual([DAY, true])
    }
    const keys = (rows: { source: string; sourceId: string }[]) =>
      rows.map(({ source, sourceId }) => `${source} ${sourceId}`)
    expect(keys(details)).toEqual(keys(signals))
    expect(new Set(keys(signals)).size).toBe(signals.length)
  })

  test('a collection of unchanged sources changes nothing on the same day, is the observation of another day, and is sent no list again', async () => {
    const { ports } = await openPorts()
    const sources = sourcesOf(await replay(), { memory: memoryOfSources() })
    const first = await collectSources(ports, sources, never)
    const second = await collectSources(ports, sources, never)
    for (const source of LIVE_SOURCES) {
      const items = first.sources[source]?.items
      const unchanged = { outcome: 'collected', items, inserted: 0, replaced: 0, unchanged: items }
      expect(second.sources[source], source).toMatchObject(unchanged)
    }
    expect(first.sources.lobsters?.notModified).toBe(0)
    for (const source of ['lobsters', 'hype:github'] as const)
      expect(second.sources[source]).toMatchObject({ requests: 2, notModified: 2 })
    const next = await openPorts(NOW + 11 * 3_600_000)
    const report = await collectSources(next.ports, sources, never)
    expect(report.sources.lobsters).toMatchObject({ notModified: 2, items: IDS_OF['lobsters']?.length })
    expect(new Set(next.signals.map(({ day }) => day))).toEqual(new Set(['2026-11-22']))
  })
})

/** Number of items of Hacker News if only the other of its two interfaces works. */
const REST: Partial<Record<Replayed, number>> = { hn: 3, 'hn-search': 60 }

const SERVERS = Object.keys(REPLAYED) as Replayed[]

describe('a misbehaving source', () => {
  test.each(SERVERS)(
    'a misbehaving source is reported and does not affect the others: %s',
    async (server) => {
      const world = await replay()
      world.fault(server, 'limited')
      const { ports, stored } = await openPorts()
      const report = await collectSources(ports, sourcesOf(world), never)
      const kept = await stored()
      expect(report.outcome).toBe('partial')
      const source = SOURCE_OF[server]
      const rest = REST[server] ?? 0
      expect(report.sources[source]).toMatchObject({
        outcome: rest > 0 ? 'partial' : 'failed',
        items: rest,
        reason: expect.stringContaining('http://127.0.0.1:') as string,
        retryAt: '2026-11-21T14:30:00.000Z',
      })
      expect(kept[source]?.length ?? 0).toBe(rest)
      expectWhole(report, kept, [source])
    },
  )

  test('the run fails when all sources misbehave, with the reason of each', async () => {
    const world = await replay()
    for (const server of SERVERS) world.fault(server, 'failing')
    const { ports, stored } = await openPorts()
    const report = await collectSources(ports, sourcesOf(world), never)
    expect([report.outcome, await stored()]).toEqual(['failed', {}])
    for (const source of LIVE_SOURCES) {
      expect(report.sources[source]).toMatchObject({ outcome: 'failed', items: 0 })
      expect(report.sources[source]?.reason).toContain('responded with 500')
    }
  })
})

describe('an interrupted run', () => {
  test('a run with a failing store throws its error, after every source has stopped', async () => {
    const { ports } = await openPorts()
    const fault = new Error('the disk is gone')
    const failing = { ...ports, feed: { ...ports.feed, importSignals: () => Promise.reject(fault) } }
    let running = 0
    const watched = sourcesOf(await replay()).map((source): LiveSource => ({
      ...source,
      async *read(day, signal) {
        running += 1
        try {
          yield* source.read(day, signal)
        } finally {
          running -= 1
        }
      },
    }))
    await expect(collectSources(failing, watched, never)).rejects.toBe(fault)
    expect(running).toBe(0)
  })
})

test('collected items are published the day after without fetching any title', async () => {
  const workspace = await openWorkspace()
  const ports = { feed: workspace.feed, clock: () => NOW, onItems: () => undefined }
  await collectSources(ports, sourcesOf(await replay()), never)
  const clock = tickingClock(NOW + 12 * 3_600_000)
  const { report } = await publish(publishPortsOf(workspace, { clock, titles: noTitles }))
  expect(report).toMatchObject({ outcome: 'published', asOfDay: DAY, reason: null })
  expect(report.items).toMatchObject({ hackerNews: 62, lobsters: 4, lessWrong: 3 })
})
