import { CALL_TIMEOUT_MS, RESULT_MAX_BYTES } from '../../domain/agent/bounds.ts'
import type { ToolCall, ToolName } from '../../domain/agent/model-call.ts'
import { withoutMarkers } from '../../domain/agent/prompt.ts'
import { parseToolCall } from '../../domain/agent/tools.ts'
import { COLUMN_NAMES } from '../../domain/feed/columns.ts'
import type { ColumnName } from '../../domain/feed/columns.ts'
import { nullIfNotFound } from '../../domain/feed/search/search.ts'
import type { SearchCaller } from '../../domain/feed/search/search.ts'
import { UNTRUSTED, fitLists, fitText, toShownItem, shownLine } from '../../domain/agent/shown-data.ts'
import type { NamedItem } from '../../domain/agent/shown-data.ts'
import type { Arguments, KnownCall } from '../../domain/agent/tools.ts'
import { DEFAULT_SORT } from '../../domain/feed/live-sort.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
import type { LiveFeed } from '../../domain/feed/live-items.ts'
import { itemsOfKey } from '../../domain/feed/source.ts'
import type { FeedStore, CallerSearch, FeedSearch } from '../../domain/ports.ts'
import type { Objects } from '../../domain/year/ports.ts'
import type { StoredRun } from '../../domain/models/schema.ts'
import { proveRun } from '../../domain/models/stored-run.ts'
import { visibleText } from '../../domain/text.ts'
import { formatInstant, parseInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { isPast } from '../../domain/year/history/history.ts'
import { withTimeout } from '../single-flight.ts'
import { parseFeed, provedSnapshots } from '../feed/proved-snapshots.ts'
import type { SnapshotReader } from '../feed/proved-snapshots.ts'
import { envelopeOf, provedPublications } from '../year/proved-publications.ts'
import type { ProvedPublication, PublicationPorts } from '../year/proved-publications.ts'

/** The six tools (docs/agent-tools.md). Each returns stored data as JSON text of bounded size. */

export interface ToolRun {
  /** JSON text. */
  output: string
  /** True if the output is an error instead of data. */
  failed: boolean
  /** False if no revision covers the data: an answer based on it must not be cached. */
  cacheable: boolean
}

export interface CallOptions {
  /** The group whose turn the queries of the search have. */
  group: SearchCaller['group']
  onFault: (tool: ToolName, error: unknown) => void
  /** Largest output, in bytes of UTF-8; at most the limit of one call. */
  maxBytes?: number
  timeoutMs?: number
}

/**
 * Runs one tool call (docs/agent-tools.md). Invalid arguments and errors become results.
 *
 * @throws the signal's reason once it is aborted
 */
export async function runCall(
  call: Pick<ToolCall, 'name' | 'arguments'>,
  sources: AgentSources,
  { group, onFault, maxBytes = RESULT_MAX_BYTES, timeoutMs = CALL_TIMEOUT_MS }: CallOptions,
  signal: AbortSignal,
): Promise<ToolRun> {
  signal.throwIfAborted()
  const parsed = parseToolCall(call)
  if (!parsed.ok) return failure(parsed.problem)
  const finished = new AbortController()
  try {
    const result = toolOutput(parsed.call, sourcesFor({ group, signal: finished.signal }, sources), maxBytes)
    const output = withoutMarkers(await withTimeout(result, timeoutMs, signal))
    const isYear = parsed.call.name === 'get_period_top' && parsed.call.arguments.period === 'year'
    return { output, failed: false, cacheable: !isYear }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof ToolError) return failure(error.message)
    onFault(parsed.call.name, error)
    return failure('the data could not be read')
  } finally {
    // Remove an abandoned call from the search queue.
    finished.abort()
  }
}

/** Makes the result of a failed call. */
export function failure(error: string): ToolRun {
  return { output: JSON.stringify({ error }), failed: true, cacheable: false }
}

/** An error that a tool reports to the model instead of a result. */
class ToolError extends Error {
  override readonly name = 'ToolProblem'
}

const LIMIT_DEFAULT = 10
const SNAPSHOT_LIMIT_DEFAULT = 5

