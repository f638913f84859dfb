import type { H3 } from 'h3'
import { respondCompressed } from '../compression.ts'
import { html, NOTHING } from '../page/html.ts'
import { HTML_TYPE, PAGE_HEADERS, pageHeaders } from '../page/headers.ts'
import { layout } from '../page/layout.ts'
import type { Frame } from '../page/layout.ts'
import { respondJson } from '../respond.ts'

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

/** Mounts `/docs`, and each interface's document and page. No outside host is involved. */
export function mountDocs(app: H3, documents: readonly PublishedDocument[], frame: Frame): void {
  app.get('/docs', (event) => respondCompressed(event, 200, PAGE_HEADERS, HTML_TYPE, index(documents, frame)))
  for (const published of documents) {
    app.get(`${published.path}/openapi.json`, (event) =>
      respondJson(event, 200, OPEN_TO_ALL, published.document),
    )
    app.get(published.path, (event) =>
      respondCompressed(event, 200, REFERENCE_HEADERS, HTML_TYPE, reference(published, frame)),
    )
  }
}

function index(documents: readonly PublishedDocument[], frame: Frame): string {
  const list = documents.map(
    ({ path, title, summary }) =>
      html`<li><a href="${path}">${title}</a>: ${summary} (<a href="${path}/openapi.json">OpenAPI</a>)</li>`,
  )
  const main = html`<h1>Documentation</h1>
    <ul>
      ${list}
    </ul>`
  return layout(frame, { title: 'Documentation', head: NOTHING, rooms: [], main })
}

function reference({ path, title, summary }: PublishedDocument, frame: Frame): string {
  const { assets } = frame
  const head = html`<link rel="stylesheet" href="${assets.href('swagger-ui.css')}" />
    <link rel="service-desc" type="application/json" href="${path}/openapi.json" />
    <script src="${assets.href('swagger-ui-bundle.js')}" defer></script>
    <script src="${assets.href('reference.js')}" defer></script>`
  const main = html`<p><a href="/docs">Documentation</a></p>
    <noscript
      ><h1>${title}</h1>
      <p>
        ${summary}. The whole description is in <a href="${path}/openapi.json">openapi.json</a>; this page
        renders it with a script.
      </p></noscript
    >
    <div id="reference" data-document="${path}/openapi.json"></div>`
  return layout(frame, { title, head, rooms: [], main })
}
