import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { renderMarkdown } from '../../src/server/docs/markdown.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const pages = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'bench/README.md',
  'assets/demo/SOURCES.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8')

/** Every link of a page that leads into the project, as the renderer of the server sees it. */
function linksOf(page: string): string[] {
  const links: string[] = []
  renderMarkdown(read(page), (link) => {
    links.push(link)
    return link
  })
  return links
}

function idsOf(page: string): Set<string> {
  const { html } = renderMarkdown(read(page), (link) => link)
  return new Set([...html.matchAll(/<h\d id="([^"]*)"/g)].map(([, id = '']) => id))
}

/** The problem with a link of a page, or null. */
function linkFlaw(page: string, link: string): string | null {
  const [target = '', anchor] = link.split('#')
  const file = target === '' ? join(ROOT, page) : resolve(ROOT, dirname(page), target)
  const name = relative(ROOT, file)
  if (name.startsWith('..')) return 'it leads out of the project'
  if (!existsSync(file)) return `there is no ${name}`
  if (anchor === undefined) return null
  const readable = statSync(file).isDirectory() ? `${name}/README.md` : name
  return idsOf(readable).has(anchor) ? null : `${readable} has no heading #${anchor}`
}

test.each(pages)('every link of %s leads to an existing file and heading', (page) => {
  const flaws = linksOf(page).flatMap((link) => {
    const flaw = linkFlaw(page, link)
    return flaw === null ? [] : [`${link}: ${flaw}`]
  })
  expect(flaws).toEqual([])
})

const files = ['src', 'test', 'scripts', 'bench', 'ops'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `/${folder}/${name}`),
)

test.each(pages)('every file of code that %s names exists', (page) => {
  const named = [...read(page).matchAll(/`([\w./-]+\.(?:ts|mjs))`/g)].map(([, name = '']) => name)
  expect(named.filter((name) => !files.some((file) => file.endsWith(`/${name}`)))).toEqual([])
})

test('every page of docs is reachable from the README', () => {
  const reached = new Set(['README.md'])
  for (const page of reached) {
    for (const link of linksOf(page)) {
      const target = relative(ROOT, resolve(ROOT, dirname(page), link.split('#')[0] || '.'))
      for (const name of [target, `${target}/README.md`]) if (pages.includes(name)) reached.add(name)
    }
  }
  expect(pages.filter((page) => !reached.has(page))).toEqual([])
})
