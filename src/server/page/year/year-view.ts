import { COLUMN_NAMES, COLUMNS } from '../../../domain/feed/columns.ts'
import type { ColumnName } from '../../../domain/feed/columns.ts'
import { LRUCache } from 'lru-cache'
import { nameOfSource } from '../../../domain/feed/subscription.ts'
import type { Instant } from '../../../domain/time.ts'
import { atOfDay, compareLists, momentAt } from '../../../domain/year/history/calendar.ts'
import type { Comparison, Moment, TimelineStop } from '../../../domain/year/history/calendar.ts'
import { mementoPath } from '../../../domain/year/history/memento.ts'
import { yearEnvelopeSchema } from '../../../domain/year/schema.ts'
import type { YearEnvelope, YearItem } from '../../../domain/year/schema.ts'
import type { ProvedPublication } from '../../year/proved-publications.ts'
import { feedColumns, linkedTitle, titleOf } from '../feed-items.ts'
import { NOTHING, ageOf, formatCount, html, instantOf } from '../html.ts'
import type { Html } from '../html.ts'
import { itemHref } from '../layout.ts'
import type { PageQuery, PanelContent, View } from '../layout.ts'
import { proofPanel } from './proof-panel.ts'
import type { Evidence } from './proof-panel.ts'
import { addressOfDays, gapNotice, parseMoments, stopsOnce, travelControls } from './time-travel.ts'
import type { Moments } from './time-travel.ts'

/** Number of cached parsed envelopes: each is several times as large as its bytes. */
const ENVELOPES_MAX = 4

/**
 * Returns a function that parses a verified publication as an envelope of version 3, or null for an older layout, with a
 * small cache.
 */
function envelopeReader(): (publication: ProvedPublication) => YearEnvelope | null {
  const cache = new LRUCache<ProvedPublication, { envelope: YearEnvelope | null }>({ max: ENVELOPES_MAX })
  return (publication) => {
    const cached = cache.get(publication)
    if (cached) return cached.envelope
    const parsed = yearEnvelopeSchema.safeParse(JSON.parse(publication.published.body.toString('utf8')))
    const envelope = parsed.success ? parsed.data : null
    cache.set(publication, { envelope })
    return envelope
  }
}

/** Renders the Year of any time, its position in the history, and its proof. */
export interface YearView {
  render(view: View, column: ColumnName | null): Promise<Html | PanelContent>
  redirect(view: View): Promise<string | null>
}

/** A moment with the publication that the history serves for it, verified for this request. */
interface ServedMoment {
  moment: Moment
  publication: ProvedPublication | null
}

