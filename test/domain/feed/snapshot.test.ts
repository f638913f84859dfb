import { describe, expect, test } from 'vitest'
import { sha256Hex } from '../../../src/domain/digest.ts'
import { LIVE_SORTS, rankLivePeriods } from '../../../src/domain/feed/live-sort.ts'
import type { FeedEvent } from '../../../src/domain/feed/columns.ts'
import { liveFeedSchema } from '../../../src/domain/feed/live-items.ts'
import type { LiveFeed } from '../../../src/domain/feed/live-items.ts'
import type { ItemDetails } from '../../../src/domain/feed/live-source.ts'
import { proveFeed, sealSnapshot } from '../../../src/domain/feed/snapshot.ts'
import type { SealedSnapshot } from '../../../src/domain/feed/snapshot.ts'
import { saveKey } from '../../../src/domain/feed/source.ts'
import { feedEvent, feedEvents, NOW } from '../../support/signals.ts'

type Told = [FeedEvent, Partial<ItemDetails>]

function seal(events: readonly FeedEvent[], told: Told[] = [], at = NOW): SealedSnapshot {
  const none = { author: null, tags: [], description: null, collectedAt: NOW }
  const details = told.map(([event, known]): [string, ItemDetails] => [
    saveKey(event.source, event.sourceId),
    { ...event, ...none, ...known },
  ])
  return sealSnapshot(rankLivePeriods(events, at), new Map(details), at)
}

const dayOf = (...args: Parameters<typeof seal>): LiveFeed =>
  JSON.parse(new TextDecoder().decode(seal(...args).payloads.get('day'))) as LiveFeed

describe('a sealed snapshot', () => {
  const sources = ['hn', 'lobsters', 'lesswrong', 'hype:github', 'midjourney']
  const events = sources.flatMap((source) => feedEvents(source, 3))
  const { snapshot, payloads } = seal(events)

  test('the id of a snapshot contains its time and digest, and sorts by time', () => {
    expect(snapshot.id).toMatch(/^feed-20260315T120000000Z-[0-9a-f]{8}$/)
    expect(seal(events.toReversed()).snapshot).toEqual(snapshot)
    expect(seal(events.slice(1)).snapshot.id).not.toBe(snapshot.id)
    expect(seal(events, [], NOW + 1).snapshot.id > snapshot.id).toBe(true)
  })

  test('a snapshot holds for each sort the bytes of its digest, with the sort, the run and its time', () => {
    expect(snapshot.feeds.map(({ sort }) => sort)).toEqual([...LIVE_SORTS])
    for (const feed of snapshot.feeds) {
      const bytes = payloads.get(feed.sort) ?? new Uint8Array()
      expect([sha256Hex(bytes), bytes.byteLength]).toEqual([feed.sha256, feed.byteSize])
      expect(proveFeed(snapshot.id, feed, bytes)).toBe(bytes)
      const parsed = liveFeedSchema.parse(JSON.parse(new TextDecoder().decode(bytes)))
      const run = { snapshotId: snapshot.id, generatedAt: '2026-03-15T12:00:00.000Z' }
      expect(parsed).toMatchObject({ ...run, sortMode: feed.sort, algoVersion: 'live-v1' })
    }
  })

  test('a snapshot has its keys in the order of the contract', () => {
    const keys =
      'generatedAt algoVersion sortMode snapshotId hackerNews lobsters lessWrong hypeReplicate midjourney github popular'
    expect(Object.keys(dayOf(events)).join(' ')).toBe(keys)
  })

  test('the stay of an item begins with the first snapshot that lists it after one that does not', () => {
    const [old, again, fresh] = ['1', '2', '3'].map((sourceId) => feedEvent({ sourceId, title: sourceId }))
    if (!old || !again || !fresh) throw new Error('three events')
    const sealAt = (listed: FeedEvent[], at: number, previous: readonly LiveFeed[]) =>
      sealSnapshot(rankLivePeriods(listed, at), new Map(), at, previous)
    const first = sealAt([old, again], NOW, [])
    const second = sealAt([old, fresh], NOW + 1_000, first.feeds)
    const third = sealAt([old, again, fresh], NOW + 2_000, second.feeds)
    const stays = third.feeds[0]?.hackerNews.map(({ sourceId, listedSince }) => [sourceId, listedSince])
    expect(Object.fromEntries(stays ?? [])).toEqual({
      1: null,
      2: new Date(NOW + 2_000).toISOString(),
      3: new Date(NOW + 1_000).toISOString(),
    })
  })

  test('a snapshot is refused when its bytes are missing, cut or changed', () => {
    const [feed] = snapshot.feeds
    const bytes = payloads.get('trending') ?? new Uint8Array()
    const prove = (wrong: Uint8Array | null) => () => feed && proveFeed(snapshot.id, feed, wrong)
    const where = `storage_damaged: the feed trending of snapshot ${snapshot.id}`
    expect(prove(null)).toThrow(`${where} is missing`)
    for (const wrong of [bytes.slice(1), bytes.with(9, 0), payloads.get('day') ?? null])
      expect(prove(wrong)).toThrow(`${where} was changed`)
  })

  test('an item that violates its schema cannot be sealed', () => {
    expect(() => seal([feedEvent({ title: ' ' })])).toThrow('hackerNews')
  })
})

