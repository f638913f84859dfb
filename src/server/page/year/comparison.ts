import { COLUMN_NAMES, COLUMNS } from '../../../domain/feed/columns.ts'
import type { ColumnName } from '../../../domain/feed/columns.ts'
import { nameOfSource } from '../../../domain/feed/subscription.ts'
import { compareLists } from '../../../domain/year/history/calendar.ts'
import type { Comparison } from '../../../domain/year/history/calendar.ts'
import type { YearFeed, YearItem } from '../../../domain/year/schema.ts'
import { linkedTitle } from '../feed-items.ts'
import { NOTHING, formatCount, formatCounted, html } from '../html.ts'
import type { Html } from '../html.ts'
import { itemHref } from '../layout.ts'
import type { PageQuery } from '../layout.ts'

/** Column shown by default. */
const DEFAULT_COLUMN: ColumnName = 'popular'

/** The lists of a publication and its day. */
export interface ComparedYear {
  asOfDay: string
  feed: YearFeed
}

/** Compares two publications: counts for every list, and all changes of one, the biggest moves first. */
export function yearComparison(
  then: ComparedYear,
  now: ComparedYear,
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

/** Rows shown before the rest is folded. */
const ROWS_SHOWN = { moved: 20, entered: 10, left: 10 }

function changesOf(name: ColumnName, { entered, left, moved, stayed }: Comparison<YearItem>): Html {
  const moves = moved
    .toSorted((a, b) => Math.abs(b.rose) - Math.abs(a.rose))
    .map(({ before, after, rose }) =>
      changeRow(rose > 0 ? 'up' : 'down', rankChange(rose), after, before, after),
    )
  const title = COLUMNS[name]
  return html`<h3 id="compared-title">${title}: biggest moves</h3>
    ${foldedTable(moves, ROWS_SHOWN.moved, 'smaller moves', 'Nothing moved.')}
    <h3>${title}: entered</h3>
    ${foldedTable(
      entered.map((item) => changeRow('entered', NEW, item, null, item)),
      ROWS_SHOWN.entered,
      'more items that entered',
      'Nothing entered.',
    )}
    <h3>${title}: left</h3>
    ${foldedTable(
      left.map((item) => changeRow('left', html`Left`, item, item, null)),
      ROWS_SHOWN.left,
      'more items that left',
      'Nothing left.',
    )}
    ${folded(
      `${formatCounted(stayed.length, 'items')} at the same rank`,
      stayed.map(({ before, after }) => changeRow('stayed', html`Stayed`, after, before, after)),
    )}`
}

/** A table with its first rows, and the others folded under `rest`. */
function foldedTable(rows: readonly Html[], shown: number, rest: string, emptyText: string): Html {
  return html`${changesTable(rows.slice(0, shown), emptyText)}
  ${folded(`${Math.max(0, rows.length - shown)} ${rest}`, rows.slice(shown))}`
}

/** The mark of a rank that changed: an arrow and the number of ranks. @param rose ranks it rose; negative if it fell */
export function rankChange(rose: number): Html {
  const [kind, arrow, word] = rose > 0 ? ['up', '▲', 'up'] : ['down', '▼', 'down']
  return html`<span class="rose ${kind}"
    ><span aria-hidden="true">${arrow} </span><span class="unseen">${word} </span>${Math.abs(rose)}</span
  >`
}

/** The mark of an item that the earlier list lacks. */
export const NEW = html`<span class="rose new">NEW</span>`

function folded(summary: string, rows: readonly Html[]): Html {
  if (rows.length === 0) return NOTHING
  return html`<details class="folded">
    <summary>${summary}</summary>
    ${changesTable(rows, '')}
  </details>`
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

function changeRow(
  kind: string,
  change: Html,
  item: YearItem,
  then: YearItem | null,
  now: YearItem | null,
): Html {
  const numbers = [then?.rank, now?.rank, then?.points, now?.points]
  return html`<tr data-key="${item.key}" data-change="${kind}">
    <td class="change">${change}</td>
    <th scope="row">
      ${linkedTitle(item)}<span class="source">${nameOfSource(item.source)}</span>
      <a href="${itemHref(item.key)}">rank over time</a>
    </th>
    ${numbers.map((number) => html`<td>${number === undefined ? '–' : formatCount(number)}</td>`)}
  </tr>`
}
