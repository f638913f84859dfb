import { fitLists, fitText, shownItem, shownLine, UNTRUSTED } from '../../domain/agent/shown-data.ts'
import type { NamedItem } from '../../domain/agent/shown-data.ts'
import { LISTS } from '../../domain/agent/tools.ts'
import type { KnownCall } from '../../domain/agent/tools.ts'
import type { ToolName } from '../../domain/agent/model-call.ts'
import { visibleText } from '../../domain/agent/untrusted-text.ts'
import type { LiveFeed } from '../../domain/feed/live-schema.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import type { FeedSearchRefusal } from '../../domain/feed/search.ts'
import { Refusal } from '../../domain/refusal.ts'
import { formatInstant, parseInstant } from '../../domain/time.ts'
import { FUTURE_TOLERANCE_MS } from '../../domain/year/history.ts'
import type { CallerSources } from './sources.ts'

/** How the six tools answer (docs/agent-tools.md): stored data as JSON text, within a number of bytes. */

type CallOf<Name extends ToolName> = Extract<KnownCall, { name: Name }>['arguments']

/** What a tool has to tell the model instead of an answer. */
export class ToolProblem extends Error {
  override readonly name = 'ToolProblem'
}

const LIMIT_DEFAULT = 10
const SNAPSHOT_LIMIT_DEFAULT = 5

/** The answer to a call as JSON text of at most `maxBytes`. */
export function answerCall(call: KnownCall, sources: CallerSources, maxBytes: number): Promise<string> {
  switch (call.name) {
    case 'search_items':
      return searchItems(call.arguments, sources, maxBytes)
    case 'get_period_top':
      return periodTop(call.arguments, sources, maxBytes)
    case 'get_feed_snapshot':
      return feedSnapshot(call.arguments, sources, maxBytes)
    case 'read_article':
      return readArticle(call.arguments, sources, maxBytes)
    case 'find_similar_items':
      return similarItems(call.arguments, sources, maxBytes)
    case 'get_trend_history':
      return trendHistory(call.arguments, sources, maxBytes)
  }
}

async function searchItems(
  { query, sources: names, from, to, limit }: CallOf<'search_items'>,
  { search }: CallerSources,
  maxBytes: number,
): Promise<string> {
  const question = { query, sources: names ?? [], from, to, limit: limit ?? LIMIT_DEFAULT, cursor: null }
  const page = await search.search(question)
  const items = page.items.map((item) => ({ ...shownItem(item), match: item.match }))
  return fitLists({ ...head('search_items'), more: page.cursor !== null }, { items }, maxBytes)
}

async function periodTop(
  { period, list, limit, at }: CallOf<'get_period_top'>,
  sources: CallerSources,
  maxBytes: number,
): Promise<string> {
  if (period === 'year') return yearTop({ list, limit, at }, sources, maxBytes)
  const name = list ?? 'popular'
  const feed = await newestFeed(sources, period)
  const facts = { ...head('get_period_top'), period, list: name, ...snapshotFacts(feed) }
  return fitLists(facts, { items: ranked(feed[name], limit ?? LIMIT_DEFAULT) }, maxBytes)
}

async function yearTop(
  { list, limit, at }: Omit<CallOf<'get_period_top'>, 'period'>,
  { publication, clock }: CallerSources,
  maxBytes: number,
): Promise<string> {
  const now = clock()
  const instant = at === null ? now : (parseInstant(at) ?? now)
  if (instant > now + FUTURE_TOLERANCE_MS) throw new ToolProblem('at: lies in the future')
  const found = await publication(instant)
  const facts = {
    ...head('get_period_top'),
    period: 'year',
    list: list ?? 'popular',
    at: formatInstant(instant),
  }
  if (!found)
    return fitLists({ ...facts, publication: null, note: 'No Year was published by then.' }, {}, maxBytes)
  const { publicationId, asOfDay, envelope } = found
  const named = { ...facts, publication: publicationId, asOfDay }
  if (!envelope) {
    return fitLists(
      { ...named, note: 'This publication has an older layout, which the tools do not read.' },
      {},
      maxBytes,
    )
  }
  const { windowStart, windowEnd, archivedAt, feed } = envelope
  const items = ranked(feed[list ?? 'popular'], limit ?? LIMIT_DEFAULT)
  return fitLists({ ...named, windowStart, windowEnd, publishedAt: archivedAt }, { items }, maxBytes)
}

