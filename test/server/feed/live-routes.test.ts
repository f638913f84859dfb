import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { COLUMN_NAMES } from '../../../src/domain/feed/columns.ts'
import { liveFeedSchema } from '../../../src/domain/feed/live-items.ts'
import { LIVE_SORTS } from '../../../src/domain/feed/live-sort.ts'
import { storageUnavailable } from '../../../src/domain/refusal.ts'
import { openApp, silentLog } from '../../support/api-client.ts'
import { feedEvents, HOUR_MS, NOW } from '../../support/signals.ts'
import { requestRoute } from '../contract-client.ts'
import { keepSnapshot } from './live-client.ts'
import { openWorkspace } from '../../support/workspace.ts'
import { rawClient } from '../../adapters/sqlite/lock-holder.ts'

const PATHS = ['/api/feed', '/api/feed.csv', '/api/rss', '/api/atom', '/api/feed.json']

const EVENTS = ['hn', 'lobsters', 'lesswrong', 'hype:github', 'midjourney'].flatMap((source) =>
  feedEvents(source, 4, (index) => ({ publishedAt: NOW - index * 20 * HOUR_MS })),
)

test.each(LIVE_SORTS)('/api/feed serves %s byte for byte as stored', async (sort) => {
  const workspace = await openWorkspace()
  const { payloads } = await keepSnapshot(workspace.feed, EVENTS)
  const { headers, text } = await requestRoute(openApp(workspace), `/api/feed?sort=${sort}`)
  expect(text).toBe(new TextDecoder().decode(payloads.get(sort)))
  expect(headers.get('last-modified')).toBe('Sun, 15 Mar 2026 12:00:00 GMT')
  expect(liveFeedSchema.parse(JSON.parse(text)).sortMode).toBe(sort)
})

test('/api/feed.csv has the items of every list in order, or those that a rule selects', async () => {
  const workspace = await openWorkspace()
  await keepSnapshot(workspace.feed, EVENTS)
  const app = openApp(workspace)
  const { headers, text } = await requestRoute(app, '/api/feed.csv?sort=month')
  expect(headers.get('content-disposition')).toBe('attachment; filename="dash-month-2026-03-15.csv"')
  const [names = '', ...lines] = text.trimEnd().split('\r\n')
  expect(names).toBe(
    'list,key,source,provider,sourceId,rank,title,url,discussionUrl,points,comments,publishedAt,percentile,agg_score,listedSince,event_title_verified,title_provenance',
  )
  const feed = liveFeedSchema.parse(JSON.parse((await requestRoute(app, '/api/feed?sort=month')).text))
  const rows = COLUMN_NAMES.flatMap((list) => feed[list].map(({ key, rank }) => [list, key, String(rank)]))
  const cells = lines.map((line) => line.split(','))
  expect(cells.map(([list, key, , , , rank]) => [list, key, rank])).toEqual(rows)
  const selected = await requestRoute(app, '/api/feed.csv?sort=month&source=lobsters&top=2')
  const lists = selected.text.split('\r\n').map((line) => line.split(',')[0])
  expect(lists).toEqual(['list', 'popular', 'popular', 'lobsters', 'lobsters', ''])
})

