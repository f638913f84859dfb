import type { Log } from '../log.ts'
import { HTML_TYPE, PAGE_HEADERS } from './headers.ts'
import { html } from './html.ts'
import { ITEM_PATH } from './item-address.ts'
import { itemPanel } from './item-panel.ts'
import { layout } from './layout.ts'
import type { Frame } from './layout.ts'
import type { MountPage } from './rendered-pages.ts'
import { renderRooms } from './rooms.ts'
import { keptRanks, yearRanksPanel } from './year-ranks-panel.ts'

/** Mounts `/item?key=…`: the rank of an item over time, as tables that a script draws (docs/page.md). */
export function mountItemPage(mount: MountPage, frame: Frame, log: Log): void {
  const kept = keptRanks()
  mount({
    path: ITEM_PATH,
    query: { known: ['key', 'at'] },
    async render({ search, publications, clock }, query, event) {
      const item = itemPanel(search)
      const panels = [item, yearRanksPanel(publications, kept)]
      const { sections, status, headers } = await renderRooms(
        event,
        panels,
        item,
        { now: clock(), query },
        log,
      )
      const main = html`<h1>Rank over time</h1>
        ${sections}`
      const head = html`<link rel="stylesheet" href="${frame.assets.href('uPlot.min.css')}" />
        <script defer src="${frame.assets.href('uPlot.iife.min.js')}"></script>
        <script type="module" src="${frame.assets.href('chart.js')}"></script>`
      const title = `Rank over time: ${query.params.get('key') ?? ''}`
      const text = layout(frame, { title, head, rooms: ROOMS, main })
      return { status, headers: { ...PAGE_HEADERS, ...headers, 'content-type': HTML_TYPE }, text }
    },
  })
}

const ROOMS = [
  { href: '/#feed', title: 'Feed' },
  { href: '/?sort=year#feed', title: 'Year' },
]
