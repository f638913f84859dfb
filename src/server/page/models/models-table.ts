import { shortTokens } from '../../../domain/models/ranking.ts'
import type { RankedModel } from '../../../domain/models/schema.ts'
import { NEED_NAMES } from '../../../domain/models/shortlist.ts'
import type { Need, ShortlistFilter } from '../../../domain/models/shortlist.ts'
import { summaryOfRecord } from '../../../domain/models/history.ts'
import type { RecordSummary, TrackRecord } from '../../../domain/models/history.ts'
import { invalidParameter } from '../../../domain/wire-format.ts'
import { invalidValues } from '../../route.ts'
import { givenParams } from '../feed-rule.ts'
import { NOTHING, formatCount, formatCounted, html, selectField } from '../html.ts'
import type { Html } from '../html.ts'
import type { PageQuery } from '../layout.ts'

export const SORT_PARAM = 'sort'

/** A model with its tests of the last days; null if those cannot be read. */
interface TableRow {
  model: RankedModel
  /** False for a model whose status does not come from a test. */
  tested: boolean
  record: TrackRecord | null
}

interface Column {
  title: string
  /** Order of the values from the best one. */
  order: 'ascending' | 'descending'
  /** Null for a value that is not known, which stands last. */
  valueOf: (row: TableRow) => number | string | null
}

/** The columns by which the table can be sorted, by their values in the query. */
const COLUMNS = {
  rank: { title: 'Rank', order: 'ascending', valueOf: ({ model }) => model.rank },
  name: { title: 'Model', order: 'ascending', valueOf: ({ model }) => model.name.toLowerCase() },
  tasks: { title: 'Tasks', order: 'descending', valueOf: ({ model }) => tasksSolved(model) },
  format: {
    title: 'Format',
    order: 'descending',
    valueOf: ({ model, tested }) => formatResult(model, tested).mark,
  },
  tool: { title: 'Tool', order: 'descending', valueOf: ({ model }) => toolResult(model).mark },
  response: { title: 'Response', order: 'ascending', valueOf: ({ model }) => model.latencyMs },
  success: { title: '14 days', order: 'descending', valueOf: ({ record }) => successOf(record) },
  context: { title: 'Context', order: 'descending', valueOf: ({ model }) => model.contextLength },
} as const satisfies Record<string, Column>

type Sort = keyof typeof COLUMNS

/** Parses the column by which the table is sorted. @throws Refusal `invalid_sort` */
export function parseSort({ params }: PageQuery): Sort {
  const [sort = 'rank', ...others] = params.getAll(SORT_PARAM)
  if (!Object.hasOwn(COLUMNS, sort) || others.length > 0)
    throw invalidParameter('invalid_sort', SORT_PARAM, [sort, ...others])
  return sort as Sort
}

export const INVALID_SORT = invalidValues({ [SORT_PARAM]: `one of ${Object.keys(COLUMNS).join(', ')}` })

interface TableOptions {
  chosen: string | null
  sort: Sort
  /** Ids of models whose status does not come from a test. */
  untested: readonly string[]
  /** Null if the tests of the last days cannot be read. */
  records: ((id: string) => TrackRecord) | null
  query: PageQuery
}

/** The explicit roles replace those that the elements lose when CSS turns rows into two lines on a narrow screen. */
export function modelsTable(
  models: readonly RankedModel[],
  { chosen, sort, untested, records, query }: TableOptions,
): Html {
  const rows = sorted(
    models.map((model) => ({
      model,
      tested: !untested.includes(model.id),
      record: records?.(model.id) ?? null,
    })),
    COLUMNS[sort],
  )
  const slowestMs = Math.max(
    ...rows.map(({ record }) => (record && summaryOfRecord(record).slowestMs) ?? 0),
    1,
  )
  return html`<table class="models" role="table">
    <caption class="unseen">
      Free models with the results of their tests
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        ${Object.entries(COLUMNS).map(([name, column]) => heading(name as Sort, column, name === sort, query))}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows.map((each) => row(each, each.model.id === chosen, slowestMs, query))}
    </tbody>
  </table>`
}

