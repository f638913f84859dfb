import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { ArticleReading } from '../../src/domain/feed/article.ts'
import type { Signal } from '../../src/domain/feed/signal.ts'
import type { SourceBatch } from '../../src/domain/feed/live-source.ts'
import type { ArticleTexts, FeedStore, LiveSource } from '../../src/domain/ports.ts'
import { startOfDay } from '../../src/domain/time.ts'
import { windowEnding } from '../../src/domain/year/ledger.ts'
import { collectArticles, collectSources } from '../../src/jobs/collect.ts'
import type { ArticlesOptions, CollectPorts, ArticlesReport } from '../../src/jobs/collect.ts'
import { DAY as REPLAYED_DAY, NOW as REPLAYED_AT, replay, sourcesOf } from '../support/replay/live-world.ts'
import { IDS_OF } from '../support/replay/responses.ts'
import { signal } from '../support/signals.ts'
import { AS_OF, openWorkspace } from '../support/workspace.ts'
import type { Workspace } from '../support/workspace.ts'
import { shorten } from '../../src/domain/text.ts'

const NOW = startOfDay(AS_OF) + 3_600_000
const HOUR = 3_600_000

function run(
  { feed }: Workspace,
  texts: ArticleTexts,
  changes: Partial<ArticlesOptions & Pick<CollectPorts, 'clock' | 'onTexts'>> = {},
): Promise<ArticlesReport> {
  const { clock = () => NOW, onTexts = () => undefined, ...options } = changes
  return collectArticles(
    { feed, texts, clock, onTexts },
    {
      minPoints: { hn: 1, lobsters: 1, lesswrong: 1 },
      limit: 100,
      signal: new AbortController().signal,
      ...options,
    },
  )
}

const item = (sourceId: string, url: string | null, changes: Partial<Signal> = {}): Signal =>
  signal({ sourceId, url, day: AS_OF, ...changes })

const READ = { kind: 'text', text: 'The text', provenance: 'page:readability https://a.example/' } as const
const FAILED: ArticleReading = { kind: 'failed', reason: 'the server is down', notBefore: null }

/** A reader with these results of items by their id; every other item has a text. */
function readerOf(results: Record<string, ArticleReading> = {}) {
  const read: string[] = []
  const texts: ArticleTexts = {
    async read({ sourceId }, stop) {
      stop.throwIfAborted()
      read.push(sourceId)
      return results[sourceId] ?? READ
    },
  }
  return { texts, read }
}

test('a run stores the texts that it reads, with their origin and time, and reports the others', async () => {
  const workspace = await openWorkspace()
  const { feed } = workspace
  await feed.importSignals([
    ...['1', '2', '3'].map((id) => item(id, null)),
    item('x', null, { source: 'lesswrong' }),
    item('low', null, { points: 0 }),
  ])
  const skipped = { kind: 'skipped', why: 'private', detail: 'it is private', notBefore: null } as const
  const progress: string[] = []
  const report = await run(workspace, readerOf({ 1: FAILED, 2: skipped }).texts, {
    onTexts: (done, wanted) => progress.push(`${done}/${wanted}`),
  })
  expect(report).toEqual({
    wanted: 4,
    stored: 2,
    skipped: { private: 1 },
    failed: [{ key: 'hn-1', reason: 'the server is down' }],
    failedCount: 1,
  })
  expect(progress).toEqual(['1/4', '2/4', '3/4', '4/4'])
  const { kind: _kind, ...text } = READ
  expect(await feed.article('hn', '3')).toEqual({ source: 'hn', sourceId: '3', ...text, fetchedAt: NOW })
  expect(await feed.article('lesswrong', 'x')).not.toBeNull()
  expect(await run(workspace, readerOf().texts)).toMatchObject({ wanted: 0, stored: 0 })
})

/** A source of one item. */
const sourceOf = (source: LiveSource['source'], changes: Partial<SourceBatch> = {}): LiveSource => ({
  source,
  missingSettings: [],
  async *read(day) {
    const rest = { details: [], badRows: [], failures: [], requests: 1, notModified: 0, skews: [] }
    yield { signals: [item('1', null, { source, day })], ...rest, ...changes }
  },
})

function collect(feed: FeedStore, sources: LiveSource[]) {
  const ports = { feed, clock: () => NOW, onItems: () => undefined }
  return collectSources(ports, sources, new AbortController().signal)
}

