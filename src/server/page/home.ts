import type { H3Event } from 'h3'
import { requestId } from '../respond.ts'
import type { Log } from '../route.ts'
import { NOTHING, codeSpans, html } from './html.ts'
import type { Html } from './html.ts'
import { HTML_TYPE, layout } from './layout.ts'
import type { Frame, PageQuery, Panel, PanelRefusal, View } from './layout.ts'
import type { MountPage } from './rendered-pages.ts'
import type { Preview } from './share/preview.ts'

/** A panel's content or refusal. */
interface Rendered {
  panel: Panel
  controls: Html
  content: Html
  status: number
  title?: string
  preview?: Preview
  headers?: Readonly<Record<string, string>>
}

/** The sections of a page, and its status. */
export interface Sections {
  sections: readonly Html[]
  status: number
  /** Headers of the refusal that determines the status. */
  headers: Readonly<Record<string, string>>
  /** Title and preview of the lead panel's content; null if it has none. */
  title: string | null
  preview: Preview | null
}

/**
 * Renders the panels of a page concurrently. A panel that fails shows its public code in its section.
 *
 * @param lead the main panel: the page has its status, unless another panel has a 4xx status
 */
export async function renderSections(
  event: H3Event,
  panels: readonly Panel[],
  lead: Panel,
  view: View,
  log: Log,
): Promise<Sections> {
  const onFault = (panel: Panel, code: string, error: unknown): void =>
    log.error({ requestId: requestId(event.req.headers), code, panel: panel.id, err: error }, 'panel refused')
  const rendered = await Promise.all(panels.map((panel) => renderPanel(panel, view, onFault)))
  const leading = rendered.find(({ panel }) => panel === lead)
  const statusSource = firstClientError(rendered) ?? leading
  return {
    sections: rendered.map(sectionOf),
    status: statusSource?.status ?? 200,
    headers: statusSource?.headers ?? {},
    title: leading?.title ?? null,
    preview: leading?.preview ?? null,
  }
}

async function renderPanel(
  panel: Panel,
  view: View,
  onFault: (panel: Panel, code: string, error: unknown) => void,
): Promise<Rendered> {
  const controls = panel.controls?.(view) ?? NOTHING
  try {
    const result = await panel.render(view)
    return { panel, controls, ...('status' in result ? result : { content: result, status: 200 }) }
  } catch (error) {
    const refusal = panel.refusalOf(error, view)
    const { status, headers = {}, expected = false } = refusal
    if (status >= 500 && !expected) onFault(panel, refusal.code, error)
    return { panel, controls, content: refusalNotice(refusal), status, headers }
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
    <${heading} id="${id}-title" tabindex="-1">${title}</${heading}>
    ${controls} ${content}
  </section>`
}

export interface HomePorts {
  frame: Frame
  /** In display order. */
  panels: readonly Panel[]
  /** The main one of the panels: the page has its status. */
  lead: Panel
  /** Makes the tabs of the header, which keep the state of the panels. */
  tabs: (query: PageQuery) => Html
  /** Headers with the content security policy of the panels. */
  headers: Readonly<Record<string, string>>
  log: Log
}

/** Largest query that the links of a page repeat, in bytes; a page has about fifty such links. */
const LINK_QUERY_MAX_BYTES = 512

/** Mounts `/` with all panels. The page works without scripts. */
export function mountHome(mount: MountPage, { frame, panels, lead, tabs, headers, log }: HomePorts): void {
  mount({
    path: '/',
    query: {
      known: panels.flatMap(({ params }) => params),
      isDefault: (name, value, params) => panels.some((panel) => panel.isDefault?.(name, value, params)),
      linkQueryMaxBytes: LINK_QUERY_MAX_BYTES,
    },
    async render(sources, query, event) {
      const view = { sources, now: sources.clock(), query }
      const redirect = await redirectAddress(panels, view)
      if (redirect !== null) return { status: 303, headers: { ...headers, location: redirect }, text: '' }
      const { sections, status, title, preview } = await renderSections(event, panels, lead, view, log)
      const main = html`<h1 class="unseen">dash</h1>
        <div class="home">${sections} ${INTRODUCTION}</div>`
      const name = title === null ? 'dash' : `${title} · dash`
      const head = html`${panels.map((panel) => panel.head?.(view) ?? NOTHING)}`
      const text = layout(frame, { title: name, head, tabs: tabs(query), main, preview })
      return { status, headers: { ...headers, 'content-type': HTML_TYPE }, text }
    },
  })
}

const INTRODUCTION = html`<p class="introduction">
  Trends of Hacker News, Lobsters and LessWrong, and the Top Year
  <a href="/?sort=year#feed">as it was on any day</a>.
</p>`

/** The URL to redirect to; null if there is none. An error here is ignored: rendering the panel throws it again. */
async function redirectAddress(panels: readonly Panel[], view: View): Promise<string | null> {
  for (const { redirect } of panels) {
    const address = await redirect?.(view).catch(() => null)
    if (address !== null && address !== undefined) return address
  }
  return null
}

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
      const head = panel.head?.(view) ?? NOTHING
      const text = layout(frame, { title: `${panel.title} · dash`, head, main: html`${sections}` })
      return { status, headers: { ...headers, ...ownHeaders, 'content-type': HTML_TYPE }, text }
    },
  })
}
