import { requestId } from '../respond.ts'
import type { Log } from '../route.ts'
import { feedTabs } from './feed-panel.ts'
import { NOTHING, codeSpans, html } from './html.ts'
import type { Html } from './html.ts'
import { HTML_TYPE, PAGE_HEADERS, layout } from './layout.ts'
import type { Frame, PageContent, Panel, PanelRefusal, Preview, View } from './layout.ts'
import type { PageSources } from './page-sources.ts'
import type { MountPage } from './rendered-pages.ts'

/** A panel's content or refusal. */
interface Rendered {
  panel: Panel
  controls: Html
  content: Html
  status: number
  title?: string
  preview?: Preview
  headers?: Readonly<Record<string, string>>
  isRefused?: true
}

/** The rendered panels of a page. */
interface Sections {
  sections: readonly Html[]
  /** Title and preview of the lead panel's content; null if it has none. */
  title: string | null
  preview: Preview | null
}

/** What all pages of panels share. */
export interface PanelPages {
  mount: MountPage
  frame: Frame
  log: Log
}

/** A page of panels, which works without scripts. */
interface PanelPage {
  path: string
  /** In display order. */
  panels: readonly Panel[]
  /** The page has its status, unless another panel has a 4xx status; default: the first one. */
  lead?: Panel
  /** Query parameters that no panel has. */
  params?: readonly string[]
  /** False if no link repeats the query, which may then be longer. */
  linksRepeatQuery?: false
  /** Headers with the content security policy of the panels; default: without external sources. */
  headers?: Readonly<Record<string, string>>
  /** The parts of the page that differ from its sections under the title of its lead panel. */
  content?: (view: View, rendered: Sections) => Partial<PageContent>
}

/** Largest query that the links of a page repeat, in bytes; a page has about fifty such links. */
const LINK_QUERY_MAX_BYTES = 512

/** Mounts a page of panels, which are rendered concurrently. A panel that fails shows its public code in its section. */
export function mountPanels({ mount, frame, log }: PanelPages, page: PanelPage): void {
  const { path, panels, params = [], linksRepeatQuery = true, headers = PAGE_HEADERS, content } = page
  const { lead = panels[0] } = page
  mount({
    path,
    query: {
      known: [...new Set([...panels.flatMap((panel) => panel.params), ...params])],
      isDefault: (name, value, all) => panels.some((panel) => panel.isDefault?.(name, value, all)),
      ...(linksRepeatQuery && { linkQueryMaxBytes: LINK_QUERY_MAX_BYTES }),
    },
    async render(sources, query, event) {
      const view = { sources, now: sources.clock(), query }
      const redirect = await redirectAddress(panels, view)
      if (redirect !== null) return { status: 303, headers: { ...headers, location: redirect }, text: '' }
      const onFault = (panel: Panel, code: string, err: unknown): void =>
        log.error({ requestId: requestId(event.req.headers), code, panel: panel.id, err }, 'panel refused')
      const [itemChat, ...all] = await Promise.all([
        hasItemChat(sources),
        ...panels.map((panel) => renderPanel(panel, view, onFault)),
      ])
      const rendered = all.filter((each) => each !== null)
      const leading = rendered.find(({ panel }) => panel === lead)
      const { status = 200, headers: refusalHeaders } = firstClientError(rendered) ?? leading ?? {}
      const sections = rendered.map(sectionOf)
      const { title = null, preview = null } = leading ?? {}
      const text = layout(frame, {
        title: `${lead?.title} · dash`,
        head: html`${panels.map((panel) => panel.head?.(view) ?? NOTHING)}`,
        main: html`${sections}`,
        preview,
        itemChat,
        ...content?.(view, { sections, title, preview }),
      })
      return {
        status,
        headers: { ...headers, ...refusalHeaders, 'content-type': HTML_TYPE },
        text,
        isPartial: rendered.some(({ isRefused }) => isRefused),
      }
    },
  })
}

/** True if the chat answers about single items; false if that cannot be read. */
async function hasItemChat({ agent }: PageSources): Promise<boolean> {
  try {
    const { enabled, itemChat } = await agent.config()
    return enabled && itemChat
  } catch {
    return false
  }
}

async function renderPanel(
  panel: Panel,
  view: View,
  onFault: (panel: Panel, code: string, error: unknown) => void,
): Promise<Rendered | null> {
  const controls = panel.controls?.(view) ?? NOTHING
  try {
    const result = await panel.render(view)
    if (result === null) return null
    return { panel, controls, ...('status' in result ? result : { content: result, status: 200 }) }
  } catch (error) {
    const refusal = panel.refusalOf(error, view)
    const { status, headers = {}, expected = false } = refusal
    if (status >= 500 && !expected) onFault(panel, refusal.code, error)
    return { panel, controls, content: refusalNotice(refusal), status, headers, isRefused: true }
  }
}

function firstClientError(rendered: readonly Rendered[]): Rendered | undefined {
  return rendered.find(({ status }) => status >= 400 && status < 500)
}

function refusalNotice({ code, when, help = NOTHING }: PanelRefusal): Html {
  return html`<p class="refusal" role="alert">
      This section cannot be shown: <code>${code}</code>, ${codeSpans(when)}.
    </p>
    ${help}`
}

function sectionOf({ panel: { id, title, headingLevel = 2 }, controls, content }: Rendered): Html {
  const heading = `h${headingLevel}`
  return html`<section id="${id}" class="section" aria-labelledby="${id}-title">
    <${heading} id="${id}-title">${title}</${heading}>
    ${controls} ${content}
  </section>`
}

/** The URL to redirect to; null if there is none. An error here is ignored: rendering the panel throws it again. */
async function redirectAddress(panels: readonly Panel[], view: View): Promise<string | null> {
  for (const { redirect } of panels) {
    const address = await redirect?.(view).catch(() => null)
    if (address !== null && address !== undefined) return address
  }
  return null
}

/** Mounts `/`, with the tabs of the feed in its header. */
export function mountHome(pages: PanelPages, home: Pick<PanelPage, 'panels' | 'lead' | 'headers'>): void {
  mountPanels(pages, {
    path: '/',
    ...home,
    content: ({ query }, { sections, title }) => ({
      title: title === null ? 'dash' : `${title} · dash`,
      tabs: feedTabs(query),
      main: html`<h1 class="unseen">dash</h1>
        <div class="home">${sections} ${INTRODUCTION}</div>`,
    }),
  })
}

const INTRODUCTION = html`<p class="introduction">
  Trends of Hacker News, Lobsters and LessWrong, and the Top Year
  <a href="/?sort=year#feed">as it was on any day</a>.
</p>`
