import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ColumnName } from '../../../domain/feed/columns.ts'
import { applyRule, paramsOfRule, parseRule, describeRule } from '../../../domain/feed/subscription.ts'
import type { FeedRule } from '../../../domain/feed/subscription.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { formatInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { atOfDay, momentAt } from '../../../domain/year/history/calendar.ts'
import type { Moment, TimelineStop } from '../../../domain/year/history/calendar.ts'
import { lastStops, periodWith, stayOf } from '../../../domain/year/history/rank-history.ts'
import type { TimelinePeriod, RankedYear, Stay } from '../../../domain/year/history/rank-history.ts'
import type { YearEnvelope } from '../../../domain/year/schema.ts'
import { COLUMN_NAMES } from '../../../domain/feed/columns.ts'
import type { Manifest } from '../../../domain/year/ledger.ts'
import { codeOf } from '../../route.ts'
import { envelopeOf } from '../../year/proved-publications.ts'
import type { ProvedPublication } from '../../year/proved-publications.ts'
import { ranksContract } from '../../year/rank-routes.ts'
import { manifestsOf, stopsOnce, PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import type { ListsByDigest } from '../../year/year-lists.ts'
import { ORDERS, feedColumns, isEmptyFeed, titleOf, popularRows } from '../feed-columns.ts'
import { NO_MATCH } from '../feed-rule.ts'
import { NOTHING, ageOf, formatDay, html, instantOf, formatCounted } from '../html.ts'
import type { Html } from '../html.ts'
import { firstTitles, withQuery } from '../layout.ts'
import type { PageSources, View } from '../rendered-pages.ts'
import type { SectionContent, Section, SectionPage } from '../sections.ts'
import { yearComparison, NEW, rankChange } from './comparison.ts'
import { proofPanel } from './proof-panel.ts'
import type { Evidence } from './proof-panel.ts'
import { publicationsOfPeriod, timeline, ROWS_PART, ROWS_PATH } from './timeline.ts'
import type { History } from './timeline.ts'
import { NO_PUBLICATION, gapNotice, parseMoments, refusalOfYear, stopAt } from './time-travel.ts'
import type { Moments } from './time-travel.ts'
import { parseChartCount, yearChart } from './year-chart.ts'
import type { RowNotes } from '../feed-columns.ts'
import { section } from '../sections.ts'

/** A moment with the publication that the history serves for it, verified for this request. */
interface ServedMoment {
  moment: Moment
  publication: ProvedPublication | null
}

/** Renders the Year of any time, its position in the history, and its proof. */
export async function yearContent(view: View, column: ColumnName | null): Promise<Html | SectionContent> {
  const { now, query } = view
  const { publications } = view.sources
  const moments = parseMoments(query, now)
  const rule = parseRule(query.params)
  const chartCount = parseChartCount(query)
  const proved = await publications.entries()
  const stops = stopsOnce(proved)
  if (stops.length === 0) return NO_PUBLICATION
  const serve = async (requested: Moments['at']): Promise<ServedMoment> => {
    const moment = momentAt(proved.timeline, stops, instantAsked(requested, stops, now))
    const { selected } = moment
    return { moment, publication: selected && (await publications.publication(selected.manifest)) }
  }
  const served = await serve(moments.at)
  const other = moments.with === null ? null : await serve(moments.with)
  const period = periodWith(stops, served.moment.stopIndex)
  const shown = lastStops(stops, served.moment.stopIndex, PUBLICATIONS_MAX)
  const frame: Frame = {
    view,
    column,
    rule,
    chartCount,
    stops,
    period,
    shown,
    ...(await historyOf(view.sources, period, shown)),
    evidence: { proved, log: await view.sources.log(), baseUrl: view.frame.baseUrl() },
    comparedWith: other?.moment.selected?.manifest.asOfDay ?? null,
  }
  return other ? renderComparison(frame, [served, other]) : renderOne(frame, served)
}

function renderOne(frame: Frame, { moment, publication }: ServedMoment): SectionContent {
  const { view, column, rule, lists, evidence } = frame
  const { query, now } = view
  // Without a requested time, a newest day that is not published yet is not a gap.
  const notice = query.params.has('at') || moment.due.is === 'gap' ? gapNotice(moment) : NOTHING
  if (!publication || !moment.selected)
    return { status: 404, above: timeline(frame, moment), content: BEFORE_FIRST }
  const envelope = envelopeOf(publication)
  const feed = envelope && (rule === null ? envelope.feed : applyRule(envelope.feed, rule))
  const above = html`${timeline(frame, moment, proofPanel(moment.selected, evidence))} ${notice}`
  const content = html`${feed ? listsOf(frame, feed) : olderLayout(publication)}
  ${lists ? chartOf(frame, lists) : withoutHistory(frame)} ${publicationLine(publication, now)}
  ${envelope ? coverageLine(envelope) : NOTHING}`
  const day = `Top of the 365 days to ${formatDay(publication.manifest.asOfDay)}`
  const shown = moment.due.is === 'gap' ? `Gap of ${formatDay(moment.dueDay)}, ${day}` : day
  const { asOfDay, publishedAt } = publication.manifest
  const at = formatInstant(publishedAt)
  const preview = {
    description: `The Top Year up to ${asOfDay}${ruleText(rule)}${firstTitles(feed?.popular ?? [])}`,
    path: withQuery('/', { sort: 'year', at, ...Object.fromEntries(paramsOfRule(rule)) }),
  }
  return { status: 200, above, content, title: titleOf(column, shown + ruleText(rule)), preview }
}

function renderComparison(frame: Frame, served: readonly [ServedMoment, ServedMoment]): SectionContent {
  const { view, column, rule, evidence } = frame
  const { query, now } = view
  const [then, later] = served.toSorted((a, b) => a.moment.at - b.moment.at) as [ServedMoment, ServedMoment]
  const above = html`${timeline(frame, served[0].moment)} ${gapNotice(then.moment)} ${gapNotice(later.moment)}`
  const endLink = html`<p>${query.sectionLink('feed', { with: null }, 'End the comparison')}</p>`
  if (!then.publication || !later.publication)
    return { status: 404, above, content: html`${NOTHING_TO_COMPARE} ${endLink}` }
  const isSame = then.publication.manifest.sha256 === later.publication.manifest.sha256
  const publicationsShown = isSame ? [later] : [then, later]
  const content = html`${endLink}
  ${isSame ? ONE_PUBLICATION : difference(then.publication, later.publication, frame)}
  ${publicationsShown.map(({ moment, publication }, index) =>
    moment.selected && publication
      ? html`${publicationLine(publication, now)}
        ${proofPanel(moment.selected, evidence, index === 0 ? 'proof' : 'proof-later')}`
      : NOTHING,
  )}`
  const [earlier, newer] = [then, later].map(({ publication }) =>
    formatDay(publication?.manifest.asOfDay ?? ''),
  )
  const days = `Top of the 365 days to ${earlier} and to ${newer}`
  return { status: 200, above, content, title: titleOf(column, days + ruleText(rule)) }
}

function difference(then: ProvedPublication, later: ProvedPublication, frame: Frame): Html {
  const envelopes: (YearEnvelope | null)[] = [envelopeOf(then), envelopeOf(later)]
  const [before, after] = envelopes
  if (!before) return olderLayout(then)
  if (!after) return olderLayout(later)
  const { rule, column, view } = frame
  // The conditions select items of both lists; `top` would let items enter and leave that stayed.
  const conditions = rule && { ...rule, top: null }
  const select = ({ asOfDay, feed }: YearEnvelope) => ({
    asOfDay,
    feed: conditions === null ? feed : applyRule(feed, conditions),
  })
  return yearComparison(select(before), select(after), column, view.query)
}

/** The parts of the view that do not depend on whether it compares. */
interface Frame extends History {
  column: ColumnName | null
  rule: FeedRule | null
  chartCount: number
  /** The stops up to the shown one, from which stays and the chart derive. */
  shown: readonly TimelineStop[]
  /** Public code of the refusal if {@link History.lists} is null. */
  refused: string
  evidence: Evidence
}

/** Lists of earlier publications; a refusal does not hide the shown publication. */
async function historyOf(
  { lists }: PageSources,
  period: TimelinePeriod,
  shown: readonly TimelineStop[],
): Promise<Pick<Frame, 'lists' | 'refused'>> {
  try {
    return { lists: await lists([...publicationsOfPeriod(period), ...manifestsOf(shown)]), refused: '' }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { lists: null, refused: codeOf(ranksContract, error) }
  }
}

function withoutHistory({ refused }: Frame): Html {
  return html`<p class="refusal">Earlier publications cannot be shown: <code>${refused}</code>.</p>`
}

function chartOf({ shown, chartCount, view, evidence }: Frame, lists: ListsByDigest): Html {
  return yearChart(lastStops(shown, shown.length - 1, chartCount), lists, chartCount, {
    query: view.query,
    baseUrl: evidence.baseUrl,
  })
}

function listsOf(frame: Frame, feed: YearEnvelope['feed']): Html {
  const { rule, column, view, lists } = frame
  if (rule !== null && isEmptyFeed(feed)) return NO_MATCH
  const notes = lists ? { notes: notesOf(frame, lists) } : {}
  return feedColumns(feed, column, { now: view.now, order: ORDERS.year, query: view.query, ...notes })
}

function ruleText(rule: FeedRule | null): string {
  return rule === null ? '' : `: ${describeRule(rule)}`
}

function coverageLine({ coverage }: YearEnvelope): Html {
  return html`<p class="as-of">Coverage: ${coverage.materializedDays} of ${coverage.targetDays} days.</p>`
}

function instantAsked(requested: Moments['at'], stops: readonly TimelineStop[], now: Instant): Instant {
  if (requested === null) return now
  return typeof requested === 'number' ? requested : Date.parse(atOfDay(stops, requested, now))
}

function publicationLine({ manifest }: ProvedPublication, now: Instant): Html {
  return html`<p class="as-of">
    The last 365 days up to ${formatDay(manifest.asOfDay)}, published ${instantOf(manifest.publishedAt)}
    (${ageOf(manifest.publishedAt, now)}).
  </p>`
}

function olderLayout({ manifest }: ProvedPublication): Html {
  return html`<p class="empty">
    <code>${manifest.publicationId}</code> has the layout of <code>${manifest.algorithmVersion}</code>, an
    older version that this page cannot show; its JSON is served as published.
  </p>`
}

const BEFORE_FIRST = html`<p class="refusal" role="alert">
  Nothing was published by this time: <code>year_history_not_found</code>. <em>Next</em> leads to the first
  publication.
</p>`

const NOTHING_TO_COMPARE = html`<p class="refusal" role="alert">
  Nothing was published by one of the two times: <code>year_history_not_found</code>.
</p>`

const ONE_PUBLICATION = html`<p class="notice" role="note">
  Both times have the same publication, byte for byte: nothing differs.
</p>`

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
  const day = LONG_DAY.format(Date.parse(entered))
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

/** A day of the last year, `2 March`. */
const LONG_DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' })

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
