import { expect, test } from 'vitest'
import { LIVE_SORTS } from '../../src/domain/feed/columns.ts'
import { proveFeed } from '../../src/domain/feed/snapshot.ts'
import { rankPeriods } from '../../src/jobs/rank-periods.ts'
import type { RankPeriodsPorts, SnapshotReport, TakenSnapshot } from '../../src/jobs/rank-periods.ts'
import { AS_OF, openWorkspace, sampleSignals } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'
import { addDays, startOfDay } from '../../src/domain/time.ts'

/** Two days after the events of the sample were published. */
const NOW = startOfDay(addDays(AS_OF, 1))

async function filledWorkspace(): Promise<Workspace> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(sampleSignals())
  return workspace
}

async function run(
  { feed }: Workspace,
  changes: Partial<RankPeriodsPorts['feed']> = {},
  now = NOW,
  signal = new AbortController().signal,
  discardLater = false,
): Promise<TakenSnapshot> {
  const report = await rankPeriods(
    { feed: { ...feed, ...changes }, clock: () => now },
    { signal, discardLater },
  )
  return taken(report)
}

function taken(report: SnapshotReport): TakenSnapshot {
  if (report.outcome !== 'taken') throw new Error(`${report.outcome} by ${report.snapshotId}`)
  return report
}

test('takes rows over the bounds of an event, and what it stores can be read back', async () => {
  const workspace = await filledWorkspace()
  const long = sampleSignals().find(({ titleProvenance }) => titleProvenance !== null)
  if (!long) throw new Error('the sample has no verified signal')
  const url = `https://example.org/${'x'.repeat(5_000)}`
  await workspace.feed.importSignals([{ ...long, title: 'x'.repeat(1_001), url }])
  await run(workspace)
  const snapshot = await workspace.feed.newestSnapshot()
  for (const feed of snapshot?.feeds ?? [])
    proveFeed(snapshot?.id ?? '', feed, await workspace.feed.snapshotFeed(snapshot?.id ?? '', feed))
  expect(snapshot?.feeds).toHaveLength(LIVE_SORTS.length)
})

test('stores what it reports', async () => {
  const workspace = await filledWorkspace()
  await workspace.feed.saveDetails([
    {
      source: 'lobsters',
      sourceId: 'lobsters1',
      author: 'a',
      tags: ['t'],
      description: null,
      collectedAt: NOW,
    },
  ])
  const report = await run(workspace)
  const snapshot = await workspace.feed.newestSnapshot()
  expect(report).toMatchObject({
    job: 'snapshot',
    outcome: 'taken',
    snapshotId: snapshot?.id,
    generatedAt: '2026-03-02T00:00:00.000Z',
    events: 9,
    removed: 0,
  })
  const column = { hackerNews: 3, lobsters: 3, lessWrong: 3, hypeReplicate: 0, midjourney: 0, popular: 9 }
  const none = { hackerNews: 0, lobsters: 0, lessWrong: 0, hypeReplicate: 0, midjourney: 0, popular: 0 }
  expect(report.items).toEqual({ trending: column, day: none, week: column, month: column })
  const feed = snapshot?.feeds.find(({ sort }) => sort === 'week')
  if (!snapshot || !feed) throw new Error('nothing was stored')
  const bytes = proveFeed(snapshot.id, feed, await workspace.feed.snapshotFeed(snapshot.id, feed))
  expect(report.byteSize.week).toBe(bytes.byteLength)
  expect(Buffer.from(bytes).toString()).toContain('"submitter_user":"a","tags":["t"]')
})

test('gives the same bytes for the same signals and instant, and stores them once', async () => {
  const workspace = await filledWorkspace()
  const first = await run(workspace)
  expect(await run(workspace)).toEqual({ ...first, removed: 0 })
})

test('takes a snapshot of nothing, too: the periods move on whether something was published or not', async () => {
  const workspace = await openWorkspace()
  const report = await run(workspace)
  expect(report.events).toBe(0)
  expect(Object.keys(report.items)).toEqual([...LIVE_SORTS])
  expect((await workspace.feed.newestSnapshot())?.id).toBe(report.snapshotId)
})

