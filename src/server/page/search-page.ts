import { RULE_PARAMS, parseRule } from '../../domain/feed/subscription.ts'
import {
  LIMIT_MAX,
  PAGED_ITEMS_MAX,
  QUERY_MAX_LENGTH,
  SEARCH_SORTS,
  parseSearchRequest,
} from '../../domain/feed/search/search.ts'
import type { SearchSort } from '../../domain/feed/search/search.ts'
import { findTerm, parseSearchText, withLastAsPrefix } from '../../domain/feed/search/search-terms.ts'
import { placeWords } from '../../domain/feed/search/tokenize.ts'
import type { PlacedWord } from '../../domain/feed/search/tokenize.ts'
import type { Instant } from '../../domain/time.ts'
import { INVALID_RULE } from '../feed/live-routes.ts'
import { searchContract, searchCsvContract } from '../feed/search-routes.ts'
import { storyRow } from './story-row.ts'
import type { PageItem } from './story-row.ts'
import {
  alternateLinksOfSearch,
  givenParams,
  numberFields,
  searchSubscriptions,
  sourceSelect,
} from './feed-rule.ts'
import { SEARCH_PATH } from './layout.ts'
import { NOTHING, formatCount, formatCounted, html, selectField } from './html.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './layout.ts'
import type { View } from './rendered-pages.ts'
import { refusalsOf, section } from './sections.ts'
import type { Section, SectionPage } from './sections.ts'

const DEFAULT_SORT: SearchSort = 'relevance'

const DAYS = ['from', 'to']

/** `/search?q=…`: stored items by words, without scripts (docs/page.md). */
export const SEARCH_PAGE: SectionPage = {
  path: SEARCH_PATH,
  query: {
    known: [...RULE_PARAMS, ...DAYS, 'sort', 'cursor', 'shown'],
    isDefault: (name, value) => name === 'sort' && value === DEFAULT_SORT,
  },
  async render(view) {
    const { query } = view
    return {
      title: `${['Search', query.params.get('q') ?? []].flat().join(': ')} · dash`,
      head: alternateLinksOfSearch(query),
      sections: [await resultsSection(view)],
    }
  },
}

function resultsSection(view: View): Promise<Section | null> {
  const { sources, now, query } = view
  const controls = searchForm(query)
  return section(view, { id: 'results', title: 'Search', headingLevel: 1, controls, refusalOf }, async () => {
    const { params } = query
    const { top = null } = parseRule(givenParams(params, CONDITIONS)) ?? {}
    if (!params.has('q')) return html`<p class="empty">Enter words of a title or of a stored text.</p>`
    const shown = shownBefore(params)
    const parsed = parseSearchRequest(params)
    const request = { ...parsed, limit: Math.min(parsed.limit, Math.max(1, (top ?? Infinity) - shown)) }
    const { items: hits, cursor, total } = await sources.search.search(request)
    const items = hits.map((hit, index) => ({
      ...hit,
      rank: shown + index + 1,
      markedTitle: markWords(hit.title, request.query),
    }))
    const subscriptions = searchSubscriptions(query)
    if (items.length === 0)
      return html`<p class="empty">Nothing stored matches.</p>
        ${subscriptions}`
    const partial = items.filter(({ match }) => match === 'some')
    return html`<p class="as-of">
        ${countOf(total)} · <a href="${searchContract.path}?${String(interfaceParams(params))}">JSON</a>
        ${csvLink(params, total)}
      </p>
      ${results(
        items.filter((item) => !partial.includes(item)),
        now,
      )}
      ${
        partial.length > 0
          ? html`<h2>Some of the words</h2>
              ${results(partial, now)}`
          : NOTHING
      }
      ${cursor === null || shown + items.length === top ? NOTHING : html`<p>${query.sectionLink('results', { cursor, shown: String(shown + items.length) }, 'More results')}</p>`}
      ${subscriptions}`
  })
}

const refusalOf = refusalsOf(searchContract, { invalid_rule: INVALID_RULE })

