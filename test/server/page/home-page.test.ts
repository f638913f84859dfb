import { expect, test } from 'vitest'
import { hrefsIn, keysIn, openApp, openPage } from '../../support/api-client.ts'
import { requestRoute } from '../contract-client.ts'
import { keepSnapshot } from '../feed/live-client.ts'
import { NOW, feedEvent, feedEvents } from '../../support/signals.ts'
import { openWorkspace } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

async function openFeed(): Promise<Workspace> {
  const workspace = await openWorkspace()
  await keepSnapshot(workspace.feed, [
    feedEvent({ sourceId: '1', title: 'Rust in the kernel', points: 500 }),
    feedEvent({ sourceId: '2', title: 'Cooking', points: 300 }),
    feedEvent({ source: 'lobsters', sourceId: 'a', title: 'Rust, later', points: 7 }),
  ])
  return workspace
}

test('the feed panel shows the items of a rule, as the API does at the same query', async () => {
  const workspace = await openFeed()
  const query = '?sort=day&q=rust&source=hn&minPoints=10&minComments=0&top=5'
  const { status, page, text } = await openPage(workspace, `/${query}`)
  const feed = (await requestRoute(openApp(workspace), `/api/feed${query}`)).text
  expect([status, keysIn(page)]).toEqual([200, ['hn-1']])
  expect(JSON.parse(feed)).toMatchObject({ popular: [{ key: 'hn-1' }], hackerNews: [{ key: 'hn-1' }] })
  expect(page).toContain('<title>Day: rust, Hacker News, at least 10 points, at least 0 comments, top 5')
  expect(text).not.toContain('Cooking')
  const none = await openPage(workspace, '/?sort=day&q=nothing')
  expect(none.text).toContain('No item of this period matches the filter.')
})

test('the overview has each story once, also of a column of four', async () => {
  const workspace = await openWorkspace()
  await keepSnapshot(workspace.feed, [feedEvent(), ...feedEvents('hype:github', 4)])
  expect(keysIn((await openPage(workspace, '/?sort=day')).page)).toHaveLength(5)
})

test('the heading names the view, and a title cannot reverse what stands beside it', async () => {
  const workspace = await openWorkspace()
  await keepSnapshot(workspace.feed, [feedEvent({ title: 'up \u202egnorw' })])
  const { page } = await openPage(workspace, '/?sort=day')
  expect(page).toContain('<h1 class="unseen">Day</h1>')
  expect(page).toContain('<bdi>up gnorw</bdi>')
  expect(page).not.toContain('\u202e')
})

test('a server whose chat is off offers it nowhere', async () => {
  const workspace = await openFeed()
  for (const path of ['/', '/chat', '/docs', '/nothing'])
    expect((await openPage(workspace, path)).page).not.toContain('data-chat="open"')
})

test('the filter of the feed panel is a form that keeps the other parameters and its own values', async () => {
  const { page } = await openPage(await openFeed(), '/?sort=week&column=hackerNews&q=rust&minPoints=10')
  const form = /<form[^>]*aria-label="Filter the feed".*?<\/form>/s.exec(page)?.[0] ?? ''
  expect(form).toContain('<input type="hidden" name="sort" value="week" />')
  expect(form).toContain('<input type="hidden" name="column" value="hackerNews" />')
  expect(form).toMatch(/name="q"[^>]*value="rust"/)
  expect(form).toMatch(/name="minPoints"[^>]*value="10"/)
  expect(page).toMatch(/<details class="view-menu" open>/)
})

const YEAR = '/api/feed/history'
const DATA = ['', '.csv']

