import { RULE_PARAMS } from '../../domain/feed/rule.ts'
import { chatHeaders, chatSheet } from './chat-panel.ts'
import { feedSection, feedTabs } from './feed-panel.ts'
import { alternateLinks } from './feed-rule.ts'
import type { Instant } from '../../domain/time.ts'
import { PERIOD_TITLES } from './header.ts'
import type { Period } from './header.ts'
import { NOTHING, html } from './html.ts'
import type { Html } from './html.ts'
import type { Frame, PageQuery } from './layout.ts'
import { MODEL_PARAMS, modelsAddress } from './models/models-page.ts'
import { chatOffer, htmlOf } from './sections.ts'
import type { SectionPage } from './sections.ts'
import { statusLine } from './status-panel.ts'
import { sinceSection } from './year/since-panel.ts'
import { SINCE_PARAM, missedLink } from './year/missed.ts'
import { YEAR_PARAMS, isYear } from './year/time-travel.ts'
import { CHART_PARAM } from './year/year-chart.ts'
import { addressOfYear } from './year/year-view.ts'

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

/** The name of a view that has no list to name it. */
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
    Trends of Hacker News, Lobsters and LessWrong, the Top Year
    <a href="/?sort=year#feed">as it was on any day</a>, and <a href="${missedLink(now)}">what you missed</a>.
  </p>`
}