/** Models with equal values keep the order of their ranks. */
function sorted(rows: readonly TableRow[], { valueOf, order }: Column): TableRow[] {
  const sign = order === 'ascending' ? 1 : -1
  return rows.toSorted((a, b) => {
    const [one, other] = [valueOf(a), valueOf(b)]
    if (one === null || other === null) return Number(one === null) - Number(other === null)
    return one === other ? 0 : one < other ? -sign : sign
  })
}

function heading(name: Sort, { title, order }: Column, isSorted: boolean, query: PageQuery): Html {
  const sortedBy = isSorted ? html`aria-sort="${order}"` : NOTHING
  const link = query.sectionLink('models', { [SORT_PARAM]: name === 'rank' ? null : name }, title)
  return html`<th scope="col" role="columnheader" ${sortedBy}>${link}</th>`
}

function row(
  { model, tested, record }: TableRow,
  isChosen: boolean,
  slowestMs: number,
  query: PageQuery,
): Html {
  const { rank, previousRank, id, name, latencyMs, contextLength } = model
  const moved =
    previousRank === null || previousRank === rank ? NOTHING : html` <small>was ${previousRank}</small>`
  const link = query.sectionLink(
    'models',
    { model: id },
    html`<bdi>${name}</bdi>`,
    isChosen ? html`aria-current="true"` : NOTHING,
  )
  return html`<tr role="row" data-model="${id}" ${isChosen ? html`class="chosen"` : NOTHING}>
    <td role="cell" class="rank">${rank}${moved}</td>
    <th scope="row" role="rowheader">${link}</th>
    <td role="cell" data-unit="tasks">${tasksText(model)}</td>
    <td role="cell" data-unit="format">${markOf(formatResult(model, tested))}</td>
    <td role="cell" data-unit="tool">${markOf(toolResult(model))}</td>
    <td role="cell">${latencyMs === null ? '–' : `${formatCount(latencyMs)} ms`}</td>
    <td role="cell">${record ? sparkline(record, slowestMs) : '–'}</td>
    <td role="cell">${shortTokens(contextLength)}</td>
  </tr>`
}

/** The result of a test: 1 if it was passed, null if there was none. */
interface TestResult {
  mark: 0 | 1 | null
  text: string
}

const NOT_TESTED: TestResult = { mark: null, text: 'not tested' }
const NOT_SERVED: TestResult = { mark: 0, text: 'had no endpoint at the service' }

function markOf({ mark, text }: TestResult): Html {
  const [symbol, kind] = mark === null ? ['–', 'plain'] : mark === 1 ? ['✓', 'good'] : ['✕', 'bad']
  return html`<span class="${kind}" title="${text}"
    ><span aria-hidden="true">${symbol}</span><span class="unseen">${text}</span></span
  >`
}

const FAILURES: Readonly<Record<string, string>> = {
  imperfect: 'did not follow the format',
  timeout: 'did not answer in time',
  failed: 'did not answer',
}

/** @param tested false if the status does not come from a test */
export function formatResult({ healthStatus }: RankedModel, tested: boolean): TestResult {
  if (!tested && healthStatus === 'failed') return NOT_SERVED
  if (!tested || healthStatus === 'not_probed') return NOT_TESTED
  if (healthStatus === 'passed') return { mark: 1, text: 'followed the format' }
  return {
    mark: 0,
    text: FAILURES[healthStatus] ?? `answered with ${healthStatus.replace('http_', 'HTTP ')}`,
  }
}

function toolResult({ toolUse, supportsTools }: RankedModel): TestResult {
  if (toolUse === 'unknown') return NOT_TESTED
  if (toolUse === 'proven') return { mark: 1, text: 'called a tool' }
  return { mark: 0, text: supportsTools ? 'claims tools, called none' : 'called no tool' }
}

