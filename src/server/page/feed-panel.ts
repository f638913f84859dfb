import { z } from 'zod'
import { parseLiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import { parseQuery } from '../../domain/query.ts'
import { Refusal } from '../../domain/refusal.ts'
import { liveContract } from '../feed/live-routes.ts'
import { parseFeed } from '../feed/proved-snapshots.ts'
import { feedColumns, titleOf } from './feed-items.ts'
import { PERIOD_TITLES, periodTabs } from './header.ts'
import { NOTHING, ageOf, html, instantOf } from './html.ts'
import type { Html } from './html.ts'
import { refusalsOf } from './layout.ts'
import type { PageQuery, Panel } from './layout.ts'
import { COLUMN_NAMES } from './stories.ts'
import type { ColumnName } from './stories.ts'
import { NO_MOMENTS, YEAR_PARAMS, isYear, refusalOfYear } from './time-travel.ts'
import { yearView } from './year-view.ts'

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
      const content = html`${feedColumns(parseFeed(proved), column, generatedAt, query)}
        <p class="as-of" data-announce="Feed ${PERIOD_TITLES[sort]} is shown.">
          ${PERIOD_TITLES[sort]}: ${PERIOD_ABOUT[sort]}, as of ${instantOf(generatedAt)}
          (${ageOf(generatedAt, now)}) · snapshot <code>${id}</code> ·
          <a href="/api/feed?sort=${sort}">JSON</a>
        </p>`
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

/** The tabs of the home page: they keep the other parameters, and a script replaces the feed in place. */
export function feedTabs(query: PageQuery): Html {
  const [sort = 'trending', ...moreSorts] = query.params.getAll('sort')
  const current = isYear(query) ? 'year' : sort
  return periodTabs((period, title) =>
    query.sectionLink(
      'feed',
      { ...NO_MOMENTS, sort: period },
      title,
      period === current && moreSorts.length === 0 ? html`aria-current="page"` : NOTHING,
    ),
  )
}
