import { readFileSync } from 'node:fs'
import type { H3 } from 'h3'
import { once } from '../../domain/once.ts'
import { publishedBody, respondPublished } from '../respond.ts'
import { chatPanel, challengeSources } from './chat-panel.ts'
import { html } from './html.ts'
import { pageHeaders } from './layout.ts'
import { mountPanels } from './panel-pages.ts'
import type { PanelPages } from './panel-pages.ts'

/** Colours of the frame; `auto` follows the browser. */
const THEMES = ['light', 'dark'] as const

const LOADER = new URL('../../../assets/embed/chat.js', import.meta.url)

/**
 * Mounts `/embed/chat`, the chat for a frame on the pages of allowed origins, and `/embed/chat.js`, which puts a button
 * with that frame on such a page (docs/embedding.md).
 *
 * @param widgetUrl URL of the script of the human challenge; null if there is none
 * @param origins origins whose pages may show the chat in a frame
 */
export function mountEmbed(
  app: H3,
  pages: PanelPages,
  widgetUrl: string | null,
  origins: readonly string[],
): void {
  const { assets } = pages.frame
  const ancestors = origins.length > 0 ? { 'frame-ancestors': origins } : {}
  mountPanels(pages, {
    path: '/embed/chat',
    panels: [chatPanel(assets, widgetUrl, 'page')],
    params: ['theme'],
    linksRepeatQuery: false,
    headers: pageHeaders({ ...challengeSources(widgetUrl), ...ancestors }),
    content: ({ query }) => ({
      head: html`<script type="module" src="${assets.href('embedded.js')}"></script>`,
      embedded: THEMES.find((each) => each === query.params.get('theme')) ?? 'auto',
    }),
  })
  const loader = once(() =>
    publishedBody(readFileSync(LOADER), {
      contentType: 'text/javascript; charset=utf-8',
      cacheControl: 'public, max-age=300',
    }),
  )
  app.get('/embed/chat.js', (event) => respondPublished(event, LOADER_HEADERS, loader()))
}

const LOADER_HEADERS = {
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
}
