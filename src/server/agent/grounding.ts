import { CALL_TIMEOUT_MS } from '../../domain/agent/bounds.ts'
import type { ChatRequest } from '../../domain/agent/chat-request.ts'
import type { Grounding } from '../../domain/agent/shown-data.ts'
import { GROUNDING_DATA_MAX_BYTES } from '../../domain/agent/prompt.ts'
import {
  fitLists,
  fitText,
  shownItem,
  shownLine,
  shownLink,
  UNTRUSTED,
} from '../../domain/agent/shown-data.ts'
import { sha256Hex } from '../../domain/digest.ts'
import type { LiveFeed } from '../../domain/feed/live-items.ts'
import type { StoredItem } from '../../domain/feed/search.ts'
import { visibleText } from '../../domain/text.ts'
import { dayOf, formatInstant } from '../../domain/time.ts'
import { sourcesFor, snapshotFacts, snapshotLists } from './tool-answers.ts'
import type { AgentSources, CallerSources } from './tool-answers.ts'
import { onceFor, withTimeout } from '../single-flight.ts'

/** Items shown of each list of the feed, before whatever does not fit is left out. */
const LIST_LENGTH = 10

/** Latest days shown of an item. */
const TREND_DAYS = 14

/** Bounds of what a source says of an item, so that a data block always holds the item itself. */
const TAGS_MAX = 8
const TAG_MAX_LENGTH = 32
const AUTHOR_MAX_LENGTH = 64
const DESCRIPTION_MAX_LENGTH = 200

/**
 * What a turn stands on (docs/agent-tools.md): the item it is about, or else the newest snapshot in its sort. What could
 * not be read is said, never made up.
 *
 * @param address of the turn's caller, canonical
 * @param onFault told of what a store threw
 * @param timeoutMs longest that reading may take
 * @throws the signal's reason once it is aborted, and nothing else
 */
export async function groundingOf(
  request: Pick<ChatRequest, 'itemKey' | 'sort'>,
  sources: AgentSources,
  address: string,
  signal: AbortSignal,
  onFault: (error: unknown) => void,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<Grounding> {
  const day = dayOf(sources.clock())
  const over = new AbortController()
  try {
    const reads = sourcesFor({ address, isChat: true, signal: over.signal }, sources)
    return { ...(await withTimeout(read(request, reads), timeoutMs, signal)), day }
  } catch (error) {
    signal.throwIfAborted()
    onFault(error)
    const data = JSON.stringify({ ...UNTRUSTED, note: 'The stored data could not be read just now.' })
    return { scope: 'site', data, day, revision: null }
  } finally {
    over.abort()
  }
}

async function read(
  { itemKey, sort }: Pick<ChatRequest, 'itemKey' | 'sort'>,
  sources: CallerSources,
): Promise<Omit<Grounding, 'day'>> {
  // Before anything else: what changes while it is read belongs to a later revision.
  const stored = await sources.items.revision()
  const item = itemKey === null ? null : await sources.items.item(itemKey)
  const { data, digest, of } = item ? await readItem(item, sources) : await readSite(sort, sources)
  const revision = stored === null ? null : sha256Hex(JSON.stringify([stored, of, digest]))
  return { scope: item ? 'item' : 'site', data, revision }
}

/** Data, its digest, and what else tells whether it changes. */
interface Shown {
  data: string
  digest: string
  of: string
}

function shown(data: string, of: string): Shown {
  return { data, digest: sha256Hex(data), of }
}

const SITE = { ...UNTRUSTED, about: 'the whole site' }

async function readSite(sort: ChatRequest['sort'], sources: CallerSources): Promise<Shown> {
  const feed = await sources.feed(sort)
  if (feed) return shownFeed(feed)
  const note = 'No snapshot of the feed has been taken yet: nothing is ranked.'
  return shown(JSON.stringify({ ...SITE, sort, note }), 'no snapshot')
}

/** Kept for as long as the feed is: the turns on one snapshot share one text. */
const shownFeed = onceFor((feed: LiveFeed): Shown => {
  const lists = snapshotLists(feed, LIST_LENGTH)
  const data = fitLists({ ...SITE, ...snapshotFacts(feed) }, lists, GROUNDING_DATA_MAX_BYTES)
  return shown(data, feed.snapshotId)
})

async function readItem(item: StoredItem, sources: CallerSources): Promise<Shown> {
  const article = await sources.items.article(item.source, item.sourceId)
  const { days } = await sources.search.itemTrend(item.key)
  const newest = await sources.feed('trending')
  const head = {
    ...UNTRUSTED,
    about: 'one item, which the user has open',
    item: factsOf(item),
    trend: { order: 'newest day first', days: days.slice(-TREND_DAYS).toReversed() },
  }
  const of = JSON.stringify([article?.fetchedAt, article && sha256Hex(article.text), newest?.snapshotId])
  if (!article)
    return shown(JSON.stringify({ ...head, text: null, note: 'No text of this item is stored.' }), of)
  const text = visibleText(article.text)
  const readAt = formatInstant(article.fetchedAt)
  const write = (beginning: string): string =>
    JSON.stringify({ ...head, readAt, textIsWhole: beginning === text, text: beginning })
  return shown(fitText(text, write, GROUNDING_DATA_MAX_BYTES), of)
}

function factsOf(item: StoredItem): object {
  const { author, description } = item
  return {
    ...shownItem(item),
    discussion: shownLink(item.discussionUrl),
    publishedAt: item.publishedAt,
    firstSeen: item.firstDay,
    lastSeen: item.lastDay,
    author: author === null ? null : shownLine(author, AUTHOR_MAX_LENGTH),
    tags: item.tags.slice(0, TAGS_MAX).map((tag) => shownLine(tag, TAG_MAX_LENGTH)),
    description: description === null ? null : shownLine(description, DESCRIPTION_MAX_LENGTH),
  }
}
