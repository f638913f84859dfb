import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/feed/live-source.ts'
import { liveSource } from './desk.ts'
import type { Desk } from './desk.ts'
import { putRecentStories } from './hacker-news-search.ts'
import { describeIssues, listOfRows, shapeReader, unixSeconds } from './shapes.ts'
import type { SourceClient } from './source-client.ts'

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