describe('an item', () => {
  const createdAt = '2026-03-15T11:00:00.000Z'

  test("every item has the product's own fields", () => {
    const event = feedEvent({ sourceId: '77', titleProvenance: null, comments: null })
    const [item] = dayOf([event]).hackerNews
    expect(item).toMatchObject({
      key: 'hn-77',
      source: 'hn',
      sourceId: '77',
      rank: 1,
      points: 10,
      comments: null,
    })
    expect(item).toMatchObject({ percentile: 0.5, agg_score: 50, publishedAt: createdAt })
    expect(item).toMatchObject({ event_title_verified: false, title_provenance: null })
    expect(item?.discussionUrl).toBe('https://news.ycombinator.com/item?id=77')
  })

  const createdAtSeconds = Date.parse(createdAt) / 1000

  test.each<[keyof LiveFeed, Partial<FeedEvent>, object]>([
    [
      'hackerNews',
      { sourceId: '8863' },
      { id: 8863, score: 10, descendants: 2, by: 'somebody', time: createdAtSeconds },
    ],
    [
      'lobsters',
      { source: 'lobsters', sourceId: 'nilais' },
      {
        comments_url: 'https://lobste.rs/s/nilais',
        comment_count: 2,
        created_at: createdAt,
        submitter_user: 'somebody',
        tags: ['c'],
      },
    ],
  ])('an item of %s has the names of its API, also in popular', (list, changes, names) => {
    const event = feedEvent(changes)
    const feed = dayOf([event], [[event, { author: 'somebody', tags: ['c'] }]])
    const item = { title: event.title, url: event.url, ...names }
    expect([feed[list], feed.popular]).toMatchObject([[item], [item]])
  })

  test('an item of Hacker News keeps an id that is not a number', () => {
    const ids = ['0012', '1e3', '99999999999999999999', 'x']
    const { hackerNews } = dayOf(ids.map((sourceId) => feedEvent({ sourceId })))
    expect(hackerNews.map(({ id }) => id).sort()).toEqual(ids)
  })

  test('an item of a hype provider has the names of the hype feed', () => {
    const model = feedEvent({ source: 'hype:huggingface', sourceId: 'owner/model', comments: null })
    const post = feedEvent({ source: 'hype:reddit', sourceId: '1abc' })
    const told: Told[] = [
      [model, { description: 'a small model' }],
      [post, { author: 'poster' }],
    ]
    expect(dayOf([model, post], told).hypeReplicate).toMatchObject([
      {
        source: 'hype:huggingface',
        provider: 'huggingface',
        id: 'owner/model',
        username: 'owner',
        name: 'model',
        stars: 10,
        description: 'a small model',
        url: model.url,
        created_at: createdAt,
      },
      { provider: 'reddit', id: '1abc', username: 'poster', name: post.title, description: null },
    ])
  })
})
