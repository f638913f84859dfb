import { expect, test } from 'vitest'
import { LIVE_SORTS } from '../../src/domain/feed/live-sort.ts'
import { proveFeed } from '../../src/domain/feed/snapshot.ts'
import { rankPeriods } from '../../src/jobs/snapshot.ts'
import type { RankPeriodsPorts, TakenSnapshot } from '../../src/jobs/snapshot.ts'
import { feedEvent, signal } from '../support/signals.ts'
import { AS_OF, openWorkspace, sampleSignals } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'
import { addDays, startOfDay } from '../../src/domain/time.ts'

/** Two days after the events of the sample were published. */
const NOW = startOfDay(addDays(AS_OF, 1))

const NEVER = new AbortController().signal

async function filledWorkspace(): Promise<Workspace> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(sampleSignals())
  return workspace
}

async function run(
  { feed }: Workspace,
  changes: Partial<RankPeriodsPorts['feed']> = {},
  now = NOW,
  stop = NEVER,
): Promise<TakenSnapshot> {
  const ports = { feed: { ...feed, ...changes }, clock: () => now }
  const report = await rankPeriods(ports, { signal: stop, discardLater: false })
  if (report.outcome !== 'taken') throw new Error(`${report.outcome} by ${report.snapshotId}`)
  return report
}

async function servedBy({ feed }: Workspace): Promise<string | undefined> {
  return (await feed.newestSnapshot())?.id
}

test('a snapshot accepts rows beyond the limits of an event, and can be read back', async () => {
  const workspace = await filledWorkspace()
  const url = `https://example.org/${'x'.repeat(5_000)}`
  await workspace.feed.importSignals([signal({ title: 'x'.repeat(1_001), url })])
  await run(workspace)
  const snapshot = await workspace.feed.newestSnapshot()
  for (const feed of snapshot?.feeds ?? [])
    proveFeed(snapshot?.id ?? '', feed, await workspace.feed.snapshotFeed(snapshot?.id ?? '', feed))
  expect(snapshot?.feeds).toHaveLength(LIVE_SORTS.length)
})

test('a run stores what it reports', async () => {
  const workspace = await filledWorkspace()
  const lobster = { source: 'lobsters', sourceId: 'lobsters1', author: 'a', tags: ['t'], description: null }
  await workspace.feed.saveDetails([{ ...lobster, collectedAt: NOW }])
  const report = await run(workspace)
  const snapshot = await workspace.feed.newestSnapshot()
  const facts = { snapshotId: snapshot?.id, generatedAt: '2026-03-02T00:00:00.000Z', events: 9, removed: 0 }
  expect(report).toMatchObject({ job: 'snapshot', outcome: 'taken', ...facts })
  const column = { hackerNews: 3, lobsters: 3, lessWrong: 3, hypeReplicate: 0, midjourney: 0, popular: 9 }
  const none = Object.fromEntries(Object.keys(column).map((name) => [name, 0]))
  expect(report.items).toEqual({ trending: column, day: none, week: column, month: column })
  const feed = snapshot?.feeds.find(({ sort }) => sort === 'week')
  if (!snapshot || !feed) throw new Error('nothing was stored')
  const bytes = proveFeed(snapshot.id, feed, await workspace.feed.snapshotFeed(snapshot.id, feed))
  expect(report.byteSize.week).toBe(bytes.byteLength)
  expect(Buffer.from(bytes).toString()).toContain('"submitter_user":"a","tags":["t"]')
})

test.each(['liveEvents', 'details', 'saveSnapshot'] as const)(
  'the current snapshot stays when %s fails, and the next run takes a new one',
  async (step) => {
    const workspace = await filledWorkspace()
    const before = await run(workspace)
    const failing = { [step]: () => Promise.reject(new Error('the store broke off')) }
    await expect(run(workspace, failing, NOW + 1)).rejects.toThrow('broke off')
    expect(await servedBy(workspace)).toBe(before.snapshotId)
    const after = await run(workspace, {}, NOW + 2)
    expect(await servedBy(workspace)).toBe(after.snapshotId)
  },
)

test('an aborted run stores nothing', async () => {
  const workspace = await filledWorkspace()
  const stopping = new AbortController()
  const liveEvents: RankPeriodsPorts['feed']['liveEvents'] = (now) => {
    stopping.abort(new Error('told to stop'))
    return workspace.feed.liveEvents(now)
  }
  await expect(run(workspace, { liveEvents }, NOW, stopping.signal)).rejects.toThrow('told to stop')
  expect(await workspace.feed.newestSnapshot()).toBeNull()
})

test('a run is superseded by a snapshot that is later by at most five minutes, and by one of the same instant with other content', async () => {
  const workspace = await filledWorkspace()
  for (const ahead of [0, 300_000]) {
    const later = await run(workspace, {}, NOW + ahead)
    const options = { signal: NEVER, discardLater: false }
    const feed = { ...workspace.feed, liveEvents: () => Promise.resolve([]) }
    expect(await rankPeriods({ feed, clock: () => NOW }, options)).toEqual({
      job: 'snapshot',
      outcome: 'superseded',
      snapshotId: later.snapshotId,
      generatedAt: later.generatedAt,
      durationMs: 0,
    })
    expect(await servedBy(workspace)).toBe(later.snapshotId)
  }
  const { generatedAt } = await run(workspace, {}, NOW + 300_001)
  const detail: unknown = expect.stringContaining(generatedAt)
  await expect(run(workspace)).rejects.toMatchObject({ code: 'clock_behind', detail })
})

test('a snapshot larger than what is read back is refused, and the served one stays', async () => {
  const workspace = await filledWorkspace()
  const before = await run(workspace)
  const title = 'x'.repeat(600_000)
  const events = Array.from({ length: 60 }, (_, index) =>
    feedEvent({ sourceId: `${index}`, title: `${index} ${title}`, publishedAt: NOW }),
  )
  const liveEvents = () => Promise.resolve(events)
  const detail: unknown = expect.stringMatching(/^the feed \w+ would have \d+ bytes; the maximum is 67108864/)
  const refusal = { code: 'snapshot_too_large', detail }
  await expect(run(workspace, { liveEvents }, NOW + 1_000)).rejects.toMatchObject(refusal)
  expect(await servedBy(workspace)).toBe(before.snapshotId)
})
