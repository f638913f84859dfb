import { LRUCache } from 'lru-cache'
import { nameOfSource } from '../../domain/feed/subscription.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { atOfDay, compareLists, momentAt } from '../../domain/year/calendar.ts'
import type { Comparison, Moment, TimelineStop } from '../../domain/year/calendar.ts'
import type { ProvedLedger, TimelineItem } from '../../domain/year/chain.ts'
import type { Head } from '../../domain/year/ledger.ts'
import { yearEnvelopeSchema } from '../../domain/year/schema.ts'
import type { YearEnvelope, YearItem } from '../../domain/year/schema.ts'
import type { ProvedPublication } from '../year/proved-publications.ts'
import { COLUMN_NAMES, COLUMNS, feedColumns, linkedTitle, titleOf } from './feed-items.ts'
import type { ColumnName } from './feed-items.ts'
import { NOTHING, ageOf, copyable, counted, formatCount, html, instantOf, shellText } from './html.ts'
import type { Html } from './html.ts'
import { itemHref } from './layout.ts'
import type { PageQuery, PanelAnswer, View } from './layout.ts'
import { addressOfDays, gapNotice, parseMoments, stopsOnce, travelControls } from './time-travel.ts'
import type { Moments } from './time-travel.ts'

/**
 * What proves a publication, and the two commands by which anyone checks it (docs/auditing.md).
 *
 * @param baseUrl where this server is reached from outside
 * @param id apart from every other proof of the page
 */
function proofPanel(
  { manifest, ledger, seq }: TimelineItem,
  proved: ProvedLedger & { head: Head | null },
  baseUrl: string,
  id = 'proof',
): Html {
  const at = formatInstant(manifest.publishedAt)
  const question = `${baseUrl}/api/feed/history?sort=year&at=${at}`
  return html`<aside class="proof" id="${id}" aria-labelledby="${id}-title">
    <h3 id="${id}-title">Proof</h3>
    <dl>
      <dt>Publication</dt>
      <dd><code>${manifest.publicationId}</code></dd>
      <dt>As of</dt>
      <dd>${manifest.asOfDay}</dd>
      <dt>Published</dt>
      <dd>${instantOf(manifest.publishedAt)}</dd>
      <dt>SHA-256</dt>
      <dd><code>${manifest.sha256}</code></dd>
      <dt>Size</dt>
      <dd>${counted(manifest.byteSize, 'bytes')}</dd>
      <dt>Ledger</dt>
      <dd>${position(ledger, seq, proved)}</dd>
      <dt>Head</dt>
      <dd>
        ${proved.head ? html`entry ${proved.head.seq}, leaf <code>${proved.head.leaf}</code>` : 'none yet'}
      </dd>
    </dl>
    ${copyable({
      id: `${id}-digest`,
      caption: 'Prints the SHA-256 above',
      what: 'the command that prints the SHA-256',
      text: `curl -s ${shellText(question)} | sha256sum`,
    })}
    ${copyable({
      id: `${id}-audit`,
      caption: 'Audits all that this server publishes; run it in the folder of the program',
      what: 'the command that audits this server',
      text: `npx dash verify-archive --url ${shellText(baseUrl)}`,
    })}
    <p class="as-of">
      Keep the head: whoever has it can prove later that nothing before it was changed (<a
        href="/docs/auditing"
        >auditing</a
      >, <a href="/api/feed/history/ledger">ledger</a>, <a href="/api/feed/history/index">index</a>).
    </p>
  </aside>`
}

function position(ledger: TimelineItem['ledger'], seq: number, { entries }: ProvedLedger): Html {
  if (ledger === 'versioned')
    return html`entry ${seq} of ${entries.length}, leaf <code>${entries[seq - 1]?.leaf ?? ''}</code>`
  const seal = entries.find(({ kind }) => kind === 'legacy-seal')
  return html`row ${seq} of the legacy ledger, sealed by entry ${seal?.seq ?? 0}, leaf
    <code>${seal?.leaf ?? ''}</code>`
}

