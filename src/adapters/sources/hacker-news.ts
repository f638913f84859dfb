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

/** Hacker News: the stories on the lists of its API, then the stories of recent days from its search. */
export function hackerNews(client: SourceClient, itemsUrl: string, searchUrl: string): LiveSource {
  return liveSource(client, 'hn', [], async function* (batch) {
    const ids = await listedIds(batch, itemsUrl)
    yield
    yield* putItems(batch, itemsUrl, ids)
    yield* putRecentStories(batch, searchUrl)
  })
}

/** The lists that are read, and the number of ids read from each. */
const LISTS = [
  { name: 'topstories', count: 200 },
  { name: 'beststories', count: 100 },
  { name: 'newstories', count: 100 },
  { name: 'askstories', count: 30 },
  { name: 'showstories', count: 30 },
] as const

const itemId = z.int().positive()

/** Reads the ids on the lists, each once, interleaved so that the first of every list come first. */
async function listedIds(batch: BatchWriter, base: string): Promise<number[]> {
  const lists = await Promise.all(
    LISTS.map(({ name, count }) => batch.attempt(() => readList(batch, `${base}/${name}.json`, count))),
  )
  const longest = Math.max(...LISTS.map(({ count }) => count))
  const interleaved = Array.from({ length: longest }, (_, index) =>
    lists.flatMap((ids) => ids?.[index] ?? []),
  )
  return [...new Set(interleaved.flat())]
}

async function readList(batch: BatchWriter, url: string, count: number): Promise<number[]> {
  const list = await batch.fetchJson({ url, conditional: true, shape: listOfRows })
  const ids = list.slice(0, count).flatMap((value) => {
    const id = itemId.safeParse(value)
    if (!id.success) batch.addBadRow(null, `${url}: an id is not a positive integer`)
    return id.data ?? []
  })
  if (ids.length === 0) throw new SourceUnavailable(`${url}: no id is a positive integer`)
  return ids
}

/** Number of items requested at the same time. */
const CONCURRENCY = 4

/** Number of items per stored batch. */
const BATCH_ITEMS = 40

/** After this many failures the other items are not requested. */
const FAILED_ITEMS_MAX = 5

async function* putItems(batch: BatchWriter, base: string, ids: readonly number[]): AsyncGenerator<void> {
  const failed: SourceUnavailable[] = []
  let requested = 0
  const tryItem = async (id: number): Promise<void> => {
    if (failed.length >= FAILED_ITEMS_MAX) return
    requested += 1
    await putItem(batch, base, id).catch((error: unknown) => {
      if (!(error instanceof SourceUnavailable)) throw error
      failed.push(error)
    })
  }
  const limit = pLimit(CONCURRENCY)
  for (let start = 0; start < ids.length && failed.length < FAILED_ITEMS_MAX; start += BATCH_ITEMS) {
    await limit.map(ids.slice(start, start + BATCH_ITEMS), tryItem)
    yield
  }
  const [firstFailure] = failed
  if (!firstFailure) return
  const rest = requested === ids.length ? '' : `, ${ids.length - requested} more were not requested`
  const items = `${failed.length} of ${ids.length} items could not be read${rest}`
  batch.addFailure(`${items}; first problem: ${firstFailure.detail}`, firstFailure.retryAt)
  yield
}

/** A single item; descriptive fields may be missing. */
const item = z.object({
  id: z.int(),
  deleted: z.boolean().nullish(),
  dead: z.boolean().nullish(),
  title: z.string().optional(),
  /** Text of a story without a link, as HTML. */
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

/**
 * Types of items that are collected. Jobs are advertisements without a discussion; comments and poll options are
 * parts of items.
 */
const ITEM_TYPES: ReadonlySet<string> = new Set(['story', 'poll'])

/** Adds an item. Deleted and dead items and other types are skipped silently. */
async function putItem(batch: BatchWriter, base: string, id: number): Promise<void> {
  const url = `${base}/item/${id}.json`
  const json = await batch.fetchJson({ url, absent: null, shape: z.unknown() })
  const { data: found, error } = listedItem.nullable().safeParse(json)
  if (error) return batch.addBadRow(String(id), `${url}: ${describeIssues(error)}`)
  if (!found) return
  if (found.id !== id)
    return batch.addBadRow(String(id), `${url}: the response is about the item ${found.id}`)
  if (found.deleted === true || found.dead === true || !ITEM_TYPES.has(found.type)) return
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
  shape: item.nullable().transform((found) => {
    if (found === null || found.deleted === true || found.dead === true) return null
    return { id: String(found.id), title: found.title ?? null, html: found.text }
  }),
}

/**
 * Half a day: the search returns at most a thousand stories per query, and the busiest half day has fewer. Only the
 * creation time can be filtered: the search no longer accepts points.
 */
const WINDOW_MS = DAY_MS / 2

const HITS_PER_PAGE = 1000

/** Minimum points of a story of the previous day. */
const EARLIER_POINTS_MIN = 10

const result = z.object({ hits: z.array(z.unknown()) })

const hit = z.object({
  objectID: z.string().regex(/^[1-9]\d*$/, 'must be the numeric id of an item'),
  title: z.string(),
  url: z.string().nullish(),
  author: z.string().nullish(),
  points: z.int().nullish(),
  num_comments: z.int().nullish(),
  /** With or without milliseconds. */
  created_at: instant.nullish(),
  created_at_i: unixSeconds.nullish(),
})

/**
 * Adds the stories of today and the previous day that are on no list, from Hacker News' own search. They never
 * replace items of the API.
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
  const { hits } = await batch.fetchJson({ url, conditional: true, maxBytes: LIST_MAX_BYTES, shape: result })
  // The first minutes of a half day may be without a story.
  if (hits.length === 0 && batch.now < start + WINDOW_MS) return
  const pointsMin = start >= startOfDay(batch.day) ? Number.NEGATIVE_INFINITY : EARLIER_POINTS_MIN
  const stories = hit.transform((found) => ((found.points ?? 0) < pointsMin ? null : toRow(found)))
  batch.putRows(`stories created from ${formatInstant(start)} on (${url})`, hits, stories)
}

function toRow(story: z.infer<typeof hit>): SourceRow {
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
