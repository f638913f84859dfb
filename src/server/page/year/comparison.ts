import { COLUMN_NAMES, COLUMNS } from '../../../domain/feed/columns.ts'
import type { ColumnName } from '../../../domain/feed/columns.ts'
import { nameOfSource } from '../../../domain/feed/subscription.ts'
import { compareLists } from '../../../domain/year/history/calendar.ts'
import type { Comparison } from '../../../domain/year/history/calendar.ts'
import type { YearFeed, YearItem } from '../../../domain/year/schema.ts'
import { linkedTitle } from '../story-row.ts'
import { NOTHING, formatCount, formatCounted, formatDay, html } from '../html.ts'
import type { Html } from '../html.ts'
import { itemHref } from '../layout.ts'
import type { PageQuery } from '../layout.ts'

const DEFAULT_COLUMN: ColumnName = 'popular'

export interface ComparedYear {
  asOfDay: string
  feed: YearFeed
}

/** Compares two publications: counts for every list, and all changes of one, what left and entered first. */
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
    <table class="compared" id="compared-columns">
      <caption>
        Between ${formatDay(then.asOfDay)} and ${formatDay(now.asOfDay)}
      </caption>
      <thead>
        ${columnHeads(['Column'], ['Entered', 'Left', 'Moved', 'Stayed'])}
      </thead>
      <tbody>
        ${comparisons.map(([name, { entered, left, moved, stayed }]) => {
          if (entered.length + left.length + moved.length + stayed.length === 0) return NOTHING
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

/** Rows of a table shown before the rest is folded. */
const ROWS_SHOWN = 10

/** What left and what entered stand first; moves that only follow from those are folded. */
function changesOf(name: ColumnName, { entered, left, moved, stayed }: Comparison<YearItem>): Html {
  const title = COLUMNS[name]
  const overtaking = overtakingOf([...moved, ...stayed])
  const movesOf = (moves: typeof moved): Html[] =>
    moves.map(({ before, after, rose }) =>
      changeRow(rose > 0 ? 'up' : 'down', rankChange(rose), before, after),
    )
  const own = moved
    .filter(({ after }) => overtaking(after.key) !== 0)
    .sort((a, b) => Math.abs(overtaking(b.after.key)) - Math.abs(overtaking(a.after.key)))
  const consequences = moved.filter(({ after }) => overtaking(after.key) === 0)
  const stayedRows = stayed.map(({ before, after }) => changeRow('stayed', html`Stayed`, before, after))
  return html`<h3 id="compared-title">${title}: left</h3>
    ${foldedTable(
      left.map((item) => changeRow('left', html`#${item.rank} left`, item, null)),
      'more items that left',
      'Nothing left.',
    )}
    <h3>${title}: entered</h3>
    ${foldedTable(
      entered.map((item) => changeRow('entered', NEW, null, item)),
      'more items that entered',
      'Nothing entered.',
    )}
    <h3>${title}: overtook or were overtaken</h3>
    ${foldedTable(movesOf(own), 'smaller moves', 'Every item kept its place among those in both lists.')}
    ${folded(`${formatCounted(consequences.length, 'items')} moved only because others entered or left`, movesOf(consequences))}
    ${folded(`${formatCounted(stayed.length, 'items')} at the same rank`, stayedRows)}`
}

/** The number of places that an item rose among those of both lists, by save key. */
function overtakingOf(kept: Comparison<YearItem>['moved']): (key: string) => number {
  const orderOf = (items: YearItem[]): Map<string, number> =>
    new Map(items.sort((a, b) => a.rank - b.rank).map(({ key }, index) => [key, index]))
  const [before, after] = [orderOf(kept.map((each) => each.before)), orderOf(kept.map((each) => each.after))]
  return (key) => (before.get(key) ?? 0) - (after.get(key) ?? 0)
}

/** A table with its first rows, and the others folded under `rest`. */
function foldedTable(rows: readonly Html[], rest: string, emptyText: string): Html {
  return html`${changesTable(rows.slice(0, ROWS_SHOWN), emptyText)}
  ${folded(`${Math.max(0, rows.length - ROWS_SHOWN)} ${rest}`, rows.slice(ROWS_SHOWN))}`
}

/** The mark of a rank that changed: an arrow and the number of ranks. @param rose ranks it rose; negative if it fell */
export function rankChange(rose: number): Html {
  const [kind, arrow, word] = rose > 0 ? ['up', '▲', 'up'] : ['down', '▼', 'down']
  return html`<span class="rose ${kind}"
    ><span aria-hidden="true">${arrow} </span><span class="unseen">${word} </span>${Math.abs(rose)}</span
  >`
}

export const NEW = html`<span class="rose new">NEW</span>`

function folded(summary: string, rows: readonly Html[]): Html {
  if (rows.length === 0) return NOTHING
  return html`<details class="folded">
    <summary>${summary}</summary>
    ${changesTable(rows, '')}
  </details>`
}

/** The explicit roles replace those that the elements lose when CSS stacks the cells of a row on a narrow screen. */
function changesTable(rows: readonly Html[], emptyText: string): Html {
  if (rows.length === 0) return html`<p class="empty">${emptyText}</p>`
  return html`<table class="compared stacked" role="table">
    <thead role="rowgroup">
      ${columnHeads(['Change', 'Item'], ['Rank', 'Points'])}
    </thead>
    <tbody role="rowgroup">
      ${rows}
    </tbody>
  </table>`
}

function columnHeads(texts: readonly string[], numbers: readonly string[]): Html {
  return html`<tr role="row">
    ${texts.map((title) => html`<th scope="col" role="columnheader">${title}</th>`)}
    ${numbers.map((title) => html`<th scope="col" role="columnheader" class="number">${title}</th>`)}
  </tr>`
}

/** @param then the item in the earlier list; null if it entered. @param now null if it left */
function changeRow(kind: string, change: Html, then: YearItem | null, now: YearItem | null): Html {
  const item = now ?? then
  if (!item) return NOTHING
  return html`<tr role="row" data-key="${item.key}" data-change="${kind}">
    <td role="cell" class="change">${change}</td>
    <th scope="row" role="rowheader">
      ${linkedTitle(item)}
      <a class="source" href="${itemHref(item.key)}"
        >${nameOfSource(item.source)}<span class="unseen">: rank over time</span></a
      >
    </th>
    ${numberCell('Rank', then?.rank, now?.rank)} ${numberCell('Points', then?.points, now?.points)}
  </tr>`
}

/** A number then and now, once if it is the same. */
function numberCell(title: string, then: number | undefined, now: number | undefined): Html {
  const text = (number: number | undefined): string => (number === undefined ? '–' : formatCount(number))
  const [before, after] = [text(then), text(now)]
  return html`<td role="cell" data-title="${title}">
    ${before === after ? before : `${before} → ${after}`}
  </td>`
}
