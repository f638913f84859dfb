import { setImmediate as nextTurn } from 'node:timers/promises'
import { lastStops } from '../../../domain/year/history/rank-history.ts'
import { momentAt } from '../../../domain/year/history/calendar.ts'
import { envelopeOf } from '../../year/proved-publications.ts'
import { manifestsOf, stopsOnce, PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import { ORDERS, popularRows } from '../feed-columns.ts'
import { html } from '../html.ts'
import type { Html } from '../html.ts'
import type { View } from '../rendered-pages.ts'
import { section } from '../sections.ts'
import type { Section, SectionPage } from '../sections.ts'
import { parseTime, refusalOfYear } from './time-travel.ts'
import { ROWS_PART, ROWS_PATH } from './timeline.ts'
import { notesOf } from './year-view.ts'

/**
 * `/year/rows?at=…`: the rows of Popular in the last {@link ROWS_PART} publications at or before a time, which the slider of
 * the Year fetches ahead.
 */
export const ROWS_PAGE: SectionPage = {
  path: ROWS_PATH,
  query: { known: ['at'] },
  render: async (view) => ({ title: `${TITLE} · dash`, sections: [await rowsSection(view)] }),
}

const TITLE = 'Popular of the Year, day by day'

function rowsSection(view: View): Promise<Section | null> {
  const { sources, now, query } = view
  const { publications, lists } = sources
  return section(view, { id: 'days', title: TITLE, headingLevel: 1, refusalOf: refusalOfYear }, async () => {
    const at = parseTime(query.params, 'at', 'invalid_at', now) ?? now
    const proved = await publications.entries()
    const stops = stopsOnce(proved)
    const { stopIndex } = momentAt(proved.timeline, stops, at)
    const read = await lists(manifestsOf(lastStops(stops, stopIndex, PUBLICATIONS_MAX + ROWS_PART)))
    const days: Html[] = []
    for (const stop of lastStops(stops, stopIndex, ROWS_PART)) {
      if (stop.kind === 'gap') continue
      const { manifest } = stop.item
      const envelope = envelopeOf(await publications.publication(manifest))
      const shown = lastStops(stops, stops.indexOf(stop), PUBLICATIONS_MAX)
      const context = {
        now,
        order: ORDERS.year,
        notes: notesOf({ shown, stops }, read),
      }
      if (envelope)
        days.push(
          html`<h2>${manifest.asOfDay}</h2>
            <div data-rows="${manifest.asOfDay}">${popularRows(envelope.feed, context)}</div>`,
        )
      await nextTurn()
    }
    return days.length > 0
      ? html`${days}`
      : html`<p class="empty">Nothing had been published by this time.</p>`
  })
}
