import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { FeedEvent } from '../../../src/domain/feed/columns.ts'
import type { ItemDetails } from '../../../src/domain/feed/live-source.ts'
import { liveFeedSchema } from '../../../src/domain/feed/live-items.ts'
import type { LiveFeed } from '../../../src/domain/feed/live-items.ts'
import { listedEvents, proveFeed, rankLivePeriods, sealSnapshot } from '../../../src/domain/feed/snapshot.ts'
import type { SealedSnapshot } from '../../../src/domain/feed/snapshot.ts'
import { saveKey } from '../../../src/domain/feed/source.ts'
import { feedEvent, feedEvents, NOW } from '../../support/signals.ts'
import { LIVE_SORTS } from '../../../src/domain/feed/columns.ts'

const told = (event: FeedEvent, details: Partial<ItemDetails>): [string, ItemDetails] => [
  saveKey(event.source, event.sourceId),
  { ...event, author: null, tags: [], description: null, collectedAt: NOW, ...details },
]

const seal = (
  events: readonly FeedEvent[],
  details: [string, ItemDetails][] = [],
  at = NOW,
): SealedSnapshot => sealSnapshot(rankLivePeriods(events, at), new Map(details), at)

const dayOf = ({ payloads }: SealedSnapshot): LiveFeed =>
  JSON.parse(new TextDecoder().decode(payloads.get('day'))) as LiveFeed

describe('a sealed snapshot', () => {
  const events = ['hn', 'lobsters', 'lesswrong', 'hype:github', 'midjourney'].flatMap((source) =>
    feedEvents(source, 3),
  )

  test('has an id that tells its instant and its contents, and sorts by time', () => {
    const { snapshot } = seal(events)
    expect(snapshot.id).toMatch(/^feed-20260315T120000000Z-[0-9a-f]{8}$/)
    expect(seal(events.toReversed()).snapshot).toEqual(snapshot)
    expect(seal(events.slice(1)).snapshot.id).not.toBe(snapshot.id)
    expect(seal(events, [], NOW + 1).snapshot.id > snapshot.id).toBe(true)
  })

  test('holds for each sort the bytes its digest names, which say the sort, the run and its instant', () => {
    const { snapshot, payloads } = seal(events)
    expect(snapshot.feeds.map(({ sort }) => sort)).toEqual([...LIVE_SORTS])
    for (const feed of snapshot.feeds) {
      const bytes = payloads.get(feed.sort) ?? new Uint8Array()
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(feed.sha256)
      expect(bytes.byteLength).toBe(feed.byteSize)
      expect(proveFeed(snapshot.id, feed, bytes)).toBe(bytes)
      const parsed = liveFeedSchema.parse(JSON.parse(new TextDecoder().decode(bytes)))
      expect(parsed).toMatchObject({
        sortMode: feed.sort,
        snapshotId: snapshot.id,
        generatedAt: '2026-03-15T12:00:00.000Z',
        algoVersion: 'live-v1',
      })
    }
  })

  test('has the keys of the contract in their order', () => {
    expect(Object.keys(dayOf(seal(events)))).toEqual([
      'generatedAt',
      'algoVersion',
      'sortMode',
      'snapshotId',
      'hackerNews',
      'lobsters',
      'lessWrong',
      'hypeReplicate',
      'midjourney',
      'github',
      'popular',
    ])
  })

  test('is refused when its bytes are absent, cut or changed', () => {
    const { snapshot, payloads } = seal(events)
    const [feed] = snapshot.feeds
    const bytes = payloads.get('trending') ?? new Uint8Array()
    const changed = bytes.slice()
    changed[9] = 0
    for (const wrong of [null, bytes.slice(1), changed, payloads.get('day') ?? null])
      expect(() => feed && proveFeed(snapshot.id, feed, wrong)).toThrow(
        expect.objectContaining({ code: 'storage_damaged' }),
      )
  })

  test('is not made of an item that does not fit its schema', () => {
    expect(() => seal([feedEvent({ title: ' ' })])).toThrow('hackerNews')
  })

  test('lists every event of any of its lists once', () => {
    const listed = listedEvents(rankLivePeriods(events, NOW))
    expect(listed).toHaveLength(15)
    expect(new Set(listed)).toEqual(new Set(events))
  })
})

