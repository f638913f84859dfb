import { expect, test } from 'vitest'
import { Refusal } from '../../../src/domain/refusal.ts'
import type { CallerSearch } from '../../../src/domain/ports.ts'
import { openPage } from '../../support/api-client.ts'
import { refresh, signal } from '../../support/signals.ts'
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
  await refresh(workspace.search)
  return workspace
}

const keysOf = (page: string): string[] =>
  Array.from(page.matchAll(/data-key="([^"]*)"/g), ([, key = '']) => key)

test('the search page lists stored items by words, of one source if chosen, partial matches apart', async () => {
  const workspace = await indexed()
  const { status, page, text } = await openPage(workspace, '/search?q=rust+cooks')
  expect(status).toBe(200)
  expect(keysOf(page)).toEqual(['hn-2', 'hn-3'])
  expect(text).toMatch(/Rust for cooks.*Some of the words.*Cooks at sea/)
  expect(page).toContain('<title>Search: rust cooks</title>')
  expect(page).toContain('href="/api/search?q=rust+cooks"')
  expect((await openPage(workspace, '/search?q=kernel')).page).toContain('Rust in the &lt;kernel&gt;')
  const github = await openPage(workspace, '/search?q=rust&source=hype%3Agithub')
  expect(keysOf(github.page)).toEqual(['hype-github-o/n'])
  expect(github.page).toMatch(/<option value="hype:github" selected>/)
})

test('the search page leads to further results', async () => {
  const workspace = await openWorkspace()
  const many = Array.from({ length: 25 }, (_, index) =>
    signal({ sourceId: String(index + 1), title: `Rust ${index}` }),
  )
  await workspace.feed.importSignals(many)
  await refresh(workspace.search)
  const first = await openPage(workspace, '/search?q=rust')
  const [, next = ''] = /href="([^"]*)"[^>]*>More results</.exec(first.page) ?? []
  const second = await openPage(workspace, next.replaceAll('&amp;', '&'))
  expect(new Set([...keysOf(first.page), ...keysOf(second.page)]).size).toBe(25)
  expect(second.page).not.toContain('More results')
  const ranksOf = (page: string): number[] =>
    Array.from(page.matchAll(/<a class="rank"[^>]*>(\d+)</g), ([, rank]) => Number(rank))
  const all = Array.from({ length: 25 }, (_, index) => index + 1)
  expect([...ranksOf(first.page), ...ranksOf(second.page)]).toEqual(all)
})

test.each([
  ['/search', 200, 'Enter words of a title or of a stored text.'],
  ['/search?q=zebra', 200, 'Nothing stored matches these words.'],
  ['/search?q=rust&source=unknown', 400, 'invalid_source'],
  ['/search?q=rust&cursor=x', 400, 'invalid_cursor'],
  [`/search?q=a&q=b`, 400, 'invalid_query'],
])('the address %s says in words why nothing is listed', async (path, status, message) => {
  const response = await openPage(await indexed(), path)
  expect([response.status, response.text.includes(message)]).toEqual([status, true])
})

test('a busy search is a refusal on the page that is not cached', async () => {
  const workspace = await openWorkspace()
  const fail = (): Promise<never> => Promise.reject(new Refusal('search_busy'))
  const busy: CallerSearch = { search: fail, similar: fail, itemTrend: fail, termTrend: fail }
  const { status, text, headers } = await openPage(workspace, '/search?q=rust', {
    search: { by: () => busy },
  })
  expect([status, headers.get('etag')]).toEqual([503, null])
  expect(text).toContain('search_busy')
})

test.each(['/', '/item?key=hn-1', '/docs', '/search?q=rust'])(
  'the page %s has a search box',
  async (path) => {
    const { page } = await openPage(await indexed(), path)
    expect(page).toMatch(
      /<form\s+class="search"\s+role="search"\s+action="\/search"\s+method="get".*?<input\s+type="search"\s+id="q"\s+name="q"/s,
    )
  },
)
