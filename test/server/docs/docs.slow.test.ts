import { extname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { guideFiles } from '../../../src/server/docs/docs.ts'
import { renderMarkdown } from '../../../src/server/docs/markdown.ts'
import { MENU_GROUPS } from '../../../src/server/docs/menu.ts'
import { publishedInterfaces } from '../../../src/server/docs/openapi.ts'
import { hrefsIn, openApp, openPage } from '../../support/api-client.ts'
import { openWorkspace } from '../../support/workspace.ts'

const get = async (path: string): ReturnType<typeof openPage> => openPage(await openWorkspace(), path)

/** The guides on the start page of the documentation, without the interfaces. */
async function guideMenu(): Promise<string> {
  const { page } = await get('/docs')
  return page.slice(page.indexOf('<h1>'), page.indexOf('<h2>Interfaces</h2>'))
}

/** The guides of the menu: a page of its own lists the decisions. */
const GUIDES = guideFiles().filter(({ path }) => !path.startsWith('/docs/decisions/'))

describe('the guides', () => {
  test('the documentation opens on guides by reader, in groups that name each page once and omit none', async () => {
    const menu = await guideMenu()
    const groups = [...menu.matchAll(/<h2>([^<]*)<\/h2>/g)].map(([, title]) => title)
    expect(groups).toEqual(Object.keys(MENU_GROUPS))
    expect(groups.slice(0, 4)).toEqual(['Visitors', 'Developers', 'Operators', 'Auditors'])
    const links = hrefsIn(menu)
    expect(links.slice(0, 2)).toEqual(['/docs/readme', '/docs/tour'])
    for (const { path } of GUIDES)
      expect([path, links.filter((link) => link === path).length]).toEqual([path, 1])
  })

  test('the guides have their own title and current menu entry, and unknown paths are 404', async () => {
    const { page } = await get('/docs/operations')
    expect(page).toContain('<title>Operations · dash documentation</title>')
    expect(page).toMatch(/<a href="\/docs\/operations" aria-current="page">/)
    const open = /<details open>.*?<\/details>/s.exec(page)?.[0] ?? ''
    expect(open).toContain('<summary class="group">Operators</summary>')
    for (const path of ['/docs/nothing', '/docs/operations.txt', '/docs/..%2fpackage'])
      expect((await get(path)).status).toBe(404)
  })
})

test.each(publishedInterfaces(false))(
  'the page of the interface $title links to its OpenAPI document and to the section of a guide that explains it',
  async ({ path, title }) => {
    const { status, headers, page } = await get(path)
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const article = page.slice(page.indexOf('<article'), page.indexOf('</article>'))
    expect(article).toContain(`<h1>${title}</h1>`)
    const links = hrefsIn(article)
    expect(links).toEqual([expect.not.stringContaining('/docs/api/'), `${path}/openapi.json`])
    const [guide = '', id] = (links[0] ?? '').split('#')
    const explained = await get(guide)
    expect(explained.status).toBe(200)
    if (id !== undefined) expect(explained.page).toContain(`<h2 id="${id}">`)
    expect(hrefsIn((await get('/docs')).page)).toEqual(expect.arrayContaining(links))
  },
)

describe('what language models read', () => {
  test('its files are compressed for those who accept it, and unchanged ones are 304', async () => {
    const app = openApp(await openWorkspace())
    for (const path of ['/llms.txt', '/docs/quick-start.md', '/docs/api/search/openapi.json']) {
      const request = (headers: Record<string, string>): Promise<Response> =>
        Promise.resolve(app.request(`http://dash.test${path}`, { headers }))
      const { headers } = await request({ 'accept-encoding': 'gzip' })
      expect([headers.get('content-encoding'), headers.get('vary')]).toEqual(['gzip', 'Accept-Encoding'])
      const etag = headers.get('etag') ?? ''
      expect((await request({ 'accept-encoding': 'gzip', 'if-none-match': etag })).status).toBe(304)
    }
  })

  test('llms.txt lists every interface and every guide of the menu, and its links work', async () => {
    const { status, headers, page: list } = await get('/llms.txt')
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(list).toMatch(/^# dash\n\n> \S[^\n]+\n\n## Interfaces\n\n- \[/)
    const links = [...list.matchAll(/\]\((http:\/\/dash\.test[^)]+)\)/g)].map(([, link = '']) => link)
    const menu = hrefsIn(await guideMenu())
    const guides = menu.filter((path) => path.startsWith('/docs/')).map((path) => `${path}.md`)
    const interfaces = publishedInterfaces(false).map(({ path }) => `${path}/openapi.json`)
    expect(links.map((link) => new URL(link).pathname).sort()).toEqual([...interfaces, ...guides].sort())
    expect(list.split('\n').filter((line) => line.startsWith('- ') && !line.includes(': '))).toEqual([])
    for (const link of links) expect([link, (await get(new URL(link).pathname)).status]).toEqual([link, 200])
  })

  test('every guide is served as a page and as Markdown, each with links to its own kind', async () => {
    // So fast that no minute has too many renders.
    let now = Date.now()
    const app = openApp(await openWorkspace(), { clock: () => (now += 1_000) })
    const read = async (path: string): Promise<string> => {
      const response = await app.request(`http://dash.test${path}`)
      const kind = { '.md': 'markdown', '.sh': 'plain', '.go': 'plain' }[extname(path)] ?? 'html'
      const image = { '.svg': 'image/svg+xml', '.png': 'image/png', '.gif': 'image/gif' }[extname(path)]
      const type = image ?? `text/${kind}; charset=utf-8`
      expect([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, type])
      return response.text()
    }
    const targets = new Set<string>()
    for (const { path } of GUIDES) {
      await read(path)
      const text = await read(`${path}.md`)
      for (const [, link = ''] of text.matchAll(/\]\((\/docs\/[^)#]+)/g)) targets.add(link)
      // The server does not show every file of the project.
      expect([path, text.match(/\]\(\.\.?\/[^)]*\)/g)]).toEqual([path, null])
    }
    // The list of decisions leads to every one of them.
    for (const target of targets) await read(target)
    expect(await read('/docs/quick-start.md')).toContain('](/docs/collecting.md#tokens)')
    expect(await read('/docs/decisions.md')).toContain(
      '](/docs/decisions/0001-sqlite-journal-and-driver-guard.md)',
    )
  })
})

const SOME_WORDS = 'No page has all of these words; these have some.'

test('the search of the documentation leads to the section that is about its words, without scripts', async () => {
  const search = async (query: string): Promise<string> =>
    (await get(`/docs?q=${encodeURIComponent(query)}`)).page
  const resultsOf = (page: string): string[] => hrefsIn(/<ol class="found">.*?<\/ol>/s.exec(page)?.[0] ?? '')
  expect(resultsOf(await search('restore backup'))[0]).toBe('/docs/backup#backup-and-restore')
  expect(resultsOf(await search('DASH_VERIFICATION_WIDGET_URL')).length).toBeGreaterThan(0)
  expect(await search('restore backup')).not.toContain(SOME_WORDS)
  // At most two sections of a page, guides before decisions.
  const gap = resultsOf(await search('gap')).map((href) => href.split('#')[0])
  expect(gap.filter((path) => path === '/docs/publishing')).toHaveLength(2)
  expect(gap.slice(0, 5).join()).not.toContain('/docs/decisions/')
  const some = await search('restore zebrawood backup')
  expect(some).toContain(SOME_WORDS)
  expect(resultsOf(some)[0]).toBe('/docs/backup#backup-and-restore')
  const nothing = await search('"><b>zebrawood')
  expect(nothing).toContain('No page of the documentation has any of these words.')
  expect(nothing).not.toContain('<b>zebrawood')
})

describe('markdown', () => {
  const render = (text: string): string => renderMarkdown(text, () => null).html

  test('Markdown shows HTML as text, and links only to the web or to known documents', () => {
    const shown = render(
      '<script>x</script>\n\na <b>c</b> [d](javascript:1) [e](other.md) [f](https://example.org/?"q)',
    )
    expect(shown).toContain('&lt;script&gt;x&lt;/script&gt;')
    expect(shown).toContain('a &lt;b&gt;c&lt;/b&gt; d e ')
    expect(shown.match(/<a /g)).toHaveLength(1)
    expect(shown).toContain('rel="noopener noreferrer"')
  })

  test('Markdown shows images of this server, and only the alternative text of others', () => {
    const text = '![one](a.svg) ![two](https://example.org/b.svg)'
    const shown = renderMarkdown(text, (link) => (link === 'a.svg' ? '/docs/a.svg' : null)).html
    expect(shown).toContain('<img src="/docs/a.svg" alt="one" /> two')
  })

  test('Markdown names the prerequisites of an example', () => {
    expect(render('```sh needs=clone,jq\nx\n```')).toMatch(
      /<p class="needs">Needs a clone of the project, jq:<\/p>\s*<pre/,
    )
    expect(render('```sh refused=404\nx\n```')).not.toContain('needs')
  })

  test('Markdown leaves comments out, and lists the sections of a page after its title, with subsections where they are few', () => {
    const listOf = (text: string): string[] => {
      const shown = render(text)
      const contents = /<nav class="contents".*?<\/nav>/s.exec(shown)?.[0] ?? ''
      expect(shown).not.toContain('generated')
      expect(shown.indexOf('</h1>')).toBeLessThan(shown.indexOf(contents) || Infinity)
      return contents.match(/#[^"]*/g) ?? []
    }
    const comment = '<!-- generated -->\n\n'
    expect(listOf(`# T\n\n${comment}## One\n\n## \`two\`\n\n## Three`)).toEqual(['#one', '#two', '#three'])
    expect(listOf('# T\n\n## One\n\n### Two\n\n#### x\n\n## Three')).toEqual(['#one', '#two', '#three'])
    expect(listOf('# T\n\n### One\n\n### Two\n\n### Three')).toEqual(['#one', '#two', '#three'])
    expect(listOf('# T\n\n## One\n\n### Two\n\n## Three\n\n## Four')).toEqual(['#one', '#three', '#four'])
    expect(listOf('# T\n\n## One\n\n### Two')).toEqual([])
  })

  test('Markdown gives headings unique ids, and none to those of a quote', () => {
    const shown = render('# A `b`: c, d!\n\n## Größe\n\n> ### quoted\n\n## Größe')
    expect(shown).toContain('<h3>quoted</h3>')
    expect([...shown.matchAll(/id="([^"]*)"/g)].map(([, id]) => id)).toEqual(['a-b-c-d', 'größe', 'größe-1'])
  })
})