function tasksSolved({ evalSummary: { status, passed } }: RankedModel): number | null {
  return status === 'not_evaluated' ? null : passed
}

function tasksText({ evalSummary: { status, passed, total, cacheAgeDays } }: RankedModel): Html {
  if (status === 'not_evaluated') return html`–<span class="unseen"> not tested</span>`
  const age =
    cacheAgeDays === undefined ? NOTHING : html` <small>${formatCounted(cacheAgeDays, 'days')} ago</small>`
  return html`${passed}/${total}${age}`
}

function successOf(record: TrackRecord | null): number | null {
  if (record === null) return null
  const { tested, answered } = summaryOfRecord(record)
  return tested === 0 ? null : answered / tested
}

/** Sizes of the line of a track record, in pixels. */
const DAY_WIDTH = 7
const LINE = { height: 20, top: 3, bottom: 17 }

/** Response times by day as a line; a cross is a day on which the model did not answer, a break one without a test. */
function sparkline(record: TrackRecord, slowestMs: number): Html {
  const summary = summaryOfRecord(record)
  const text = recordText(summary, record.length)
  const { tested, answered } = summary
  if (tested < 2)
    return html`${tested === 0 ? '–' : `${answered}/${tested}`}<span class="unseen">: ${text}</span>`
  const width = record.length * DAY_WIDTH
  const xOf = (index: number): number => (index + 0.5) * DAY_WIDTH
  const yOf = (ms: number): number => Math.round(LINE.bottom - (ms / slowestMs) * (LINE.bottom - LINE.top))
  const timeOf = (index: number): number | null => record[index]?.latencyMs ?? null
  const line = record.map((_, index) => {
    const ms = timeOf(index)
    if (ms === null) return ''
    // A line of length 0 draws a dot.
    return timeOf(index - 1) === null ? `M${xOf(index)} ${yOf(ms)}h0` : `L${xOf(index)} ${yOf(ms)}`
  })
  const crosses = record.map((each, index) =>
    each && !each.answered ? `M${xOf(index) - 2.5} 7.5l5 5m0-5l-5 5` : '',
  )
  return html`<svg
      class="record"
      width="${width}"
      height="${LINE.height}"
      viewBox="0 0 ${width} ${LINE.height}"
      role="img"
    >
      <title>${text}</title>
      <path class="times" d="${line.join('')}" />
      <path class="failures" d="${crosses.join('')}" /></svg
    ><small aria-hidden="true">${answered}/${tested}</small>`
}

function recordText(
  { tested, answered, fastestMs, slowestMs, failedDays }: RecordSummary,
  days: number,
): string {
  if (tested === 0) return `no test in ${days} days`
  const times =
    fastestMs === null || slowestMs === null
      ? ''
      : fastestMs === slowestMs
        ? `, in ${formatCount(fastestMs)} ms`
        : `, in ${formatCount(fastestMs)} to ${formatCount(slowestMs)} ms`
  const failures = failedDays.length === 0 ? '' : `; no answer on ${failedDays.join(', ')}`
  return `answered on ${answered} of ${formatCounted(tested, 'days')} with a test, of the last ${days}${times}${failures}`
}

export const MODELS_PATH = '/models'

export const FILTERS = ['needs', 'minContext', 'health'] as const

/** Context lengths of the filter, in tokens. */
const CONTEXTS = [32_768, 131_072, 262_144, 1_000_000] as const

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
  const shortlistParams = givenParams(params, ['minContext', 'health'])
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
  const lengths = [...new Set([...CONTEXTS, minContext ?? CONTEXTS[0]])].toSorted((a, b) => a - b)
  const contexts = lengths.map((tokens) => [String(tokens), formatCounted(tokens, 'tokens')] as const)
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
      ${selectField('Context of at least', 'minContext', [['', 'any length'], ...contexts], String(minContext ?? ''))}
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
