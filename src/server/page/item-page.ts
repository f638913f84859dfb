import type { H3 } from 'h3'
import type { Clock, FeedSearch } from '../../domain/ports.ts'
import { respondCompressed } from '../compression.ts'
import type { Log } from '../log.ts'
import type { ProvedPublications } from '../year/proved-publications.ts'
import { HTML_TYPE, PAGE_HEADERS } from './headers.ts'
import { html } from './html.ts'
import { ITEM_PATH } from './item-address.ts'
import { itemPanel } from './item-panel.ts'
import { layout } from './layout.ts'
import type { Frame } from './layout.ts'
import { pageQuery } from './page-query.ts'
import { renderRooms } from './rooms.ts'
import { yearRanksPanel } from './year-ranks-panel.ts'

export interface ItemPagePorts {
  frame: Frame
  search: Pick<FeedSearch, 'itemTrend'>
  publications: ProvedPublications
  clock: Clock
  log: Log
}

/** Mounts `/item?key=…`: the rank of an item over time, as tables that a script draws (docs/page.md). */
export function mountItemPage(app: H3, { frame, search, publications, clock, log }: ItemPagePorts): void {
  const item = itemPanel(search)
  const panels = [item, yearRanksPanel(publications)]
  const known = [...new Set(panels.flatMap(({ params }) => params))]
  app.get(ITEM_PATH, async (event) => {
    const query = pageQuery(event.url.searchParams, known, ITEM_PATH)
    const { sections, status } = await renderRooms(event, panels, item, { now: clock(), query }, log)
    const main = html`<h1>Rank over time</h1>
      ${sections}`
    const head = html`<link rel="stylesheet" href="${frame.assets.href('uPlot.min.css')}" />
      <script defer src="${frame.assets.href('uPlot.iife.min.js')}"></script>
      <script type="module" src="${frame.assets.href('chart.js')}"></script>`
    const title = `Rank over time: ${query.params.get('key') ?? ''}`
    const page = layout(frame, { title, head, rooms: ROOMS, main })
    return respondCompressed(event, status, PAGE_HEADERS, HTML_TYPE, page)
  })
}

const ROOMS = [
  { href: '/#feed', title: 'Feed' },
  { href: '/?sort=year#feed', title: 'Year' },
]