/** The result of a tool: facts with lists, or a text with the facts about the part that fits. */
type ToolResult =
  | { facts: object; lists?: Readonly<Record<string, readonly object[]>> }
  | { text: string; factsOf: (beginning: string) => object }

/** Runs a tool and returns its result as JSON text of at most `maxBytes`. */
async function toolOutput<Name extends ToolName>(
  call: KnownCall<Name>,
  sources: CallerSources,
  maxBytes: number,
): Promise<string> {
  const head = { ...UNTRUSTED, source: `dash ${call.name}` }
  const result = await HANDLERS[call.name](call.arguments, sources)
  if ('facts' in result) return fitLists({ ...head, ...result.facts }, result.lists ?? {}, maxBytes)
  const { text, factsOf } = result
  return fitText(text, (beginning) => JSON.stringify({ ...head, ...factsOf(beginning) }), maxBytes)
}

const HANDLERS: {
  [Name in ToolName]: (args: Arguments[Name], sources: CallerSources) => Promise<ToolResult>
} = {
  async search_items({ query, sources, from, to, limit }, { search }) {
    const page = await search.search({
      query,
      sources: sources ?? [],
      minPoints: null,
      minComments: null,
      from,
      to,
      sort: 'relevance',
      limit: limit ?? LIMIT_DEFAULT,
      cursor: null,
    })
    const items = page.items.map((item) => ({ ...toShownItem(item), match: item.match }))
    return { facts: { more: page.cursor !== null }, lists: { items } }
  },

  async get_period_top({ period, list, limit, at }, sources) {
    const name = list ?? 'popular'
    if (period === 'year') return yearTop(name, limit, at, sources)
    const feed = await newestFeed(sources, period)
    const items = ranked(feed[name], limit ?? LIMIT_DEFAULT)
    return { facts: { period, list: name, ...snapshotFacts(feed) }, lists: { items } }
  },

  async get_feed_snapshot({ sort, limit }, sources) {
    const feed = await newestFeed(sources, sort ?? DEFAULT_SORT)
    return { facts: snapshotFacts(feed), lists: snapshotLists(feed, limit ?? SNAPSHOT_LIMIT_DEFAULT) }
  },

  async read_article({ key, offset }, { items }) {
    const item = await items.item(key)
    if (!item) return notStored(key)
    const shown = { found: true, item: toShownItem(item) }
    const stored = await items.article(item.source, item.sourceId)
    if (!stored) return { facts: { ...shown, text: null, note: 'No text of this item is stored.' } }
    const readAt = formatInstant(stored.fetchedAt)
    const characters = Array.from(visibleText(stored.text))
    const start = offset ?? 0
    const factsOf = (text: string): object => {
      const end = start + Array.from(text).length
      const nextOffset = end < characters.length ? end : null
      const position = { characters: characters.length, offset: start, next_offset: nextOffset }
      return { ...shown, readAt, ...position, text }
    }
    return { text: characters.slice(start).join(''), factsOf }
  },

  async find_similar_items({ key, limit }, { search }) {
    const similar = await search.similar(key, limit ?? LIMIT_DEFAULT).catch(nullIfNotFound)
    if (!similar) return notStored(key)
    const items = similar.map((item) => ({ ...toShownItem(item), reasons: item.reasons, score: item.score }))
    return { facts: { found: true, to: shownLine(key) }, lists: { items } }
  },

  async get_trend_history({ key, term, from, to }, { items, search }) {
    const facts = { order: 'newest day first' }
    if (key === null) {
      const { mentions, days } = await search.termTrend({ term: term ?? '', from, to })
      return {
        facts: { ...facts, term: shownLine(term ?? ''), mentions },
        lists: { days: days.toReversed() },
      }
    }
    const item = await items.item(key)
    const trend = await search.itemTrend(key).catch(nullIfNotFound)
    if (!item || !trend) return notStored(key, facts)
    const days = trend.days.filter(({ day }) => (from ?? day) <= day && day <= (to ?? day))
    return { facts: { ...facts, found: true, item: toShownItem(item) }, lists: { days: days.toReversed() } }
  },
}

