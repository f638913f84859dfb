import { z } from 'zod'
import { similarQuery } from '../../domain/feed/search/search.ts'
import { parseQuery, dayField } from '../../domain/wire-format.ts'
import { Refusal } from '../../domain/refusal.ts'
import { formatInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { momentAt } from '../../domain/year/history/calendar.ts'
import type { TimelineStop } from '../../domain/year/history/calendar.ts'
import { historyQuerySchema, pastOr } from '../../domain/year/history/history.ts'
import type { HistoryRefusal } from '../../domain/year/history/history.ts'
import { lastStops, turnoverBetween } from '../../domain/year/history/rank-history.ts'
import type { Manifest } from '../../domain/year/ledger.ts'
import { similarContract } from '../feed/search-routes.ts'
import { publishedBody, publishedJson } from '../respond.ts'
import type { PublishedBody } from '../respond.ts'
import { invalidValues, publicAccess, publishedRoute } from '../route.ts'
import type { Contract, Route } from '../route.ts'
import { itemChartSvg, itemChartOf } from './item-chart.ts'
import { CHART_THEMES, bumpChartSvg, chartOf, CHART_TOP } from './rank-charts.ts'
import { HISTORY_DOCS, historyContract, indexContract } from './routes.ts'
import { CHANGES_COMMON } from './year-changes.ts'
import { PUBLICATIONS_MAX, stopsOnce, manifestsOf } from './year-lists.ts'
import type { ListedItem, ListsByDigest, YearListPorts } from './year-lists.ts'

/** Publications without `count`. */
export const COUNT_DEFAULT = 30

const countField = z
  .string()
  .regex(/^[1-9]\d?$/)
  .transform(Number)
  .pipe(z.int().min(1).max(PUBLICATIONS_MAX))
  .meta({
    description: `Number of publications, the newest at or before \`at\`. Default: ${COUNT_DEFAULT}.`,
    type: 'integer',
    minimum: 1,
    maximum: PUBLICATIONS_MAX,
  })
  .optional()
  .transform((count) => count ?? COUNT_DEFAULT)

const ranksQuery = z.object({ at: historyQuerySchema.shape.at, count: countField })

const chartQuery = ranksQuery.extend({
  theme: z
    .enum(CHART_THEMES)
    .meta({ description: 'Colours. Default: `light`.' })
    .optional()
    .transform((theme) => theme ?? 'light'),
})

const itemChartQuery = chartQuery.extend({ key: similarQuery.shape.key })

/** A part of the timeline with its verified lists. */
interface Range {
  stops: readonly TimelineStop[]
  /** The publication before the first stop; null if there is none. */
  previous: Manifest | null
  lists: ListsByDigest
}

/** Routes of the ranks over publications: as JSON and as a chart (docs/api.md). */
export function rankRoutes({ publications, lists, clock, host, compute }: YearListPorts): Route[] {
  const prefix = (): string => (host().demo ? 'DEMO: ' : '')

  const readRange = async (requested: Instant | undefined, count: number): Promise<Range> => {
    const at = pastOr(requested, clock())
    const proved = await publications.entries()
    const stops = stopsOnce(proved)
    const { stopIndex } = momentAt(proved.timeline, stops, at)
    const withPrevious = lastStops(stops, stopIndex, count + 1)
    const shown = lastStops(stops, stopIndex, count)
    const manifests = manifestsOf(withPrevious)
    if (manifests.length === 0) throw new Refusal<RankRefusal>('year_history_not_found')
    const previous = manifests.length > count ? (manifests[0] ?? null) : null
    return { stops: shown, previous, lists: await lists(manifests) }
  }

  return [
    publishedRoute(ranksContract, (params, event) => {
      const { at, count } = parseQuery(ranksQuery, params, RANK_CODES)
      return compute(event, async () => {
        return publishedJson(ranksOf(await readRange(at, count)), CACHE_CONTROL)
      })
    }),
    publishedRoute(chartContract, (params, event) => {
      const { at, count, theme } = parseQuery(chartQuery, params, CHART_CODES)
      return compute(event, async () => {
        const { stops, lists: read } = await readRange(at, count)
        return publishedSvg(bumpChartSvg({ ...chartOf(stops, read), theme, prefix: prefix() }))
      })
    }),
    publishedRoute(itemChartContract, (params, event) => {
      const { key, at, count, theme } = parseQuery(itemChartQuery, params, ITEM_CHART_CODES)
      return compute(event, async () => {
        const { stops, lists: read } = await readRange(at, count)
        const chart = itemChartOf(stops, read, key)
        if (!chart) throw new Refusal<ItemChartRefusal>('item_not_listed')
        const [heading, title] = [prefix() + chart.heading, prefix() + chart.title]
        return publishedSvg(itemChartSvg({ ...chart, heading, title, theme }))
      })
    }),
  ]
}

const CACHE_CONTROL = 'public, max-age=60'

const RANK_CODES = { at: 'invalid_at', count: 'invalid_count' } as const satisfies Record<string, RankRefusal>

const CHART_CODES = { ...RANK_CODES, theme: 'invalid_theme' } as const

const ITEM_CHART_CODES = { ...CHART_CODES, key: 'invalid_key' } as const

/** Publishes a picture: opened on its own it must not run anything, and other pages may show it. */
function publishedSvg(svg: string): PublishedBody {
  const headers = {
    'content-security-policy': "default-src 'none'",
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'cross-origin',
  }
  return publishedBody(svg, {
    contentType: `${SVG_TYPE}; charset=utf-8`,
    cacheControl: CACHE_CONTROL,
    headers,
  })
}

const SVG_TYPE = 'image/svg+xml'

type RankedRow = [item: number, points: number, comments: number | null]

/** The ranks of `popular` in a range; each item is written once. */
function ranksOf({ stops, previous, lists }: Range): z.infer<typeof ranksSchema> {
  const items: z.infer<typeof itemSchema>[] = []
  const indexes = new Map<string, number>()
  const indexOf = ({ key, source, title, url, discussionUrl, publishedAt }: ListedItem): number => {
    // An item is written again only if its title or a link has changed.
    const version = JSON.stringify([key, title, url, discussionUrl])
    const known = indexes.get(version)
    if (known !== undefined) return known
    const index = items.push({ key, source, title, url, discussionUrl, publishedAt }) - 1
    indexes.set(version, index)
    return index
  }
  const rowOf = (item: ListedItem): RankedRow => [indexOf(item), item.points, item.comments]
  let before = lists.get(previous?.sha256 ?? '')
  const publications = manifestsOf(stops).map(({ publicationId, asOfDay, publishedAt, sha256 }) => {
    const list = lists.get(sha256) ?? null
    const entered = turnoverBetween(before?.ranks.popular, list?.ranks.popular ?? null)
    before = list
    const popular = list?.popular.map(rowOf) ?? null
    return { publicationId, asOfDay, publishedAt: formatInstant(publishedAt), sha256, entered, popular }
  })
  const gaps = stops.filter((stop) => stop.kind === 'gap')
  return { publications, gaps: gaps.map(({ firstDay, lastDay }) => ({ firstDay, lastDay })), items }
}

const itemSchema = z.object({
  key: z.string().describe('save key'),
  source: z.string(),
  title: z.string(),
  url: z.string().nullable(),
  discussionUrl: z.string().nullable(),
  publishedAt: z.string(),
})

const ranksSchema = z
  .object({
    publications: z.array(
      z.object({
        publicationId: z.string(),
        asOfDay: dayField,
        publishedAt: z.string().describe('value of `at` that returns this publication'),
        sha256: z.string(),
        entered: z
          .int()
          .nullable()
          .describe('items that the publication before lacks; null without one, and for older layouts'),
        popular: z
          .array(z.tuple([z.int(), z.int(), z.int().nullable()]))
          .nullable()
          .describe('by rank: index in `items`, points, comments; null for older layouts'),
      }),
    ),
    gaps: z.array(z.object({ firstDay: dayField, lastDay: dayField })).describe('days without a publication'),
    items: z.array(itemSchema),
  })
  .meta({ id: 'YearRanks' })

type RankRefusal = Exclude<HistoryRefusal, 'invalid_sort'> | 'invalid_count' | 'invalid_theme' | 'busy'

/** `GET /api/feed/history/ranks` (docs/api.md). */
export const ranksContract: Contract<Exclude<RankRefusal, 'invalid_theme'>> = {
  ...CHANGES_COMMON,
  path: '/api/feed/history/ranks',
  operationId: 'getYearRanks',
  summary: 'Get the ranks of Popular over publications',
  description: [
    `\`popular\` of up to ${PUBLICATIONS_MAX} publications in one response, with every item once, and the gaps between`,
    'them. Every list is read from verified bytes.',
  ].join(' '),
  query: ranksQuery,
  contentType: 'application/json',
  success: ranksSchema,
  successDescription: 'Publications by as-of day, gaps and items',
  successHeaders: indexContract.successHeaders,
  refusals: {
    ...CHANGES_COMMON.refusals,
    invalid_at: historyContract.refusals.invalid_at,
    invalid_count: invalidValues({ count: `an integer from 1 to ${PUBLICATIONS_MAX}` }),
    year_history_not_found: { status: 404, when: 'nothing had been published at or before that time' },
  },
  ...publicAccess(HISTORY_DOCS, ['ETag', 'Link']),
}

export const CHART_PATH = '/charts/year.svg'

/** `GET /charts/year.svg` (docs/api.md). */
export const chartContract: Contract<RankRefusal> = {
  ...ranksContract,
  path: CHART_PATH,
  operationId: 'getYearChart',
  summary: 'Get the ranks of Popular over publications as a picture',
  description: [
    `A bump chart of the first ${CHART_TOP} items of the newest publication at or before \`at\`, over \`count\``,
    'publications. A gap breaks every line. With `at`, the picture stays the same while no publication is added before it.',
  ].join(' '),
  query: chartQuery,
  contentType: SVG_TYPE,
  success: z.string(),
  successDescription: 'An SVG picture without scripts, styles and references',
  refusals: {
    ...ranksContract.refusals,
    invalid_theme: invalidValues({ theme: '`light` or `dark`' }),
  },
}

type ItemChartRefusal = RankRefusal | 'invalid_key' | 'item_not_listed'

export const ITEM_CHART_PATH = '/charts/item.svg'

/** `GET /charts/item.svg` (docs/api.md). */
export const itemChartContract: Contract<ItemChartRefusal> = {
  ...chartContract,
  path: ITEM_CHART_PATH,
  operationId: 'getItemChart',
  summary: 'Get the ranks of an item over publications as a picture',
  description: [
    'The ranks of an item in its own list and in `popular`, and its points below them, over `count` publications up to the newest at or before `at`.',
    'A gap breaks the lines, as does a publication that does not list the item among the first hundred.',
  ].join(' '),
  query: itemChartQuery,
  refusals: {
    ...chartContract.refusals,
    invalid_key: similarContract.refusals.invalid_key,
    item_not_listed: { status: 404, when: 'none of these publications lists the item' },
  },
}
