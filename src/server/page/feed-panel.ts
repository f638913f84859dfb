import { LIVE_SORTS, parseLiveSort } from '../../domain/feed/live-sort.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Instant } from '../../domain/time.ts'
import { formatInstant } from '../../domain/time.ts'
import { liveContract } from '../feed/contract.ts'
import { parseFeed } from '../feed/parse-feed.ts'
import type { ProvedSnapshots } from '../feed/proved-snapshots.ts'
import { historyContract } from '../year/contract.ts'
import { envelopeParser } from '../year/parse-envelope.ts'
import type { ProvedPublication, ProvedPublications } from '../year/proved-publications.ts'
import { COLUMNS, feedColumns } from './feed-columns.ts'
import type { ColumnName } from './feed-columns.ts'
import { html, NOTHING } from './html.ts'
import type { Html } from './html.ts'
import type { PageQuery } from './page-query.ts'
import { refusalsOf } from './panel.ts'
import type { Panel, View } from './panel.ts'
import { ageOf, instantOf } from './times.ts'

const PERIODS = [...LIVE_SORTS, 'year'] as const
type Period = (typeof PERIODS)[number]

const PERIOD_TITLES: Readonly<Record<Period, string>> = {
  trending: 'Trending',
  day: 'Day',
  week: 'Week',
  month: 'Month',
  year: 'Year',
}

const PERIOD_ABOUT: Readonly<Record<Period, string>> = {
  trending: 'what rises now; interest halves every six hours',
  day: 'the last 24 hours',
  week: 'the last 7 days',
  month: 'the last 30 days',
  year: 'the last 365 complete days',
}

/** Where the feed is read: what the live interface and the history read too. */
export interface FeedPanelPorts {
  snapshots: ProvedSnapshots
  publications: ProvedPublications
}

/** The feed by period: the live ones from the newest snapshot, the Year from its newest publication. */
export function feedPanel({ snapshots, publications }: FeedPanelPorts): Panel {
  const envelopeOf = envelopeParser()
  return {
    id: 'feed',
    title: 'Feed',
    params: ['sort', 'column'],
    controls: ({ query }) => periods(query),
    async render({ now, query }) {
      const column = parseColumn(query.params)
      if (isYear(query)) {
        const publication = await publications.latestAt(now)
        return publication ? year(publication, column, now, query) : NO_YEAR
      }
      const sort = parseLiveSort(query.params)
      const proved = await snapshots.newest(sort)
      if (!proved) return NO_SNAPSHOT
      const { generatedAt, id } = proved.snapshot
      return html`<p class="as-of">
          ${PERIOD_ABOUT[sort]}, as of ${instantOf(generatedAt)} (${ageOf(generatedAt, now)}) · snapshot
          <code>${id}</code> · <a href="/api/feed?sort=${sort}">JSON</a>
        </p>
        ${feedColumns(parseFeed(proved), column, now, query)}`
    },
    refusalOf: (error, view) =>
      error instanceof Refusal && error.code === 'invalid_column' ? INVALID_COLUMN : refusalOf(error, view),
  }

  function year(
    publication: ProvedPublication,
    column: ColumnName | null,
    now: Instant,
    query: PageQuery,
  ): Html {
    const { manifest } = publication
    const envelope = envelopeOf(publication)
    const question = `/api/feed/history?sort=year&at=${formatInstant(manifest.publishedAt)}`
    return html`<p class="as-of">
        ${PERIOD_ABOUT.year} up to ${manifest.asOfDay}, published ${instantOf(manifest.publishedAt)}
        (${ageOf(manifest.publishedAt, now)}) · <code>${manifest.publicationId}</code> ·
        <a href="${question}">JSON</a>, SHA-256 <code>${manifest.sha256}</code>
      </p>
      ${
        envelope
          ? html`<p class="as-of">
                Coverage: ${envelope.coverage.materializedDays} of ${envelope.coverage.targetDays} days.
              </p>
              ${feedColumns(envelope.feed, column, now, query)}`
          : html`<p class="empty">
              Its layout is that of <code>${manifest.algorithmVersion}</code>, an older version, which this
              page does not show; the JSON is as it was published.
            </p>`
      }`
  }
}

const INVALID_COLUMN = {
  status: 400,
  code: 'invalid_column',
  when: `\`column\` is none of ${Object.keys(COLUMNS).join(', ')}`,
}

const NO_SNAPSHOT = html`<p class="empty">
  No run over the live periods has been stored yet. <code>dash collect</code> makes one, and so does
  <code>dash snapshot</code>.
</p>`

const NO_YEAR = html`<p class="empty">
  Nothing has been published yet. Import signals, then run <code>dash publish-year</code>.
</p>`

const refusalOfLive = refusalsOf(liveContract)
const refusalOfYear = refusalsOf(historyContract)

function refusalOf(error: unknown, { query }: View): ReturnType<Panel['refusalOf']> {
  return isYear(query) ? refusalOfYear(error) : refusalOfLive(error)
}

function isYear({ params }: PageQuery): boolean {
  const given = params.getAll('sort')
  return given.length === 1 && given[0] === 'year'
}

function parseColumn(params: URLSearchParams): ColumnName | null {
  const given = params.getAll('column')
  if (given.length === 0) return null
  const column = (Object.keys(COLUMNS) as ColumnName[]).find((name) => name === given[0])
  if (column === undefined || given.length > 1) throw new Refusal('invalid_column')
  return column
}

function periods(query: PageQuery): Html {
  const [current = 'trending', ...others] = query.params.getAll('sort')
  return html`<nav class="tabs" aria-label="Periods">
    <ul>
      ${PERIODS.map(
        (period) =>
          html`<li>
            <a
              href="${query.link({ sort: period }, 'feed')}"
              data-room="feed"
              ${period === current && others.length === 0 ? html`aria-current="page"` : NOTHING}
              >${PERIOD_TITLES[period]}</a
            >
          </li>`,
      )}
    </ul>
  </nav>`
}
