import { parseKey } from '../../domain/feed/search-request.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Instant } from '../../domain/time.ts'
import { atOfStop, firstDayOf, lastDayOf, momentAt } from '../../domain/year/calendar.ts'
import type { Stop } from '../../domain/year/calendar.ts'
import type { TimelineItem } from '../../domain/year/chain.ts'
import { parsePastInstant } from '../../domain/year/history.ts'
import { standingsOf } from '../../domain/year/item-ranks.ts'
import type { YearStanding } from '../../domain/year/item-ranks.ts'
import type { YearFeed } from '../../domain/year/schema.ts'
import { trendContract } from '../feed/search-contracts.ts'
import { codeOf } from '../route.ts'
import type { ProvedPublication } from '../year/proved-publications.ts'
import { chartTable } from './chart-table.ts'
import type { ChartRow } from './chart-table.ts'
import { html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import { keptStops } from './kept-stops.ts'
import type { PageQuery } from './page-query.ts'
import type { ShownPublications } from './page-sources.ts'
import type { Panel } from './panel.ts'
import { refusalOfYear } from './year-question.ts'

/** Publications and gaps that are read for one answer: each publication is proved. */
const STOPS_SHOWN = 31

/** The layout whose lists are known; older ones are served and not read (docs/ranking.md). */
const KNOWN_ALGORITHM = 'top-year-v3'

/** What is made of publications and kept from one render to the next, by the very object it was made from. */
export interface KeptRanks {
  standingsIn: ReturnType<typeof keptStandings>
  stopsOnce: ReturnType<typeof keptStops>
}

export function keptRanks(): KeptRanks {
  return { standingsIn: keptStandings(), stopsOnce: keptStops() }
}

/** The rank of an item in the Year, publication by publication, each read from its proved bytes. */
export function yearRanksPanel(
  publications: ShownPublications,
  { standingsIn, stopsOnce }: KeptRanks,
): Panel {
  return {
    id: 'year-ranks',
    title: 'In the Top Year',
    params: ['key', 'at'],
    async render({ now, query }) {
      const key = parseKey(query.params)
      const at = parseAt(query, now)
      const proved = await publications.entries()
      const stops = stopsOnce(proved)
      const { place } = momentAt(proved.timeline, stops, at)
      const shown = stops.slice(Math.max(0, place + 1 - STOPS_SHOWN), place + 1)
      const rows: ChartRow<YearStanding>[] = []
      // One after another: each is proved on the one thread that answers everybody.
      for (const stop of shown) {
        if (stop.kind === 'gap') rows.push(gapRow(stop))
        else
          rows.push(
            rowOf(stop.item, standingsIn(await publications.publication(stop.item.manifest))?.get(key)),
          )
      }
      return html`<p>
          The place in the list of its source and in <em>Popular</em>, as it was published; nothing changes it
          afterwards.
        </p>
        ${shown.length === 0 ? NOTHING_YET : table(rows)} ${pages(stops, place, query, now)}`
    },
    refusalOf: (error, view) =>
      codeOf(trendContract, error) === 'invalid_key' ? INVALID_KEY : refusalOfYear(error, view),
  }
}

const INVALID_KEY = { status: 400, code: 'invalid_key', when: trendContract.refusals.invalid_key.when }

function parseAt({ params }: PageQuery, now: Instant): Instant {
  if (!params.has('at')) return now
  const at = parsePastInstant(params.getAll('at'), now)
  if (at === null) throw new Refusal('invalid_at')
  return at
}

/** Standings by publication, as long as its proof is kept; null for an older layout. */
function keptStandings(): (publication: ProvedPublication) => ReadonlyMap<string, YearStanding> | null {
  const kept = new WeakMap<ProvedPublication, ReadonlyMap<string, YearStanding>>()
  return (publication) => {
    if (publication.manifest.algorithmVersion !== KNOWN_ALGORITHM) return null
    const known = kept.get(publication)
    if (known) return known
    // Proved bytes of this version have the schema of the Year.
    const { feed } = JSON.parse(publication.published.body.toString('utf8')) as { feed: YearFeed }
    const standings = standingsOf(feed)
    kept.set(publication, standings)
    return standings
  }
}

function rowOf({ manifest }: TimelineItem, standing: YearStanding | undefined): ChartRow<YearStanding> {
  if (manifest.algorithmVersion !== KNOWN_ALGORITHM)
    return { days: manifest.asOfDay, absent: `not read: ${manifest.algorithmVersion} has another layout` }
  if (!standing) return { days: manifest.asOfDay, absent: 'not in the first hundred' }
  return { day: manifest.asOfDay, row: standing }
}

function gapRow(stop: Stop): ChartRow<YearStanding> {
  const [first, last] = [firstDayOf(stop), lastDayOf(stop)]
  return { days: first === last ? first : `${first} to ${last}`, absent: 'gap: nothing was published' }
}

const NOTHING_YET = html`<p class="empty">Nothing had been published by this time.</p>`

function table(rows: readonly ChartRow<YearStanding>[]): Html {
  return chartTable<YearStanding>({
    id: 'year-ranks-table',
    caption: 'Rank in the Year, by as-of day',
    series: [
      { title: 'In its list', drawn: true, valueOf: ({ rank }) => rank },
      { title: 'In Popular', drawn: true, valueOf: ({ popular }) => popular },
      { title: 'Points', drawn: false, valueOf: ({ points }) => points },
    ],
    rows,
  })
}

/** Ways to earlier and later publications than those shown. */
function pages(stops: readonly Stop[], place: number, query: PageQuery, now: Instant): Html {
  const earlier = stops[place - STOPS_SHOWN]
  const later = place < stops.length - 1 ? stops[Math.min(place + STOPS_SHOWN, stops.length - 1)] : undefined
  const link = (stop: Stop | undefined, text: string) =>
    stop
      ? html`<a href="${query.link({ at: atOfStop(stop, now) }, 'year-ranks')}" data-room="year-ranks"
          >${text}</a
        > `
      : NOTHING
  return html`<p>${link(earlier, 'Earlier')}${link(later, 'Later')}</p>`
}
