import type { H3 } from 'h3'
import { expect, test } from 'vitest'
import { openApp } from '../../support/api-client.ts'
import { keepSnapshot } from '../feed/live-client.ts'
import { NOW, feedEvent, feedEvents } from '../../support/signals.ts'
import { openWorkspace } from '../../support/workspace.ts'

async function openFeed(): Promise<H3> {
  const workspace = await openWorkspace()
  await keepSnapshot(workspace.feed, [
    feedEvent({ sourceId: '1', title: 'Rust in the kernel', points: 500 }),
    feedEvent({ sourceId: '2', title: 'Cooking', points: 300 }),
    feedEvent({ source: 'lobsters', sourceId: 'a', title: 'Rust, later', points: 7 }),
  ])
  return openApp(workspace)
}

async function pageOf(app: H3, path: string): Promise<{ status: number; page: string; text: string }> {
  const response = await app.request(`http://dash.test${path}`)
  const page = await response.text()
  const text = page.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
  return { status: response.status, page, text }
}

/** The targets of the page's links for feed readers, and those under "Subscribe". */
function feedsOf(page: string): { linked: string[]; shown: string[] } {
  const subscribe = /Subscribe to .*?<\/p>/s.exec(page)?.[0] ?? ''
  const hrefs = (html: string, pattern: RegExp): string[] =>
    Array.from(html.matchAll(pattern), ([, href = '']) => href.replaceAll('&amp;', '&'))
  return {
    linked: hrefs(page, /<link rel="alternate"[^>]*href="([^"]*)"/g),
    shown: hrefs(subscribe, /<a href="([^"]*)"/g),
  }
}

test('the feed panel shows the items of a rule, as the API does at the same query', async () => {
  const app = await openFeed()
  const query = '?sort=day&q=rust&source=hn&minPoints=10&minComments=0&top=5'
  const { status, page, text } = await pageOf(app, `/${query}`)
  const feed = (await (await app.request(`http://dash.test/api/feed${query}`)).json()) as Record<
    string,
    unknown
  >
  expect([status, Array.from(page.matchAll(/data-key="([^"]*)"/g), ([, key]) => key)]).toEqual([
    200,
    ['hn-1'],
  ])
  expect([feed['popular'], feed['hackerNews']]).toMatchObject([[{ key: 'hn-1' }], [{ key: 'hn-1' }]])
  expect(page).toContain('<title>Day: rust, Hacker News, at least 10 points, at least 0 comments, top 5')
  expect((await pageOf(app, '/?sort=day&q=nothing')).text).toContain(
    'No item of this period matches the filter.',
  )
  expect(text).not.toContain('Cooking')
})

