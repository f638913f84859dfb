import type { Assets } from './assets.ts'
import { html, NOTHING } from './html.ts'
import type { Html } from './html.ts'

/** Said wherever a person looks while the server runs on the bundled sample. */
const DEMO_NOTICE =
  'DEMO: a bundled sample of real items from 2020-2021, shifted in time, most of them placed on the day they were published. Nothing here is current, and it is deleted when the server stops.'

/** What every page of a server has in common. */
export interface Frame {
  assets: Assets
  demo: boolean
}

/** One page inside the frame. */
export interface PageContent {
  title: string
  /** Further elements of the head. */
  head: Html
  /** Links of the menu beside the documentation. */
  rooms: readonly { href: string; title: string }[]
  /** Content of `<main>`. */
  main: Html
}

/** A whole page around its content: skip link, header with menu and switch of colours, notice, landmarks. */
export function layout({ assets, demo }: Frame, { title, head, rooms, main }: PageContent): string {
  const name = demo ? `DEMO: ${title}` : title
  const links = [...rooms, { href: '/docs', title: 'Documentation' }]
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${name}</title>
        <link rel="icon" type="image/svg+xml" href="${assets.href('icon.svg')}" />
        <link rel="stylesheet" href="${assets.href('page.css')}" />
        <script src="${assets.href('theme.js')}"></script>
        <script type="module" src="${assets.href('page.js')}"></script>
        ${head}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header>
          <div class="top">
            <a class="brand" href="/">dash</a>
            <nav aria-label="Rooms">
              <ul>
                ${links.map((link) => html`<li><a href="${link.href}">${link.title}</a></li>`)}
              </ul>
            </nav>
            ${THEME_SWITCH}
          </div>
          ${demo ? html`<p class="demo" role="note">${DEMO_NOTICE}</p>` : NOTHING}
        </header>
        <main id="main" tabindex="-1">${main}</main>
        <p id="announcements" class="unseen" role="status"></p>
      </body>
    </html> `.html
}

/** Works by style alone; a script only remembers it. */
const THEME_SWITCH = html`<fieldset class="theme">
  <legend class="unseen">Colours</legend>
  ${(['auto', 'light', 'dark'] as const).map(
    (theme) =>
      html`<label
        ><input
          type="radio"
          name="theme"
          id="theme-${theme}"
          value="${theme}"
          ${theme === 'auto' ? html`checked` : NOTHING}
        /><span>${theme}</span></label
      >`,
  )}
</fieldset>`