test('every replayed source is stored whole on its day, and sends no unchanged list again', async () => {
  const { feed } = await openWorkspace()
  const sources = sourcesOf(await replay(), { memory: feed })
  const collectAt = (now: number) =>
    collectSources(
      { feed, clock: () => now, onItems: () => undefined },
      sources,
      new AbortController().signal,
    )
  const first = await collectAt(REPLAYED_AT)
  expect(first).toMatchObject({ day: REPLAYED_DAY, outcome: 'collected' })
  const second = await collectAt(REPLAYED_AT)
  const { observed } = await feed.readWindow(windowEnding(REPLAYED_DAY))
  for (const [source, ids] of Object.entries(IDS_OF)) {
    const items = ids.length
    expect(observed).toContainEqual({ source, days: [REPLAYED_DAY], events: items })
    expect(first.sources).toMatchObject({
      [source]: { outcome: 'collected', items, badRows: 0, notModified: 0 },
    })
    expect(second.sources).toMatchObject({ [source]: { items, inserted: 0, unchanged: items } })
  }
  for (const source of ['lobsters', 'hype:github'] as const)
    expect(second.sources[source]).toMatchObject({ requests: 2, notModified: 2 })
})

test('a source that fails is reported with the latest time it names, and does not affect the others', async () => {
  const { feed } = await openWorkspace()
  const failures = [NOW + HOUR, null, NOW].map((retryAt) => ({ reason: 'it is busy', retryAt }))
  const sources = [
    sourceOf('hn', { failures }),
    sourceOf('lobsters', { signals: [], failures }),
    sourceOf('lesswrong'),
    { ...sourceOf('hype:github'), missingSettings: ['A', 'B'] },
  ]
  const retryAt = new Date(NOW + HOUR).toISOString()
  const { outcome, sources: reports } = await collect(feed, sources)
  expect([outcome, Object.keys(reports)]).toEqual(['partial', sources.map(({ source }) => source)])
  expect(Object.values(reports)).toMatchObject([
    { outcome: 'partial', items: 1, retryAt },
    { outcome: 'failed', items: 0, retryAt },
    { outcome: 'collected', items: 1, reason: null, retryAt: null },
    { outcome: 'skipped', requests: 0, reason: 'missing setting: A, B' },
  ])
  expect((await collect(feed, sources.slice(0, 2))).outcome).toBe('partial')
  const failed = await collect(feed, [sourceOf('hn', { signals: [] }), ...sources.slice(1, 2)])
  expect(failed.outcome).toBe('failed')
  expect(failed.sources.hn?.reason).toBe('no usable items returned (0 bad rows)')
})

test('details are stored before signals, and an error of the store is thrown after every source has stopped', async () => {
  const { feed } = await openWorkspace()
  const fault = new Error('no details')
  const failing = { ...feed, saveDetails: () => Promise.reject(fault) }
  let stopped = false
  const slow: LiveSource = {
    ...sourceOf('lobsters'),
    async *read(day, stop) {
      yield* sourceOf('lobsters', { signals: [] }).read(day, stop)
      await once(stop, 'abort')
      await nextTurn()
      stopped = true
    },
  }
  await expect(collect(failing, [sourceOf('hn'), slow])).rejects.toBe(fault)
  expect(stopped).toBe(true)
  expect(await feed.newestNewsDay(AS_OF)).toBeNull()
})

describe('a run whose clock is on another day than its sources', () => {
  const DAY_MS = 24 * HOUR

  test.each<[string, (number | null)[], string | null]>([
    ['three days ahead', [-3 * DAY_MS, null, -3 * DAY_MS], 'the clock is 3 days ahead of 2 sources'],
    ['a day behind', [DAY_MS], 'the clock is 24 hours behind 1 source'],
    ['not ahead of most sources', [0, 0, -DAY_MS], null],
    ['an hour behind on the same day', [HOUR, HOUR], null],
    ['of unknown difference', [null], null],
  ])('stores nothing if it is %s', async (_what, skews, problem) => {
    const { feed } = await openWorkspace()
    const names = ['hn', 'lobsters', 'lesswrong'] as const
    const sources = skews.map((skew, index) =>
      sourceOf(names[index] ?? 'hn', { skews: skew === null ? [] : [skew, skew] }),
    )
    const report = await collect(feed, sources)
    const reason = problem && `${problem}, where ${AS_OF} is another day`
    for (const each of Object.values(report.sources))
      expect(each).toMatchObject({ reason, items: problem === null ? 1 : 0 })
    expect(await feed.newestNewsDay(AS_OF)).toBe(problem === null ? AS_OF : null)
  })
})

