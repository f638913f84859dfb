import type { Log } from '../route.ts'
import { LINK_QUERY_MAX_BYTES, renderSections } from './home.ts'
import { NOTHING, html } from './html.ts'
import { HTML_TYPE, layout } from './layout.ts'
import type { Frame, Panel } from './layout.ts'
import type { MountPage } from './rendered-pages.ts'

export interface PanelPagePorts {
  frame: Frame
  /** Headers with the content security policy of the panel. */
  headers: Readonly<Record<string, string>>
  log: Log
}

/** Mounts a page of one panel, with the panel's status and parameters. */
export function mountPanelPage(
  mount: MountPage,
  path: string,
  panel: Panel,
  { frame, headers, log }: PanelPagePorts,
): void {
  mount({
    path,
    query: { known: panel.params, linkQueryMaxBytes: LINK_QUERY_MAX_BYTES },
    async render(sources, query, event) {
      const view = { sources, now: sources.clock(), query }
      const { sections, status, headers: ownHeaders } = await renderSections(event, [panel], panel, view, log)
      const text = layout(frame, { title: `${panel.title} · dash`, head: NOTHING, main: html`${sections}` })
      return { status, headers: { ...headers, ...ownHeaders, 'content-type': HTML_TYPE }, text }
    },
  })
}
