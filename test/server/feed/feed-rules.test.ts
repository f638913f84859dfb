import { expect, test } from 'vitest'
import type { H3 } from 'h3'
import { openApp } from '../../support/api-client.ts'
import { permanentId } from '../../../src/server/feed/formats.ts'
import { requestRoute } from '../contract-client.ts'
import { keepSnapshot, readWithSax } from './live-client.ts'
import { feedEvent } from '../../support/signals.ts'
import { openWorkspace } from '../../support/workspace.ts'

const PATHS = ['/api/feed', '/api/rss', '/api/atom', '/api/feed.json', '/api/feed.csv']

const EVENTS = [
  feedEvent({
    sourceId: '1',
    title: 'Rust in the kernel',
    points: 500,
    comments: 90,
    url: 'https://a.test/',
  }),
  feedEvent({ sourceId: '2', title: 'Trusted builds', points: 300, comments: null, url: null }),
  feedEvent({ sourceId: '3', title: 'Async Rust, one year on', points: 40, comments: 3 }),
  feedEvent({ source: 'lobsters', sourceId: 'a', title: 'RUST: a “year” later', points: 70, comments: 8 }),
  feedEvent({ source: 'lobsters', sourceId: 'b', title: 'Copy', points: 9, url: 'https://a.test/' }),
  feedEvent({ source: 'hype:github', sourceId: 'o/rust', title: 'o/rust', points: 900, comments: null }),
]

async function openRules(events = EVENTS): Promise<H3> {
  const workspace = await openWorkspace()
  await keepSnapshot(workspace.feed, events)
  return openApp(workspace)
}

/** The save keys of a subscription. */
async function keysOf(app: H3, query: string): Promise<string[]> {
  const { text } = await requestRoute(app, `/api/feed.json?sort=day&${query}`)
  const { items } = JSON.parse(text) as { items: { _dash: { key: string } }[] }
  return items.map(({ _dash: { key } }) => key)
}

test('source, minPoints, minComments and top select together, and an unknown number of comments is 0', async () => {
  const app = await openRules()
  const all = ['lobsters-a', 'hype-github-o/rust', 'lobsters-b']
  expect(await keysOf(app, 'source=lobsters,hype:github')).toEqual(all)
  expect(await keysOf(app, 'source=hn&minPoints=300')).toEqual(['hn-1', 'hn-2'])
  expect(await keysOf(app, 'source=hn&minComments=3')).toEqual(['hn-1', 'hn-3'])
  expect(await keysOf(app, 'source=hn&minPoints=41&minComments=0&top=1')).toEqual(['hn-1'])
})

test('a rule selects from every list, each URL once, and the API keeps the ranks of the lists', async () => {
  const app = await openRules()
  expect(await keysOf(app, 'minPoints=0&source=hn,lobsters')).not.toContain('lobsters-b')
  expect(await keysOf(app, 'minPoints=0&source=lobsters')).toContain('lobsters-b')
  const { text } = await requestRoute(app, '/api/feed?sort=day&q=rust&minComments=3&top=2')
  const feed = JSON.parse(text) as Record<string, { key: string; rank: number }[]>
  const ranks = (name: string): unknown => feed[name]?.map(({ key, rank }) => `${key} ${rank}`)
  expect(ranks('hackerNews')).toEqual(['hn-1 1', 'hn-3 3'])
  expect(ranks('lobsters')).toEqual(['lobsters-a 1'])
  expect(ranks('hypeReplicate')).toEqual([])
  expect(feed['popular']).toHaveLength(2)
})

test('the three subscriptions of a rule have the same items, and name the rule and its page', async () => {
  const app = await openRules()
  const query = 'sort=day&q=%22one+year%22&source=hn%2Clobsters&minPoints=10&minComments=1&top=5'
  const [rss = '', atom = '', json = ''] = await Promise.all(
    PATHS.slice(1, 4).map(async (path) => (await requestRoute(app, `${path}?${query}`)).text),
  )
  for (const text of [rss, atom]) expect(await readWithSax(text)).toMatchObject([{ id: permanentId('hn-3') }])
  expect(JSON.parse(json)).toMatchObject({
    title:
      'dash: the last 24 hours: "one year", Hacker News, Lobsters, at least 10 points, at least 1 comment, top 5',
    home_page_url: `http://dash.test/?${query}`,
    feed_url: `http://dash.test/api/feed.json?${query}`,
    items: [{ title: 'Async Rust, one year on' }],
  })
})

test('every RSS item has its source as a category and its discussion, and Atom and JSON Feed the same', async () => {
  const app = await openRules()
  const bodyOf = async (path: string) => (await requestRoute(app, `${path}?sort=day&source=hn&top=1`)).text
  const discussionUrl = 'https://news.ycombinator.com/item?id=1'
  const rss = await bodyOf('/api/rss')
  expect(rss).toContain('<category>Hacker News</category>')
  expect(rss).toContain(`<comments>${discussionUrl}</comments>`)
  const atom = await bodyOf('/api/atom')
  expect(atom).toContain('<category term="Hacker News"/>')
  expect(atom).toContain(`<link rel="replies" type="text/html" href="${discussionUrl}"/>`)
  const json = JSON.parse(await bodyOf('/api/feed.json')) as unknown
  expect(json).toMatchObject({ items: [{ tags: ['Hacker News'], _dash: { discussionUrl } }] })
})

test('empty values of a rule count as absent, as on the page', async () => {
  const app = await openRules()
  for (const path of PATHS) {
    const bodyOf = async (query: string): Promise<string> =>
      (await requestRoute(app, `${path}?sort=day&${query}`)).text
    expect(await bodyOf('q=&source=&minPoints=&minComments=&top=')).toBe(await bodyOf(''))
    expect(await bodyOf('q=rust&minPoints=')).toBe(await bodyOf('q=rust'))
  }
})

const INVALID = [
  ['q=%20', 'q', ' '],
  [`q=${'x'.repeat(201)}`, 'q', 'x'.repeat(100)],
  ['q=a&q=b', 'q', 'a, b'],
  ['source=hn,reddit', 'source', 'hn,reddit'],
  ['minPoints=-1', 'minPoints', '-1'],
  ['minPoints=1e3', 'minPoints', '1e3'],
  ['minComments=1000000000', 'minComments', '1000000000'],
  ['top=0', 'top', '0'],
  ['top=101', 'top', '101'],
  ['top=101&minPoints=x', 'minPoints', 'x'],
] as const

test('an invalid rule is refused with the name and the value of its first invalid parameter', async () => {
  const app = await openRules()
  for (const path of PATHS)
    for (const [query, parameter, value] of INVALID) {
      const { status, text } = await requestRoute(app, `${path}?${query}`)
      expect([status, JSON.parse(text)]).toMatchObject([400, { error: 'invalid_rule', parameter, value }])
    }
})
