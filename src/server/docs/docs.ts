import type { H3, H3Event } from 'h3'
import { respondCompressed } from '../compression.ts'
import { HTML_TYPE, PAGE_HEADERS, pageHeaders } from '../page/headers.ts'
import { html, NOTHING } from '../page/html.ts'
import type { Html } from '../page/html.ts'
import { layout } from '../page/layout.ts'
import type { Frame } from '../page/layout.ts'
import { respondJson } from '../respond.ts'
import { isForUsers, openGuides } from './guides.ts'
import type { Guides } from './guides.ts'
import { withMenu } from './menu.ts'
import type { Menu } from './menu.ts'

/** One published interface: its page is at `path`, its OpenAPI document at `path/openapi.json`. */
export interface PublishedDocument {
  path: string
  title: string
  summary: string
  document: Record<string, unknown>
}

/** The renderer writes styles and images of its own into the page. */
const REFERENCE_HEADERS = pageHeaders({ 'style-src': ["'unsafe-inline'"], 'img-src': ['data:'] })

const OPEN_TO_ALL = { 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' }

/**
 * Mounts `/docs`, each interface's document and page, and the project's own guides. Every page has the menu of all. No
 * outside host is involved.
 */
export function mountDocs(app: H3, documents: readonly PublishedDocument[], frame: Frame): void {
  const guides = openGuides()
  const menu = (): Menu => menuOf(documents, guides)
  const show = (event: H3Event, title: string, path: string, content: Html): Promise<Response> =>
    respondCompressed(
      event,
      200,
      PAGE_HEADERS,
      HTML_TYPE,
      layout(frame, { title, head: NOTHING, rooms: [], main: withMenu(menu(), path, content) }),
    )
  app.get('/docs', (event) => show(event, 'Documentation', '/docs', index(documents)))
  for (const path of guides.paths) {
    app.get(path, (event) => {
      const guide = guides.all().find((each) => each.path === path)
      if (!guide) throw new Error(`the document ${path} was not rendered`)
      return show(event, guide.title, path, guide.content)
    })
  }
  for (const published of documents) {
    app.get(`${published.path}/openapi.json`, (event) =>
      respondJson(event, 200, OPEN_TO_ALL, published.document),
    )
    app.get(published.path, (event) =>
      respondCompressed(event, 200, REFERENCE_HEADERS, HTML_TYPE, reference(published, frame, menu())),
    )
  }
}

function menuOf(documents: readonly PublishedDocument[], guides: Guides): Menu {
  const all = guides.all()
  return [
    { title: 'Interfaces', entries: [{ path: '/docs', title: 'All interfaces' }, ...documents] },
    { title: 'Guides', entries: all.filter(isForUsers) },
    {
      title: 'The project',
      entries: all.filter((guide) => !isForUsers(guide) && !guide.path.startsWith('/docs/decisions/')),
    },
  ]
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

function reference(published: PublishedDocument, frame: Frame, menu: Menu): string {
  const { path, title, summary } = published
  const { assets } = frame
  const head = html`<link rel="stylesheet" href="${assets.href('swagger-ui.css')}" />
    <link rel="service-desc" type="application/json" href="${path}/openapi.json" />
    <script src="${assets.href('swagger-ui-bundle.js')}" defer></script>
    <script src="${assets.href('reference.js')}" defer></script>`
  const content = html`<noscript
      ><h1>${title}</h1>
      <p>
        ${summary}. The whole description is in <a href="${path}/openapi.json">openapi.json</a>; this page
        renders it with a script.
      </p></noscript
    >
    <div id="reference" data-document="${path}/openapi.json"></div>`
  return layout(frame, { title, head, rooms: [], main: withMenu(menu, path, content) })
}
