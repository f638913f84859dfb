import { readFileSync, readdirSync } from 'node:fs'
import { posix } from 'node:path'
import type { H3 } from 'h3'
import { once, onceFor } from '../../domain/once.ts'
import { html } from '../page/html.ts'
import type { Html } from '../page/html.ts'
import type { MountPage } from '../page/rendered-pages.ts'
import { mountSections } from '../page/sections.ts'
import { JSON_TYPE, compressible, respondCompressed } from '../respond.ts'
import { MENU_GROUPS, indexSections, described, indexPage, withMenu } from './menu.ts'
import { renderMarkdown, sectionsOf } from './markdown.ts'
import type { GuideSection } from './markdown.ts'
import type { Menu, MenuEntry } from './menu.ts'
import type { PublishedInterface } from './openapi.ts'

/** A document as it was read. */
interface Guide extends MenuEntry {
  text: string
  sections: readonly GuideSection[]
}

function readGuide({ name, path }: GuideFile): Guide {
  const text = readFileSync(new URL(name, ROOT), 'utf8')
  const sections = sectionsOf(text)
  return { path, title: sections[0]?.title ?? '', summary: summaryOf(text), text, sections }
}

/** The first sentence of the first paragraph; empty if there is no paragraph. */
function summaryOf(text: string): string {
  const paragraphs = text.split(/\n\s*\n/).map((part) => part.trim())
  const first = paragraphs.find((part) => /^(?!```)[\w`*[]/.test(part)) ?? ''
  const plain = first
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '')
  return /^.*?\.(?= |$)/.exec(plain)?.[0] ?? plain.replace(/:$/, '.')
}

/** Markdown with links to the Markdown of other documents on this server, and none to files that it does not show. */
function withLinksToMarkdown(text: string, resolveLink: (link: string) => string | null): string {
  return text.replaceAll(/\[([^[\]]*)\]\(([^()\s]+)\)/g, (whole, label: string, link: string) => {
    if (/^https?:/.test(link)) return whole
    const [path, ...fragment] = resolveLink(link)?.split('#') ?? []
    if (path === undefined) return label
    // Pages have no extension, files do.
    return `[${label}](${[/\.\w+$/.test(path) ? path : `${path}.md`, ...fragment].join('#')})`
  })
}

/** Group that readers with a small context may skip (llmstxt.org). */
const OPTIONAL = 'Project'

/**
 * The documentation as a list that language models read (llmstxt.org): every interface with its OpenAPI document, every
 * guide as Markdown, in the groups of the menu; the project's own pages are optional.
 *
 * @param base prefix of addresses, without a slash at its end
 */
function llmsText(interfaces: readonly PublishedInterface[], menu: Menu, base: string): string {
  const guideLine = ({ title, path, summary }: MenuEntry): string =>
    `- [${title}](${base}${path}.md)${summary === '' ? '' : `: ${summary}`}`
  const interfaceLines = interfaces.map(
    ({ title, path, summary }) => `- [${title}](${base}${path}/openapi.json): OpenAPI 3.1. ${summary}`,
  )
  const start = menu[0]?.entries[0]
  const parts = [
    `# ${start?.title ?? 'dash'}`,
    `> ${start?.summary ?? ''}`,
    section('Interfaces', interfaceLines),
    ...menu.map(({ title, entries }) =>
      section(title === OPTIONAL ? 'Optional' : title, entries.map(guideLine)),
    ),
  ]
  return `${parts.join('\n\n')}\n`
}

function section(title: string, lines: readonly string[]): string {
  return [`## ${title}`, '', ...lines].join('\n')
}

const PLAIN_TYPE = 'text/plain; charset=utf-8'
const MARKDOWN_TYPE = 'text/markdown; charset=utf-8'

/**
 * Mounts `/docs` with the page and document of each interface and the guides, which are also served as Markdown under
 * `.md`. Every page has the menu of the guides; `/llms.txt` lists interfaces and guides for language models.
 *
 * @param baseUrl public address of the server, without a slash at its end
 */