/** Conditions that are those of a rule. Words may be longer, and sources have a refusal of their own. */
const CONDITIONS = ['minPoints', 'minComments', 'top']

/** The same query of the interface, which has `limit` for `top`. */
function interfaceParams(params: URLSearchParams): URLSearchParams {
  const { top = '', ...others } = Object.fromEntries(params)
  delete others['shown']
  return new URLSearchParams({ ...others, ...(top !== '' && { limit: top }) })
}

/** A link to the first results as CSV, as many as one response holds. */
function csvLink(params: URLSearchParams, total: number | null): Html {
  const query = interfaceParams(params)
  query.delete('cursor')
  if (!query.has('limit')) query.set('limit', String(LIMIT_MAX))
  const limit = Number(query.get('limit'))
  const part = total === null || total > limit ? ` of the first ${limit}` : ''
  return html`<a href="${searchCsvContract.path}?${String(query)}">CSV${part}</a>`
}

/** Number of results on the pages before this one, which the link to it states. */
function shownBefore(params: URLSearchParams): number {
  const shown = params.get('shown') ?? ''
  return params.has('cursor') && /^\d{1,5}$/.test(shown) ? Number(shown) : 0
}

/** A title whose words that a query names are marked, also those that begin with its last word. */
export function markWords(title: string, query: string): Html {
  const typed = parseSearchText(query)
  const terms = withLastAsPrefix(typed) ?? typed
  const text = placeWords(title)
  const places = terms.flatMap((term) => findTerm(text, term)).sort((a, b) => a.start - b.start)
  const pieces: Html[] = []
  let end = 0
  for (const place of mergeOverlaps(places)) {
    pieces.push(html`${title.slice(end, place.start)}<mark>${title.slice(place.start, place.end)}</mark>`)
    end = place.end
  }
  return html`${pieces}${title.slice(end)}`
}

/** @param places in the order of their starts */
function mergeOverlaps(places: readonly PlacedWord[]): Pick<PlacedWord, 'start' | 'end'>[] {
  const merged: { start: number; end: number }[] = []
  for (const { start, end } of places) {
    const last = merged.at(-1)
    if (last && start <= last.end) last.end = Math.max(last.end, end)
    else merged.push({ start, end })
  }
  return merged
}

function results(items: readonly PageItem[], now: Instant): Html {
  if (items.length === 0) return NOTHING
  return html`<ol class="items" start="${items[0]?.rank ?? 1}">
    ${items.map((item) => storyRow({ item, others: [] }, now, true))}
  </ol>`
}

/** The number of results, those with some of the words left out. */
function countOf(total: number | null): string {
  if (total === null) return `More than ${formatCount(PAGED_ITEMS_MAX)} results`
  return total === 0 ? 'No result with all words' : formatCounted(total, 'results')
}

function searchForm(query: PageQuery): Html {
  return html`<form class="filters" action="${SEARCH_PATH}" method="get" aria-label="Search stored items">
    <label
      >Words
      <input type="text" name="q" maxlength="${QUERY_MAX_LENGTH}" value="${query.params.get('q') ?? ''}"
    /></label>
    ${sourceSelect(query.params.get('source') ?? '')}
    ${selectField('Sort', 'sort', SORT_OPTIONS, query.params.get('sort') ?? DEFAULT_SORT)}
    <button type="submit">Search</button>
    <details
      class="view-menu"
      ${[...CONDITIONS, ...DAYS].some((name) => query.params.has(name)) ? html`open` : NOTHING}
    >
      <summary>Filter</summary>
      <div class="filters">
        ${dateField(query, 'from', 'From')} ${dateField(query, 'to', 'To')} ${numberFields(query)}
      </div>
    </details>
  </form>`
}

const SORT_OPTIONS = SEARCH_SORTS.map((sort) => [sort, sort] as const)

function dateField({ params }: PageQuery, name: string, title: string): Html {
  return html`<label>${title} <input type="date" name="${name}" value="${params.get(name) ?? ''}" /></label>`
}
