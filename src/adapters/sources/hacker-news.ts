import pLimit from 'p-limit'
import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import { describeIssues } from '../../domain/feed/source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import { DAY_MS, addDays, formatInstant, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { instant, LIST_MAX_BYTES, listOfRows, liveSource, unixSeconds } from './source-batch.ts'
import type { BatchWriter, NewsItems, SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

/** Hacker News: the lists of its own API and each story on them, then the stories of recent days from its search. */
export function hackerNews(client: SourceClient, itemsUrl: string, searchUrl: string): LiveSource {
  return liveSource(client, 'hn', [], async function* (batch) {
    const ids = await listedIds(batch, itemsUrl)
    yield
    yield* putItems(batch, itemsUrl, ids)
    yield* putRecentStories(batch, searchUrl)
  })
}

/** The lists that are read, and how far. */
const LISTS = [
  { name: 'topstories', first: 200 },
  { name: 'beststories', first: 100 },
  { name: 'newstories', first: 100 },
  { name: 'askstories', first: 30 },
  { name: 'showstories', first: 30 },
] as const

const itemId = z.int().positive()

/** Ids on any of the lists, each once, the first of every list first. */
async function listedIds(batch: BatchWriter, base: string): Promise<number[]> {
  const lists = await Promise.all(
    LISTS.map(({ name, first }) => batch.attempt(() => readList(batch, `${base}/${name}.json`, first))),
  )
  const longest = Math.max(...LISTS.map(({ first }) => first))
  const places = Array.from({ length: longest }, (_, place) => lists.flatMap((ids) => ids?.[place] ?? []))
  return [...new Set(places.flat())]
}

async function readList(batch: BatchWriter, url: string, first: number): Promise<number[]> {
  const list = await batch.ask({ url, conditional: true, shape: listOfRows })
  const ids = list.slice(0, first).flatMap((value) => {
    const id = itemId.safeParse(value)
    if (!id.success) batch.bad(null, `${url}: an id is not a positive integer`)
    return id.data ?? []
  })
  if (ids.length === 0) throw new SourceUnavailable(`${url}: none of the ids is a positive integer`)
  return ids
}

/** Items requested at a time. */
const AT_ONCE = 4

/** Items read between two batches that are stored. */
const ITEMS_OF_BATCH = 40

/** After this many items that could not be read, the others are not requested. */
const FAILED_ITEMS_MAX = 5

async function* putItems(batch: BatchWriter, base: string, ids: readonly number[]): AsyncGenerator<void> {
  const failed: SourceUnavailable[] = []
  let asked = 0
  const tryItem = async (id: number): Promise<void> => {
    if (failed.length >= FAILED_ITEMS_MAX) return
    asked += 1
    await putItem(batch, base, id).catch((error: unknown) => {
      if (!(error instanceof SourceUnavailable)) throw error
      failed.push(error)
    })
  }
  const limit = pLimit(AT_ONCE)
  for (let at = 0; at < ids.length && failed.length < FAILED_ITEMS_MAX; at += ITEMS_OF_BATCH) {
    await limit.map(ids.slice(at, at + ITEMS_OF_BATCH), tryItem)
    yield
  }
  const [first] = failed
  if (!first) return
  const rest = asked === ids.length ? '' : `, ${ids.length - asked} more were not requested`
  const items = `${failed.length} of ${ids.length} items could not be read${rest}`
  batch.fail(`${items}; first problem: ${first.detail}`, first.retryAt)
  yield
}

/** A single item. What only describes it may be missing. */
const item = z.object({
  id: z.int(),
  deleted: z.boolean().nullish(),
  dead: z.boolean().nullish(),
  title: z.string().optional(),
  /** Of a story without a link, as HTML. */
  text: z.string().nullish().catch(null),
})

const listedItem = item.extend({
  type: z.string(),
  url: z.string().nullish(),
  by: z.string().nullish(),
  score: z.int().nullish(),
  descendants: z.int().nullish(),
  time: unixSeconds.nullish(),
})

/** Jobs are advertisements and have no discussion; comments and poll options are parts of items. */
const KINDS: ReadonlySet<string> = new Set(['story', 'poll'])

/** An item that was deleted, is dead or is no story is left out without a word. */
async function putItem(batch: BatchWriter, base: string, id: number): Promise<void> {
  const url = `${base}/item/${id}.json`
  const json = await batch.ask({ url, absent: null, shape: z.unknown() })
  const { data: found, error } = listedItem.nullable().safeParse(json)
  if (error) return batch.bad(String(id), `${url}: ${describeIssues(error)}`)
  if (!found) return
  if (found.id !== id) return batch.bad(String(id), `${url}: the response is about the item ${found.id}`)
  if (found.deleted === true || found.dead === true || !KINDS.has(found.type)) return
  batch.put({
    sourceId: String(id),
    title: found.title ?? '',
    channel: 'firebase-item',
    url: found.url,
    points: found.score,
    comments: found.descendants,
    publishedAt: found.time,
    author: found.by,
  })
}

export const hackerNewsItems: NewsItems = {
  titleProvenance: 'hn:firebase-item',
  textProvenance: 'hn:item-text',
  request: (base, id) => ({ url: `${base}/item/${encodeURIComponent(id)}.json` }),
  read(json) {
    const found = item.nullable().parse(json)
    if (found === null || found.deleted === true || found.dead === true) return null
    return { id: String(found.id), title: found.title ?? null, html: found.text }
  },
}

/**
 * Half days, because the search gives at most a thousand stories for a query and the busiest half day has fewer.
 * Only the time of creation can be filtered by: points are no longer an attribute the search takes.
 */
const WINDOW_MS = DAY_MS / 2

const HITS_PER_PAGE = 1000

/** A story of the day before is kept when it has this many points. */
const EARLIER_POINTS_MIN = 10

const result = z.object({ hits: z.array(z.unknown()) })

const hit = z.object({
  objectID: z.string().regex(/^[1-9]\d*$/, 'must be the numeric id of an item'),
  title: z.string(),
  url: z.string().nullish(),
  author: z.string().nullish(),
  points: z.int().nullish(),
  num_comments: z.int().nullish(),
  /** With milliseconds or without. */
  created_at: instant.nullish(),
  created_at_i: unixSeconds.nullish(),
})

/**
 * The stories of today and of the day before that are on no list, by Hacker News' own search. It never replaces what an
 * item of the API said.
 */
async function* putRecentStories(batch: BatchWriter, base: string): AsyncGenerator<void> {
  const yesterday = startOfDay(addDays(batch.day, -1))
  for (let start = yesterday; start < yesterday + 2 * DAY_MS && start <= batch.now; start += WINDOW_MS) {
    await batch.attempt(() => putWindow(batch, base, start))
    yield
  }
}

async function putWindow(batch: BatchWriter, base: string, start: Instant): Promise<void> {
  const query = new URLSearchParams({
    tags: 'story',
    numericFilters: `created_at_i>=${start / 1000},created_at_i<${(start + WINDOW_MS) / 1000}`,
    hitsPerPage: String(HITS_PER_PAGE),
  })
  const url = `${base}/search_by_date?${query.toString()}`
  const { hits } = await batch.ask({ url, conditional: true, maxBytes: LIST_MAX_BYTES, shape: result })
  // The first minutes of a half day may have no story yet.
  if (hits.length === 0 && batch.now < start + WINDOW_MS) return
  const pointsMin = start >= startOfDay(batch.day) ? Number.NEGATIVE_INFINITY : EARLIER_POINTS_MIN
  const stories = hit.transform((found) => ((found.points ?? 0) < pointsMin ? null : rowOf(found)))
  batch.putRows(`stories created from ${formatInstant(start)} on (${url})`, hits, stories)
}

function rowOf(story: z.infer<typeof hit>): SourceRow {
  return {
    sourceId: story.objectID,
    title: story.title,
    channel: 'algolia-search-by-date',
    url: story.url,
    points: story.points,
    comments: story.num_comments,
    publishedAt: story.created_at ?? story.created_at_i,
    author: story.author,
  }
}
