import { CALL_TIMEOUT_MS } from '../../domain/agent/bounds.ts'
import type { ChatRequest } from '../../domain/agent/chat-request.ts'
import type { Grounding } from '../../domain/agent/shown-data.ts'
import { GROUNDING_DATA_MAX_BYTES } from '../../domain/agent/prompt.ts'
import {
  fitLists,
  fitText,
  toShownItem,
  shownLine,
  shownLink,
  UNTRUSTED,
} from '../../domain/agent/shown-data.ts'
import { sha256Hex } from '../../domain/digest.ts'
import type { LiveFeed } from '../../domain/feed/live-items.ts'
import type { StoredItem } from '../../domain/feed/search/search.ts'
import { recommendationPayload } from '../../domain/models/shortlist.ts'
import { visibleText } from '../../domain/text.ts'
import { dayOf, formatInstant } from '../../domain/time.ts'
import { onceFor } from '../../domain/once.ts'
import { sourcesFor, snapshotFacts, snapshotLists } from './tools.ts'
import type { AgentSources, CallerSources } from './tools.ts'
import { withTimeout } from '../single-flight.ts'

/** Items of each list of the feed, before lists are cut to fit. */
const LIST_LENGTH = 10

/** Number of latest days included for an item. */
const TREND_DAYS = 14

/** Bounds of an item's fields, so that a data block always has space for the item. */
const TAGS_MAX = 8
const TAG_MAX_LENGTH = 32
const AUTHOR_MAX_LENGTH = 64
const DESCRIPTION_MAX_LENGTH = 200

/**
 * Reads the stored data a turn starts from (docs/agent-tools.md): its item, or else the newest snapshot in its sort. If
 * nothing can be read, the data says so.
 *
 * @param onFault called with an error of a store
 * @param timeoutMs longest duration of the reads, in milliseconds
 * @throws the signal's reason once it is aborted, and nothing else
 */
export async function readGrounding(
  request: Pick<ChatRequest, 'itemKey' | 'sort'>,
  sources: AgentSources,
  signal: AbortSignal,
  onFault: (error: unknown) => void,
  timeoutMs = CALL_TIMEOUT_MS,
): Promise<Grounding> {
  const day = dayOf(sources.clock())
  const finished = new AbortController()
  try {
    const reads = sourcesFor({ group: 'chat', signal: finished.signal }, sources)
    return { ...(await withTimeout(readStored(request, reads, onFault), timeoutMs, signal)), day }
  } catch (error) {
    signal.throwIfAborted()
    onFault(error)
    const data = JSON.stringify({ ...UNTRUSTED, note: 'The stored data could not be read just now.' })
    return { scope: 'site', data, day, revision: null }
  } finally {
    finished.abort()
  }
}

async function readStored(
  { itemKey, sort }: Pick<ChatRequest, 'itemKey' | 'sort'>,
  sources: CallerSources,
  onFault: (error: unknown) => void,
): Promise<Omit<Grounding, 'day'>> {
  // Read the revision first: a change during the reads belongs to a later revision.
  const revisionBefore = await sources.items.revision()
  const item = itemKey === null ? null : await sources.items.item(itemKey)
  const freeModel = await readFreeModel(sources).catch((error: unknown) => {
    onFault(error)
    return { note: 'The recommendation could not be read just now.' }
  })
  const { data, version } = item
    ? await readItem(item, freeModel, sources)
    : await readSite(sort, freeModel, sources)
  const revision = sha256Hex(JSON.stringify([revisionBefore, version, data]))
  return { scope: item ? 'item' : 'site', data, revision }
}

/** Data, and a text that changes with data not included in it. */
interface GroundingData {
  data: string
  version: string
}

async function readSite(
  sort: ChatRequest['sort'],
  freeModel: object,
  sources: CallerSources,
): Promise<GroundingData> {
  const head = { ...UNTRUSTED, about: 'the whole site', freeModel }
  const feed = await sources.feed(sort)
  if (feed) {
    const data = fitLists({ ...head, ...snapshotFacts(feed) }, listsOf(feed), GROUNDING_DATA_MAX_BYTES)
    return { data, version: feed.snapshotId }
  }
  const note = 'No snapshot of the feed has been taken yet: nothing is ranked.'
  return { data: JSON.stringify({ ...head, sort, note }), version: 'no snapshot' }
}

/** Cached as long as the feed object, for the turns on one snapshot. */
const listsOf = onceFor((feed: LiveFeed) => snapshotLists(feed, LIST_LENGTH))

/** The free model to use now and what was measured of it, from the stored recommendation. */
async function readFreeModel({ recommendation, clock }: CallerSources): Promise<object> {
  const run = await recommendation()
  if (run === null) return { note: 'No recommendation is stored: no free model was measured.' }
  const { primary, updatedAt, stale, rankingConfidence } = recommendationPayload(
    { run, seed: false, storeAvailable: true },
    clock(),
  )
  const { id, name, contextLength, latencyMs, healthStatus, toolUse, evalSummary } = primary
  const { status, passed, total, updatedAt: testedAt } = evalSummary
  return {
    page: '/models',
    name: shownLine(name),
    id: shownLine(id),
    updatedAt,
    stale,
    confidence: rankingConfidence,
    measured: {
      // Endpoint data alone are no measurement of the model.
      ...(run.untested?.includes(id)
        ? { health: null, latencyMs: null }
        : { health: healthStatus, latencyMs }),
      toolUse,
      tasks: status === 'not_evaluated' ? null : { passed, total, testedAt },
    },
    contextLength,
  }
}

async function readItem(item: StoredItem, freeModel: object, sources: CallerSources): Promise<GroundingData> {
  const article = await sources.items.article(item.source, item.sourceId)
  const { days } = await sources.search.itemTrend(item.key)
  const newest = await sources.feed('trending')
  const head = {
    ...UNTRUSTED,
    about: 'one item, which the user has open',
    freeModel,
    item: itemFacts(item),
    trend: { order: 'newest day first', days: days.slice(-TREND_DAYS).toReversed() },
  }
  const version = JSON.stringify([article?.fetchedAt, article && sha256Hex(article.text), newest?.snapshotId])
  const note = 'No text of this item is stored.'
  if (!article) return { data: JSON.stringify({ ...head, text: null, note }), version }
  const text = visibleText(article.text)
  const readAt = formatInstant(article.fetchedAt)
  const encode = (excerpt: string): string =>
    JSON.stringify({ ...head, readAt, textIsWhole: excerpt === text, text: excerpt })
  return { data: fitText(text, encode, GROUNDING_DATA_MAX_BYTES), version }
}

function itemFacts(item: StoredItem): object {
  const { author, description } = item
  return {
    ...toShownItem(item),
    discussion: shownLink(item.discussionUrl),
    publishedAt: item.publishedAt,
    firstSeen: item.firstDay,
    lastSeen: item.lastDay,
    author: author === null ? null : shownLine(author, AUTHOR_MAX_LENGTH),
    tags: item.tags.slice(0, TAGS_MAX).map((tag) => shownLine(tag, TAG_MAX_LENGTH)),
    description: description === null ? null : shownLine(description, DESCRIPTION_MAX_LENGTH),
  }
}
