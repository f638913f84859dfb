import type { Log } from '../log.ts'
import { HTML_TYPE } from './headers.ts'
import { html } from './html.ts'
import { layout } from './layout.ts'
import type { Frame } from './layout.ts'
import type { PageSources } from './page-sources.ts'
import type { Panel, View } from './panel.ts'
import type { MountPage } from './rendered-pages.ts'
import { renderRooms } from './rooms.ts'

/** The panels of a page, in the order in which they stand. */
export interface HomePanels {
  panels: readonly Panel[]
  /** The panel a visitor came for, one of them: the page answers with its status. */
  lead: Panel
}

/** What panels of `/` read; the search is not among it. */
export type HomeSources = Omit<PageSources, 'search'>

export interface HomePorts {
  frame: Frame
  /** Panels that read from the given sources alone; the sources of the server itself tell what panels there are. */
  panelsOf: (sources: HomeSources) => HomePanels
  sources: HomeSources
  /** With the policy of what the panels need. */
  headers: Readonly<Record<string, string>>
  log: Log
}

/** Most bytes of a query that some fifty links of the page repeat. */
const CARRIED_MAX = 512

/** Mounts `/`: every panel, each read on its own. Works without scripts. */
export function mountHome(mount: MountPage, { frame, panelsOf, sources, headers, log }: HomePorts): void {
  const { panels: all } = panelsOf(sources)
  const rooms = all.map(({ id, title }) => ({ href: `#${id}`, title }))
  mount({
    path: '/',
    query: {
      known: all.flatMap(({ params }) => params),
      isDefault: (name, value, params) => all.some((panel) => panel.isDefault?.(name, value, params)),
      carriedMax: CARRIED_MAX,
    },
    async render(recorded, query, event) {
      const { panels, lead } = panelsOf(recorded)
      const view = { now: recorded.clock(), query }
      const forwarded = await addressInstead(panels, view)
      if (forwarded !== null) return { status: 303, headers: { ...headers, location: forwarded }, text: '' }
      const { sections, status, title } = await renderRooms(event, panels, lead, view, log)
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
