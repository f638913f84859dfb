import type { Day } from '../../../domain/time.ts'
import { itemChartSvg } from '../../year/item-chart.ts'
import type { ItemChart } from '../../year/item-chart.ts'
import { formatCount, html } from '../html.ts'
import type { Html } from '../html.ts'

/** A column of numbers by day. */
interface Series<Row> {
  title: string
  valueOf: (row: Row) => number | null
}

/** A day with numbers, or days without numbers and the reason. */
export type ChartRow<Row> = { day: Day; row: Row } | { days: string; reason: string }

interface NumbersTable<Row> {
  /** Id of the table. */
  id: string
  caption: string
  series: readonly Series<Row>[]
  rows: readonly ChartRow<Row>[]
}

/** Renders the ranks of an item over time as a picture in the colours of the page. */
export function chartFigure(chart: Omit<ItemChart, 'theme'>): Html {
  const svg: Html = { html: itemChartSvg({ ...chart, theme: 'page' }) }
  return html`<figure class="over-time">${svg}</figure>`
}

/** Renders numbers by day as a folded table. Days without an observation are separate rows. */
export function numbersTable<Row>({ id, caption, series, rows }: NumbersTable<Row>): Html {
  return html`<details class="folded">
    <summary>${caption}, as a table</summary>
    <div class="wide rows" tabindex="0" role="group" aria-label="${caption}">
      <table class="compared" id="${id}">
        <caption class="unseen">
          ${caption}
        </caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            ${series.map(({ title }) => html`<th scope="col" class="number">${title}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map((chartRow) => rowOf(chartRow, series))}
        </tbody>
      </table>
    </div>
  </details>`
}

function rowOf<Row>(chartRow: ChartRow<Row>, series: readonly Series<Row>[]): Html {
  if ('reason' in chartRow)
    return html`<tr class="absent">
      <th scope="row">${chartRow.days}</th>
      <td colspan="${series.length}">${chartRow.reason}</td>
    </tr>`
  const numbers = series.map(({ valueOf }) => valueOf(chartRow.row))
  return html`<tr>
    <th scope="row">${chartRow.day}</th>
    ${numbers.map((number) => html`<td>${number === null ? '–' : formatCount(number)}</td>`)}
  </tr>`
}