export function mountDocs(
  app: H3,
  mount: MountPage,
  interfaces: readonly PublishedInterface[],
  baseUrl: () => string,
): void {
  const files = guideFiles()
  const attached = attachedFiles()
  const guideOf = onceFor(readGuide)
  const menu = once((): Menu =>
    Object.entries(MENU_GROUPS).map(([title, names]) => {
      const shown = names.flatMap((name) => files.filter(({ path }) => path === `/docs/${name}`))
      return { title, entries: shown.map(guideOf) }
    }),
  )
  const searchIndex = once(() => indexSections(files.map(guideOf)))
  const fileAt = (path: string, contentType: string, content: () => Buffer | string): void => {
    const headers = { 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' }
    const file = once(() => compressible(Buffer.from(content())))
    app.get(path, (event) => respondCompressed(event, 200, headers, file(), { 'content-type': contentType }))
  }
  const pageAt = (path: string, content: () => { title: string; main: Html; head?: Html }): void =>
    mountSections(mount, {
      path,
      async render() {
        const { title, main, ...others } = content()
        return { ...others, title: `${title} · dash documentation`, main: withMenu(menu(), path, main) }
      },
    })
  mountSections(mount, {
    path: '/docs',
    query: { known: ['q'] },
    render: async ({ query }) => indexPage(menu(), interfaces, searchIndex, query.params.get('q') ?? ''),
  })
  fileAt('/llms.txt', PLAIN_TYPE, () => llmsText(interfaces, menu(), baseUrl()))
  for (const file of files) {
    const resolveLink = (link: string): string | null => linkedPath([...files, ...attached], file, link)
    const content = once(() => renderMarkdown(guideOf(file).text, resolveLink))
    pageAt(file.path, () => ({ title: guideOf(file).title, main: content() }))
    fileAt(`${file.path}.md`, MARKDOWN_TYPE, () => withLinksToMarkdown(guideOf(file).text, resolveLink))
  }
  for (const { path, name, type } of attached) fileAt(path, type, () => readFileSync(new URL(name, ROOT)))
  for (const each of interfaces) {
    const { path, title, document } = each
    fileAt(`${path}/openapi.json`, JSON_TYPE, () => JSON.stringify(document()))
    const head = html`<link rel="service-desc" type="application/json" href="${path}/openapi.json" />`
    pageAt(path, () => ({
      title,
      main: html`<h1>${title}</h1>
        <p>${described(each)}</p>`,
      head,
    }))
  }
}

/** Root of the project, for sources and build alike. */
const ROOT = new URL('../../../', import.meta.url)

/** Documents outside `docs/`, with their names below `/docs`. */
const OTHER_DOCUMENTS: Readonly<Record<string, string>> = {
  'README.md': 'readme',
  'CHANGELOG.md': 'changelog',
  'CONTRIBUTING.md': 'contributing',
  'bench/README.md': 'benchmarks',
  'assets/demo/SOURCES.md': 'demo-sources',
}

/** Scripts and diagrams of the documents, and their pictures (`npm run pictures`): content types by extension. */
const FILE_TYPES: Readonly<Record<string, string>> = {
  '.go': PLAIN_TYPE,
  '.sh': PLAIN_TYPE,
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.gif': 'image/gif',
}

/** Files in `docs` other than documents, which have the same path on the server. */
function attachedFiles(): (GuideFile & { type: string })[] {
  return namesInDocs().flatMap((name) => {
    const type = FILE_TYPES[posix.extname(name)]
    return type === undefined ? [] : [{ name, path: `/${name}`, type }]
  })
}

const namesInDocs = once(() =>
  readdirSync(new URL('docs/', ROOT), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .sort(),
)

/** One of the project's documents. */
export interface GuideFile {
  /** Path below the project's root, with `/`. */
  name: string
  path: string
}

/** The project's documents, sorted by name. */
export function guideFiles(): GuideFile[] {
  const names = namesInDocs().filter((name) => name.endsWith('.md'))
  return [...names, ...Object.keys(OTHER_DOCUMENTS)].map((name) => ({ name, path: pathOf(name) }))
}

function pathOf(name: string): string {
  const other = OTHER_DOCUMENTS[name]
  if (other !== undefined) return `/docs/${other}`
  return `/${name.replace(/(?:\/README)?\.md$/, '')}`
}

/**
 * Path on the server of a document's link; null for a file that the server does not show.
 *
 * @param from document with the link
 * @param link relative to that document's folder
 */
function linkedPath(files: readonly GuideFile[], from: GuideFile, link: string): string | null {
  const [target = '', ...fragment] = link.split('#')
  const name = target === '' ? from.name : posix.join(posix.dirname(from.name), target)
  const candidates = new Set([name, posix.join(name, 'README.md')])
  const found = files.find((file) => candidates.has(file.name))
  return found ? [found.path, ...fragment].join('#') : null
}
