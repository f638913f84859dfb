import type { H3 } from 'h3'
import type { Clock } from '../../domain/ports.ts'
import type { Log } from '../log.ts'
import { respondCompressed } from '../compression.ts'
import { requestId } from '../respond.ts'
import { HTML_TYPE } from './headers.ts'
import { codeSpans, html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import { layout } from './layout.ts'
import type { Frame } from './layout.ts'
import { pageQuery } from './page-query.ts'
import type { Panel, PanelRefusal, View } from './panel.ts'

export interface HomePorts {
  frame: Frame
  /** In the order in which they stand. */
  panels: readonly Panel[]
  /** The panel a visitor came for, one of them: the page answers with its status. */
  lead: Panel
  /** With the policy of what the panels need. */
  headers: Readonly<Record<string, string>>
  clock: Clock
  log: Log
}

/** A panel's content, or why it has none. */
interface Rendered {
  panel: Panel
  controls: Html
  content: Html
  refusal: PanelRefusal | null
}

/** Mounts `/`: every panel, each read on its own. Works without scripts. */
export function mountHome(app: H3, { frame, panels, lead, headers, clock, log }: HomePorts): void {
  const known = panels.flatMap(({ params }) => params)
  const rooms = panels.map(({ id, title }) => ({ href: `#${id}`, title }))
  app.get('/', async (event) => {
    const view = { now: clock(), query: pageQuery(event.url.searchParams, known) }
    const rendered = await Promise.all(
      panels.map((panel) =>
        renderPanel(panel, view, (code, error) =>
          log.error(
            { requestId: requestId(event.req.headers), code, panel: panel.id, err: error },
            'panel refused',
          ),
        ),
      ),
    )
    const main = html`<h1>dash</h1>
      ${INTRODUCTION} ${rendered.map(sectionOf)}`
    const page = layout(frame, { title: 'dash', head: FEED_LINKS, rooms, main })
    return respondCompressed(event, statusOf(rendered, lead), headers, HTML_TYPE, page)
  })
}

const INTRODUCTION = html`<p class="introduction">
  What trends on Hacker News, Lobsters, LessWrong and the hype providers, and the Top Year: published once a
  day, never changed, and provable.
</p>`

/** By which feed readers find what to subscribe to. */
const FEED_LINKS = html`<link rel="alternate" type="application/rss+xml" title="dash (RSS)" href="/api/rss" />
  <link rel="alternate" type="application/atom+xml" title="dash (Atom)" href="/api/atom" />
  <link rel="alternate" type="application/feed+json" title="dash (JSON Feed)" href="/api/feed.json" />`

async function renderPanel(
  panel: Panel,
  view: View,
  onFault: (code: string, error: unknown) => void,
): Promise<Rendered> {
  const controls = panel.controls?.(view) ?? NOTHING
  try {
    return { panel, controls, content: await panel.render(view), refusal: null }
  } catch (error) {
    const refusal = panel.refusalOf(error, view)
    if (refusal.status >= 500) onFault(refusal.code, error)
    return { panel, controls, content: refusalNotice(refusal), refusal }
  }
}

/** A question that cannot be asked is refused as a whole; else the page answers as its leading panel does. */
function statusOf(rendered: readonly Rendered[], lead: Panel): number {
  const misasked = rendered.find(({ refusal }) => refusal !== null && refusal.status < 500)
  const leading = rendered.find(({ panel }) => panel === lead)
  return misasked?.refusal?.status ?? leading?.refusal?.status ?? 200
}

function refusalNotice({ code, when }: PanelRefusal): Html {
  return html`<p class="refusal" role="alert">
    This cannot be shown: <code>${code}</code>, ${codeSpans(when)}. Nothing else is shown in its place.
  </p>`
}

function sectionOf({ panel: { id, title }, controls, content }: Rendered): Html {
  return html`<section id="${id}" class="room" aria-labelledby="${id}-title">
    <h2 id="${id}-title" tabindex="-1">${title}</h2>
    ${controls} ${content}
  </section>`
}
