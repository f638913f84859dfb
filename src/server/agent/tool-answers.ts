import type { ToolName } from '../../domain/agent/model-call.ts'
import {
  UNTRUSTED,
  fitLists,
  fitText,
  shownItem,
  shownLine,
  visibleText,
} from '../../domain/agent/shown-data.ts'
import type { NamedItem } from '../../domain/agent/shown-data.ts'
import { LISTS } from '../../domain/agent/tools.ts'
import type { KnownCall } from '../../domain/agent/tools.ts'
import type { LiveSort } from '../../domain/feed/columns.ts'
import { LIVE_VERSION } from '../../domain/feed/live-items.ts'
import type { LiveFeed } from '../../domain/feed/live-items.ts'
import type { FeedSearchRefusal, SearchCaller } from '../../domain/feed/search.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import type {
  Objects,
  FeedStore,
  Clock,
  CallerSearch,
  Ledger,
  FeedSearch,
  YearReader,
} from '../../domain/ports.ts'
import { Refusal, storageDamaged } from '../../domain/refusal.ts'
import { formatInstant, parseInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { FUTURE_TOLERANCE_MS } from '../../domain/year/history.ts'
import { yearEnvelopeSchema } from '../../domain/year/schema.ts'
import type { YearEnvelope } from '../../domain/year/schema.ts'
import { provedSnapshots } from '../feed/proved-snapshots.ts'
import type { ProvedFeed, SnapshotReader } from '../feed/proved-snapshots.ts'
import { provedPublications } from '../year/proved-publications.ts'
import type { ProvedPublication } from '../year/proved-publications.ts'

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
  { items }: CallerSources,
  maxBytes: number,
): Promise<string> {
  const item = await items.item(key)
  const facts = head('read_article')
  if (!item) return fitLists({ ...facts, found: false, note: notStored(key) }, {}, maxBytes)
  const shown = { ...facts, found: true, item: shownItem(item) }
  const stored = await items.article(item.source, item.sourceId)
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

/** Single items and their texts, as the agent reads them. */
type AgentItems = Pick<FeedStore, 'item' | 'revision' | 'article'>

/** What the agent reads: handles through which nothing can be written (docs/agent-tools.md). */
export interface AgentReads {
  feed: AgentItems & SnapshotReader
  search: Pick<FeedSearch, 'by'>
  ledger: Pick<Ledger, 'witness'>
  archive: Pick<Objects, 'get' | 'newestHead' | 'objectWitness' | 'headWitness'>
  year: YearReader
  clock: Clock
}

/** A publication as the tools tell of it; `envelope` is null for a layout older than the product's own. */
interface YearPublication {
  publicationId: string
  asOfDay: string
  envelope: YearEnvelope | null
}

/** What the agent reads, proved where the interfaces prove it. One for a server. */
export interface AgentSources extends Pick<AgentReads, 'search' | 'clock'> {
  items: AgentItems
  /** The newest snapshot's feed of a sort; null when there is no snapshot. */
  feed: (sort: LiveSort) => Promise<LiveFeed | null>
  /** The Year publication that was current at an instant; null when there was none. */
  publication: (at: Instant) => Promise<YearPublication | null>
}

/** The same as one caller reads it. */
export interface CallerSources extends Omit<AgentSources, 'search'> {
  search: CallerSearch
}

export function sourcesFor(caller: SearchCaller, sources: AgentSources): CallerSources {
  return { ...sources, search: sources.search.by(caller) }
}

/** Proved publications kept in memory beside those of the interfaces. */
const YEAR_MEMORY_BYTES = 8 * 1024 * 1024

export function agentSources(reads: AgentReads): AgentSources {
  const { feed: items, search, clock } = reads
  const snapshots = provedSnapshots(items)
  const publications = provedPublications(reads, YEAR_MEMORY_BYTES)
  const feeds = new WeakMap<ProvedFeed, LiveFeed>()
  const years = new WeakMap<ProvedPublication, YearPublication>()
  return {
    items,
    search,
    clock,
    async feed(sort) {
      const proved = await snapshots.newest(sort)
      if (!proved) return null
      const feed = feeds.get(proved) ?? parseFeed(proved)
      feeds.set(proved, feed)
      return feed
    },
    async publication(at) {
      const proved = await publications.latestAt(at)
      if (!proved) return null
      const publication = years.get(proved) ?? parsePublication(proved)
      years.set(proved, publication)
      return publication
    },
  }
}

/** Its schema held when it was sealed, so that its version is enough. */
function parseFeed({ snapshot, published }: ProvedFeed): LiveFeed {
  const feed = JSON.parse(published.body.toString('utf8')) as LiveFeed
  const layout: string = feed.algoVersion
  if (layout === LIVE_VERSION) return feed
  throw storageDamaged(`a feed of snapshot ${snapshot.id} has not the layout of ${LIVE_VERSION}`)
}

function parsePublication({ manifest, published }: ProvedPublication): YearPublication {
  const { publicationId, asOfDay } = manifest
  const parsed = yearEnvelopeSchema.safeParse(JSON.parse(published.body.toString('utf8')))
  return { publicationId, asOfDay, envelope: parsed.success ? parsed.data : null }
}
