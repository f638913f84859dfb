import { expect, test } from 'vitest'
import type { Signal } from '../../../src/domain/feed/signal.ts'
import type { CallerSearch } from '../../../src/domain/ports.ts'
import { Refusal } from '../../../src/domain/refusal.ts'
import { hrefsIn, keysIn, openPage } from '../../support/api-client.ts'
import { keepSnapshot } from '../feed/live-client.ts'
import { feedEvent, signal } from '../../support/signals.ts'
import { openWorkspace } from '../../support/workspace.ts'
import type { Workspace } from '../../support/workspace.ts'

async function indexed(): Promise<Workspace> {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals([
    signal({ sourceId: '1', title: 'Rust in the <kernel>' }),
    signal({ sourceId: '2', title: 'Rust for cooks', points: null, publishedAt: null }),
    signal({ sourceId: '3', title: 'Cooks at sea' }),
    signal({
      sourceId: 'o/n',
      title: 'Kernel rust',
      url: null,
      source: 'hype:github',
      titleProvenance: null,
    }),
  ])
  return workspace
}

/** The target of the link to more results; empty if there is none. */
const nextOf = (page: string): string =>
  hrefsIn(/href="[^"]*"[^>]*>More results</.exec(page)?.[0] ?? '')[0] ?? ''

/** Stories of one title, the last with the most points. */
const stories = (count: number): Signal[] =>
  Array.from({ length: count }, (_, index) =>
    signal({
      sourceId: String(index + 1),
      title: 'Rust',
      points: index,
      comments: 100 - index,
      publishedAt: null,
    }),
  )
test('the search page lists stored items by words, of one source if chosen, partial matches apart', async () => {
  const workspace = await indexed()
  const { status, page, text } = await openPage(workspace, '/search?q=rust+cooks')
  expect(status).toBe(200)
  expect(keysIn(page)).toEqual(['hn-2', 'hn-3'])
  expect(text).toMatch(/Rust for cooks.*Some of the words.*Cooks at sea/)
  expect(page).toContain('<title>Search: rust cooks · dash</title>')
  expect(page).toContain('href="/api/search?q=rust+cooks"')
  expect((await openPage(workspace, '/search?q=kernel')).page).toContain('Rust in the &lt;kernel&gt;')
  const github = await openPage(workspace, '/search?q=rust&source=hype%3Agithub')
  expect(keysIn(github.page)).toEqual(['hype-github-o/n'])
  expect(github.page).toMatch(/<option value="hype:github" selected>/)
})

test.each([
  ['/search', 200, 'Enter words of a title or of a stored text.'],
  ['/search?q=zebra', 200, 'Nothing stored matches.'],
  [
    '/search?q=rust&minPoints=many',
    400,
    'invalid_rule , minPoints is &quot;many&quot;: it must be an integer',
  ],
  ['/search?q=rust&source=unknown', 400, 'invalid_source'],
  ['/search?q=rust&cursor=x', 400, 'invalid_cursor'],
  ['/search?q=rust&sort=oldest', 400, 'invalid_sort , sort is &quot;oldest&quot;: it must be one of'],
  [`/search?q=a&q=b`, 400, 'invalid_query'],
])('the address %s says in words why nothing is listed', async (path, status, message) => {
  const response = await openPage(await indexed(), path)
  expect([response.status, response.text.includes(message)]).toEqual([status, true])
})

