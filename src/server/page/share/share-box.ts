import { copyable, html } from '../html.ts'
import type { Html } from '../html.ts'
import { CHART_THEMES } from '../../year/bump-chart.ts'
import { withQuery } from './preview.ts'

/** What a view offers to other pages. */
interface Shared {
  baseUrl: string
  /** Path and query of the view at this moment. */
  path: string
  /** A chart of the same moment: its path, its query without a theme, and its description. */
  chart: { path: string; params: Readonly<Record<string, string>>; alt: string }
}

/**
 * A link to this moment, and its chart for other pages: in Markdown, and in HTML for both themes. The chart of a time stays
 * the same while no publication is added before it.
 */
export function shareBox({ baseUrl, path, chart }: Shared): Html {
  const [light, dark] = CHART_THEMES.map(
    (theme) => baseUrl + withQuery(chart.path, { ...chart.params, theme }),
  ) as [string, string]
  const link = baseUrl + path
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
