import type { Day } from '../../../domain/time.ts'
import { NOTHING, formatCount, html } from '../html.ts'
import type { Html } from '../html.ts'

/** A column of numbers by day, which the chart may draw. */
interface Series<Row> {
  title: string
  drawn: boolean
  valueOf: (row: Row) => number | null
}

/** A day with numbers, or days without numbers and the reason. */
export type ChartRow<Row> = { day: Day; row: Row } | { days: string; reason: string }

interface ChartTable<Row> {
  /** Id of the table. */
  id: string
  caption: string
  /** False for too few days to draw. */
  isDrawn: boolean
  series: readonly Series<Row>[]
  rows: readonly ChartRow<Row>[]
}

/**
 * Renders ranks by day as a folded table, from which a script draws a chart above it (assets/page/chart.js). Days without
 * an observation are separate rows.
 */
export function chartTable<Row>({ id, caption, isDrawn, series, rows }: ChartTable<Row>): Html {
  return html`<figure class="over-time">
    ${isDrawn ? html`<div class="chart needs-script" data-table="${id}"></div>` : NOTHING}
    <details>
      <summary>The numbers as a table</summary>
      <div class="wide rows" tabindex="0" role="group" aria-label="${caption}">
        <table class="compared" id="${id}">
          <caption class="unseen">
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
            ${rows.map((chartRow) => rowOf(chartRow, series))}
          </tbody>
        </table>
      </div>
    </details>
  </figure>`
}

function rowOf<Row>(chartRow: ChartRow<Row>, series: readonly Series<Row>[]): Html {
  if ('reason' in chartRow)
    return html`<tr class="absent">
      <th scope="row">${chartRow.days}</th>
      <td colspan="${series.length}">${chartRow.reason}</td>
    </tr>`
  const numbers = series.map(({ valueOf }) => valueOf(chartRow.row))
  return html`<tr data-day="${chartRow.day}">
    <th scope="row">${chartRow.day}</th>
    ${numbers.map((number) =>
      number === null ? html`<td>–</td>` : html`<td data-value="${number}">${formatCount(number)}</td>`,
    )}
  </tr>`
}
