import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { H3 } from 'h3'
import { html } from '../page/html.ts'
import type { Html } from '../page/html.ts'
import { HTML_TYPE, layout, PAGE_HEADERS } from '../page/layout.ts'
import { respondJson, respondText } from '../respond.ts'

/** One published interface: its page is at `path`, its OpenAPI document at `path/openapi.json`. */
export interface PublishedDocument {
  path: string
  title: string
  summary: string
  document: Record<string, unknown>
}

/** Files of the renderer that are served, with their types; nothing else of the package is. */
const RENDERER_FILES: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
}

const START_RENDERER = `const element = document.getElementById('reference')
SwaggerUIBundle({ url: element.dataset.document, domNode: element, validatorUrl: null, deepLinking: true,
  defaultModelsExpandDepth: 0, docExpansion: 'full' })
`

const OPEN_TO_ALL = { 'access-control-allow-origin': '*', 'cache-control': 'public, max-age=300' }

/** Mounts `/docs`, each interface's document and page, and the renderer's files. No outside host is involved. */
export function mountDocs(app: H3, documents: readonly PublishedDocument[], demo: boolean): void {
  app.get('/docs', (event) => respondText(event, 200, PAGE_HEADERS, HTML_TYPE, index(documents, demo)))
  for (const published of documents) {
    app.get(`${published.path}/openapi.json`, (event) =>
      respondJson(event, 200, OPEN_TO_ALL, published.document),
    )
    app.get(published.path, (event) =>
      respondText(event, 200, PAGE_HEADERS, HTML_TYPE, reference(published, demo)),
    )
  }
  app.get('/assets/reference.js', (event) =>
    respondText(event, 200, OPEN_TO_ALL, 'text/javascript; charset=utf-8', START_RENDERER),
  )
  const folder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
  for (const [name, type] of Object.entries(RENDERER_FILES)) {
    app.get(`/assets/${name}`, async (event) =>
      respondText(event, 200, OPEN_TO_ALL, type, await readFile(join(folder, name), 'utf8')),
    )
  }
}

function index(documents: readonly PublishedDocument[], demo: boolean): string {
  const list = documents.map(
    ({ path, title, summary }) =>
      html`<li><a href="${path}">${title}</a>: ${summary} (<a href="${path}/openapi.json">OpenAPI</a>)</li>`,
  )
  return layout(
    'Documentation',
    demo,
    html``,
    html`<main>
      <h1>Documentation</h1>
      <ul>
        ${list}
      </ul>
      <p><a href="/">Back to the dashboard</a></p>
    </main>`,
  )
}

function reference({ path, title, summary }: PublishedDocument, demo: boolean): string {
  const head: Html = html`<link rel="stylesheet" href="/assets/swagger-ui.css" />
    <link rel="service-desc" type="application/json" href="${path}/openapi.json" />
    <script src="/assets/swagger-ui-bundle.js" defer></script>
    <script src="/assets/reference.js" defer></script>`
  const content = html`<main>
    <p><a href="/docs">Documentation</a></p>
    <noscript
      ><h1>${title}</h1>
      <p>
        ${summary} The whole description is in <a href="${path}/openapi.json">openapi.json</a>; this page
        renders it with a script.
      </p></noscript
    >
    <div id="reference" data-document="${path}/openapi.json"></div>
  </main>`
  return layout(title, demo, head, content)
}
