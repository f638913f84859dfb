import { html } from './html.ts'
import type { Html } from './html.ts'

/** Said wherever a person looks while the server runs on the bundled sample. */
const DEMO_NOTICE =
  'DEMO: a bundled sample of real items from 2020-2021, shifted in time, most of them placed on the day they were published. Nothing here is current, and it is deleted when the server stops.'

/** Same-origin only; the documentation's renderer styles its elements inline. */
export const PAGE_HEADERS = {
  'cache-control': 'no-cache',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

export const HTML_TYPE = 'text/html; charset=utf-8'

/** A whole page around its content. */
export function layout(title: string, demo: boolean, head: Html, content: Html): string {
  const name = demo ? `DEMO: ${title}` : title
  const notice = demo ? html`<p class="demo" role="note">${DEMO_NOTICE}</p>` : html``
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${name}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="/assets/page.css" />
        ${head}
      </head>
      <body>
        ${notice} ${content}
      </body>
    </html> `.html
}