async function yearTop(
  list: ColumnName,
  limit: number | null,
  at: string | null,
  { publication, clock }: CallerSources,
): Promise<ToolResult> {
  const now = clock()
  const instant = at === null ? now : (parseInstant(at) ?? now)
  if (!isPast(instant, now)) throw new ToolError('at: lies in the future')
  const found = await publication(instant)
  const facts = { period: 'year', list, at: formatInstant(instant) }
  if (!found) return { facts: { ...facts, publication: null, note: 'No Year was published by then.' } }
  const { publicationId, asOfDay } = found.manifest
  const envelope = envelopeOf(found)
  const named = { ...facts, publication: publicationId, asOfDay }
  if (!envelope) {
    const note = 'This publication has an older layout, which the tools do not read.'
    return { facts: { ...named, note } }
  }
  const { windowStart, windowEnd, archivedAt, feed } = envelope
  const items = ranked(feed[list], limit ?? LIMIT_DEFAULT)
  return { facts: { ...named, windowStart, windowEnd, publishedAt: archivedAt }, lists: { items } }
}

async function newestFeed({ feed }: CallerSources, sort: LiveFeed['sortMode']): Promise<LiveFeed> {
  const newest = await feed(sort)
  if (!newest) throw new ToolError('no snapshot of the feed has been taken yet')
  return newest
}

export function snapshotFacts({ snapshotId, generatedAt, sortMode }: LiveFeed): object {
  return { snapshot: snapshotId, generatedAt, sort: sortMode }
}

export function snapshotLists(feed: LiveFeed, limit: number): Record<string, object[]> {
  return Object.fromEntries(COLUMN_NAMES.map((name) => [name, ranked(feed[name], limit)]))
}

function ranked(items: readonly (NamedItem & { rank: number })[], limit: number): object[] {
  return items.slice(0, limit).map((item) => ({ rank: item.rank, ...toShownItem(item) }))
}

function notStored(key: string, facts: object = {}): ToolResult {
  const [ref] = itemsOfKey(key)
  return {
    facts: { ...facts, found: false, note: `No such item of ${ref?.source ?? 'any source'} is stored.` },
  }
}

/** Single items and their texts. */
type AgentItems = Pick<FeedStore, 'item' | 'revision' | 'article'>

/** The stores of the agent, as read-only handles (docs/agent-tools.md). */
export interface AgentStores extends PublicationPorts {
  recommendations: Pick<Objects['recommendations'], 'current'>
  feed: AgentItems & SnapshotReader
  search: Pick<FeedSearch, 'by'>
}

/** The data the agent reads, verified as in the public interfaces. A server has one instance. */
export interface AgentSources extends Pick<AgentStores, 'search' | 'clock'> {
  items: AgentItems
  /** The newest snapshot's feed of a sort; null when there is no snapshot. */
  feed: (sort: LiveSort) => Promise<LiveFeed | null>
  /** The newest recommendation of a free model; null when none is stored. */
  recommendation: () => Promise<StoredRun | null>
  /** The Year publication that was current at an instant; null when there was none. */
  publication: (at: Instant) => Promise<ProvedPublication | null>
}

/** The data as one caller reads it: the search counts per caller. */
export interface CallerSources extends Omit<AgentSources, 'search'> {
  search: CallerSearch
}

export function sourcesFor(caller: SearchCaller, sources: AgentSources): CallerSources {
  return { ...sources, search: sources.search.by(caller) }
}

/** Size of the agent's own cache of verified publications. */
const YEAR_MEMORY_BYTES = 8 * 1024 * 1024

export function agentSources(stores: AgentStores): AgentSources {
  const { feed: items, search, clock } = stores
  const snapshots = provedSnapshots(items)
  const publications = provedPublications(stores, YEAR_MEMORY_BYTES)
  return {
    items,
    search,
    clock,
    async feed(sort) {
      const proved = await snapshots.newest(sort)
      return proved && parseFeed(proved)
    },
    async recommendation() {
      const bytes = await stores.recommendations.current()
      return bytes && proveRun(bytes)
    },
    publication: (at) => publications.latestAt(at),
  }
}
