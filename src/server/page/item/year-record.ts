import { COLUMNS, COLUMN_NAMES } from '../../../domain/feed/columns.ts'
import { parseKey } from '../../../domain/feed/search/search.ts'
import { addDays } from '../../../domain/time.ts'
import type { Day, Instant } from '../../../domain/time.ts'
import { momentAt } from '../../../domain/year/history/calendar.ts'
import type { TimelineStop, YearPosition } from '../../../domain/year/history/calendar.ts'
import { lastStops } from '../../../domain/year/history/rank-history.ts'
import { lastCompleteDay } from '../../../domain/year/ledger.ts'
import type { Manifest } from '../../../domain/year/ledger.ts'
import { manifestsOf, stopsOnce, PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import type { ListsByDigest } from '../../year/year-lists.ts'
import { NOTHING, formatCounted, formatDay, html } from '../html.ts'
import type { Html } from '../html.ts'
import type { View } from '../rendered-pages.ts'
import { parseTime } from '../year/time-travel.ts'

/** The ranks of one item in the publications up to the requested moment. */
export interface YearRecord {
  key: string
  stops: readonly TimelineStop[]
  /** Index of the shown stop; -1 before the first one. */
  stopIndex: number
  /** The newest publications up to that stop, ascending, whose verified lists are read. */
  manifests: readonly Manifest[]
  lists: ListsByDigest
  now: Instant
}

/** Reads the ranks of the item of a page from verified bytes. @throws Refusal of the key, the time or the archive */
export async function readYearRecord({ sources, now, query }: View): Promise<YearRecord> {
  const key = parseKey(query.params)
  const at = parseTime(query.params, 'at', 'invalid_at', now) ?? now
  const proved = await sources.publications.entries()
  const stops = stopsOnce(proved)
  const { stopIndex } = momentAt(proved.timeline, stops, at)
  const manifests = manifestsOf(lastStops(stops, stopIndex, PUBLICATIONS_MAX))
  return { key, stops, stopIndex, manifests, lists: await sources.lists(manifests), now }
}

/** The position of an item in a publication; null if it is not listed, undefined for an older layout. */
export function positionIn(
  { lists, key }: Pick<YearRecord, 'lists' | 'key'>,
  { sha256 }: Manifest,
): YearPosition | null | undefined {
  const list = lists.get(sha256)
  return list ? (list.positions.get(key) ?? null) : undefined
}

/**
 * Where an item stands in the Top Year, in a phrase; nothing if that is not known.
 *
 * @param firstDay first day on which the item was observed: no earlier publication can list it
 */
export function standingIn(record: YearRecord, firstDay: Day | null): Html {
  const { stops, stopIndex, manifests } = record
  const [before, newest] = [manifests.at(-2), manifests.at(-1)]
  if (!newest) return NOTHING
  const position = positionIn(record, newest)
  if (position === undefined) return NOTHING
  const isNow = stopIndex === stops.length - 1
  const list = isNow ? 'Top Year' : `Top Year up to ${formatDay(newest.asOfDay)}`
  if (position) {
    const rank = position.popular ?? position.rank
    return html`<strong>#${rank ?? '–'}</strong> in
      ${list}${position.popular === null ? ownList(record, newest) : ''}
      ${before ? comparedWith(record, before, newest) : NOTHING}`
  }
  const last = manifests.findLast((manifest) => positionIn(record, manifest))
  if (last) return html`Left the Top Year after ${formatDay(last.asOfDay)}`
  if (!isNow) return html`Not in the ${list}`
  if (isWholeRecord(record, firstDay)) return html`Never in the Top Year`
  const known = manifests.filter((manifest) => positionIn(record, manifest) !== undefined)
  return html`Not in the newest ${formatCounted(known.length, 'Top Years')}`
}

/** The list of the item's source in a publication. */
function ownList({ lists, key }: YearRecord, { sha256 }: Manifest): string {
  const own = COLUMN_NAMES.find((name) => lists.get(sha256)?.ranks[name].has(key))
  return own === undefined ? '' : `, ${COLUMNS[own]}`
}

/** The rank in the publication before. */
function comparedWith(record: YearRecord, before: Manifest, newest: Manifest): Html {
  const position = positionIn(record, before)
  if (position === undefined) return NOTHING
  const day = dayOfPrevious(record, before, newest)
  return position === null
    ? html`(new since ${day})`
    : html`(${day} #${position.popular ?? position.rank ?? '–'})`
}

function dayOfPrevious({ stops, stopIndex, now }: YearRecord, before: Manifest, newest: Manifest): string {
  if (before.asOfDay !== addDays(newest.asOfDay, -1)) return formatDay(before.asOfDay)
  const isNewest = stopIndex === stops.length - 1 && newest.asOfDay === lastCompleteDay(now)
  return isNewest ? 'yesterday' : 'the day before'
}

/** True if every publication that can list an item is read. */
function isWholeRecord({ stops, manifests, lists }: YearRecord, firstDay: Day | null): boolean {
  if (firstDay === null) return false
  const possible = manifestsOf(stops).filter(({ asOfDay }) => asOfDay >= firstDay)
  return possible.every((manifest) => manifests.includes(manifest) && lists.get(manifest.sha256))
}
