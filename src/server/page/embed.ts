import { readFileSync } from 'node:fs'
import type { H3 } from 'h3'
import { once } from '../../domain/once.ts'
import { publishedBody, respondPublished } from '../respond.ts'
import { chatHeaders, chatSection } from './chat-panel.ts'
import { html } from './html.ts'
import type { Frame } from './layout.ts'
import type { MountPage } from './rendered-pages.ts'
import { mountSections } from './sections.ts'

/** Colours of the frame; `auto` follows the browser. */
const THEMES = ['light', 'dark'] as const

const LOADER = new URL('../../../assets/embed/chat.js', import.meta.url)

/**
 * Mounts `/embed/chat`, the chat for a frame on the pages of allowed origins, and `/embed/chat.js`, which puts a button
 * with that frame on such a page (docs/embedding.md).
 *
 * @param origins origins whose pages may show the chat in a frame
 */
export function mountEmbed(app: H3, mount: MountPage, frame: Frame, origins: readonly string[]): void {
  mountSections(mount, {
    path: '/embed/chat',
    headers: chatHeaders(frame, origins.length > 0 ? { 'frame-ancestors': origins } : {}),
    query: { known: ['key', 'theme'], linksRepeatQuery: false },
    render: async (view) => ({
      title: 'Chat · dash',
      sections: [await chatSection(view)],
      head: html`<script type="module" src="${frame.assets.href('embedded.js')}"></script>`,
      embedded: THEMES.find((each) => each === view.query.params.get('theme')) ?? 'auto',
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