describe('an item', () => {
  test('says in our own fields what every item says', () => {
    const [item] = dayOf(
      seal([feedEvent({ sourceId: '77', titleProvenance: null, comments: null })]),
    ).hackerNews
    expect(item).toMatchObject({
      key: 'hn-77',
      source: 'hn',
      sourceId: '77',
      rank: 1,
      title: 'hn 77',
      url: 'https://example.com/hn/77',
      discussionUrl: 'https://news.ycombinator.com/item?id=77',
      points: 10,
      comments: null,
      publishedAt: '2026-03-15T11:00:00.000Z',
      percentile: 0.5,
      agg_score: 50,
      event_title_verified: false,
      title_provenance: null,
    })
  })

  test('of Hacker News has the names of its API, also in popular', () => {
    const event = feedEvent({ sourceId: '8863' })
    const { hackerNews, popular } = dayOf(seal([event], [told(event, { author: 'somebody' })]))
    const names = {
      id: 8863,
      url: event.url,
      title: event.title,
      rank: 1,
      agg_score: 50,
      score: 10,
      descendants: 2,
      by: 'somebody',
      time: Math.floor(event.publishedAt / 1000),
    }
    expect(hackerNews).toMatchObject([names])
    expect(popular).toMatchObject([names])
  })

  test('of Hacker News keeps an id that is no number', () => {
    const ids = ['0012', '1e3', 'x', '99999999999999999999']
    const all = ids.map((sourceId) => feedEvent({ sourceId }))
    expect(
      dayOf(seal(all))
        .hackerNews.map(({ id }) => id)
        .sort(),
    ).toEqual(ids.toSorted())
  })

  test('of Lobsters has the names of its API, also in popular', () => {
    const event = feedEvent({ source: 'lobsters', sourceId: 'nilais' })
    const { lobsters, popular } = dayOf(
      seal([event], [told(event, { author: 'somebody', tags: ['c', 'linux'] })]),
    )
    const names = {
      title: event.title,
      url: event.url,
      comments_url: 'https://lobste.rs/s/nilais',
      score: 10,
      comment_count: 2,
      created_at: '2026-03-15T11:00:00.000Z',
      submitter_user: 'somebody',
      tags: ['c', 'linux'],
    }
    expect(lobsters).toMatchObject([names])
    expect(popular).toMatchObject([names])
  })

  test('of LessWrong has the names of its API, also in popular', () => {
    const event = feedEvent({ source: 'lesswrong', sourceId: 'abc', points: -3 })
    const { lessWrong, popular } = dayOf(seal([event]))
    const names = {
      title: event.title,
      url: event.url,
      author: null,
      baseScore: -3,
      commentCount: 2,
      postedAt: '2026-03-15T11:00:00.000Z',
    }
    expect(lessWrong).toMatchObject([names])
    expect(popular).toMatchObject([names])
  })

  test('of a hype provider has the names of the hype feed', () => {
    const model = feedEvent({ source: 'hype:huggingface', sourceId: 'owner/model', comments: null })
    const post = feedEvent({ source: 'hype:reddit', sourceId: '1abc' })
    const details = [told(model, { description: 'a small model' }), told(post, { author: 'poster' })]
    const { hypeReplicate } = dayOf(seal([model, post], details))
    expect(hypeReplicate).toMatchObject([
      {
        source: 'hype:huggingface',
        provider: 'huggingface',
        id: 'owner/model',
        username: 'owner',
        name: 'model',
        stars: 10,
        description: 'a small model',
        url: model.url,
        created_at: '2026-03-15T11:00:00.000Z',
      },
      { provider: 'reddit', id: '1abc', username: 'poster', name: post.title, description: null },
    ])
  })
})
