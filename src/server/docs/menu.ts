import { NOTHING, html } from '../page/html.ts'
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

/** A group of the menu, with its pages in reading order. */
interface PageGroup {
  title: string
  /** Paths below `/docs/`. */
  pages: readonly string[]
}

/** The menu: pages for newcomers first, pages for contributors last. */
export const MENU_GROUPS: readonly PageGroup[] = [
  {
    title: 'Start',
    pages: ['readme', 'quick-start', 'tour', 'faq', 'commands', 'configuration', 'glossary'],
  },
  { title: 'Use', pages: ['page', 'api', 'free-models', 'chat', 'agent-chat', 'embedding', 'v1', 'mcp'] },
  {
    title: 'Operation',
    pages: ['deployment', 'operations', 'monitoring', 'backup', 'security', 'troubleshooting', 'errors'],
  },
  { title: 'Proof', pages: ['proof', 'auditing', 'publishing', 'signed-log', 'static-hosting', 'ranking'] },
  { title: 'Data', pages: ['collecting', 'importing', 'articles'] },
  {
    title: 'Internals',
    pages: ['architecture', 'model-scores', 'lite-suite', 'model-errors', 'agent-tools', 'evidence'],
  },
  {
    title: 'Project',
    pages: ['decisions', 'benchmarks', 'contributing', 'changelog', 'demo-sources'],
  },
]

/**
 * Groups pages in the menu's order; pages without a group come last. Pages of single decisions are omitted: their list
 * links to them.
 */
export function groupsOf<Page extends MenuEntry>(
  pages: readonly Page[],
): { title: string; entries: readonly Page[] }[] {
  const groups = MENU_GROUPS.map(({ title, pages: names }) => ({
    title,
    entries: names.flatMap((name) => pages.filter(({ path }) => path === `/docs/${name}`)),
  }))
  const named = new Set(MENU_GROUPS.flatMap(({ pages: names }) => names.map((name) => `/docs/${name}`)))
  const rest = pages.filter(({ path }) => !named.has(path) && !path.startsWith('/docs/decisions/'))
  return [...groups, { title: 'More', entries: rest }].filter(({ entries }) => entries.length > 0)
}
