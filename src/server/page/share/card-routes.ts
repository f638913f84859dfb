import { z } from 'zod'
import { liveQuery, parseLiveSort } from '../../../domain/feed/live-sort.ts'
import type { LiveRefusal } from '../../../domain/feed/live-sort.ts'
import { parseKey, similarQuery } from '../../../domain/feed/search.ts'
import { itemsOfKey } from '../../../domain/feed/source.ts'
import { nameOfSource } from '../../../domain/feed/subscription.ts'
import { parseQuery } from '../../../domain/query.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { dayOf } from '../../../domain/time.ts'
import { latestAt } from '../../../domain/year/chain.ts'
import { historyQuerySchema, pastOr } from '../../../domain/year/history/history.ts'
import { parseFeed } from '../../feed/proved-snapshots.ts'
import type { FeedHost } from '../../feed/feeds.ts'
import { liveContract } from '../../feed/live-routes.ts'
import { similarContract } from '../../feed/search-routes.ts'
import { publishedHeaders, publishedRoute } from '../../route.ts'
import type { Contract, Route } from '../../route.ts'
import { ranksContract } from '../../year/rank-routes.ts'
import { PERIOD_TITLES } from '../header.ts'
import type { PageSources } from '../page-sources.ts'
import { CARD_SIZE, itemCard, listCard } from './card-svg.ts'
import type { CardFrame } from './card-svg.ts'
import { CARD_BUSY, CARD_CACHE, WAITING_MAX, cardBusy, cardDrawer } from './png.ts'
import { CARD_PATHS, itemFacts, numbersOf } from './preview.ts'

interface CardPorts {
  sources: PageSources
  host: () => FeedHost
}

/** Routes of the share cards: pictures that previews of links show (docs/page.md). */
export function cardRoutes({ sources, host }: CardPorts): Route[] {
  const draw = cardDrawer()
  const bound = boundedCards()
  const card = <Code extends string>(
    contract: Contract<Code>,
    svgOf: (params: URLSearchParams) => Promise<string>,
  ): Route => publishedRoute(contract, (params) => bound(async () => draw(await svgOf(params))))
  const frameOf = (heading: string, footer: string): CardFrame => {
    const { baseUrl, demo } = host()
    return { name: demo ? 'DEMO: dash' : 'dash', heading, footer: `${new URL(baseUrl).host} · ${footer}` }
  }
  return [
    card(feedCardContract, async (params) => {
      const sort = parseLiveSort(params)
      const proved = await sources.snapshots.newest(sort)
      if (!proved) throw new Refusal<LiveRefusal>('no_snapshot')
      const asOf = `as of ${dayOf(proved.snapshot.generatedAt)}`
      return listCard(frameOf(PERIOD_TITLES[sort], asOf), parseFeed(proved).popular.map(rowOf))
    }),
    card(yearCardContract, async (params) => {
      const { at: requested } = parseQuery(yearCardQuery, params, { at: 'invalid_at' })
      const at = pastOr(requested, sources.clock())
      const selected = latestAt((await sources.publications.entries()).timeline, at)
      if (!selected) throw new Refusal('year_history_not_found')
      const { sha256, asOfDay } = selected.manifest
      const listed = (await sources.lists([selected.manifest])).get(sha256)?.popular ?? []
      const frame = frameOf(`Top Year up to ${asOfDay}`, `SHA-256 ${sha256.slice(0, 16)}…`)
      return listCard(frame, listed.map(rowOf))
    }),
    card(itemCardContract, async (params) => {
      const trend = await sources.search.itemTrend(parseKey(params))
      const [{ source } = { source: '' }] = itemsOfKey(trend.key)
      return itemCard(frameOf(nameOfSource(source), trend.key), trend.title, itemFacts(trend, source))
    }),
  ]
}

/** Requests for cards that may be open: each may wait for a search, a snapshot or a publication. */
const OPEN_MAX = 2 * WAITING_MAX

/** Returns a function that runs work, and refuses it above {@link OPEN_MAX} requests. @throws Refusal `card_busy` */
function boundedCards(): <T>(work: () => Promise<T>) => Promise<T> {
  let open = 0
  return async (work) => {
    if (open >= OPEN_MAX) throw cardBusy()
    open += 1
    try {
      return await work()
    } finally {
      open -= 1
    }
  }
}

function rowOf(item: ListedFacts): { title: string; facts: string } {
  return { title: item.title, facts: `${nameOfSource(item.source)} · ${numbersOf(item, item.source)}` }
}

interface ListedFacts {
  title: string
  source: string
  points: number
  comments: number | null
}

const yearCardQuery = z.object({ at: historyQuerySchema.shape.at })
const itemCardQuery = z.object({ key: similarQuery.shape.key })

type CardMembers = Pick<Contract<string>, 'path' | 'operationId' | 'summary' | 'description' | 'query'>

/**
 * The contract of a card, from the one of the interface with the same content.
 *
 * @param dropped refusal of a parameter that the card does not have
 */
function cardContract<Code extends string, Dropped extends Code>(
  contract: Contract<Code>,
  dropped: Dropped,
  members: CardMembers,
): Contract<Exclude<Code, Dropped> | 'card_busy'> {
  const refusals = { ...contract.refusals, card_busy: CARD_BUSY }
  delete (refusals as Partial<typeof refusals>)[dropped]
  return {
    ...(contract as Contract<string> as Contract<Exclude<Code, Dropped>>),
    ...members,
    refusals,
    contentType: 'image/png',
    successHeaders: publishedHeaders(CARD_CACHE),
    success: z.string(),
    successDescription: `A PNG picture of ${CARD_SIZE.width} by ${CARD_SIZE.height} pixels`,
  }
}

/** `GET /cards/feed.png` (docs/api.md). */
export const feedCardContract = cardContract(liveContract, 'invalid_rule', {
  path: CARD_PATHS.feed,
  operationId: 'getFeedCard',
  summary: 'Get a picture of the first items of a live period',
  description: 'The first five items of `popular`, for previews of links to the page.',
  query: liveQuery,
})

/** `GET /cards/year.png` (docs/api.md). */
export const yearCardContract = cardContract(ranksContract, 'invalid_count', {
  path: CARD_PATHS.year,
  operationId: 'getYearCard',
  summary: 'Get a picture of the first items of the Year',
  description: [
    'The first five items of `popular` in the newest publication at or before `at`, and its digest, for previews of links',
    'to the page. An older layout has no items.',
  ].join(' '),
  query: yearCardQuery,
})

/** `GET /cards/item.png` (docs/api.md). */
export const itemCardContract = cardContract(similarContract, 'invalid_limit', {
  path: CARD_PATHS.item,
  operationId: 'getItemCard',
  summary: 'Get a picture of an item',
  description: 'Its title, its latest numbers and its best rank of a day, for previews of links to its page.',
  query: itemCardQuery,
})
