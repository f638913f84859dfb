import { z } from 'zod'
import { addDays, DAY_MS, formatInstant, startOfDay } from '../../domain/time.ts'
import type { Instant } from '../../domain/time.ts'
import type { Desk, SourceRow } from './desk.ts'
import { instant, shapeReader, unixSeconds } from './shapes.ts'

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
export async function* putRecentStories(desk: Desk, base: string): AsyncGenerator<void> {
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
