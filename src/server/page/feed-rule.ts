import { COLUMN_LENGTH } from '../../domain/feed/columns.ts'
import { RULE_PARAMS, RULE_QUERY_MAX_LENGTH, nameOfSource } from '../../domain/feed/subscription.ts'
import { MINIMUM_MAX } from '../../domain/feed/search/search.ts'
import { HYPE_SOURCES } from '../../domain/feed/source.ts'
import { JSON_FEED_TYPE } from '../feed/formats.ts'
import { SUBSCRIPTION_CONTRACTS, liveContract, liveCsvContract } from '../feed/live-routes.ts'
import { historyContract, historyCsvContract } from '../year/routes.ts'
import { YEAR_CHANGES_CONTRACTS } from '../year/year-changes.ts'
import { SEARCH_PATH } from './layout.ts'
import { NOTHING, html, selectField } from './html.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './layout.ts'
import { isYear } from './year/time-travel.ts'

/** Sources of the columns that a subscription can be limited to. */
const COLUMN_SOURCES: Readonly<Record<string, readonly string[]>> = {
  hackerNews: ['hn'],
  lobsters: ['lobsters'],
  lessWrong: ['lesswrong'],
  hypeReplicate: HYPE_SOURCES,
  midjourney: ['midjourney'],
}

const ALL_SOURCES = Object.values(COLUMN_SOURCES).flat()

const FORMATS: Readonly<Record<string, string>> = {
  'application/rss+xml': 'RSS',
  'application/atom+xml': 'Atom',
  [JSON_FEED_TYPE]: 'JSON Feed',
}

interface LinkedFeed {
  format: string
  type: string
  href: string
}

/** The feeds of the shown view: with the period, rule and column of a live view, or the changes of the Year with its rule. */
function feedsOfView(query: PageQuery): LinkedFeed[] {
  return isYear(query)
    ? linkedFeeds(YEAR_CHANGES_CONTRACTS, String(givenParams(query.params, RULE_PARAMS)))
    : linkedFeeds(SUBSCRIPTION_CONTRACTS, String(subscriptionParams(query.params)))
}

/** The longest live period: a search subscribes to what it holds. */
const SEARCHED_SORT = 'month'

/** The query of the live period in which the words and conditions of a search select; null if they are no rule. */
function listsOfSearch({ params }: PageQuery): URLSearchParams | null {
  const q = params.get('q') ?? ''
  if (q.trim() === '' || q.length > RULE_QUERY_MAX_LENGTH) return null
  return new URLSearchParams([['sort', SEARCHED_SORT], ...givenParams(params, RULE_PARAMS)])
}

/** Links by which feed readers find the feeds of a search: those of the live period with its words and conditions. */
export function alternateLinksOfSearch(query: PageQuery): Html {
  const lists = listsOfSearch(query)
  const feeds = lists === null ? [] : linkedFeeds(SUBSCRIPTION_CONTRACTS, String(lists))
  return alternateElements(feeds, `dash, stories with ${query.params.get('q') ?? ''}`)
}

/** The subscriptions to a search, and the same search in the lists. */
export function searchSubscriptions(query: PageQuery): Html {
  const lists = listsOfSearch(query)
  if (lists === null) return NOTHING
  const conditions = givenParams(query.params, RULE_PARAMS).size > 1 ? ' and filters' : ''
  const what = html`stories of the <a href="/?${String(lists)}">lists of the last 30 days</a> with these
    words${conditions}`
  return subscribeLine(linkedFeeds(SUBSCRIPTION_CONTRACTS, String(lists)), what)
}

/** @param query of the feed's URLs; empty for none */
export function linkedFeeds(
  contracts: readonly { path: string; contentType?: string }[],
  query = '',
): LinkedFeed[] {
  return contracts.map(({ path, contentType = '' }) => ({
    format: FORMATS[contentType] ?? '',
    type: contentType,
    href: query === '' ? path : `${path}?${query}`,
  }))
}

export function givenParams(params: URLSearchParams, names: readonly string[]): URLSearchParams {
  return new URLSearchParams([...params].filter(([name]) => names.includes(name)))
}

function subscriptionParams(params: URLSearchParams): URLSearchParams {
  const subscription = givenParams(params, ['sort', ...RULE_PARAMS])
  const ofColumn = COLUMN_SOURCES[params.get('column') ?? ''] ?? []
  const chosen = params.get('source')?.split(',')
  const sources = ofColumn.filter((source) => chosen?.includes(source) ?? true)
  if (sources.length > 0) subscription.set('source', sources.join(','))
  return subscription
}