describe.each(PATHS)('%s', (path) => {
  test('a request with the ETag of an older snapshot gets 200', async () => {
    const workspace = await openWorkspace()
    const app = openApp(workspace)
    await keepSnapshot(workspace.feed, EVENTS)
    const headers = { 'if-none-match': (await requestRoute(app, path)).headers.get('etag') ?? '' }
    await keepSnapshot(workspace.feed, EVENTS.slice(1), NOW + 1)
    expect((await requestRoute(app, path, { headers })).status).toBe(200)
  })

  test('an unknown sort is refused, and the year is referred to its own interface', async () => {
    const app = openApp(await openWorkspace())
    for (const query of ['?sort=', '?sort=hour', '?sort=day&sort=day'])
      expect((await requestRoute(app, path + query)).error).toBe('invalid_sort')
    const { status, text } = await requestRoute(app, `${path}?sort=year`)
    expect([status, JSON.parse(text)]).toMatchObject([
      400,
      { error: 'year_is_archived', history: '/api/feed/history?sort=year' },
    ])
  })

  test('a request before the first snapshot gets 404, with any ETag', async () => {
    const headers = { 'if-none-match': '*' }
    const response = await requestRoute(openApp(await openWorkspace()), path, { headers })
    expect(response).toMatchObject({ status: 404, error: 'no_snapshot' })
  })

  test('a damaged newest snapshot gives 503, never an older one, until the next snapshot', async () => {
    const workspace = await openWorkspace()
    const older = await keepSnapshot(workspace.feed, EVENTS)
    const { snapshot } = await keepSnapshot(workspace.feed, EVENTS.slice(1), NOW + 1)
    await rawClient(`file:${workspace.feedPath}`).execute({
      sql: "UPDATE snapshot_feeds SET payload = CAST(replace(CAST(payload AS TEXT), 'hn 2', 'hn X') AS BLOB) WHERE snapshot_id = ?",
      args: [snapshot.id],
    })
    const app = openApp(workspace)
    for (const _time of [1, 2]) {
      const { text, ...refused } = await requestRoute(app, path)
      expect(refused).toMatchObject({ status: 503, error: 'feed_snapshot_corrupt' })
      expect(text).not.toContain(older.snapshot.id)
    }
    await keepSnapshot(workspace.feed, EVENTS, NOW + 2)
    expect((await requestRoute(app, path)).status).toBe(200)
  })

  test('a store that is unreachable or fails gives 503 and a log line', async () => {
    const workspace = await openWorkspace()
    const logged: unknown[] = []
    const log = { ...silentLog, error: (fields: Record<string, unknown>) => void logged.push(fields['code']) }
    for (const error of [storageUnavailable('gone'), new Error('broke off')]) {
      const feed = { ...workspace.feed, newestSnapshot: () => Promise.reject(error) }
      await requestRoute(openApp({ ...workspace, feed }, { log }), path)
    }
    expect(logged).toEqual(['feed_storage_unavailable', 'feed_lookup_failed'])
  })
})

test('a payload is read once for concurrent requests, and again only for another snapshot', async () => {
  const workspace = await openWorkspace()
  const read: string[] = []
  const feed = {
    ...workspace.feed,
    snapshotFeed: (...args: Parameters<typeof workspace.feed.snapshotFeed>) => {
      read.push(`${args[0]} ${args[1].sort}`)
      return workspace.feed.snapshotFeed(...args)
    },
  }
  const app = openApp({ ...workspace, feed })
  const first = await keepSnapshot(workspace.feed, EVENTS)
  await Promise.all(PATHS.flatMap((path) => [path, path]).map((path) => requestRoute(app, path)))
  await requestRoute(app, '/api/rss')
  const second = await keepSnapshot(workspace.feed, EVENTS, NOW + 1)
  await requestRoute(app, '/api/rss')
  expect(read).toEqual([`${first.snapshot.id} trending`, `${second.snapshot.id} trending`])
})

test('a payload of another layout is served verbatim, but not as a subscription', async () => {
  const workspace = await openWorkspace()
  const sealed = await keepSnapshot(workspace.feed, EVENTS)
  const bytes = Buffer.from('{"algoVersion":"live-v0"}')
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const feeds = sealed.snapshot.feeds.map((feed) => ({ ...feed, sha256, byteSize: bytes.byteLength }))
  const payloads = new Map(feeds.map(({ sort }) => [sort, bytes] as const))
  const snapshot = {
    ...sealed.snapshot,
    id: 'feed-20260315T120000001Z-00000000',
    generatedAt: NOW + 1,
    feeds,
  }
  await workspace.feed.saveSnapshot({ ...sealed, snapshot, payloads }, { discardLater: false })
  const app = openApp(workspace)
  expect((await requestRoute(app, '/api/feed')).text).toBe(bytes.toString())
  expect((await requestRoute(app, '/api/rss')).error).toBe('feed_snapshot_corrupt')
})
