import { NEED_NAMES } from '../../../domain/models/shortlist.ts'
import type { Need, ShortlistFilter } from '../../../domain/models/shortlist.ts'
import { NOTHING, formatCounted, html } from '../html.ts'
import type { Html } from '../html.ts'
import type { PageQuery } from '../layout.ts'

/** Path of the page of the free models. */
export const MODELS_PATH = '/models'

/** Parameters of the filter. */
export const FILTERS = ['needs', 'minContext', 'health'] as const

/** Context lengths of the filter, in tokens. */
const CONTEXTS = [32_768, 131_072, 262_144, 1_000_000]

export const NEED_TITLES: Readonly<Record<Need, string>> = {
  tools: 'tools',
  toolChoice: 'tool choice',
  structured: 'structured outputs',
  responseFormat: 'response format',
  reasoning: 'reasoning',
  seed: 'seed',
  stop: 'stop',
}

/**
 * Converts the page's query to one of `top-models`: a form sends `needs` once per checkbox, the interface takes one
 * list.
 */
export function shortlistParamsOf(params: URLSearchParams): URLSearchParams {
  const shortlistParams = new URLSearchParams(
    [...params].filter(([name]) => name === 'minContext' || name === 'health'),
  )
  const needs = params.getAll('needs')
  if (needs.length > 0) shortlistParams.set('needs', needs.join(','))
  return shortlistParams
}

/** The folded form of the filter, which is open while it filters. @param count shown and all models, in words */
export function filterForm(
  { needs, minContext, passedOnly }: ShortlistFilter,
  query: PageQuery,
  count: string,
): Html {
  const contexts =
    minContext === null || CONTEXTS.includes(minContext)
      ? CONTEXTS
      : [...CONTEXTS, minContext].sort((a, b) => a - b)
  const isFiltering = needs.length > 0 || minContext !== null || passedOnly
  return html`<details class="notes" ${isFiltering ? html`open` : NOTHING}>
    <summary>Filter <span class="as-of">${count}</span></summary>
    <form class="filters" action="${MODELS_PATH}" method="get" aria-label="Filter models">
      ${query.hiddenFields([...FILTERS, 'model'])}
      <fieldset>
        <legend>Must support</legend>
        ${NEED_NAMES.map(
          (need) =>
            html`<label
              ><input
                type="checkbox"
                id="filter-${need}"
                name="needs"
                value="${need}"
                ${needs.includes(need) ? html`checked` : NOTHING}
              />
              ${NEED_TITLES[need]}</label
            >`,
        )}
      </fieldset>
      <label
        >Context of at least
        <select id="filter-context" name="minContext">
          <option value="">any length</option>
          ${contexts.map(
            (tokens) =>
              html`<option value="${tokens}" ${tokens === minContext ? html`selected` : NOTHING}>
                ${formatCounted(tokens, 'tokens')}
              </option>`,
          )}
        </select></label
      >
      <label
        ><input
          type="checkbox"
          id="filter-health"
          name="health"
          value="passed"
          ${passedOnly ? html`checked` : NOTHING}
        />
        followed the format</label
      >
      <button type="submit">Filter</button>
      ${query.sectionLink('models', { needs: null, minContext: null, health: null, model: null }, 'All models')}
    </form>
  </details>`
}