test('the search page takes the conditions of the lists, in its address and as fields', async () => {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(stories(30))
  const { page } = await openPage(workspace, '/search?q=rust&minPoints=20&minComments=75&top=5')
  expect(keysIn(page)).toEqual(['hn-26', 'hn-25', 'hn-24', 'hn-23', 'hn-22'])
  expect(page).not.toContain('More results')
  for (const path of ['/api/search', '/api/search.csv'])
    expect(page).toContain(`href="${path}?q=rust&amp;minPoints=20&amp;minComments=75&amp;limit=5"`)
  for (const [name, value] of [
    ['minPoints', 20],
    ['minComments', 75],
    ['top', 5],
  ])
    expect(page).toMatch(new RegExp(`name="${name}"[^>]*value="${value}"`))
  const first = await openPage(workspace, '/search?q=rust&top=22')
  const second = await openPage(workspace, nextOf(first.page))
  expect(new Set([...keysIn(first.page), ...keysIn(second.page)]).size).toBe(22)
  const ranks = [first.page, second.page].map((each) =>
    Array.from(each.matchAll(/<a class="rank"[^>]*>(\d+)</g), ([, rank]) => Number(rank)),
  )
  expect(ranks).toEqual([Array.from({ length: 20 }, (_, at) => at + 1), [21, 22]])
  expect(second.page).not.toContain('More results')
})

test('the search page keeps order and days in its address, its fields and the JSON, and counts the results', async () => {
  const workspace = await openWorkspace()
  await workspace.feed.importSignals(stories(25))
  const query = 'q=rust&from=2026-03-01&to=2026-03-31&sort=points'
  const { page, text } = await openPage(workspace, `/search?${query}`)
  expect(keysIn(page).slice(0, 2)).toEqual(['hn-25', 'hn-24'])
  expect(text).toContain('25 results')
  expect(page).toContain(`href="/api/search?${query.replaceAll('&', '&amp;')}"`)
  expect(page).toMatch(/<option value="points" selected>/)
  expect(page).toMatch(/name="from" value="2026-03-01".*name="to" value="2026-03-31"/s)
  expect(keysIn((await openPage(workspace, nextOf(page))).page)).toHaveLength(5)
  const wrong = await openPage(workspace, '/search?q=rust&from=2026-02-30&sort=newest')
  expect(wrong.text).toContain('invalid_time , from is &quot;2026-02-30&quot;: it must be')
  expect(wrong.page).toMatch(
    /value="newest" selected.*<details\s+class="view-menu"\s+open.*value="2026-02-30"/s,
  )
  const partial = await openPage(workspace, '/search?q=rust+zebra&sort=relevance')
  expect(partial.text).toMatch(/No result with all words .* Some of the words/)
  expect((await openPage(workspace, '/search?q=rust+zebra&sort=newest')).text).toContain('Nothing stored')
})

test('a search leads to the feeds and lists of the last 30 days with its words and conditions, and back', async () => {
  const workspace = await indexed()
  await keepSnapshot(workspace.feed, [feedEvent({ title: 'Rust in the kernel', points: 500 })])
  const { page, text } = await openPage(workspace, '/search?q=rust&source=hn&minPoints=100')
  expect(text).toContain('Subscribe to stories of the lists of the last 30 days with these words and filters')
  const query = 'sort=month&q=rust&source=hn&minPoints=100'
  const feeds = ['rss', 'atom', 'feed.json'].map((name) => `/api/${name}?${query}`)
  const hrefs = hrefsIn(page)
  for (const href of feeds) expect(hrefs.filter((each) => each === href)).toHaveLength(2)
  expect((await openPage(workspace, feeds[0] ?? '')).page).toContain('Rust in the kernel')
  expect(hrefs).toContain(`/?${query}`)
  const lists = await openPage(workspace, `/?${query}`)
  expect(hrefsIn(lists.page)).toContain('/search?q=rust&source=hn&minPoints=100')
  expect((await openPage(workspace, '/?sort=month&minPoints=100')).page).not.toContain('Search everything')
  const long = await openPage(workspace, `/search?q=${'rust+'.repeat(41)}`)
  expect([long.status, long.text.includes('Subscribe')]).toEqual([200, false])
})

test('a search that fails is a refusal on the page', async () => {
  const fail = () => Promise.reject(new Refusal('storage_unavailable'))
  const failing = {
    by: (): CallerSearch => ({ search: fail, similar: fail, itemTrend: fail, termTrend: fail }),
  }
  const { status, text, headers } = await openPage(await openWorkspace(), '/search?q=rust', {
    search: failing,
  })
  expect([status, headers.get('etag')]).toEqual([503, null])
  expect(text).toContain('search_unavailable')
})
