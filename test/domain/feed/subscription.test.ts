import { expect, test } from 'vitest'
import type { ItemDetails } from '../../../src/domain/feed/live-source.ts'
import type { LiveFeed } from '../../../src/domain/feed/live-items.ts'
import { subscriptionItems } from '../../../src/domain/feed/subscription.ts'
import { feedEvent, feedEvents, NOW } from '../../support/signals.ts'
import { sealEvents } from '../../support/live-client.ts'

function feedOf(...args: Parameters<typeof sealEvents>): LiveFeed {
  const [, day] = sealEvents(...args).feeds
  if (!day) throw new Error('nothing was sealed')
  return day
}

test('is a hundred items of popular, hype and images, ranked anew, each once', () => {
  const all = ['hn', 'lesswrong', 'hype:github', 'hype:reddit', 'midjourney'].flatMap((source) =>
    feedEvents(source, 60),
  )
  const items = subscriptionItems(feedOf(all))
  expect(items.map(({ rank }) => rank)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1))
  expect(new Set(items.map(({ key }) => key)).size).toBe(100)
  expect(new Set(items.map(({ source }) => source)).size).toBe(5)
  const scores = items.map(({ aggScore }) => aggScore)
  expect(scores).toEqual(scores.toSorted((a, b) => b - a))
})

test('leads to the discussion where an item has no page of its own, and nowhere where it has neither', () => {
  const all = [
    feedEvent({ sourceId: '5', url: null }),
    feedEvent({ source: 'midjourney', sourceId: '6', url: null }),
  ]
  const links = subscriptionItems(feedOf(all)).map(({ key, link, discussionUrl }) => [
    key,
    link,
    discussionUrl,
  ])
  const discussion = 'https://news.ycombinator.com/item?id=5'
  expect(links).toEqual([
    ['hn-5', discussion, discussion],
    ['midjourney-6', null, null],
  ])
})

test('says the numbers in plain words, and what a provider tells; a blank author or tag is none', () => {
  const repository = feedEvent({ source: 'hype:github', sourceId: 'o/n', comments: null })
  const story = feedEvent({ source: 'lobsters', sourceId: 'x', points: 1 })
  const told = (author: string, description: string | null, tags: string[]): ItemDetails => ({
    source: '',
    sourceId: '',
    author,
    tags,
    description,
    collectedAt: NOW,
  })
  const details = new Map([
    ['hype-github-o/n', told('owner', ' a tool ', [])],
    ['lobsters-x', told(' ', null, ['c', ' '])],
  ])
  const items = subscriptionItems(feedOf([repository, story], NOW, details))
  expect(items.map(({ author, tags, summary }) => [author, tags, summary])).toEqual([
    ['owner', [], '10 stars on GitHub: a tool'],
    [null, ['c'], '1 point, 2 comments on Lobsters'],
  ])
})
