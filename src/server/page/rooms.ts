import type { H3Event } from 'h3'
import type { Log } from '../log.ts'
import { requestId } from '../respond.ts'
import { codeSpans, html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import type { Panel, PanelRefusal, View } from './panel.ts'

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
export interface Rooms {
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
export async function renderRooms(
  event: H3Event,
  panels: readonly Panel[],
  lead: Panel,
  view: View,
  log: Log,
): Promise<Rooms> {
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
