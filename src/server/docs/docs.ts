import type { H3 } from 'h3'
import { HTML_TYPE, PAGE_HEADERS, pageHeaders } from '../page/headers.ts'
import { html, NOTHING } from '../page/html.ts'
import type { Html } from '../page/html.ts'
import { layout } from '../page/layout.ts'
import type { Frame } from '../page/layout.ts'
import type { MountPage, PageText } from '../page/rendered-pages.ts'
import { respondJson } from '../respond.ts'
import { openGuides } from './guides.ts'
import type { Guides } from './guides.ts'
import { llmsText } from './llms.ts'
import { groupsOf } from './menu-groups.ts'
import { withMenu } from './menu.ts'
import type { Menu } from './menu.ts'
import { reference } from './reference.ts'
import type { PublishedDocument } from './reference.ts'

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
