import { readFileSync } from 'node:fs'
import type { H3 } from 'h3'
import { INTERESTS_MAX, PRE_PROMPT_MAX_LENGTH } from '../../domain/agent/bounds.ts'
import { TONES } from '../../domain/agent/chat-request.ts'
import type { LANGUAGES } from '../../domain/agent/chat-request.ts'
import { parseKey } from '../../domain/feed/search/search.ts'
import type { ItemTrend } from '../../domain/feed/search/search.ts'
import { once } from '../../domain/once.ts'
import { AGENT_DOCS, configContract } from '../agent/contracts.ts'
import { trendContract } from '../feed/search-routes.ts'
import { publishedBody, respondPublished } from '../respond.ts'
import { CHAT_PATH, pageHeaders } from './layout.ts'
import { html, NOTHING, selectField } from './html.ts'
import type { Html } from './html.ts'
import type { Frame, PolicyAdditions } from './layout.ts'
import type { View, MountPage } from './rendered-pages.ts'
import { refusalsOf, section, mountSections } from './sections.ts'
import type { Section, SectionPage } from './sections.ts'

/** Headers of a page with the chat, whose policy allows the script of the human challenge. */
export function chatHeaders(
  { widgetUrl }: Frame,
  additions: PolicyAdditions = {},
): Readonly<Record<string, string>> {
  if (widgetUrl === null) return pageHeaders(additions)
  const { origin } = new URL(widgetUrl)
  return pageHeaders({ 'script-src': [origin], 'frame-src': [origin], ...additions })
}

export const chatPage = (frame: Frame): SectionPage => ({
  path: CHAT_PATH,
  headers: chatHeaders(frame),
  query: { known: ['key'] },
  render: async (view) => ({ title: 'Chat · dash', sections: [await chatSection(view)] }),
})

/** The section of the chat, open from the start, and instructions for use without scripts (docs/page.md). */
function chatSection(view: View): Promise<Section | null> {
  return section(view, { id: 'chat', title: 'Chat', headingLevel: 1, refusalOf }, async () => {
    const { enabled, model, itemChat } = await view.sources.agent.config()
    // As the chat itself ignores the item.
    const item =
      itemChat && view.query.params.has('key')
        ? await view.sources.search.itemTrend(parseKey(view.query.params))
        : null
    if (!enabled) return CHAT_OFF
    return html`${chatStyles(view.frame)}
      <p>
        Ask about what is stored here, in your own words. Answers are written by
        ${model === '' ? html`a language model` : html`the model <code>${model}</code>`} and may be wrong.
      </p>
      <noscript>
        <p class="notice">
          The chat on this page needs JavaScript. Without it, run <code>dash chat --url</code> with the
          address of this server in a terminal, or use <a href="${AGENT_DOCS}">the API</a>.
        </p>
      </noscript>
      <p class="needs-script">
        <button type="button" data-chat="open">Open the chat</button>
      </p>
      ${sheet(item, view.frame.widgetUrl, true)}`
  })
}

/** The chat as a sheet beside or over a page, which a script opens; it reads the configuration of the chat then. */
export function chatSheet(frame: Frame): Html {
  return html`${chatStyles(frame)} ${sheet(null, frame.widgetUrl, false)}`
}

function chatStyles({ assets }: Frame): Html {
  return html`<link rel="stylesheet" href="${assets.href('chat.css')}" />`
}

const refusalOf = refusalsOf({
  ...configContract,
  refusals: { ...trendContract.refusals, ...configContract.refusals },
})

const CHAT_OFF = html`<p class="notice">The chat of this server is off or not set up.</p>`

/** Questions that the tools can answer on any archive. */
const SUGGESTIONS = [
  'What are people talking about today?',
  'What is at the top of the year?',
  'How often is Rust mentioned?',
  'Which free model should I use?',
]

function sheet(item: ItemTrend | null, widgetUrl: string | null, isPage: boolean): Html {
  return html`<dialog
    id="chat-sheet"
    class="chat${isPage ? ' inside' : ''}"
    aria-labelledby="${isPage ? 'chat-title' : 'chat-sheet-title'}"
    ${item === null ? NOTHING : html`data-key="${item.key}" data-title="${item.title}"`}
    ${widgetUrl === null ? NOTHING : html`data-widget="${widgetUrl}"`}
  >
    <header>
      ${isPage ? NOTHING : html`<h2 id="chat-sheet-title">Chat</h2>`}
      <button type="button" data-chat="new">New conversation</button>
      <button type="button" data-chat="close">Close</button>
    </header>
    <p class="chat-scope" id="chat-scope">
      <span>About <bdi>this site</bdi></span>
      <button type="button" data-chat="site" hidden>Whole site</button>
    </p>
    <div class="chat-log" id="chat-log" role="log" aria-label="Conversation" tabindex="0"></div>
    <ul class="chat-suggestions" id="chat-suggestions" aria-label="Questions to begin with">
      ${SUGGESTIONS.map((text) => html`<li><button type="button" data-question>${text}</button></li>`)}
    </ul>
    <div class="chat-human" id="chat-human" role="group" aria-label="Human verification" hidden></div>
    <p class="chat-status" id="chat-status" role="status"></p>
    <p class="chat-note" id="chat-note" hidden></p>
    <form class="chat-form" id="chat-form">
      <label class="unseen" for="chat-text">Message</label>
      <textarea
        id="chat-text"
        dir="auto"
        rows="2"
        placeholder="Ask something"
        aria-describedby="chat-keys"
        enterkeyhint="send"
      ></textarea>
      <button type="submit" data-chat="send">Send</button>
      <button type="button" data-chat="stop" hidden>Stop</button>
    </form>
    <p class="chat-keys" id="chat-keys">Enter sends, Shift+Enter adds a line, Escape stops</p>
    <p class="chat-quota" id="chat-quota"></p>
    ${SETTINGS}
  </dialog>`
}

const LANGUAGE_TITLES: Readonly<Record<(typeof LANGUAGES)[number], string>> = {
  auto: 'that of the question',
  en: 'English',
  ru: 'Russian',
}

const SETTINGS = html`<details class="chat-settings">
  <summary>Settings</summary>
  <form id="chat-settings">
    ${selectField('Language of answers', 'preferredLanguage', Object.entries(LANGUAGE_TITLES))}
    ${selectField(
      'Tone',
      'tone',
      TONES.map((tone) => [tone, tone]),
    )}
    <label
      >About you
      <textarea name="prePrompt" rows="2" maxlength="${PRE_PROMPT_MAX_LENGTH}"></textarea>
    </label>
    <label
      >Interests, at most ${INTERESTS_MAX}, comma-separated
      <input name="interests" type="text" autocomplete="off"
    /></label>
    <p>
      Stored only in this browser and sent with each question.
      <button type="reset">Clear</button>
    </p>
  </form>
</details>`

/** Colours of the frame; `auto` follows the browser. */
const THEMES = ['light', 'dark'] as const

const LOADER = new URL('../../../assets/embed/chat.js', import.meta.url)

/**
 * Mounts `/embed/chat`, the chat for a frame on the pages of allowed origins, and `/embed/chat.js`, which puts a button
 * with that frame on such a page (docs/embedding.md).
 */
export function mountEmbed(app: H3, mount: MountPage, frame: Frame, origins: readonly string[]): void {
  mountSections(mount, {
    path: '/embed/chat',
    headers: chatHeaders(frame, origins.length > 0 ? { 'frame-ancestors': origins } : {}),
    query: { known: ['key', 'theme'] },
    render: async (view) => ({
      title: 'Chat · dash',
      sections: [await chatSection(view)],
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