test('the overview has each story once, also of a column of four', async () => {
  const workspace = await openWorkspace()
  await keepSnapshot(workspace.feed, [feedEvent(), ...feedEvents('hype:github', 4)])
  const { page } = await pageOf(openApp(workspace), '/?sort=day')
  expect(page.match(/data-key="/g)).toHaveLength(5)
})

test('the heading names the view, and a title cannot reverse what stands beside it', async () => {
  const workspace = await openWorkspace()
  await keepSnapshot(workspace.feed, [feedEvent({ title: 'up \u202egnorw' })])
  const { page } = await pageOf(openApp(workspace), '/?sort=day')
  expect(page).toContain('<h1 class="unseen">Day</h1>')
  expect(page).toContain('<bdi>up gnorw</bdi>')
  expect(page).not.toContain('\u202e')
})

test('a server whose chat is off offers it nowhere', async () => {
  const app = await openFeed()
  for (const path of ['/', '/chat', '/docs', '/nothing']) {
    const { page } = await pageOf(app, path)
    expect(page).not.toContain('data-chat="open"')
  }
})

test('the filter of the feed panel is a form that keeps the other parameters and its own values', async () => {
  const { page } = await pageOf(await openFeed(), '/?sort=week&column=hackerNews&q=rust&minPoints=10')
  const form = /<form[^>]*aria-label="Filter the feed".*?<\/form>/s.exec(page)?.[0] ?? ''
  expect(form).toContain('<input type="hidden" name="sort" value="week" />')
  expect(form).toContain('<input type="hidden" name="column" value="hackerNews" />')
  expect(form).toMatch(/name="q"[^>]*value="rust"/)
  expect(form).toMatch(/name="minPoints"[^>]*value="10"/)
  expect(page).toMatch(/<details class="view-menu" open>/)
})

test.each([
  ['/', ['/api/rss', '/api/atom', '/api/feed.json']],
  [
    '/?sort=week&q=rust+x&top=5',
    ['/api/rss', '/api/atom', '/api/feed.json'].map((path) => `${path}?sort=week&q=rust+x&top=5`),
  ],
  [
    '/?column=hypeReplicate&source=hn,hype:reddit',
    ['/api/rss', '/api/atom', '/api/feed.json'].map((path) => `${path}?source=hype%3Areddit`),
  ],
  ['/?sort=year&q=&top=', ['rss', 'atom', 'feed.json'].map((name) => `/api/feed/history/${name}`)],
  [
    '/?sort=year&q=rust&top=3&at=2026-01-01',
    ['rss', 'atom', 'feed.json'].map((name) => `/api/feed/history/${name}?q=rust&top=3`),
  ],
])('the page %s names the feeds of its view, for readers and for people', async (path, expected) => {
  const app = await openFeed()
  const { page } = await pageOf(app, path)
  expect(feedsOf(page)).toEqual({ linked: expected, shown: expected })
  if (!path.includes('year'))
    for (const href of expected) expect((await app.request(`http://dash.test${href}`)).status).toBe(200)
})

test.each([
  ['/', ['/api/feed?sort=trending', '/api/feed.csv?sort=trending']],
  ['/?sort=week&q=rust&top=5', ['', '.csv'].map((end) => `/api/feed${end}?sort=week&q=rust&top=5`)],
  ['/?sort=year&q=rust', ['', '.csv'].map((end) => `/api/feed/history${end}?sort=year`)],
])('the page %s links to its lists as JSON and as CSV', async (path, expected) => {
  const { page } = await pageOf(await openFeed(), path)
  const data = /(?:These lists|The whole Year) as .*?<\/p>/s.exec(page)?.[0] ?? ''
  const hrefs = Array.from(data.matchAll(/href="([^"]*)"/g), ([, href = '']) => href.replaceAll('&amp;', '&'))
  expect(hrefs).toEqual(expected)
})

test('the rows that entered since yesterday are marked, and a line counts them and leads to the first', async () => {
  const { clock, ...workspace } = { ...(await openWorkspace()), clock: () => NOW + 2 * HOUR }
  const known = ['1', '2'].map((sourceId) =>
    feedEvent({ sourceId, title: sourceId, publishedAt: NOW - 30 * HOUR }),
  )
  const fresh = feedEvent({ sourceId: '3', title: 'entered', points: 1, publishedAt: NOW - 29 * HOUR })
  const first = await keepSnapshot(workspace.feed, known, NOW - 28 * HOUR)
  await keepSnapshot(workspace.feed, [...known, fresh], NOW, new Map(), first.feeds)
  const { page, text } = await pageOf(openApp(workspace, { clock }), '/?sort=week')
  expect(text).toContain('Popular 1 new since yesterday 12:00 UTC')
  expect(page).toMatch(
    /data-key="hn-3".*?<span class="rose new" data-entered="2026-03-15T12:00:00.000Z" id="new"/s,
  )
  expect(page.match(/class="rose new"/g)).toHaveLength(1)
  const { text: later } = await pageOf(openApp(workspace, { clock: () => NOW + 30 * HOUR }), '/?sort=week')
  expect(later).toContain('Popular 1 new since 2026-03-14 12:00 UTC')
  const { text: none } = await pageOf(openApp(workspace, { clock }), '/?sort=week&q=2')
  expect(none).toContain('Popular nothing new since yesterday 12:00 UTC')
})

const HOUR = 3_600_000

test('an invalid rule is refused on the page with the parameter and its value, beside the filter', async () => {
  const { status, text } = await pageOf(await openFeed(), '/?minPoints=many')
  expect(status).toBe(400)
  expect(text).toContain('invalid_rule , minPoints is &quot;many&quot;: it must be an integer from 0 to')
  expect(text).toContain('Points of at least')
})

test('the tabs keep the rule, also that of the Year', async () => {
  const { page } = await pageOf(await openFeed(), '/?sort=day&q=rust')
  expect(page).toContain('href="/?sort=year&amp;q=rust#feed"')
  expect(page).toContain('href="/?sort=week&amp;q=rust#feed"')
})

test('the title of the points says by what each period orders Popular, where that says something', async () => {
  const app = await openFeed()
  const standings = async (path: string): Promise<string[]> => {
    const { page } = await pageOf(app, path)
    return Array.from(page.matchAll(/class="points" title="([^"]*)"/g), ([, text = '']) => text)
  }
  const { popular } = (await (await app.request('http://dash.test/api/feed?sort=trending')).json()) as {
    popular: { agg_score: number }[]
  }
  const trends = (await standings('/')).map((text) => Number(text.replace('trend ', '')))
  expect(trends).toEqual(popular.map(({ agg_score }) => Number(agg_score.toPrecision(2))))
  expect(trends).toEqual(trends.toSorted((a, b) => b - a))
  expect((await pageOf(app, '/')).text).toContain('halves every six hours')
  expect(await standings('/?sort=day')).toEqual(['top 25 %', 'top 50 %'])
  expect((await pageOf(app, '/?sort=day')).text).toContain('Popular compares sources by the share')
})