/** Parsed envelopes kept in memory: each is several times as large as its bytes. */
const KEPT = 4

/** Reads a proved publication as the envelope of version 3; null for an older layout. The last few are kept. */
function envelopeReader(): (publication: ProvedPublication) => YearEnvelope | null {
  const read = new LRUCache<ProvedPublication, { envelope: YearEnvelope | null }>({ max: KEPT })
  return (publication) => {
    const known = read.get(publication)
    if (known) return known.envelope
    const parsed = yearEnvelopeSchema.safeParse(JSON.parse(publication.published.body.toString('utf8')))
    const envelope = parsed.success ? parsed.data : null
    read.set(publication, { envelope })
    return envelope
  }
}

/** The Year of any time: where it stands in the history, what it says, and its proof. */
export interface YearView {
  render(view: View, column: ColumnName | null): Promise<Html | PanelAnswer>
  forward(view: View): Promise<string | null>
}

/** A moment with the publication the history serves for it, proved for this very question. */
interface Served {
  moment: Moment
  publication: ProvedPublication | null
}

/** @param baseUrl address of the server from outside, for the commands that check it */
export function yearView(baseUrl: () => string): YearView {
  const envelopeOf = envelopeReader()
  return {
    async forward({ sources: { publications }, now, query }) {
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
      if (stops.length === 0) return NO_YEAR
      const serve = async (asked: Moments['at']): Promise<Served> => {
        const moment = momentAt(proved.timeline, stops, instantAsked(asked, stops, now))
        const { selected } = moment
        return { moment, publication: selected && (await publications.publication(selected.manifest)) }
      }
      const served = await serve(moments.at)
      const other = moments.with === null ? null : await serve(moments.with)
      const comparedWith = other?.moment.selected?.manifest.asOfDay ?? ''
      const controls = travelControls({ moment: served.moment, stops, query, now, comparedWith })
      if (other) return compared(controls, [served, other], proved, column, view)
      return single(controls, served, proved, column, view)
    },
  }

  function single(
    controls: Html,
    { moment, publication }: Served,
    proved: ProvedLedger & { head: Head | null },
    column: ColumnName | null,
    { now, query }: View,
  ): PanelAnswer {
    // Nobody asked for a past time: that the newest day is still to come is no gap of the history.
    const notice = query.params.has('at') || moment.due.is === 'gap' ? gapNotice(moment) : NOTHING
    if (!publication || !moment.selected) return { status: 404, content: html`${controls} ${BEFORE_FIRST}` }
    const envelope = envelopeOf(publication)
    const content = html`${controls} ${notice}
      <div class="historical">
        <div>
          ${aboutOf(publication, now)}
          ${
            envelope
              ? html`<p class="as-of">
                    Coverage: ${envelope.coverage.materializedDays} of ${envelope.coverage.targetDays} days.
                  </p>
                  ${feedColumns(envelope.feed, column, now, query)}`
              : olderLayout(publication)
          }
        </div>
        ${proofPanel(moment.selected, proved, baseUrl())}
      </div>`
    const day = `Year up to ${publication.manifest.asOfDay}`
    const shown = moment.due.is === 'gap' ? `gap of ${moment.dueDay}, ${day}` : day
    return { status: 200, content, title: titleOf(column, shown) }
  }

  function compared(
    controls: Html,
    served: readonly [Served, Served],
    proved: ProvedLedger & { head: Head | null },
    column: ColumnName | null,
    { now, query }: View,
  ): PanelAnswer {
    const [then, later] = served.toSorted((a, b) => a.moment.at - b.moment.at) as [Served, Served]
    const notices = html`${gapNotice(then.moment)} ${gapNotice(later.moment)}`
    const end = html`<p>${query.roomLink('feed', { with: null }, 'End the comparison')}</p>`
    if (!then.publication || !later.publication)
      return { status: 404, content: html`${controls} ${BEFORE_FIRST} ${notices} ${end}` }
    const isOne = then.publication.manifest.sha256 === later.publication.manifest.sha256
    const publicationsShown = isOne ? [later] : [then, later]
    const content = html`${controls} ${notices} ${end}
      <div class="historical">
        <div>${isOne ? ONE_PUBLICATION : difference(then.publication, later.publication, column, query)}</div>
        <div>
          ${publicationsShown.map(({ moment, publication }, index) =>
            moment.selected && publication
              ? html`${aboutOf(publication, now)}
                ${proofPanel(moment.selected, proved, baseUrl(), index === 0 ? 'proof' : 'proof-later')}`
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

function instantAsked(asked: Moments['at'], stops: readonly TimelineStop[], now: Instant): Instant {
  if (asked === null) return now
  return typeof asked === 'number' ? asked : Date.parse(atOfDay(stops, asked, now))
}

function aboutOf({ manifest }: ProvedPublication, now: Instant): Html {
  const question = `/api/feed/history?sort=year&at=${formatInstant(manifest.publishedAt)}`
  return html`<p class="as-of" data-announce="The Year up to ${manifest.asOfDay} is shown.">
    the last 365 days up to ${manifest.asOfDay}, published ${instantOf(manifest.publishedAt)}
    (${ageOf(manifest.publishedAt, now)}) · <code>${manifest.publicationId}</code> ·
    <a href="${question}">JSON</a>
  </p>`
}

function olderLayout({ manifest }: ProvedPublication): Html {
  return html`<p class="empty">
    The layout of <code>${manifest.publicationId}</code> is that of <code>${manifest.algorithmVersion}</code>,
    an older version, which this page does not show; its JSON is as it was published.
  </p>`
}

const BEFORE_FIRST = html`<p class="refusal" role="alert">
  Nothing had been published by this time: <code>year_history_not_found</code>. Nothing is shown in its place;
  <em>Next</em> leads to where the history begins.
</p>`

const ONE_PUBLICATION = html`<p class="notice" role="note">
  Both times are answered with the same publication, byte for byte: nothing differs.
</p>`

const NO_YEAR = html`<p class="empty">
  Nothing has been published yet. Import signals, then run <code>dash publish-year</code>.
</p>`

/** Column that is shown while none is asked for. */
const FIRST_SHOWN: ColumnName = 'popular'

/** What became of every list between two publications: how much in each, and of one everything. */
function yearComparison(
  then: YearEnvelope,
  now: YearEnvelope,
  column: ColumnName | null,
  query: PageQuery,
): Html {
  const shown = column ?? FIRST_SHOWN
  const comparisons = COLUMN_NAMES.map(
    (name) => [name, compareLists(then.feed[name], now.feed[name])] as const,
  )
  const detailed = comparisons.find(([name]) => name === shown)?.[1]
  return html`${isSame(comparisons) ? SAME : NOTHING}
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
              <th scope="row">${query.roomLink('feed', { column: name }, COLUMNS[name], isShown)}</th>
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

const SAME = html`<p class="notice" role="note">
  The lists are equal: nothing entered, left or moved, and every item has the points it had.
</p>`

function isSame(comparisons: readonly (readonly [string, Comparison<YearItem>])[]): boolean {
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
  return html`<h3 id="compared-title">${COLUMNS[name]}: what entered, moved and stayed</h3>
    ${changesTable(rows, 'Nothing stands in the later list.')}
    <h3>${COLUMNS[name]}: what left</h3>
    ${changesTable(
      left.map((item) => changeRow('Left', item, item, null)),
      'Nothing left.',
    )}`
}

function changesTable(rows: readonly Html[], none: string): Html {
  if (rows.length === 0) return html`<p class="empty">${none}</p>`
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
