import { nameOfSource } from '../../domain/feed/subscription.ts'
import { compareLists } from '../../domain/year/calendar.ts'
import type { Comparison } from '../../domain/year/calendar.ts'
import type { YearEnvelope, YearItem } from '../../domain/year/schema.ts'
import { formatCount, html, NOTHING } from './html.ts'
import { COLUMN_NAMES, COLUMNS, linkedTitle } from './feed-items.ts'
import type { ColumnName } from './feed-items.ts'
import type { Html } from './html.ts'
import { itemHref } from './layout.ts'
import type { PageQuery } from './layout.ts'

/** Column that is shown while none is asked for. */
const FIRST_SHOWN: ColumnName = 'popular'

/** What became of every list between two publications: how much in each, and of one everything. */
export function yearComparison(
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
          ${headings(['Column'], ['Entered', 'Left', 'Moved', 'Stayed'])}
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
    ${detailed ? details(shown, detailed) : NOTHING}`
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

function details(name: ColumnName, { entered, left, moved, stayed }: Comparison<YearItem>): Html {
  const rows = [
    ...entered.map((item) => row('Entered', item, null, item)),
    ...moved.map(({ before, after, rose }) =>
      row(rose > 0 ? `Up ${rose}` : `Down ${-rose}`, after, before, after),
    ),
    ...stayed.map(({ before, after }) => row('Stayed', after, before, after)),
  ]
  return html`<h3 id="compared-title">${COLUMNS[name]}: what entered, moved and stayed</h3>
    ${table(rows, 'Nothing stands in the later list.')}
    <h3>${COLUMNS[name]}: what left</h3>
    ${table(
      left.map((item) => row('Left', item, item, null)),
      'Nothing left.',
    )}`
}

function table(rows: readonly Html[], none: string): Html {
  if (rows.length === 0) return html`<p class="empty">${none}</p>`
  return html`<div class="wide">
    <table class="compared">
      <thead>
        ${headings(['Change', 'Item'], ['Rank then', 'Rank now', 'Points then', 'Points now'])}
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`
}

function headings(texts: readonly string[], numbers: readonly string[]): Html {
  return html`<tr>
    ${texts.map((title) => html`<th scope="col">${title}</th>`)}
    ${numbers.map((title) => html`<th scope="col" class="number">${title}</th>`)}
  </tr>`
}

function row(change: string, item: YearItem, then: YearItem | null, now: YearItem | null): Html {
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
