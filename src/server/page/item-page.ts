import type { H3, H3Event } from 'h3'
import { SEARCH_RETRY_AFTER_SECONDS } from '../../domain/feed/search.ts'
import type { SearchCaller } from '../../domain/feed/search.ts'
import type { Clock, SharedFeedSearch } from '../../domain/ports.ts'
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
  search: SharedFeedSearch
  callerOf: (event: H3Event) => SearchCaller
  publications: ProvedPublications
  clock: Clock
  log: Log
}

/** Mounts `/item?key=…`: the rank of an item over time, as tables that a script draws (docs/page.md). */
export function mountItemPage(app: H3, ports: ItemPagePorts): void {
  const { frame, search, callerOf, clock, log } = ports
  const yearRanks = yearRanksPanel(ports.publications)
  app.get(ITEM_PATH, async (event) => {
    const item = itemPanel(search.by(callerOf(event)))
    const panels = [item, yearRanks]
    const known = [...new Set(panels.flatMap(({ params }) => params))]
    const query = pageQuery(event.url.searchParams, known, ITEM_PATH)
    const { sections, status } = await renderRooms(event, panels, item, { now: clock(), query }, log)
    const main = html`<h1>Rank over time</h1>
      ${sections}`
    const head = html`<link rel="stylesheet" href="${frame.assets.href('uPlot.min.css')}" />
      <script defer src="${frame.assets.href('uPlot.iife.min.js')}"></script>
      <script type="module" src="${frame.assets.href('chart.js')}"></script>`
    const title = `Rank over time: ${query.params.get('key') ?? ''}`
    const page = layout(frame, { title, head, rooms: ROOMS, main })
    const headers = status === 429 ? { ...PAGE_HEADERS, 'retry-after': RETRY_AFTER } : PAGE_HEADERS
    return respondCompressed(event, status, headers, HTML_TYPE, page)
  })
}

const RETRY_AFTER = String(SEARCH_RETRY_AFTER_SECONDS)

const ROOMS = [
  { href: '/#feed', title: 'Feed' },
  { href: '/?sort=year#feed', title: 'Year' },
]
