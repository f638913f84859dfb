import { z } from 'zod'
import { LIVE_SORTS, parseLiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import { parseQuery } from '../../domain/query.ts'
import { Refusal } from '../../domain/refusal.ts'
import { liveContract } from '../feed/live-routes.ts'
import { parseFeed } from '../feed/proved-snapshots.ts'
import { COLUMN_NAMES, feedColumns, titleOf } from './feed-items.ts'
import type { ColumnName } from './feed-items.ts'
import { NOTHING, ageOf, html, instantOf } from './html.ts'
import type { Html } from './html.ts'
import { refusalsOf } from './layout.ts'
import type { PageQuery, Panel } from './layout.ts'
import { NO_MOMENTS, YEAR_PARAMS, isYear, refusalOfYear } from './time-travel.ts'
import { yearView } from './year-view.ts'

const PERIODS = [...LIVE_SORTS, 'year'] as const
type Period = (typeof PERIODS)[number]

const PERIOD_TITLES: Readonly<Record<Period, string>> = {
  trending: 'Trending',
  day: 'Day',
  week: 'Week',
  month: 'Month',
  year: 'Year',
}

const PERIOD_ABOUT: Readonly<Record<LiveSort, string>> = {
  trending: 'rising now; weight halves every six hours',
  day: 'the last 24 hours',
  week: 'the last 7 days',
  month: 'the last 30 days',
}

/**
 * The feed panel: live periods from the newest snapshot, the Year of any time from its publications.
 *
 * @param baseUrl public URL of the server
 */
export function feedPanel(baseUrl: () => string): Panel {
  const year = yearView(baseUrl)
  return {
    id: 'feed',
    title: 'Feed',
    params: ['sort', 'column', ...YEAR_PARAMS],
    // Keep `sort` next to a time parameter: without it, the time would select the Year.
    isDefault: (name, value, params) =>
      name === 'sort' &&
      value === 'trending' &&
      params.getAll(name).length === 1 &&
      !YEAR_PARAMS.some((each) => params.has(each)),
    controls: ({ query }) => periodTabs(query),
    redirect: async (view) => (isYear(view.query) ? year.redirect(view) : null),
    async render(view) {
      const { sources, now, query } = view
      const column = parseColumn(query.params)
      if (isYear(query)) return year.render(view, column)
      if (YEAR_PARAMS.some((name) => query.params.has(name))) throw new Refusal('no_past')
      const sort = parseLiveSort(query.params)
      const proved = await sources.snapshots.newest(sort)
      if (!proved) return NO_SNAPSHOT
      const { generatedAt, id } = proved.snapshot
      const content = html`<p class="as-of">
          ${PERIOD_ABOUT[sort]}, as of ${instantOf(generatedAt)} (${ageOf(generatedAt, now)}) · snapshot
          <code>${id}</code> · <a href="/api/feed?sort=${sort}">JSON</a>
        </p>
        ${feedColumns(parseFeed(proved), column, now, query)}`
      return { status: 200, content, title: titleOf(column, PERIOD_TITLES[sort]) }
    },
    refusalOf(error, view) {
      const ownRefusal = error instanceof Refusal ? OWN_REFUSALS[error.code] : undefined
      if (ownRefusal) return { status: 400, ...ownRefusal }
      return isYear(view.query) ? refusalOfYear(error, view) : refusalOfLive(error)
    },
  }
}

/** Refusals of the page itself, by thrown code. */
const OWN_REFUSALS: Readonly<Record<string, { code: string; when: string }>> = {
  invalid_column: {
    code: 'invalid_column',
    when: `\`column\` is not one of ${COLUMN_NAMES.join(', ')}`,
  },
  no_past: { code: 'invalid_sort', when: 'times need `sort=year`: only the Year has a history' },
}

const NO_SNAPSHOT = html`<p class="empty">
  No snapshot of the live feed is stored yet. Create one with <code>dash collect</code> or
  <code>dash snapshot</code>.
</p>`

const refusalOfLive = refusalsOf(liveContract)

const columnSchema = z.object({ column: z.enum(COLUMN_NAMES).optional() })

function parseColumn(params: URLSearchParams): ColumnName | null {
  return parseQuery(columnSchema, params, { column: 'invalid_column' }).column ?? null
}

function periodTabs(query: PageQuery): Html {
  const [sort = 'trending', ...moreSorts] = query.params.getAll('sort')
  const current = isYear(query) ? 'year' : sort
  return html`<nav class="tabs" aria-label="Periods">
    <ul>
      ${PERIODS.map(
        (period) =>
          html`<li>
            ${query.sectionLink(
              'feed',
              { ...NO_MOMENTS, sort: period },
              PERIOD_TITLES[period],
              period === current && moreSorts.length === 0 ? html`aria-current="page"` : NOTHING,
            )}
          </li>`,
      )}
    </ul>
  </nav>`
}