test.each([
  [['a: x', 'b: x', 'c: y', 'd: z'], 'a: x (and at 1 more address); c: y; d: z'],
  [['a: x', 'c: y', 'd: z', 'e: w'], 'a: x; c: y; d: z; and 1 more'],
])('a report names the bad rows of a source, and each cause of the failures %j once', async (...row) => {
  const [reasons, reason] = row
  const { feed } = await openWorkspace()
  const failing = sourceOf('hn', {
    signals: [],
    badRows: [
      { sourceId: '1', reason: 'bad' },
      { sourceId: null, reason: 'worse' },
    ],
    failures: reasons.map((each) => ({ reason: each, retryAt: null })),
  })
  const report = { outcome: 'failed', badRows: 2, problems: ['1: bad', 'worse'], reason }
  expect((await collect(feed, [failing])).sources.hn).toMatchObject(report)
})

test('a report has the first hundred failures, and the number of all', async () => {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(Array.from({ length: 101 }, (_, index) => item(`${index}`, null)))
  const failing: ArticleTexts = { read: () => Promise.resolve(FAILED) }
  const report = await run(workspace, failing, { limit: 101 })
  expect(report).toMatchObject({ wanted: 101, failedCount: 101 })
  expect(report.failed).toHaveLength(100)
})

describe('an item whose text could not be read', () => {
  test('an unreadable item waits for its next attempt, is tried a few times, and then no more', async () => {
    const workspace = await openWorkspace()
    const { texts, read } = readerOf({ 1: FAILED })
    await workspace.feed.importSignals([item('1', null)])
    const hours = [0, 5, 6, 29, 30, 125, 126, 160]
    const tried: number[] = []
    for (const hour of hours)
      if ((await run(workspace, texts, { clock: () => NOW + hour * HOUR })).wanted > 0) tried.push(hour)
    expect([tried, read]).toEqual([
      [0, 6, 30, 126],
      ['1', '1', '1', '1'],
    ])
  })

  test('an item is read when its server has recovered', async () => {
    const workspace = await openWorkspace()
    await workspace.feed.importSignals([item('1', null)])
    const busy: ArticleReading = { ...FAILED, notBefore: NOW + 10 * HOUR }
    await run(workspace, readerOf({ 1: busy }).texts)
    const after = (hours: number) => run(workspace, readerOf().texts, { clock: () => NOW + hours * HOUR })
    expect(await after(9)).toMatchObject({ wanted: 0 })
    expect(await after(10)).toMatchObject({ stored: 1 })
  })
})

test('a run reads no more items than its limit, those with most points first', async () => {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals([1, 2, 3].map((points) => item(String(points), null, { points })))
  const { texts, read } = readerOf()
  expect(await run(workspace, texts, { limit: 2 })).toMatchObject({ wanted: 2, stored: 2 })
  expect(read).toEqual(['3', '2'])
  expect(await run(workspace, texts, { limit: 0 })).toMatchObject({ wanted: 0 })
})

test('an aborted run keeps what it has stored and rejects with the reason', async () => {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals([item('1', null, { points: 9 }), item('2', null, { points: 8 })])
  const controller = new AbortController()
  const reason = new Error('the run was ended')
  const running = run(workspace, readerOf().texts, {
    signal: controller.signal,
    onTexts: () => controller.abort(reason),
  })
  await expect(running).rejects.toBe(reason)
  expect(await workspace.feed.article('hn', '1')).not.toBeNull()
  expect(await run(workspace, readerOf().texts)).toMatchObject({ wanted: 1 })
})

test('an error of the store ends the run, and no item is still running', async () => {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals([item('1', null), item('2', null)])
  const fault = new Error('the disk is full')
  const { texts, read } = readerOf()
  const feed = { ...workspace.feed, saveArticles: () => Promise.reject(fault) }
  await expect(run({ ...workspace, feed }, texts)).rejects.toBe(fault)
  expect(read).toHaveLength(1)
})

test.each([
  ['two\r\n  lines', 'two lines'],
  ['😀'.repeat(400), '😀'.repeat(400)],
  ['😀'.repeat(401), `${'😀'.repeat(400)}…`],
  [`a${' '.repeat(900)}b`, 'a …'],
])('a text of a report is one line of at most 400 characters', (text, short) => {
  expect(shorten(text)).toBe(short)
})
