import { expect, test } from 'vitest'
import { dayOf } from '../../src/domain/time.ts'
import { dash, serve, temporaryFolder } from '../support/dash.ts'
import { signal } from '../support/signals.ts'
import { flawsOf, NARROW, picture, visit, WIDE } from './browser.ts'

const TITLES = [
  'W'.repeat(300),
  `https://example.org/${'long/'.repeat(60)}`,
  '<script>document.title = "taken"</script><img src=x onerror="document.title = \'taken\'">',
  '\u202Eright to left for ever',
  'עברית עם English באמצע',
  'a\u0301'.repeat(80),
  '"><style>body { display: none }</style>',
  '🦀'.repeat(120),
]

/** One row of signals a title, in three sources, observed today. */
function rows(): string {
  const publishedAt = new Date(Date.now() - 3_600_000).toISOString()
  const signals = ['hn', 'lobsters', 'hype:github'].flatMap((source) =>
    TITLES.map((title, index) => ({
      ...signal({ source, title, titleProvenance: `${source}:test` }),
      sourceId: source.startsWith('hype') ? `owner${index}/${'repo'.repeat(20)}` : `id${index}`,
      day: dayOf(Date.now()),
      url: index % 2 === 0 ? `https://${'sub.'.repeat(20)}example.org/?a="><script>x</script>` : null,
      points: 2_000_000_000 - index,
      comments: index === 0 ? null : 1_000_000 * index,
      publishedAt,
    })),
  )
  return signals.map((each) => JSON.stringify(each)).join('\n')
}

/** A title without the characters that reverse what follows. */
const shownTitle = (title: string): string => title.replaceAll(/[\u202A-\u202E]/g, '')

test('untrusted text stays in its place, fits a narrow and a wide screen, and runs nothing', async () => {
  const folder = temporaryFolder()
  const at = ['--data-dir', folder]
  expect((await dash(['import', 'signals', '-', ...at], { stdin: rows() })).code).toBe(0)
  expect((await dash(['snapshot', ...at])).code).toBe(0)
  const { url } = await serve(at)
  for (const viewport of [NARROW, WIDE]) {
    const overview = await visit(`${url}/?sort=month`, { viewport })
    await picture(overview.page, `strangers-${viewport.width}`)
    expect(await flawsOf(overview)).toEqual([])
    const visited = await visit(`${url}/?sort=month&column=hackerNews`, { viewport })
    const { page } = visited
    expect(await page.title()).toBe('Hacker News, Month · dash')
    const shown = await page.locator('#column-hackerNews .item .title').allTextContents()
    expect(shown.length).toBe(TITLES.length)
    for (const [index, title] of TITLES.entries()) expect(shown[index]).toContain(shownTitle(title))
    expect(await flawsOf(visited)).toEqual([])
  }
  for (const [index, title] of TITLES.entries()) {
    const item = await visit(`${url}/item?key=hn-id${index}`, { viewport: NARROW })
    expect(await item.page.locator('h1').textContent()).toContain(shownTitle(title))
    expect([title, await flawsOf(item)]).toEqual([title, []])
  }
})

test('a server without data fits, and has no error', async () => {
  const { url } = await serve(['--data-dir', temporaryFolder()])
  expect(await flawsOf(await visit(url))).toEqual([])
})