/** @param baseUrl public URL of the server, for the commands that check it */
export function yearView(baseUrl: () => string): YearView {
  const envelopeOf = envelopeReader()
  return {
    async redirect({ sources: { publications }, now, query }) {
      const moments = parseMoments(query, now)
      const isDay = Object.values(moments).some((moment) => typeof moment === 'string')
      return isDay ? addressOfDays(moments, query, stopsOnce(await publications.entries()), now) : null
    },
    async render(view, column) {
      const { now, query } = view
      const { publications } = view.sources
      const moments = parseMoments(query, now)
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
      const comparedWith = other?.moment.selected?.manifest.asOfDay ?? ''
      const evidence = { proved, log: await view.sources.log(), baseUrl: baseUrl() }
      const controls = travelControls({ moment: served.moment, stops, query, now, comparedWith })
      if (other) return renderComparison(controls, [served, other], evidence, column, view)
      return renderOne(controls, served, evidence, column, view)
    },
  }

  function renderOne(
    controls: Html,
    { moment, publication }: ServedMoment,
    evidence: Evidence,
    column: ColumnName | null,
    { now, query }: View,
  ): PanelContent {
    // Without a requested time, a newest day that is not published yet is not a gap.
    const notice = query.params.has('at') || moment.due.is === 'gap' ? gapNotice(moment) : NOTHING
    if (!publication || !moment.selected) return { status: 404, content: html`${controls} ${BEFORE_FIRST}` }
    const envelope = envelopeOf(publication)
    const content = html`${controls} ${notice}
      <div class="historical">
        <div>
          ${publicationLine(publication, now)}
          ${
            envelope
              ? html`<p class="as-of">
                    Coverage: ${envelope.coverage.materializedDays} of ${envelope.coverage.targetDays} days.
                  </p>
                  ${feedColumns(envelope.feed, column, publication.manifest.publishedAt, query)}`
              : olderLayout(publication)
          }
        </div>
        ${proofPanel(moment.selected, evidence)}
      </div>`
    const day = `Year up to ${publication.manifest.asOfDay}`
    const shown = moment.due.is === 'gap' ? `gap of ${moment.dueDay}, ${day}` : day
    return { status: 200, content, title: titleOf(column, shown) }
  }

  function renderComparison(
    controls: Html,
    served: readonly [ServedMoment, ServedMoment],
    evidence: Evidence,
    column: ColumnName | null,
    { now, query }: View,
  ): PanelContent {
    const [then, later] = served.toSorted((a, b) => a.moment.at - b.moment.at) as [ServedMoment, ServedMoment]
    const notices = html`${gapNotice(then.moment)} ${gapNotice(later.moment)}`
    const endLink = html`<p>${query.sectionLink('feed', { with: null }, 'End the comparison')}</p>`
    if (!then.publication || !later.publication)
      return { status: 404, content: html`${controls} ${BEFORE_FIRST} ${notices} ${endLink}` }
    const isSame = then.publication.manifest.sha256 === later.publication.manifest.sha256
    const publicationsShown = isSame ? [later] : [then, later]
    const content = html`${controls} ${notices} ${endLink}
      <div class="historical">
        <div>
          ${isSame ? ONE_PUBLICATION : difference(then.publication, later.publication, column, query)}
        </div>
        <div>
          ${publicationsShown.map(({ moment, publication }, index) =>
            moment.selected && publication
              ? html`${publicationLine(publication, now)}
                ${proofPanel(moment.selected, evidence, index === 0 ? 'proof' : 'proof-later')}`
              : NOTHING,
          )}
        </div>
      </div>`
    const days = `Year up to ${then.publication.manifest.asOfDay} and up to ${later.publication.manifest.asOfDay}`
    return { status: 200, content, title: titleOf(column, days) }
  }

  function difference(
    then: ProvedPublication,
    later: ProvedPublication,
    column: ColumnName | null,
    query: View['query'],
  ): Html {
    const envelopes: (YearEnvelope | null)[] = [envelopeOf(then), envelopeOf(later)]
    const [before, after] = envelopes
    if (!before) return olderLayout(then)
    if (!after) return olderLayout(later)
    return yearComparison(before, after, column, query)
  }
}

function instantAsked(requested: Moments['at'], stops: readonly TimelineStop[], now: Instant): Instant {
  if (requested === null) return now
  return typeof requested === 'number' ? requested : Date.parse(atOfDay(stops, requested, now))
}

