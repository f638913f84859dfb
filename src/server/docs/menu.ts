import { html, NOTHING } from '../page/html.ts'
import type { Html } from '../page/html.ts'

/** One entry of the menu of all documents. */
export interface MenuEntry {
  path: string
  title: string
}

/** The menu of all documents, by group. */
export type Menu = readonly { title: string; entries: readonly MenuEntry[] }[]

/** A page of the documentation: its content, and the menu of all documents beside or below it. */
export function withMenu(menu: Menu, current: string, content: Html): Html {
  return html`<p class="to-menu"><a href="#menu">All documents</a></p>
    <div class="documents">
      <article class="document">${content}</article>
      <nav id="menu" aria-label="Documents" tabindex="-1">
        ${menu.map(
          ({ title, entries }) =>
            html`<p class="group">${title}</p>
              <ul>
                ${entries.map((entry) => menuItem(entry, current))}
              </ul>`,
        )}
      </nav>
    </div>`
}

function menuItem({ path, title }: MenuEntry, current: string): Html {
  return html`<li>
    <a href="${path}" ${path === current ? html`aria-current="page"` : NOTHING}>${title}</a>
  </li>`
}
