import { z } from 'zod'
import { RULE_PARAMS, applyRule, parseRule, describeRule } from '../../domain/feed/subscription.ts'
import type { Instant } from '../../domain/time.ts'
import { COLUMN_NAMES } from '../../domain/feed/columns.ts'
import type { ColumnName } from '../../domain/feed/columns.ts'
import { parseLiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import { parseQuery } from '../../domain/wire-format.ts'
import { Refusal } from '../../domain/refusal.ts'
import { DAY_MS, dayOf, formatInstant, minuteSeenFrom } from '../../domain/time.ts'
import { SORT_TITLES } from '../feed/feeds.ts'
import { liveContract } from '../feed/live-routes.ts'
import { parseFeed } from '../feed/proved-snapshots.ts'
import { invalidValues } from '../route.ts'
import { chatHeaders, chatSheet } from './chat-panel.ts'
import { alternateLinks, NO_MATCH, viewMenu } from './feed-rule.ts'
import { PERIOD_TITLES, periodTabs, firstTitles } from './layout.ts'
import type { Period, Frame, PageQuery } from './layout.ts'
import { NOTHING, html, ageOf, instantOf } from './html.ts'
import type { Html } from './html.ts'
import { MODEL_PARAMS, modelsAddress } from './models/models-page.ts'
import { chatOffer, htmlOf, refusalsOf, section } from './sections.ts'
import type { SectionPage, Section, SectionRefusal } from './sections.ts'
import { statusLine } from './status-panel.ts'
import { sinceSection, SINCE_PARAM, missedLink, missedContent, refusalOfMissed } from './year/since-panel.ts'
import { YEAR_PARAMS, addressOfYear, isYear, NO_MOMENTS, refusalOfYear } from './year/time-travel.ts'
import { CHART_PARAM, INVALID_CHART } from './year/year-chart.ts'
import { yearContent } from './year/year-view.ts'
import { ORDERS, feedColumns, isEmptyFeed, shownItems, titleOf } from './feed-columns.ts'
import type { RowNotes } from './feed-columns.ts'
import type { PageItem } from './story-row.ts'
import type { View } from './rendered-pages.ts'

/** `/`: the feed with the tabs of its periods in the header, below the lines of its status and its changes. */
export const homePage = (frame: Frame): SectionPage => ({
  path: '/',
  headers: chatHeaders(frame),
  query: {
    known: ['sort', 'column', ...RULE_PARAMS, ...YEAR_PARAMS, CHART_PARAM, SINCE_PARAM, ...MODEL_PARAMS],
    // Keep `sort` next to a time parameter: without it, the time would select the Year.
    isDefault: (name, value, params) =>
      name === 'sort' &&
      value === 'trending' &&
      params.getAll(name).length === 1 &&
      !YEAR_PARAMS.some((each) => params.has(each)),
  },
  async render(view) {
    const { query } = view
    const location = (await addressOfYear(view)) ?? modelsAddress(query)
    if (location !== null) return { location }
    const [feed, ...lines] = await Promise.all([
      feedSection(view),
      statusLine(view),
      sinceSection(view, 'home'),
    ])
    // On a narrow screen, the lists of a Year begin above what the status says. Each part arrives in its place.
    const ofYear = isYear(query) || query.params.has(SINCE_PARAM)
    const sections = ofYear ? [feed, ...lines] : [...lines, feed]
    const chat = await chatOffer(view.sources)
    const title = feed?.title ?? nameOfList(query)
    return {
      title: `${title} · dash`,
      head: alternateLinks(query),
      tabs: feedTabs(query),
      sections,
      lead: feed,
      main: html`<h1 class="unseen">${title}</h1>
        <div class="home">${htmlOf(sections)} ${introduction(view.now)}</div>
        ${chat === 'off' ? NOTHING : chatSheet(frame)}`,
    }
  },
})

function nameOfList(query: PageQuery): string {
  if (query.params.has(SINCE_PARAM)) return 'What did I miss?'
  const sort = isYear(query) ? 'year' : (query.params.get('sort') ?? 'trending')
  return isPeriod(sort) ? PERIOD_TITLES[sort] : 'Lists'
}

function isPeriod(sort: string): sort is Period {
  return Object.hasOwn(PERIOD_TITLES, sort)
}

function introduction(now: Instant): Html {
  return html`<p class="introduction">
    See <a href="/?sort=year#feed">the Top Year of any day</a>, or
    <a href="${missedLink(now)}">what you missed</a>.
  </p>`
}

const PERIOD_ABOUT = { ...SORT_TITLES, trending: 'rising now; weight halves every six hours' }

/** The section of the feed: live periods from the newest snapshot, the Year of any time from its publications. */
function feedSection(view: View): Promise<Section | null> {
  // What was missed is of the whole Year: no filter and no interface has it.
  const controls = view.query.params.has(SINCE_PARAM) ? NOTHING : viewMenu(view.query)
  return section(view, { id: 'feed', title: 'Feed', controls, refusalOf: refusalOfFeed }, async () => {
    const { sources, now, query } = view
    const { column = null } = parseQuery(columnSchema, query.params, { column: 'invalid_column' })
    if (query.params.has(SINCE_PARAM)) return missedContent(view)
    if (isYear(query)) return yearContent(view, column)
    if (YEAR_PARAMS.some((name) => query.params.has(name))) throw new Refusal('no_past')
    const sort = parseLiveSort(query.params)
    const rule = parseRule(query.params)
    const proved = await sources.snapshots.newest(sort)
    if (!proved) return newestYear(view, column, NO_SNAPSHOT)
    const { generatedAt } = proved.snapshot
    const feed = rule === null ? parseFeed(proved) : applyRule(parseFeed(proved), rule)
    const order = sort === 'trending' ? ORDERS.trend : ORDERS.share
    const period = PERIOD_TITLES[sort] + (rule === null ? '' : `: ${describeRule(rule)}`)
    if (rule === null && isEmptyFeed(feed)) {
      const content = await newestYear(view, column, nothingIn(sort, generatedAt, now))
      return { status: 200, content, title: titleOf(column, period) }
    }
    const missed = html`<small class="roomy"><a href="${missedLink(now)}">What did I miss?</a></small>`
    const { notes, line } = newItems(shownItems(feed, column), generatedAt, now)
    const content = html`${isEmptyFeed(feed) ? NO_MATCH : feedColumns(feed, column, { now, order, query, notes, about: html`${line} ${missed}` })}
      <p class="as-of">
        ${PERIOD_TITLES[sort]}: ${PERIOD_ABOUT[sort]}, as of ${instantOf(generatedAt)}
        (${ageOf(generatedAt, now)}).
      </p>`
    const preview = {
      description: `${period}, as of ${dayOf(generatedAt)}${firstTitles(feed.popular)}`,
      path: query.params.size === 0 ? '/' : `/?${String(query.params)}`,
    }
    return { status: 200, content, title: titleOf(column, period), preview }
  })
}

/** Anchor of the first new row. */
const FIRST_NEW = 'new'

/** Start of the stay of an item: one whose entry is not known cannot have been listed before it was published. */
function enteredAt({ listedSince, publishedAt }: PageItem): string {
  return listedSince ?? publishedAt ?? ''
}

/**
 * The marks of the rows that entered the lists of a live period within the 24 hours before its snapshot, and the line that
 * counts them and leads to the first. A browser that knows the snapshot it saw last marks what entered since then instead
 * (browser/year.ts).
 */
function newItems(
  items: readonly PageItem[],
  generatedAt: Instant,
  now: Instant,
): { notes: RowNotes; line: Html } {
  const start = generatedAt - DAY_MS
  const since = formatInstant(start)
  const entered = items.filter((item) => enteredAt(item) > since)
  const [first] = entered
  const text = `${first ? entered.length : 'none'} new since ${minuteSeenFrom(now, start)}`
  return {
    notes(_column, item) {
      const isNew = enteredAt(item) > since
      const id = item.key === first?.key ? html`id="${FIRST_NEW}"` : NOTHING
      const mark = html`<span class="${isNew ? 'rose new' : ''}" data-entered="${enteredAt(item)}" ${id}
        >${isNew ? 'NEW' : ''}</span
      >`
      return { mark, note: NOTHING }
    },
    line: html`<small
      class="news"
      data-snapshot="${formatInstant(generatedAt)}"
      data-since="${since}"
      data-today="${dayOf(now)}"
      >${first ? html`<a href="#${FIRST_NEW}">${text}</a>` : text}</small
    >`,
  }
}

function refusalOfFeed(error: unknown, view: View): SectionRefusal {
  const code = error instanceof Refusal ? error.code : ''
  if (code === 'invalid_rule' || Object.hasOwn(OWN_REFUSALS, code)) return refusalOfLive(error)
  if (view.query.params.has(SINCE_PARAM)) return refusalOfMissed(error, view.now)
  return isYear(view.query) ? refusalOfYear(error, view) : refusalOfLive(error)
}

/** Refusals of the page itself. */
const OWN_REFUSALS = {
  invalid_sort: invalidValues({ sort: `one of ${Object.keys(PERIOD_TITLES).join(', ')}` }),
  invalid_column: invalidValues({ column: `one of ${COLUMN_NAMES.join(', ')}` }),
  invalid_chart: INVALID_CHART,
  no_past: {
    status: 400,
    error: 'invalid_sort',
    when: 'times need `sort=year`: only the Year has a history',
  },
}

const refusalOfLive = refusalsOf(liveContract, OWN_REFUSALS)

/** Why the lists of a sound snapshot are empty. */
function nothingIn(sort: LiveSort, generatedAt: Instant, now: Instant): Html {
  return html`<p class="empty">
    ${PERIOD_TITLES[sort]} is empty: when the newest snapshot was taken, ${ageOf(generatedAt, now)}, nothing
    published in ${sort === 'trending' ? PERIOD_ABOUT.month : PERIOD_ABOUT[sort]} had been collected.
  </p>`
}

/** The newest Year, shown in place of empty lists. @param reason why they are empty */
async function newestYear(view: View, column: ColumnName | null, reason: Html): Promise<Html> {
  const frame = { id: 'newest-year', title: 'The newest Top Year', refusalOf: refusalOfYear }
  return html`${reason} ${htmlOf([await section(view, frame, () => yearContent(view, column))])}`
}

const NO_SNAPSHOT = html`<p class="empty">
  No snapshot of the live feed is stored yet. Create one with <code>dash collect</code> or
  <code>dash snapshot</code>.
</p>`

const columnSchema = z.object({ column: z.enum(COLUMN_NAMES).optional() })

/** The tabs of the home page, which keep the other parameters. */
function feedTabs(query: PageQuery): Html {
  const [sort = 'trending', ...moreSorts] = query.params.getAll('sort')
  const current = query.params.has(SINCE_PARAM) ? null : isYear(query) ? 'year' : sort
  return periodTabs((period, title) =>
    query.sectionLink(
      'feed',
      { ...NO_MOMENTS, [CHART_PARAM]: null, [SINCE_PARAM]: null, sort: period },
      title,
      period === current && moreSorts.length === 0 ? html`aria-current="page"` : NOTHING,
    ),
  )
}
