import { setImmediate as nextTurn } from 'node:timers/promises'
import { COLUMN_NAMES } from '../../../domain/feed/columns.ts'
import type { ColumnName } from '../../../domain/feed/columns.ts'
import type { Day } from '../../../domain/time.ts'
import type { TimelineStop } from '../../../domain/year/history/calendar.ts'
import { lastStops, stayOf } from '../../../domain/year/history/rank-history.ts'
import type { RankedYear, Stay } from '../../../domain/year/history/rank-history.ts'
import type { Manifest } from '../../../domain/year/ledger.ts'
import { envelopeOf } from '../../year/proved-publications.ts'
import { manifestsOf, PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import type { ListsByDigest } from '../../year/year-lists.ts'
import { ORDERS, popularRows } from '../feed-columns.ts'
import type { RowNotes } from '../feed-columns.ts'
import { NOTHING, formatCounted, html } from '../html.ts'
import type { Html } from '../html.ts'
import type { View } from '../rendered-pages.ts'
import { section } from '../sections.ts'
import type { Section, SectionPage } from '../sections.ts'
import { NEW, rankChange } from './comparison.ts'
import { refusalOfYear, stopAt } from './time-travel.ts'
import { ROWS_PART, ROWS_PATH } from './timeline.ts'

/** Marks of ranks against the publication before, and the stay of each item. */
export function notesOf(
  { shown, stops }: { shown: readonly TimelineStop[]; stops: readonly TimelineStop[] },
  lists: ListsByDigest,
): RowNotes {
  const manifests = manifestsOf(shown)
  const previous = lists.get(manifests.at(-2)?.sha256 ?? '')
  const isStart = manifestsOf(stops)[0] === manifests[0]
  const years = Object.fromEntries(
    COLUMN_NAMES.map((name) => [name, ranksByDay(manifests, lists, name)]),
  ) as Record<ColumnName, RankedYear[]>
  return (column, { key, rank }) => {
    const before = previous?.ranks[column].get(key)
    const stay = stayOf(key, years[column], isStart)
    return {
      mark: previous && rank !== undefined ? markOf(before, rank) : UNMOVED,
      note: stay && saysMore(stay, rank) ? stayNote(stay, rank) : NOTHING,
    }
  }
}

function markOf(before: number | undefined, rank: number): Html {
  if (before === undefined) return NEW
  return before === rank ? UNMOVED : rankChange(before - rank)
}

/** The place of a mark that scripts may show. */
const UNMOVED = html`<span></span>`

/** The ranks of a list in each publication; null for an older layout. */
export function ranksByDay(
  manifests: readonly Manifest[],
  lists: ListsByDigest,
  column: ColumnName,
): RankedYear[] {
  return manifests.map(({ asOfDay, sha256 }) => ({
    asOfDay,
    ranks: lists.get(sha256)?.ranks[column] ?? null,
  }))
}

/** The best rank of an item in a list, and how long it has stayed there, in a sentence. */
export function stayText({ peak, days, entered, before }: Stay): string {
  const day = longDay(entered)
  const stay = {
    absent: `${formatCounted(days, 'days')}, entered ${day}`,
    none: `${formatCounted(days, 'days')}, there since the first publication, of ${day}`,
    unknown: `over ${formatCounted(days, 'days')}, entered before ${day}`,
  }
  return `highest #${peak}, ${stay[before]}`
}

/** True if a stay is not only that the item always had its present rank at best, and was never seen to enter. */
function saysMore({ peak, before }: Stay, rank: number | undefined): boolean {
  return peak !== rank || before === 'absent'
}

/** The stay of an item in short, for its row: the best rank if it is another than the present one, and the days. */
function stayNote(stay: Stay, rank: number | undefined): Html {
  const text = stayText(stay)
  const { peak, days, before } = stay
  const length = `${days}${before === 'unknown' ? '+' : ''} ${days === 1 ? 'day' : 'days'}`
  return html`<span class="stay" title="${text}"
    ><span aria-hidden="true"
      >${peak === rank ? length : html`best #${peak}<span class="roomy"> · ${length}</span>`}</span
    ><span class="unseen">${text}</span></span
  >`
}

const LONG_DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' })

/** A day of the last year, `2 March`. */
function longDay(day: Day): string {
  return LONG_DAY.format(Date.parse(day))
}

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
    const { stops, stopIndex } = await stopAt(view)
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
        query,
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