function publicationLine({ manifest }: ProvedPublication, now: Instant): Html {
  return html`<p class="as-of" data-announce="The Year up to ${manifest.asOfDay} is shown.">
    the last 365 days up to ${manifest.asOfDay}, published ${instantOf(manifest.publishedAt)}
    (${ageOf(manifest.publishedAt, now)}) · <code>${manifest.publicationId}</code> ·
    <a href="${mementoPath(manifest.publishedAt)}">JSON</a>
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

const NO_PUBLICATION = html`<p class="empty">
  Nothing has been published yet. Import signals, then run <code>dash publish-year</code>.
</p>`

/** Column shown by default. */
const DEFAULT_COLUMN: ColumnName = 'popular'

/** Compares two publications: counts for every list, and all changes of one. */
function yearComparison(
  then: YearEnvelope,
  now: YearEnvelope,
  column: ColumnName | null,
  query: PageQuery,
): Html {
  const shown = column ?? DEFAULT_COLUMN
  const comparisons = COLUMN_NAMES.map(
    (name) => [name, compareLists(then.feed[name], now.feed[name])] as const,
  )
  const detailed = comparisons.find(([name]) => name === shown)?.[1]
  return html`${areListsEqual(comparisons) ? LISTS_EQUAL : NOTHING}
    <div class="wide">
      <table class="compared" id="compared-columns">
        <caption>
          Between ${then.asOfDay} and ${now.asOfDay}
        </caption>
        <thead>
          ${columnHeads(['Column'], ['Entered', 'Left', 'Moved', 'Stayed'])}
        </thead>
        <tbody>
          ${comparisons.map(([name, { entered, left, moved, stayed }]) => {
            const isShown = name === shown ? html`aria-current="true"` : NOTHING
            return html`<tr>
              <th scope="row">${query.sectionLink('feed', { column: name }, COLUMNS[name], isShown)}</th>
              <td>${entered.length}</td>
              <td>${left.length}</td>
              <td>${moved.length}</td>
              <td>${stayed.length}</td>
            </tr>`
          })}
        </tbody>
      </table>
    </div>
    ${detailed ? changesOf(shown, detailed) : NOTHING}`
}

const LISTS_EQUAL = html`<p class="notice" role="note">
  The lists are equal: nothing entered, left or moved, and no points changed.
</p>`

function areListsEqual(comparisons: readonly (readonly [string, Comparison<YearItem>])[]): boolean {
  return comparisons.every(
    ([, { entered, left, moved, stayed }]) =>
      entered.length + left.length + moved.length === 0 &&
      stayed.every(({ before, after }) => before.points === after.points),
  )
}

function changesOf(name: ColumnName, { entered, left, moved, stayed }: Comparison<YearItem>): Html {
  const rows = [
    ...entered.map((item) => changeRow('Entered', item, null, item)),
    ...moved.map(({ before, after, rose }) =>
      changeRow(rose > 0 ? `Up ${rose}` : `Down ${-rose}`, after, before, after),
    ),
    ...stayed.map(({ before, after }) => changeRow('Stayed', after, before, after)),
  ]
  return html`<h3 id="compared-title">${COLUMNS[name]}: entered, moved and stayed</h3>
    ${changesTable(rows, 'The later list is empty.')}
    <h3>${COLUMNS[name]}: left</h3>
    ${changesTable(
      left.map((item) => changeRow('Left', item, item, null)),
      'Nothing left.',
    )}`
}

function changesTable(rows: readonly Html[], emptyText: string): Html {
  if (rows.length === 0) return html`<p class="empty">${emptyText}</p>`
  return html`<div class="wide">
    <table class="compared">
      <thead>
        ${columnHeads(['Change', 'Item'], ['Rank then', 'Rank now', 'Points then', 'Points now'])}
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`
}

function columnHeads(texts: readonly string[], numbers: readonly string[]): Html {
  return html`<tr>
    ${texts.map((title) => html`<th scope="col">${title}</th>`)}
    ${numbers.map((title) => html`<th scope="col" class="number">${title}</th>`)}
  </tr>`
}

function changeRow(change: string, item: YearItem, then: YearItem | null, now: YearItem | null): Html {
  const numbers = [then?.rank, now?.rank, then?.points, now?.points]
  return html`<tr data-key="${item.key}" data-change="${change.split(' ', 1)[0]?.toLowerCase() ?? ''}">
    <td class="change">${change}</td>
    <th scope="row">
      ${linkedTitle(item)}<span class="source">${nameOfSource(item.source)}</span>
      <a href="${itemHref(item.key)}">rank over time</a>
    </th>
    ${numbers.map((number) => html`<td>${number === undefined ? '–' : formatCount(number)}</td>`)}
  </tr>`
}
