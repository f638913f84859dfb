import type { H3 } from 'h3'
import type { Clock } from '../../domain/ports.ts'
import type { Log } from '../log.ts'
import { respondCompressed } from '../compression.ts'
import { respond } from '../respond.ts'
import { HTML_TYPE } from './headers.ts'
import { html } from './html.ts'
import { layout } from './layout.ts'
import type { Frame } from './layout.ts'
import { pageQuery } from './page-query.ts'
import type { Panel, View } from './panel.ts'
import { renderRooms } from './rooms.ts'

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

/** Mounts `/`: every panel, each read on its own. Works without scripts. */
export function mountHome(app: H3, { frame, panels, lead, headers, clock, log }: HomePorts): void {
  const known = panels.flatMap(({ params }) => params)
  const rooms = panels.map(({ id, title }) => ({ href: `#${id}`, title }))
  app.get('/', async (event) => {
    const view = { now: clock(), query: pageQuery(event.url.searchParams, known) }
    const forwarded = await addressInstead(panels, view)
    if (forwarded !== null) return respond(event, 303, { ...headers, location: forwarded }, null)
    const { sections, status, title } = await renderRooms(event, panels, lead, view, log)
    const main = html`<h1>dash</h1>
      ${INTRODUCTION} ${sections}`
    const name = title === null ? 'dash' : `${title} · dash`
    const page = layout(frame, { title: name, head: FEED_LINKS, rooms, main })
    return respondCompressed(event, status, headers, HTML_TYPE, page)
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
