import { readFileSync, readdirSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { H3 } from 'h3'
import { NOTHING, html } from '../page/html.ts'
import type { Html } from '../page/html.ts'
import { HTML_TYPE, PAGE_HEADERS, layout, pageHeaders } from '../page/layout.ts'
import type { Frame } from '../page/layout.ts'
import type { MountPage, PageText } from '../page/rendered-pages.ts'
import { respondJson } from '../respond.ts'
import { renderMarkdown } from './markdown.ts'
import { groupsOf, withMenu } from './menu.ts'
import type { Menu, MenuEntry } from './menu.ts'
import { reference } from './reference.ts'
import type { PublishedDocument } from './reference.ts'

/** A document as the server shows it. */
interface Guide extends MenuEntry {
  /** What it is about: the first sentence under its heading. */
  summary: string
  /** Rendered when it is first asked for, and kept. */
  content: () => Html
  /** As it was written, with links that lead to the Markdown of other documents on this server. */
  markdown: () => string
}

interface Guides {
  /** Every document, by its name; read when they are first asked for. */
  all: () => readonly Guide[]
  /** The document shown at one of `paths`. */
  at: (path: string) => Guide
  /** Where documents are shown, whether they can be read or not. */
  paths: readonly string[]
}

/** The project's own documents. */
function openGuides(): Guides {
  const files = guideFiles()
  const read = once(() =>
    files.map((file): Guide => {
      const text = readFileSync(filePathOf(file), 'utf8')
      const linkTo = (link: string): string | null => linkedPath(files, file, link)
      return {
        path: file.path,
        title: titleOf(text),
        summary: summaryOf(text),
        content: once(() => renderMarkdown(text, linkTo)),
        markdown: once(() => withLinksToMarkdown(text, linkTo)),
      }
    }),
  )
  return {
    paths: files.map(({ path }) => path),
    all: read,
    at(path) {
      const guide = read().find((each) => each.path === path)
      if (!guide) throw new Error(`there is no document at ${path}`)
      return guide
    },
  }
}

/** The first heading, without its markup. */
function titleOf(text: string): string {
  const [, heading = ''] = /^# (.+)$/m.exec(text) ?? []
  return heading.replaceAll(/[`*]/g, '')
}

/** The first sentence of the first paragraph; empty for a document that has none. */
function summaryOf(text: string): string {
  const paragraphs = text.split(/\n\s*\n/).map((part) => part.trim())
  const first = paragraphs.find((part) => /^(?!```)[\w`*[]/.test(part)) ?? ''
  const plain = first
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('**', '')
  return /^.*?\.(?= |$)/.exec(plain)?.[0] ?? plain.replace(/:$/, '.')
}

function withLinksToMarkdown(text: string, linkTo: (link: string) => string | null): string {
  return text.replaceAll(/\]\(([^()\s]+)\)/g, (whole, link: string) => {
    const [path, ...fragment] = (/^https?:/.test(link) ? null : linkTo(link))?.split('#') ?? []
    return path === undefined ? whole : `](${[`${path}.md`, ...fragment].join('#')})`
  })
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null
  return () => (made ??= { value: make() }).value
}

/** What a reader with little room may leave out (llmstxt.org). */
const OPTIONAL = 'The project'

/**
 * The documentation as a list that language models read (llmstxt.org): every interface with its OpenAPI document, every
 * guide as Markdown, in the groups of the menu; what is about the project itself is optional.
 *
 * @param base what addresses begin with, without a slash at its end
 */
function llmsText(documents: readonly PublishedDocument[], guides: readonly Guide[], base: string): string {
  const guideLine = ({ title, path, summary }: Guide): string =>
    `- [${title}](${base}${path}.md)${summary === '' ? '' : `: ${summary}`}`
  const interfaces = documents.map(
    ({ title, path, summary }) => `- [${title}](${base}${path}/openapi.json): OpenAPI 3.1. ${summary}`,
  )
  const groups = groupsOf(guides)
  const front = groups[0]?.entries[0]
  const sections = groups.map(({ title, entries }) =>
    section(title === OPTIONAL ? 'Optional' : title, entries.map(guideLine)),
  )
  const head = [`# ${front?.title ?? 'dash'}`, `> ${front?.summary ?? ''}`, section('Interfaces', interfaces)]
  return `${[...head, ...sections].join('\n\n')}\n`
}

function section(title: string, lines: readonly string[]): string {
  return [`## ${title}`, '', ...lines].join('\n')
}

const PLAIN_TYPE = 'text/plain; charset=utf-8'
const MARKDOWN_TYPE = 'text/markdown; charset=utf-8'

/** The renderer writes styles and images of its own into the page. */
const TRIAL_HEADERS = pageHeaders({ 'style-src': ["'unsafe-inline'"], 'img-src': ['data:'] })

const OPEN_TO_ALL = { 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' }

/**
 * Mounts `/docs`, each interface's document and page, and the project's own guides, which are there as Markdown too, under
 * `.md`. Every page has the menu of all; `/llms.txt` is the same list for language models. No outside host is involved.
 *
 * @param baseUrl address the server is reached at from outside, without a slash at its end
 */
export function mountDocs(
  app: H3,
  mount: MountPage,
  documents: readonly PublishedDocument[],
  frame: Frame,
  baseUrl: () => string,
): void {
  const guides = openGuides()
  const menu = (): Menu => menuOf(documents, guides)
  const textAt = (path: string, type: string, headers: Headers, text: () => string): void =>
    mount({
      path,
      render: (): PageText => ({ status: 200, headers: { ...headers, ...typed(type) }, text: text() }),
    })
  const pageAt = (path: string, content: () => { title: string; content: Html; head?: Html }): void =>
    textAt(path, HTML_TYPE, PAGE_HEADERS, () => {
      const { title, content: main, head = NOTHING } = content()
      return layout(frame, { title, head, rooms: [], main: withMenu(menu(), path, main) })
    })
  pageAt('/docs', () => ({ title: 'Documentation', content: index(documents) }))
  textAt('/llms.txt', PLAIN_TYPE, OPEN_TO_ALL, () => llmsText(documents, guides.all(), baseUrl()))
  for (const path of guides.paths) {
    pageAt(path, () => ({ title: guides.at(path).title, content: guides.at(path).content() }))
    textAt(`${path}.md`, MARKDOWN_TYPE, OPEN_TO_ALL, () => guides.at(path).markdown())
  }
  for (const published of documents) {
    app.get(`${published.path}/openapi.json`, (event) =>
      respondJson(event, 200, OPEN_TO_ALL, published.document),
    )
    const { path, title } = published
    pageAt(path, () => ({ title, content: reference(published), head: serviceDescription(published) }))
    textAt(`${path}/try`, HTML_TYPE, TRIAL_HEADERS, () => trial(published, frame))
  }
}

function serviceDescription({ path }: PublishedDocument): Html {
  return html`<link rel="service-desc" type="application/json" href="${path}/openapi.json" />`
}

type Headers = Readonly<Record<string, string>>

const typed = (type: string): Headers => ({ 'content-type': type })

/** The groups of pages, and behind the first of them the interfaces. */
function menuOf(documents: readonly PublishedDocument[], guides: Guides): Menu {
  const interfaces = {
    title: 'Interfaces',
    entries: [{ path: '/docs', title: 'All interfaces' }, ...documents],
  }
  const groups: Menu = groupsOf(guides.all())
  return [...groups.slice(0, 1), interfaces, ...groups.slice(1)]
}

function index(documents: readonly PublishedDocument[]): Html {
  const list = documents.map(
    ({ path, title, summary }) =>
      html`<dt><a href="${path}">${title}</a></dt>
        <dd>
          ${summary} <a href="${path}/openapi.json">OpenAPI<span class="unseen"> of ${title}</span></a>
        </dd>`,
  )
  return html`<h1>Documentation</h1>
    <h2>Interfaces</h2>
    <dl>${list}</dl>
    <p>
      Each is described as a page and as OpenAPI 3.1. How everything is run and used is told in the guides.
    </p>`
}

/** The interface to be tried, by a renderer that is a program of its own. */
function trial(published: PublishedDocument, frame: Frame): string {
  const { path, title } = published
  const { assets } = frame
  const head = html`<link rel="stylesheet" href="${assets.href('swagger-ui.css')}" />
    ${serviceDescription(published)}
    <script src="${assets.href('swagger-ui-bundle.js')}" defer></script>
    <script src="${assets.href('reference.js')}" defer></script>`
  const main = html`<p><a href="${path}">${title}, described without a script</a></p>
    <noscript><p>Trying it here needs a script; the description does not.</p></noscript>
    <div id="reference" data-document="${path}/openapi.json"></div>`
  return layout(frame, { title: `Try: ${title}`, head, rooms: [], main })
}

/** Where the guides are, from the sources as from the build. */
const ROOT = new URL('../../../', import.meta.url)

/** Documents outside `docs/` that guides lead to, with the name each has below `/docs`. */
const OTHERS: Readonly<Record<string, string>> = {
  'README.md': 'readme',
  'CHANGELOG.md': 'changelog',
  'CONTRIBUTING.md': 'contributing',
  'bench/README.md': 'benchmarks',
  'assets/demo/SOURCES.md': 'demo-sources',
}

/** One of the project's documents. */
export interface GuideFile {
  /** From the project's root on, with `/`. */
  name: string
  /** Where the server shows it. */
  path: string
}

/** The project's own documents, in the order of their names. */
export function guideFiles(): GuideFile[] {
  const names = readdirSync(new URL('docs/', ROOT), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .filter((name) => name.endsWith('.md'))
    .sort()
  return [...names, ...Object.keys(OTHERS)].map((name) => ({ name, path: pathOf(name) }))
}

function filePathOf({ name }: GuideFile): string {
  return fileURLToPath(new URL(name, ROOT))
}

function pathOf(name: string): string {
  const other = OTHERS[name]
  if (other !== undefined) return `/docs/${other}`
  return `/${name.replace(/(?:\/README)?\.md$/, '')}`
}

/**
 * Where a link of a document leads on the server, or null for a file that is no document.
 *
 * @param from the document it stands in
 * @param link relative to that document, as a reader of the files would follow it
 */
function linkedPath(files: readonly GuideFile[], from: GuideFile, link: string): string | null {
  const [target = '', ...fragment] = link.split('#')
  const name = target === '' ? from.name : posix.join(posix.dirname(from.name), target)
  const wanted = new Set([name, posix.join(name, 'README.md')])
  const found = files.find((file) => wanted.has(file.name))
  return found ? [found.path, ...fragment].join('#') : null
}
