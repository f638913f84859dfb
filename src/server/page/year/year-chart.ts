import { formatInstant } from '../../../domain/time.ts'
import { invalidParameter } from '../../../domain/wire-format.ts'
import type { TimelineStop } from '../../../domain/year/history/calendar.ts'
import type { BumpColumn } from '../../../domain/year/history/rank-history.ts'
import { invalidValues } from '../../route.ts'
import { CHART_THEMES, chartOf } from '../../year/rank-charts.ts'
import { CHART_PATH, COUNT_DEFAULT } from '../../year/rank-routes.ts'
import { manifestsOf, PUBLICATIONS_MAX } from '../../year/year-lists.ts'
import type { ListsByDigest } from '../../year/year-lists.ts'
import { NOTHING, copyable, html, isolated } from '../html.ts'
import type { Html } from '../html.ts'
import { itemHref, withQuery } from '../layout.ts'
import type { PageQuery } from '../layout.ts'

const COUNTS = [COUNT_DEFAULT, PUBLICATIONS_MAX]

export const CHART_PARAM = 'chart'

/** Parses the number of publications of the chart. @throws Refusal `invalid_chart` */
export function parseChartCount({ params }: PageQuery): number {
  const texts = params.getAll(CHART_PARAM)
  if (texts.length === 0) return COUNT_DEFAULT
  const count = COUNTS.find((each) => String(each) === texts[0])
  if (count === undefined || texts.length > 1) throw invalidParameter('invalid_chart', CHART_PARAM, texts)
  return count
}

export const INVALID_CHART = invalidValues({ [CHART_PARAM]: COUNTS.join(' or ') })

/**
 * Renders the bump chart of Popular up to the shown publication, and the same numbers as a table.
 *
 * @param stops the shown part of the timeline, which ends with a publication or its gap
 */
export function yearChart(
  stops: readonly TimelineStop[],
  lists: ListsByDigest,
  count: number,
  { query, baseUrl }: { query: PageQuery; baseUrl: string },
): Html {
  const newest = manifestsOf(stops).at(-1)
  if (!newest || !lists.get(newest.sha256)) return NOTHING
  const at = formatInstant(newest.publishedAt)
  const params = { at, count: String(count) }
  const { columns, lines, top, titleOf } = chartOf(stops, lists)
  const name = `Ranks of the first ${top} of Popular in ${manifestsOf(stops).length} publications up to ${newest.asOfDay}`
  const spans = COUNTS.map((each) =>
    query.sectionLink(
      'feed',
      { chart: each === COUNT_DEFAULT ? null : String(each) },
      `${each} publications`,
      each === count ? html`aria-current="true"` : NOTHING,
    ),
  )
  return html`<figure class="bump">
    <figcaption>
      <h3>Top ${top} over time</h3>
      <p>
        ${spans[0] ?? NOTHING} ${spans[1] ?? NOTHING}
        <a href="${withQuery(CHART_PATH, { ...params, theme: 'light' })}">SVG</a>
      </p>
    </figcaption>
    <div class="wide" tabindex="0" role="group" aria-label="${name}, chart">
      ${CHART_THEMES.map(
        (theme) =>
          html`<img
            class="in-${theme}"
            src="${withQuery(CHART_PATH, { ...params, theme })}"
            alt="${name}; the table below has the same numbers"
            loading="lazy"
            width="936"
            height="${30 + top * 24 + 12}"
          />`,
      )}
    </div>
    <details>
      <summary>The same numbers as a table</summary>
      <div class="wide rows" tabindex="0" role="group" aria-label="${name}">
        <table class="compared" id="chart-table">
          <caption>
            ${name}
          </caption>
          <thead>
            <tr>
              <th scope="col">Item</th>
              ${columns.map((column) => html`<th scope="col" class="number">${dayOf(column)}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${lines.map(
              ({ key, ranks }) =>
                html`<tr data-key="${key}">
                  <th scope="row">
                    <a href="${itemHref(key)}">${isolated(titleOf(key))}</a>
                  </th>
                  ${ranks.map((rank, index) => html`<td>${rank ?? (columns[index]?.isGap ? 'gap' : '–')}</td>`)}
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
    </details>
    ${shareBox(baseUrl, withQuery('/', { sort: 'year', at }), { path: CHART_PATH, params, alt: name })}
  </figure>`
}

function dayOf({ firstDay, lastDay }: BumpColumn): string {
  return firstDay === lastDay ? firstDay.slice(5) : `${firstDay.slice(5)} to ${lastDay.slice(5)}`
}

/**
 * A link to a view at this moment, and its chart for other pages: in Markdown, and in HTML for both themes. The chart of a
 * time stays the same while no publication is added before it.
 *
 * @param view path and query of the view
 * @param chart path of the chart, its query without a theme, and its description
 */
export function shareBox(
  baseUrl: string,
  view: string,
  chart: { path: string; params: Readonly<Record<string, string>>; alt: string },
): Html {
  const [light, dark] = CHART_THEMES.map(
    (theme) => baseUrl + withQuery(chart.path, { ...chart.params, theme }),
  ) as [string, string]
  const link = baseUrl + view
  const picture = html`<a href="${link}"
    ><picture
      ><source media="(prefers-color-scheme: dark)" srcset="${dark}" />
      <img src="${light}" alt="${chart.alt}" /></picture
  ></a>`
  const alt = chart.alt.replaceAll(/[[\]\\]/g, String.raw`\$&`)
  return html`<details class="share">
    <summary>Share and embed</summary>
    ${copyable({ id: 'share-link', caption: 'Link to this moment', copiedThing: 'the link', text: link })}
    ${copyable({ id: 'share-markdown', caption: 'Chart in Markdown', copiedThing: 'the Markdown', text: `[![${alt}](${light})](${link})` })}
    ${copyable({ id: 'share-html', caption: 'Chart in HTML, light and dark', copiedThing: 'the HTML', text: picture.html.replaceAll(/\s*\n\s*/g, ' ') })}
  </details>`
}
