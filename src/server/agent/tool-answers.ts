import type { ToolName } from '../../domain/agent/model-call.ts'
import { UNTRUSTED, fitLists, fitText, shownItem, shownLine } from '../../domain/agent/shown-data.ts'
import type { NamedItem } from '../../domain/agent/shown-data.ts'
import { LISTS } from '../../domain/agent/tools.ts'
import type { Arguments, KnownCall } from '../../domain/agent/tools.ts'
import type { LiveSort } from '../../domain/feed/live-sort.ts'
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
import { Refusal } from '../../domain/refusal.ts'
import { visibleText } from '../../domain/text.ts'
import { formatInstant, parseInstant } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { FUTURE_TOLERANCE_MS } from '../../domain/year/history.ts'
import { yearEnvelopeSchema } from '../../domain/year/schema.ts'
import type { YearEnvelope } from '../../domain/year/schema.ts'
import { parseFeed, provedSnapshots } from '../feed/proved-snapshots.ts'
import type { SnapshotReader } from '../feed/proved-snapshots.ts'
import { onceFor } from '../single-flight.ts'
import { provedPublications } from '../year/proved-publications.ts'
import type { ProvedPublication } from '../year/proved-publications.ts'

/** How the six tools answer (docs/agent-tools.md): stored data as JSON text, within a number of bytes. */

/** What a tool has to tell the model instead of an answer. */
export class ToolProblem extends Error {
  override readonly name = 'ToolProblem'
}

const LIMIT_DEFAULT = 10
const SNAPSHOT_LIMIT_DEFAULT = 5

/** What a tool says: facts and lists beside them, or a text with the facts of as much of it as fits. */
type Answer =
  | { facts: object; lists?: Readonly<Record<string, readonly object[]>> }
  | { text: string; factsOf: (beginning: string) => object }

/** The answer to a call as JSON text of at most `maxBytes`. */
export async function answerCall<Name extends ToolName>(
  call: KnownCall<Name>,
  sources: CallerSources,
  maxBytes: number,
): Promise<string> {
  const head = { ...UNTRUSTED, source: `dash ${call.name}` }
  const answer = await ANSWERS[call.name](call.arguments, sources)
  if ('facts' in answer) return fitLists({ ...head, ...answer.facts }, answer.lists ?? {}, maxBytes)
  const { text, factsOf } = answer
  return fitText(text, (beginning) => JSON.stringify({ ...head, ...factsOf(beginning) }), maxBytes)
}

const ANSWERS: {
  [Name in ToolName]: (given: Arguments[Name], sources: CallerSources) => Promise<Answer>
} = {
  async search_items({ query, sources, from, to, limit }, { search }) {
    const asked = { query, sources: sources ?? [], from, to, limit: limit ?? LIMIT_DEFAULT, cursor: null }
    const page = await search.search(asked)
    const items = page.items.map((item) => ({ ...shownItem(item), match: item.match }))
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
    const feed = await newestFeed(sources, sort)
    return { facts: snapshotFacts(feed), lists: snapshotLists(feed, limit ?? SNAPSHOT_LIMIT_DEFAULT) }
  },

  async read_article({ key, offset }, { items }) {
    const item = await items.item(key)
    if (!item) return notStored(key)
    const shown = { found: true, item: shownItem(item) }
    const stored = await items.article(item.source, item.sourceId)
    if (!stored) return { facts: { ...shown, text: null, note: 'No text of this item is stored.' } }
    const readAt = formatInstant(stored.fetchedAt)
    const characters = Array.from(visibleText(stored.text))
    const start = offset ?? 0
    const factsOf = (text: string): object => {
      const end = start + Array.from(text).length
      const nextOffset = end < characters.length ? end : null
      const place = { characters: characters.length, offset: start, next_offset: nextOffset }
      return { ...shown, readAt, ...place, text }
    }
    return { text: characters.slice(start).join(''), factsOf }
  },

  async find_similar_items({ key, limit }, { search }) {
    const similar = await unlessNotFound(search.similar(key, limit ?? LIMIT_DEFAULT))
    if (!similar) return notStored(key)
    const items = similar.map((item) => ({ ...shownItem(item), reasons: item.reasons, score: item.score }))
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
    const trend = await unlessNotFound(search.itemTrend(key))
    if (!item || !trend) return notStored(key, facts)
    const days = trend.days.filter(({ day }) => (from ?? day) <= day && day <= (to ?? day))
    return { facts: { ...facts, found: true, item: shownItem(item) }, lists: { days: days.toReversed() } }
  },
}

async function yearTop(
  list: keyof YearEnvelope['feed'] & (typeof LISTS)[number],
  limit: number | null,
  at: string | null,
  { publication, clock }: CallerSources,
): Promise<Answer> {
  const now = clock()
  const instant = at === null ? now : (parseInstant(at) ?? now)
  if (instant > now + FUTURE_TOLERANCE_MS) throw new ToolProblem('at: lies in the future')
  const found = await publication(instant)
  const facts = { period: 'year', list, at: formatInstant(instant) }
  if (!found) return { facts: { ...facts, publication: null, note: 'No Year was published by then.' } }
  const { publicationId, asOfDay, envelope } = found
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
  if (!newest) throw new ToolProblem('no snapshot of the feed has been taken yet')
  return newest
}

/** What a snapshot says of itself. */
export function snapshotFacts({ snapshotId, generatedAt, sortMode }: LiveFeed): object {
  return { snapshot: snapshotId, generatedAt, sort: sortMode }
}

/** The top of every list of a snapshot. */
export function snapshotLists(feed: LiveFeed, limit: number): Record<string, object[]> {
  return Object.fromEntries(LISTS.map((name) => [name, ranked(feed[name], limit)]))
}

function ranked(items: readonly (NamedItem & { rank: number })[], limit: number): object[] {
  return items.slice(0, limit).map((item) => ({ rank: item.rank, ...shownItem(item) }))
}

function notStored(key: string, facts: object = {}): Answer {
  const [ref] = itemsOfKey(key)
  return {
    facts: { ...facts, found: false, note: `No such item of ${ref?.source ?? 'any source'} is stored.` },
  }
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
  ledger: Pick<Ledger, 'changeToken'>
  objects: Pick<Objects, 'get' | 'newestHead' | 'objectChangeToken' | 'headChangeToken'>
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
  const feedOf = onceFor(parseFeed)
  const publicationOf = onceFor(parsePublication)
  return {
    items,
    search,
    clock,
    async feed(sort) {
      const proved = await snapshots.newest(sort)
      return proved && feedOf(proved)
    },
    async publication(at) {
      const proved = await publications.latestAt(at)
      return proved && publicationOf(proved)
    },
  }
}

function parsePublication({ manifest, published }: ProvedPublication): YearPublication {
  const { publicationId, asOfDay } = manifest
  const parsed = yearEnvelopeSchema.safeParse(JSON.parse(published.body.toString('utf8')))
  return { publicationId, asOfDay, envelope: parsed.success ? parsed.data : null }
}
