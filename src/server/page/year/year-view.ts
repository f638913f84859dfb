import type { ColumnName } from '../../../domain/feed/columns.ts'
import { applyRule, paramsOfRule, parseRule, describeRule } from '../../../domain/feed/subscription.ts'
import type { FeedRule } from '../../../domain/feed/subscription.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { formatInstant } from '../../../domain/time.ts'
import type { Instant } from '../../../domain/time.ts'
import { atOfDay, momentAt } from '../../../domain/year/history/calendar.ts'
import type { Moment, TimelineStop } from '../../../domain/year/history/calendar.ts'
import { lastStops, periodWith } from '../../../domain/year/history/rank-history.ts'
import type { TimelinePeriod } from '../../../domain/year/history/rank-history.ts'
import type { YearEnvelope } from '../../../domain/year/schema.ts'
import { codeOf } from '../../route.ts'
import { envelopeOf } from '../../year/proved-publications.ts'
import type { ProvedPublication } from '../../year/proved-publications.ts'
import { ranksContract } from '../../year/rank-routes.ts'
import { manifestsOf, stopsOnce, PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import type { ListsByDigest } from '../../year/year-lists.ts'
import { ORDERS, feedColumns, isEmptyFeed, titleOf } from '../feed-columns.ts'
import { NO_MATCH } from '../feed-rule.ts'
import { NOTHING, ageOf, formatDay, html, instantOf } from '../html.ts'
import type { Html } from '../html.ts'
import { firstTitles, withQuery } from '../layout.ts'
import type { PageSources, View } from '../rendered-pages.ts'
import type { SectionContent } from '../sections.ts'
import { yearComparison } from './comparison.ts'
import { proofPanel } from './proof-panel.ts'
import type { Evidence } from './proof-panel.ts'
import { notesOf } from './rows.ts'
import { publicationsOfPeriod, timeline } from './timeline.ts'
import type { History } from './timeline.ts'
import { NO_PUBLICATION, gapNotice, parseMoments } from './time-travel.ts'
import type { Moments } from './time-travel.ts'
import { parseChartCount, yearChart } from './year-chart.ts'

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
    description: `The Top Year up to ${asOfDay}${ruleText(rule)}: ${firstTitles(feed?.popular ?? [])}`,
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
    return { status: 404, above, content: html`${BEFORE_FIRST} ${endLink}` }
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

const ONE_PUBLICATION = html`<p class="notice" role="note">
  Both times have the same publication, byte for byte: nothing differs.
</p>`
