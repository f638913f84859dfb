import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { LiveRefusal } from '../../domain/feed/live-sort.ts'
import { paramsOfRule, parseRule, ruleFields } from '../../domain/feed/subscription.ts'
import type { FeedRule } from '../../domain/feed/subscription.ts'
import { Refusal } from '../../domain/refusal.ts'
import { timelineStops } from '../../domain/year/history/calendar.ts'
import type { ProvedLedger } from '../../domain/year/chain.ts'
import { publicationSteps } from '../../domain/year/history/changes.ts'
import type { HistoryRefusal } from '../../domain/year/history/history.ts'
import { onceFor } from '../../domain/once.ts'
import { BUSY_REFUSAL } from '../computed-requests.ts'
import { feedContracts, feedRoutes } from '../feed/feeds.ts'
import { INVALID_RULE } from '../feed/live-routes.ts'
import { jsonFeedAbout, jsonFeedDocument, jsonFeedItem } from '../feed/formats.ts'
import { publishedBody } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import { publicAccess, publishedHeaders, publishedRoute } from '../route.ts'
import type { Contract, Route } from '../route.ts'
import { singleFlight } from '../single-flight.ts'
import { ARCHIVE_REFUSALS, HISTORY_DOCS, STORAGE } from './routes.ts'
import { PUBLICATIONS_MAX } from './year-lists.ts'
import type { YearListPorts } from './year-lists.ts'
import { ENTRY_FACTS, changesFeed, stepChanges } from './change-entries.ts'
import type { StepChanges } from './change-entries.ts'

/** Routes of the feed of changes of the Year (docs/api.md). */
export function changesRoutes({
  publications,
  lists: readLists,
  clock,
  host,
  compute,
}: YearListPorts): Route[] {
  const stepsOf = onceFor((proved: ProvedLedger) => publicationSteps(timelineStops(proved)))

  /** The changes of the newest state, compared once for all rules. */
  let compared: { name: string; changes: StepChanges[] } | null = null

  /** The newest changes, with every list verified; concurrent requests share the read. */
  const readChanges = singleFlight(async () => {
    const proved = await publications.entries()
    const now = clock()
    const steps = stepsOf(proved)
      .filter(({ item }) => item.manifest.publishedAt <= now)
      .slice(-PUBLICATIONS_MAX)
    const manifests = steps.flatMap(({ item, previous }) => (previous ? [previous, item] : [item]))
    const lists = await readLists(manifests.map(({ manifest }) => manifest))
    const name = [proved.lastLeaf, ...lists.keys()].join(' ')
    if (compared?.name !== name) compared = { name, changes: steps.map((step) => stepChanges(step, lists)) }
    return compared
  })

  /** The newest document of each format and rule, with the name of the state that it shows. */
  const cache = new LRUCache<string, { name: string; body: PublishedBody }>({
    maxSize: CACHE_MAX_BYTES,
    sizeCalculation: ({ body: { body } }) => body.byteLength,
  })
  return feedRoutes(YEAR_CHANGES_CONTRACTS, (contract, write) => {
    const contentType = `${contract.contentType}; charset=utf-8`
    const render = async (rule: FeedRule | null): Promise<PublishedBody> => {
      const { name, changes } = await readChanges()
      const newest = changes.at(-1)
      if (!newest) throw new Refusal<HistoryRefusal>('year_history_not_found')
      const key = `${contract.path} ${String(paramsOfRule(rule))}`
      const cached = cache.get(key)
      if (cached?.name === name) return cached.body
      const headers = { 'last-modified': new Date(newest.step.item.manifest.publishedAt).toUTCString() }
      const text = write(await changesFeed(changes, rule, host(), contract.path))
      const body = publishedBody(text, { contentType, cacheControl: CACHE_CONTROL, headers })
      cache.set(key, { name, body })
      return body
    }
    return publishedRoute(contract, (params, event) => {
      const rule = parseRule(params)
      return compute(event, () => render(rule))
    })
  })
}

const CACHE_MAX_BYTES = 8 * 1024 * 1024

const CACHE_CONTROL = 'public, max-age=300, stale-while-revalidate=3600'

type ChangesRefusal = Exclude<HistoryRefusal, 'invalid_sort' | 'invalid_at'> | 'busy'
type RuledChangesRefusal = ChangesRefusal | Extract<LiveRefusal, 'invalid_rule'>

/** Members shared by the routes that read many publications. */
export const CHANGES_COMMON = {
  tag: 'Year',
  query: z.object({}),
  successHeaders: publishedHeaders(CACHE_CONTROL, {
    'Last-Modified': 'publication time of the newest entry, to the second',
  }),
  refusals: {
    year_history_not_found: { status: 404, when: 'nothing has been published yet' },
    ...ARCHIVE_REFUSALS,
    busy: BUSY_REFUSAL,
  },
  ...STORAGE,
  ...publicAccess(HISTORY_DOCS, ['ETag', 'Last-Modified', 'Link']),
} satisfies Partial<Contract<ChangesRefusal>>

/** The feed of changes of the Year (docs/api.md). */
export const YEAR_CHANGES_CONTRACTS = feedContracts<RuledChangesRefusal>({
  ...CHANGES_COMMON,
  query: z.object(ruleFields),
  refusals: { invalid_rule: INVALID_RULE, ...CHANGES_COMMON.refusals },
  content: 'the changes of the Year',
  addresses: [
    ['/api/feed/history/rss', 'getYearChangesRss'],
    ['/api/feed/history/atom', 'getYearChangesAtom'],
    ['/api/feed/history/feed.json', 'getYearChangesJson'],
  ],
  description: [
    `One entry for each of the newest ${PUBLICATIONS_MAX} publications: what entered or left \`popular\`, moved by 10 ranks`,
    'or more, or became number 1, and the gaps since the publication before. Every list is read from verified bytes.',
    'With `q`, `source`, `minPoints`, `minComments` or `top`: the changes of the matching items, at most `top` of each kind;',
    'publications without any have no entry, unless gaps precede them. A document holds about 1 MB: older entries that do',
    'not fit are left out.',
  ].join(' '),
  jsonFeed: jsonFeedDocument
    .extend({
      _dash: jsonFeedAbout,
      items: z.array(jsonFeedItem.extend({ content_html: z.string(), _dash: ENTRY_FACTS })),
    })
    .meta({ id: 'YearChanges' }),
})