test.each([
  ['/', '/api/', '', DATA.map((end) => `/api/feed${end}?sort=trending`)],
  [
    '/?sort=week&q=rust+x&top=5',
    '/api/',
    '?sort=week&q=rust+x&top=5',
    DATA.map((end) => `/api/feed${end}?sort=week&q=rust+x&top=5`),
  ],
  ['/?column=hypeReplicate&source=hn,hype:reddit', '/api/', '?source=hype%3Areddit', null],
  ['/?sort=year&q=&top=', `${YEAR}/`, '', null],
  ['/?sort=year&q=rust', `${YEAR}/`, '?q=rust', DATA.map((end) => `${YEAR}${end}?sort=year`)],
  ['/?sort=year&q=rust&top=3&at=2026-01-01', `${YEAR}/`, '?q=rust&top=3', null],
])(
  'the page %s names the feeds of its view, for readers and for people, and its lists as data',
  async (path, base, query, data) => {
    const workspace = await openFeed()
    const { page } = await openPage(workspace, path)
    const feeds = ['rss', 'atom', 'feed.json'].map((name) => `${base}${name}${query}`)
    expect(hrefsIn(page.match(/<link rel="alternate"[^>]*>/g)?.join('') ?? '')).toEqual(feeds)
    expect(hrefsIn(/Subscribe to .*?<\/p>/s.exec(page)?.[0] ?? '')).toEqual(feeds)
    if (data !== null)
      expect(hrefsIn(/(?:These lists|The whole Year) as .*?<\/p>/s.exec(page)?.[0] ?? '')).toEqual(data)
    if (base === '/api/')
      for (const href of feeds) expect((await requestRoute(openApp(workspace), href)).status).toBe(200)
  },
)

test('the rows that entered since yesterday are marked, and a line counts them and leads to the first', async () => {
  const workspace = await openWorkspace()
  const clock = (): number => NOW + 2 * HOUR
  const known = ['1', '2'].map((sourceId) =>
    feedEvent({ sourceId, title: sourceId, publishedAt: NOW - 30 * HOUR }),
  )
  const fresh = feedEvent({ sourceId: '3', title: 'entered', points: 1, publishedAt: NOW - 29 * HOUR })
  const first = await keepSnapshot(workspace.feed, known, NOW - 28 * HOUR)
  await keepSnapshot(workspace.feed, [...known, fresh], NOW, new Map(), first.feeds)
  const { page, text } = await openPage(workspace, '/?sort=week', { clock })
  expect(text).toContain('Popular 1 new since yesterday 12:00 UTC')
  expect(page).toMatch(
    /data-key="hn-3".*?<span class="rose new" data-entered="2026-03-15T12:00:00.000Z" id="new"/s,
  )
  expect(page.match(/class="rose new"/g)).toHaveLength(1)
  const { text: later } = await openPage(workspace, '/?sort=week', { clock: () => NOW + 30 * HOUR })
  expect(later).toContain('Popular 1 new since 2026-03-14 12:00 UTC')
  const { text: none } = await openPage(workspace, '/?sort=week&q=2', { clock })
  expect(none).toContain('Popular none new since yesterday 12:00 UTC')
})

const HOUR = 3_600_000

test('an invalid rule is refused on the page with the parameter and its value, beside the filter', async () => {
  const { status, text } = await openPage(await openFeed(), '/?minPoints=many')
  expect(status).toBe(400)
  expect(text).toContain('invalid_rule , minPoints is &quot;many&quot;: it must be an integer from 0 to')
  expect(text).toContain('Points of at least')
})

test('the tabs keep the rule, also that of the Year', async () => {
  const { page } = await openPage(await openFeed(), '/?sort=day&q=rust')
  expect(page).toContain('href="/?sort=year&amp;q=rust#feed"')
  expect(page).toContain('href="/?sort=week&amp;q=rust#feed"')
})

test('the title of the points says by what each period orders Popular, where that says something', async () => {
  const workspace = await openFeed()
  const standings = (page: string): string[] =>
    Array.from(page.matchAll(/class="points" title="([^"]*)"/g), ([, title = '']) => title)
  const { text: feed } = await requestRoute(openApp(workspace), '/api/feed?sort=trending')
  const { popular } = JSON.parse(feed) as { popular: { agg_score: number }[] }
  const now = await openPage(workspace, '/')
  const trends = standings(now.page).map((title) => Number(title.replace('trend ', '')))
  expect(trends).toEqual(popular.map(({ agg_score }) => Number(agg_score.toPrecision(2))))
  expect(trends).toEqual(trends.toSorted((a, b) => b - a))
  expect(now.text).toContain('halves every six hours')
  const day = await openPage(workspace, '/?sort=day')
  expect(standings(day.page)).toEqual(['top 25 %', 'top 50 %'])
  expect(day.text).toContain('Popular compares sources by the share')
})
