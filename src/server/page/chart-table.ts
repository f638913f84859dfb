import type { Day } from '../../domain/time.ts'
import { formatCount } from './counts.ts'
import { html, NOTHING } from './html.ts'
import type { Html } from './html.ts'

/** A column of numbers by day; those with a chart are drawn. */
interface Series<Row> {
  title: string
  drawn: boolean
  valueOf: (row: Row) => number | null
}

/** A day with numbers, or days without an observation and why. */
export type ChartRow<Row> = { day: Day; row: Row } | { days: string; absent: string }

export interface ChartTable<Row> {
  /** Id of the table. */
  id: string
  caption: string
  series: readonly Series<Row>[]
  rows: readonly ChartRow<Row>[]
}

/**
 * Ranks by day as a table, which a script draws as a chart above it (assets/page/chart.js): the chart is made of nothing
 * but the table. Days without an observation are rows of their own.
 */
export function chartTable<Row>({ id, caption, series, rows }: ChartTable<Row>): Html {
  return html`<figure class="over-time">
    <div class="chart needs-script" data-table="${id}"></div>
    <div class="wide rows" tabindex="0" role="group" aria-label="${caption}">
      <table class="compared" id="${id}">
        <caption>
          ${caption}
        </caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            ${series.map(
              ({ title, drawn }) =>
                html`<th scope="col" class="number" ${drawn ? html`data-drawn` : NOTHING}>${title}</th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${rows.map((each) => rowOf(each, series))}
        </tbody>
      </table>
    </div>
  </figure>`
}

function rowOf<Row>(each: ChartRow<Row>, series: readonly Series<Row>[]): Html {
  if ('absent' in each)
    return html`<tr class="absent">
      <th scope="row">${each.days}</th>
      <td colspan="${series.length}">${each.absent}</td>
    </tr>`
  const numbers = series.map(({ valueOf }) => valueOf(each.row))
  return html`<tr data-day="${each.day}">
    <th scope="row">${each.day}</th>
    ${numbers.map((number) =>
      number === null ? html`<td>–</td>` : html`<td data-value="${number}">${formatCount(number)}</td>`,
    )}
  </tr>`
}