async function feedSnapshot(
  { sort, limit }: CallOf<'get_feed_snapshot'>,
  sources: CallerSources,
  maxBytes: number,
): Promise<string> {
  const feed = await newestFeed(sources, sort)
  const facts = { ...head('get_feed_snapshot'), ...snapshotFacts(feed) }
  return fitLists(facts, snapshotLists(feed, limit ?? SNAPSHOT_LIMIT_DEFAULT), maxBytes)
}

async function newestFeed({ feed }: CallerSources, sort: LiveFeed['sortMode']): Promise<LiveFeed> {
  const newest = await feed(sort)
  if (!newest) throw new ToolProblem('no snapshot of the feed has been taken yet')
  return newest
}

/** What a snapshot says of itself. */
export function snapshotFacts({ snapshotId, generatedAt, sortMode }: LiveFeed): {
  snapshot: string
  generatedAt: string
  sort: string
} {
  return { snapshot: snapshotId, generatedAt, sort: sortMode }
}

/** The top of every list of a snapshot. */
export function snapshotLists(feed: LiveFeed, limit: number): Record<string, object[]> {
  return Object.fromEntries(LISTS.map((name) => [name, ranked(feed[name], limit)]))
}

function ranked(items: readonly (NamedItem & { rank: number })[], limit: number): object[] {
  return items.slice(0, limit).map((item) => ({ rank: item.rank, ...shownItem(item) }))
}

async function readArticle(
  { key, offset }: CallOf<'read_article'>,
  { items, articles }: CallerSources,
  maxBytes: number,
): Promise<string> {
  const item = await items.item(key)
  const facts = head('read_article')
  if (!item) return fitLists({ ...facts, found: false, note: notStored(key) }, {}, maxBytes)
  const shown = { ...facts, found: true, item: shownItem(item) }
  const stored = await articles.article(item.source, item.sourceId)
  if (!stored)
    return fitLists({ ...shown, text: null, note: 'No text of this item is stored.' }, {}, maxBytes)
  const characters = Array.from(visibleText(stored.text))
  const start = offset ?? 0
  const write = (text: string): string => {
    const end = start + Array.from(text).length
    return JSON.stringify({
      ...shown,
      readAt: formatInstant(stored.fetchedAt),
      characters: characters.length,
      offset: start,
      next_offset: end < characters.length ? end : null,
      text,
    })
  }
  return fitText(characters.slice(start).join(''), write, maxBytes)
}

async function similarItems(
  { key, limit }: CallOf<'find_similar_items'>,
  { search }: CallerSources,
  maxBytes: number,
): Promise<string> {
  const facts = head('find_similar_items')
  const similar = await unlessNotFound(search.similar(key, limit ?? LIMIT_DEFAULT))
  if (!similar) return fitLists({ ...facts, found: false, note: notStored(key) }, {}, maxBytes)
  const items = similar.map((item) => ({ ...shownItem(item), reasons: item.reasons, score: item.score }))
  return fitLists({ ...facts, found: true, to: shownLine(key) }, { items }, maxBytes)
}

async function trendHistory(
  { key, term, from, to }: CallOf<'get_trend_history'>,
  { items, search }: CallerSources,
  maxBytes: number,
): Promise<string> {
  const facts = { ...head('get_trend_history'), order: 'newest day first' }
  if (key === null) {
    const trend = await search.termTrend({ term: term ?? '', from, to })
    const counted = { ...facts, term: shownLine(term ?? ''), mentions: trend.mentions }
    return fitLists(counted, { days: trend.days.toReversed() }, maxBytes)
  }
  const item = await items.item(key)
  const trend = await unlessNotFound(search.itemTrend(key))
  if (!item || !trend) return fitLists({ ...facts, found: false, note: notStored(key) }, {}, maxBytes)
  const days = trend.days.filter(({ day }) => (from ?? day) <= day && day <= (to ?? day)).toReversed()
  return fitLists({ ...facts, found: true, item: shownItem(item) }, { days }, maxBytes)
}

function head(tool: ToolName): object {
  return { ...UNTRUSTED, source: `dash ${tool}` }
}

function notStored(key: string): string {
  const [ref] = itemsOfKey(key)
  return `No such item of ${ref?.source ?? 'any source'} is stored.`
}

/** null for an item that is not stored. */
async function unlessNotFound<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    const code: FeedSearchRefusal = 'item_not_found'
    if (error instanceof Refusal && error.code === code) return null
    throw error
  }
}
