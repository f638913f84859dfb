import type { H3Event } from 'h3'
import { requestId } from '../respond.ts'
import type { Log } from '../route.ts'
import { NOTHING, codeSpans, html } from './html.ts'
import type { Html } from './html.ts'
import { HTML_TYPE, layout } from './layout.ts'
import type { Frame, Panel, PanelRefusal, View } from './layout.ts'
import type { MountPage } from './rendered-pages.ts'

/** A panel's content, or why it has none. */
interface Rendered {
  panel: Panel
  controls: Html
  content: Html
  status: number
  title?: string
  headers?: Readonly<Record<string, string>>
}

/** The rooms of a page, and the status it answers with. */
export interface Sections {
  sections: readonly Html[]
  status: number
  /** Headers of the refusal that the status is of. */
  headers: Readonly<Record<string, string>>
  /** What the leading room shows; null where it does not say. */
  title: string | null
}

/**
 * Renders the panels of a page at once, each on its own: one that fails says its public code where it stands.
 *
 * @param lead the panel a visitor came for: the page answers with its status, unless a question cannot be asked at all
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
  const decisive = misasked(rendered) ?? leading
  return {
    sections: rendered.map(sectionOf),
    status: decisive?.status ?? 200,
    headers: decisive?.headers ?? {},
    title: leading?.title ?? null,
  }
}

async function renderPanel(
  panel: Panel,
  view: View,
  onFault: (panel: Panel, code: string, error: unknown) => void,
): Promise<Rendered> {
  const controls = panel.controls?.(view) ?? NOTHING
  try {
    const answer = await panel.render(view)
    return { panel, controls, ...('status' in answer ? answer : { content: answer, status: 200 }) }
  } catch (error) {
    const refusal = panel.refusalOf(error, view)
    const { status, headers = {}, expected = false } = refusal
    if (status >= 500 && !expected) onFault(panel, refusal.code, error)
    return { panel, controls, content: refusalNotice(refusal), status, headers }
  }
}

function misasked(rendered: readonly Rendered[]): Rendered | undefined {
  return rendered.find(({ status }) => status >= 400 && status < 500)
}

function refusalNotice({ code, when, help = NOTHING }: PanelRefusal): Html {
  return html`<p class="refusal" role="alert">
      This cannot be shown: <code>${code}</code>, ${codeSpans(when)}. Nothing else is shown in its place.
    </p>
    ${help}`
}

function sectionOf({ panel: { id, title }, controls, content }: Rendered): Html {
  return html`<section id="${id}" class="room" aria-labelledby="${id}-title">
    <h2 id="${id}-title" tabindex="-1">${title}</h2>
    ${controls} ${content}
  </section>`
}

export interface HomePorts {
  frame: Frame
  /** In the order in which they stand. */
  panels: readonly Panel[]
  /** The panel a visitor came for, one of them: the page answers with its status. */
  lead: Panel
  /** With the policy of what the panels need. */
  headers: Readonly<Record<string, string>>
  log: Log
}

/** Most bytes of a query that some fifty links of the page repeat. */
const CARRIED_MAX = 512

/** Mounts `/`: every panel, each read on its own. Works without scripts. */
export function mountHome(mount: MountPage, { frame, panels, lead, headers, log }: HomePorts): void {
  const rooms = panels.map(({ id, title }) => ({ href: `#${id}`, title }))
  mount({
    path: '/',
    query: {
      known: panels.flatMap(({ params }) => params),
      isDefault: (name, value, params) => panels.some((panel) => panel.isDefault?.(name, value, params)),
      carriedMax: CARRIED_MAX,
    },
    async render(sources, query, event) {
      const view = { sources, now: sources.clock(), query }
      const forwarded = await addressInstead(panels, view)
      if (forwarded !== null) return { status: 303, headers: { ...headers, location: forwarded }, text: '' }
      const { sections, status, title } = await renderSections(event, panels, lead, view, log)
      const main = html`<h1>dash</h1>
        ${INTRODUCTION} ${sections}`
      const name = title === null ? 'dash' : `${title} · dash`
      const text = layout(frame, { title: name, head: FEED_LINKS, rooms, main })
      return { status, headers: { ...headers, 'content-type': HTML_TYPE }, text }
    },
  })
}

const INTRODUCTION = html`<p class="introduction">
  What trends on Hacker News, Lobsters, LessWrong and the hype providers, and the Top Year: published once a
  day, never changed, provable, and shown <a href="/?sort=year#feed">as it was on any day</a>.
</p>`

/** By which feed readers find what to subscribe to. */
const FEED_LINKS = html`<link rel="alternate" type="application/rss+xml" title="dash (RSS)" href="/api/rss" />
  <link rel="alternate" type="application/atom+xml" title="dash (Atom)" href="/api/atom" />
  <link rel="alternate" type="application/feed+json" title="dash (JSON Feed)" href="/api/feed.json" />`

/** Where the question is really asked; what goes wrong on the way there is told by the panel, which fails likewise. */
async function addressInstead(panels: readonly Panel[], view: View): Promise<string | null> {
  for (const { forward } of panels) {
    const address = await forward?.(view).catch(() => null)
    if (address !== null && address !== undefined) return address
  }
  return null
}
