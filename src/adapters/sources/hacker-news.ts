import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import { DAY_MS, addDays, formatInstant, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import { describeIssues, instant, listOfRows, liveSource, shapeReader, unixSeconds } from './source-batch.ts'
import type { Desk, SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

/**
 * Half days, because the search gives at most a thousand stories for a question and the busiest half day has fewer.
 * Only the time of creation can be filtered by: points are no longer an attribute the search takes.
 */
const WINDOW_MS = DAY_MS / 2

const HITS_PER_PAGE = 1000

const LIST_MAX_BYTES = 4 * 1024 * 1024

/** A story of the day before is kept when it has this many points. */
const EARLIER_POINTS_MIN = 10

const result = z.object({ hits: z.array(z.unknown()) })

const hit = z.object({
  objectID: z.string().regex(/^[1-9]\d*$/, 'must be the digits of an item'),
  title: z.string(),
  url: z.string().nullish(),
  author: z.string().nullish(),
  points: z.int().nullish(),
  num_comments: z.int().nullish(),
  created_at: instant.nullish(),
  created_at_i: unixSeconds.nullish(),
})
type Hit = z.infer<typeof hit>

/**
 * The stories of today and of the day before that are on no list, by Hacker News' own search: what an item of
 * the list API has told already is not replaced.
 */
async function* putRecentStories(desk: Desk, base: string): AsyncGenerator<void> {
  const yesterday = startOfDay(addDays(desk.day, -1))
  for (let start = yesterday; start < yesterday + 2 * DAY_MS && start <= desk.now; start += WINDOW_MS) {
    await desk.attempt(() => putWindow(desk, base, start))
    yield
  }
}

async function putWindow(desk: Desk, base: string, start: Instant): Promise<void> {
  const query = new URLSearchParams({
    tags: 'story',
    numericFilters: `created_at_i>=${start / 1000},created_at_i<${(start + WINDOW_MS) / 1000}`,
    hitsPerPage: String(HITS_PER_PAGE),
  })
  const url = `${base}/search_by_date?${query.toString()}`
  const { hits } = await desk.ask({
    url,
    conditional: true,
    maxBytes: LIST_MAX_BYTES,
    read: shapeReader(result),
  })
  // The first minutes of a half day may have no story yet.
  if (hits.length === 0 && desk.now < start + WINDOW_MS) return
  const pointsMin = start >= startOfDay(desk.day) ? Number.NEGATIVE_INFINITY : EARLIER_POINTS_MIN
  const what = `stories created from ${formatInstant(start)} on (${url})`
  desk.putRows(what, hits, hit, (story) => ((story.points ?? 0) < pointsMin ? null : rowOf(story)))
}

function rowOf(story: Hit): SourceRow {
  const { objectID, title, url, author, points, num_comments: comments } = story
  const { created_at: createdAt, created_at_i: seconds } = story
  return {
    sourceId: objectID,
    title,
    url: url ?? null,
    points: points ?? null,
    comments: comments ?? null,
    // Its text comes with milliseconds or without.
    publishedAt: createdAt ?? (seconds ? Math.floor(seconds) * 1000 : null),
    channel: 'algolia-search-by-date',
    author: author ?? null,
    tags: [],
    description: null,
  }
}

/** The lists that are read, and how far. */
const LISTS = [
  { name: 'topstories', first: 200 },
  { name: 'beststories', first: 100 },
  { name: 'newstories', first: 100 },
  { name: 'askstories', first: 30 },
  { name: 'showstories', first: 30 },
] as const

/** Items asked for at a time. */
const WORKERS = 4

/** Items read between two batches that are stored. */
const ITEMS_AT_ONCE = 40

/** After this many items that could not be read, the others are not asked for. */
const FAILED_ITEMS_MAX = 5

const itemId = z.int().positive()

const item = z.object({
  id: z.int(),
  type: z.string(),
  deleted: z.boolean().optional(),
  dead: z.boolean().optional(),
  title: z.string().optional(),
  url: z.string().nullish(),
  by: z.string().nullish(),
  score: z.int().nullish(),
  descendants: z.int().nullish(),
  time: unixSeconds.nullish(),
})

/** Jobs are advertisements and have no discussion; comments and poll options are parts of items. */
const KINDS: ReadonlySet<string> = new Set(['story', 'poll'])

/** Hacker News: the lists of its own API and each story on them, then the stories of recent days from its search. */
export function hackerNews(client: SourceClient, itemsUrl: string, searchUrl: string): LiveSource {
  return liveSource(client, 'hn', [], async function* (desk) {
    const ids = await listedIds(desk, itemsUrl)
    yield
    yield* putItems(desk, itemsUrl, ids)
    yield* putRecentStories(desk, searchUrl)
  })
}

/** Ids on any of the lists, each once, the first of every list first. */
async function listedIds(desk: Desk, base: string): Promise<number[]> {
  const lists = await Promise.all(
    LISTS.map(({ name, first }) =>
      desk.attempt(async () => {
        const url = `${base}/${name}.json`
        const list = await desk.ask({ url, conditional: true, read: shapeReader(listOfRows) })
        const ids = list.slice(0, first).flatMap((value) => {
          const id = itemId.safeParse(value)
          if (!id.success) desk.bad(null, `${url}: an id that is no positive integer`)
          return id.success ? [id.data] : []
        })
        if (ids.length === 0) throw new SourceUnavailable(`${url}: not one of its ids is a positive integer`)
        return ids
      }),
    ),
  )
  const longest = Math.max(...lists.map((ids) => ids?.length ?? 0))
  const ids = new Set<number>()
  for (let place = 0; place < longest; place += 1) {
    for (const list of lists) {
      const id = list?.[place]
      if (id !== undefined) ids.add(id)
    }
  }
  return [...ids]
}

async function* putItems(desk: Desk, base: string, ids: readonly number[]): AsyncGenerator<void> {
  const failed: SourceUnavailable[] = []
  const left = [...ids]
  while (left.length > 0 && failed.length < FAILED_ITEMS_MAX) {
    const part = left.splice(0, ITEMS_AT_ONCE)
    const worker = async (): Promise<void> => {
      while (failed.length < FAILED_ITEMS_MAX) {
        const id = part.shift()
        if (id === undefined) return
        await putItem(desk, base, id).catch((error: unknown) => {
          if (!(error instanceof SourceUnavailable)) throw error
          failed.push(error)
        })
      }
    }
    await Promise.all(Array.from({ length: WORKERS }, worker))
    left.unshift(...part)
    yield
  }
  const [first] = failed
  if (!first) return
  const rest = left.length === 0 ? '' : `, ${left.length} more were not asked for`
  desk.fail({
    reason: `${failed.length} of ${ids.length} items could not be read${rest}; the first: ${first.detail}`,
    retryAt: first.retryAt,
  })
  yield
}

/** An item that was deleted, is dead or is no story is left out without a word. */
async function putItem(desk: Desk, base: string, id: number): Promise<void> {
  const url = `${base}/item/${id}.json`
  const parsed = item
    .nullable()
    .safeParse(await desk.ask<unknown>({ url, absent: null, read: (json) => json }))
  if (!parsed.success) {
    desk.bad(String(id), `${url}: ${describeIssues(parsed.error)}`)
    return
  }
  const answer = parsed.data
  if (answer === null) return
  if (answer.id !== id) {
    desk.bad(String(id), `${url}: it answered for the item ${answer.id}`)
    return
  }
  if (answer.deleted === true || answer.dead === true || !KINDS.has(answer.type)) return
  desk.put({
    sourceId: String(id),
    title: answer.title ?? '',
    url: answer.url ?? null,
    points: answer.score ?? null,
    comments: answer.descendants ?? null,
    publishedAt: answer.time ? Math.floor(answer.time) * 1000 : null,
    channel: 'firebase-item',
    author: answer.by ?? null,
    tags: [],
    description: null,
  })
}
