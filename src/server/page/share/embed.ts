import { readFileSync } from 'node:fs'
import type { H3 } from 'h3'
import { publishedBody, respondPublished } from '../../respond.ts'
import type { Log } from '../../route.ts'
import { once } from '../../single-flight.ts'
import { chatPanel, challengeSources } from '../chat-panel.ts'
import { renderSections } from '../home.ts'
import { html } from '../html.ts'
import { HTML_TYPE, layout, pageHeaders } from '../layout.ts'
import type { Frame } from '../layout.ts'
import type { MountPage } from '../rendered-pages.ts'

interface EmbedPorts {
  frame: Frame
  /** URL of the script of the human challenge; null if there is none. */
  widgetUrl: string | null
  /** Origins whose pages may show the chat in a frame. */
  origins: readonly string[]
  log: Log
}

/** Colours of the frame; `auto` follows the browser. */
const THEMES = ['light', 'dark'] as const

const LOADER = new URL('../../../../assets/embed/chat.js', import.meta.url)

/**
 * Mounts `/embed/chat`, the chat for a frame on the pages of allowed origins, and `/embed/chat.js`, which puts a button
 * with that frame on such a page (docs/embedding.md).
 */
export function mountEmbed(app: H3, mount: MountPage, { frame, widgetUrl, origins, log }: EmbedPorts): void {
  const panel = chatPanel(frame.assets, widgetUrl, 'page')
  const ancestors = origins.length > 0 ? { 'frame-ancestors': origins } : {}
  const headers = pageHeaders({ ...challengeSources(widgetUrl), ...ancestors })
  mount({
    path: '/embed/chat',
    query: { known: ['theme'] },
    async render(sources, query, event) {
      const view = { sources, now: sources.clock(), query }
      const { sections, status } = await renderSections(event, [panel], panel, view, log)
      const theme = THEMES.find((each) => each === query.params.get('theme')) ?? 'auto'
      const head = html`<script type="module" src="${frame.assets.href('embedded.js')}"></script>`
      const text = layout(frame, { title: 'Chat · dash', head, main: html`${sections}`, embedded: theme })
      return { status, headers: { ...headers, 'content-type': HTML_TYPE }, text }
    },
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