test.each(['liveEvents', 'details', 'saveSnapshot'] as const)(
  'leaves the snapshot that was there when %s fails, and takes the next one when it works again',
  async (step) => {
    const workspace = await filledWorkspace()
    const before = await run(workspace)
    const failing = { [step]: () => Promise.reject(new Error('the store broke off')) }
    await expect(run(workspace, failing, NOW + 1)).rejects.toThrow('broke off')
    expect((await workspace.feed.newestSnapshot())?.id).toBe(before.snapshotId)
    const after = await run(workspace, {}, NOW + 2)
    expect((await workspace.feed.newestSnapshot())?.id).toBe(after.snapshotId)
  },
)

test('may store the same again when only its answer was lost', async () => {
  const workspace = await filledWorkspace()
  const lost: RankPeriodsPorts['feed']['saveSnapshot'] = async (...args) => {
    await workspace.feed.saveSnapshot(...args)
    throw new Error('the answer was lost')
  }
  await expect(run(workspace, { saveSnapshot: lost })).rejects.toThrow('lost')
  const { snapshotId } = await run(workspace)
  expect((await workspace.feed.newestSnapshot())?.id).toBe(snapshotId)
})

test('stores nothing that does not fit the schema', async () => {
  const workspace = await filledWorkspace()
  const before = await run(workspace)
  const liveEvents: RankPeriodsPorts['feed']['liveEvents'] = async (now) =>
    (await workspace.feed.liveEvents(now)).map((event) => ({ ...event, title: '' }))
  await expect(run(workspace, { liveEvents }, NOW + 1)).rejects.toThrow()
  expect((await workspace.feed.newestSnapshot())?.id).toBe(before.snapshotId)
})

test('stores nothing once it is told to stop', async () => {
  const workspace = await filledWorkspace()
  const stopping = new AbortController()
  const liveEvents: RankPeriodsPorts['feed']['liveEvents'] = (now) => {
    stopping.abort(new Error('told to stop'))
    return workspace.feed.liveEvents(now)
  }
  await expect(run(workspace, { liveEvents }, NOW, stopping.signal)).rejects.toThrow('told to stop')
  expect(await workspace.feed.newestSnapshot()).toBeNull()
})

test('refuses under a clock that is behind, says how to mend it, and then discards on demand', async () => {
  const workspace = await filledWorkspace()
  const future = await run(workspace, {}, NOW + 3_600_000)
  await expect(run(workspace)).rejects.toMatchObject({
    code: 'clock_behind',
    detail: expect.stringContaining('2026-03-02T01:00:00.000Z') as string,
  })
  expect((await workspace.feed.newestSnapshot())?.id).toBe(future.snapshotId)
  const report = await run(workspace, {}, NOW, new AbortController().signal, true)
  expect(report.removed).toBe(1)
  expect((await workspace.feed.newestSnapshot())?.id).toBe(report.snapshotId)
})

test('is superseded by a snapshot that is later by five minutes at most, and by one of another content of its instant', async () => {
  const workspace = await filledWorkspace()
  for (const ahead of [0, 300_000]) {
    const later = await run(workspace, {}, NOW + ahead)
    const options = { signal: new AbortController().signal, discardLater: false }
    const feed = { ...workspace.feed, liveEvents: () => Promise.resolve([]) }
    expect(await rankPeriods({ feed, clock: () => NOW }, options)).toEqual({
      job: 'snapshot',
      outcome: 'superseded',
      snapshotId: later.snapshotId,
      generatedAt: later.generatedAt,
      durationMs: 0,
    })
    expect((await workspace.feed.newestSnapshot())?.id).toBe(later.snapshotId)
  }
  await run(workspace, {}, NOW + 300_001)
  await expect(run(workspace)).rejects.toMatchObject({ code: 'clock_behind' })
})

test('refuses a snapshot larger than what is read back, and leaves the one that is served', async () => {
  const workspace = await filledWorkspace()
  const before = await run(workspace)
  const stored = await workspace.feed.liveEvents(NOW)
  const events = Array.from({ length: 60 }, (_, index) =>
    stored.slice(0, 1).map((event) => ({
      ...event,
      sourceId: `long${index}`,
      title: `${index} ${'x'.repeat(600_000)}`,
      url: null,
    })),
  ).flat()
  const liveEvents = () => Promise.resolve(events)
  await expect(run(workspace, { liveEvents }, NOW + 1_000)).rejects.toMatchObject({
    code: 'snapshot_too_large',
    detail: expect.stringMatching(
      /^the feed \w+ would have \d+ bytes, at most 67108864 are read back/,
    ) as string,
  })
  expect((await workspace.feed.newestSnapshot())?.id).toBe(before.snapshotId)
})
