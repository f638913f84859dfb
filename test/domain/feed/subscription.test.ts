import { expect, test } from 'vitest'
import type { ItemDetails } from '../../../src/domain/feed/live-source.ts'
import { nameOfSource, subscriptionItems, unitOf } from '../../../src/domain/feed/subscription.ts'
import { feedEvent, feedEvents, NOW } from '../../support/signals.ts'
import { sealEvents } from '../../server/feed/live-client.ts'

function itemsOf(...args: Parameters<typeof sealEvents>): ReturnType<typeof subscriptionItems> {
  const [, day] = sealEvents(...args).feeds
  if (!day) throw new Error('nothing was sealed')
  return subscriptionItems(day)
}

test('a subscription is a hundred items of popular, hype and images, ranked together, each once', () => {
  const sources = ['hn', 'lesswrong', 'hype:github', 'hype:reddit', 'midjourney']
  const items = itemsOf(sources.flatMap((source) => feedEvents(source, 60)))
  expect(items.map(({ rank }) => rank)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1))
  expect(new Set(items.map(({ key }) => key)).size).toBe(100)
  expect(new Set(items.map(({ source }) => source))).toEqual(new Set(sources))
  const scores = items.map(({ agg_score: aggScore }) => aggScore)
  expect(scores).toEqual(scores.toSorted((a, b) => b - a))
})

test('an item links to its discussion when it has no page of its own, and to nothing when both are missing', () => {
  const image = feedEvent({ source: 'midjourney', sourceId: '6', url: null })
  const items = itemsOf([feedEvent({ sourceId: '5', url: null }), image])
  const discussion = 'https://news.ycombinator.com/item?id=5'
  expect(items.map(({ key, link, discussionUrl }) => [key, link, discussionUrl])).toEqual([
    ['hn-5', discussion, discussion],
    ['midjourney-6', null, null],
  ])
})

test('a summary has the numbers and the description; a blank author or tag is omitted', () => {
  const repository = feedEvent({ source: 'hype:github', sourceId: 'o/n', comments: null })
  const story = feedEvent({ source: 'lobsters', sourceId: 'x', points: 1 })
  const none = { source: '', sourceId: '', collectedAt: NOW }
  const details = new Map<string, ItemDetails>([
    ['hype-github-o/n', { ...none, author: 'owner', description: ' a tool ', tags: [] }],
    ['lobsters-x', { ...none, author: ' ', description: null, tags: ['c', ' '] }],
  ])
  const items = itemsOf([repository, story], NOW, details)
  expect(items.map(({ author, tags, summary }) => [author, tags, summary])).toEqual([
    ['owner', [], '10 stars on GitHub: a tool'],
    [null, ['c'], '1 point, 2 comments on Lobsters'],
  ])
})

test.each([
  ['hn', 'Hacker News', 'points'],
  ['lobsters', 'Lobsters', 'points'],
  ['lesswrong', 'LessWrong', 'karma'],
  ['hype:github', 'GitHub', 'stars'],
  ['hype:huggingface', 'Hugging Face', 'likes'],
  ['hype:replicate', 'Replicate', 'runs'],
  ['hype:reddit', 'Reddit', 'upvotes'],
  ['midjourney', 'Midjourney', 'points'],
  ['hype:other', 'hype:other', 'points'],
])('the source %s is called %s and counts %s', (source, name, unit) => {
  expect([nameOfSource(source), unitOf(source)]).toEqual([name, unit])
})