/** Links by which feed readers find the feeds of the shown view. */
export function alternateLinks(query: PageQuery): Html {
  return alternateElements(feedsOfView(query), isYear(query) ? 'dash, changes of the Year' : 'dash')
}

/** Elements of a page's head by which feed readers find feeds. */
export function alternateElements(feeds: readonly LinkedFeed[], title: string): Html {
  return html`${feeds.map(
    ({ format, type, href }) =>
      html`<link rel="alternate" type="${type}" title="${title} (${format})" href="${href}" /> `,
  )}`
}

/** The filter, the subscriptions and the data of the shown view, closed without a rule. They work without scripts. */
export function viewMenu(query: PageQuery): Html {
  return html`<details class="view-menu" ${hasRule(query) ? html`open` : NOTHING}>
    <summary>Filter<span class="roomy">, subscribe</span></summary>
    ${ruleForm(query)} ${archiveLink(query)} ${subscribeLinks(query)} ${dataLinks(query)}
  </details>`
}

/** The same search in everything stored, for a rule with words. */
function archiveLink({ params }: PageQuery): Html {
  if (!params.has('q')) return NOTHING
  const search = `${SEARCH_PATH}?${String(givenParams(params, RULE_PARAMS))}`
  return html`<p class="as-of"><a href="${search}">Search everything stored for these words</a></p>`
}

function subscribeLinks(query: PageQuery): Html {
  const changes = hasRule(query) ? 'the matching changes of the Year' : 'the changes of the Year'
  return subscribeLine(feedsOfView(query), isYear(query) ? changes : 'this view')
}

/** The shown lists as the interface returns them. */
function dataLinks(query: PageQuery): Html {
  const [json, csv, sort, names] = isYear(query)
    ? ([historyContract, historyCsvContract, 'year', ['at']] as const)
    : ([liveContract, liveCsvContract, 'trending', ['sort', ...RULE_PARAMS]] as const)
  const given = givenParams(query.params, names)
  if (!given.has('sort')) given.set('sort', sort)
  const isWhole = isYear(query) && (hasRule(query) || query.params.has('with'))
  return html`<p class="as-of">
    ${isWhole ? 'The whole Year' : 'These lists'} as <a href="${json.path}?${String(given)}">JSON</a>
    <a href="${csv.path}?${String(given)}">CSV</a>
  </p>`
}

export function subscribeLine(feeds: readonly LinkedFeed[], what: Html | string): Html {
  return html`<p class="as-of">
    Subscribe to ${what}: ${feeds.map(({ format, href }) => html`<a href="${href}">${format}</a> `)}
  </p>`
}

function ruleForm(query: PageQuery): Html {
  const { params } = query
  return html`<form class="filters" action="/#feed" method="get" aria-label="Filter the feed">
    ${query.hiddenFields(RULE_PARAMS)}
    <label
      >Words of the title
      <input type="text" name="q" maxlength="${RULE_QUERY_MAX_LENGTH}" value="${params.get('q') ?? ''}"
    /></label>
    ${sourceSelect(params.get('source') ?? '')} ${numberFields(query)}
    <button type="submit">Filter</button>
    ${hasRule(query) ? query.sectionLink('feed', NO_RULE, 'No filter') : NOTHING}
  </form>`
}

/** The fields of a rule besides its words and sources. */
export function numberFields(query: PageQuery): Html {
  return html`${numberField(query, 'minPoints', 'Points of at least', 0, MINIMUM_MAX)}
  ${numberField(query, 'minComments', 'Comments of at least', 0, MINIMUM_MAX)}
  ${numberField(query, 'top', 'At most items', 1, COLUMN_LENGTH)}`
}

/** True if the query has a rule, valid or not. */
function hasRule({ params }: PageQuery): boolean {
  return RULE_PARAMS.some((name) => params.has(name))
}

export const NO_MATCH = html`<p class="empty">No item of this period matches the filter.</p>`

const NO_RULE = { q: null, source: null, minPoints: null, minComments: null, top: null } as const

function numberField({ params }: PageQuery, name: string, title: string, min: number, max: number): Html {
  return html`<label
    >${title} <input type="number" name="${name}" min="${min}" max="${max}" value="${params.get(name) ?? ''}"
  /></label>`
}

/** @param value the value of `source`, which may be a list; empty for all */
export function sourceSelect(value: string): Html {
  const values = ['', ...ALL_SOURCES, ...(value === '' || ALL_SOURCES.includes(value) ? [] : [value])]
  const nameOf = (each: string): string =>
    each === '' ? 'all' : each.split(',').map(nameOfSource).join(', ')
  return selectField(
    'Source',
    'source',
    values.map((each) => [each, nameOf(each)]),
    value,
  )
}
