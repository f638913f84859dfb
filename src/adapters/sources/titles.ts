import { z } from 'zod'
import { firstCodePoints } from '../../domain/agent/shown-data.ts'
import { TITLE_MAX_LENGTH, isNewsSource } from '../../domain/feed/source.ts'
import type { TitleRefusal } from '../../domain/feed/live-source.ts'
import type { TitleSource } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { NewsSource } from '../../domain/feed/source.ts'
import type { VerifiedTitle } from '../../domain/year/rank.ts'
import { lobstersStory } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

/** Base of each owning source's API, without a trailing slash. */
export type SourceUrls = Record<NewsSource, string>

interface Answer {
  /** The id the answer itself carries. */
  id: string
  title: string
}

interface Owner {
  provenance: string
  ask(base: string, sourceId: string): { url: string; body?: unknown }
  /** The item in an answer, or null when the answer says that there is none. */
  read(answer: unknown): Answer | null
}

const hackerNewsItem = z.object({
  id: z.int(),
  title: z.string().optional(),
  deleted: z.boolean().optional(),
  dead: z.boolean().optional(),
})

const lessWrongAnswer = z.object({
  data: z.object({
    post: z
      .object({ result: z.object({ _id: z.string(), title: z.string().nullable() }).nullable() })
      .nullable(),
  }),
})

const LESSWRONG_QUERY =
  'query Title($id: String) { post(input: { selector: { _id: $id } }) { result { _id title } } }'

const OWNERS: Record<NewsSource, Owner> = {
  hn: {
    provenance: 'hn:firebase-item',
    ask: (base, id) => ({ url: `${base}/item/${encodeURIComponent(id)}.json` }),
    read(answer) {
      const item = hackerNewsItem.nullable().parse(answer)
      if (item === null || item.deleted === true || item.dead === true) return null
      return { id: String(item.id), title: item.title ?? '' }
    },
  },
  lobsters: {
    provenance: 'lobsters:story-json',
    ask: (base, id) => ({ url: `${base}/s/${encodeURIComponent(id)}.json` }),
    read(answer) {
      const story = lobstersStory.nullable().parse(answer)
      return story && { id: story.short_id, title: story.title }
    },
  },
  lesswrong: {
    provenance: 'lesswrong:graphql-post',
    ask: (base, id) => ({ url: base, body: { query: LESSWRONG_QUERY, variables: { id } } }),
    read(answer) {
      const post = lessWrongAnswer.nullable().parse(answer)?.data.post?.result
      return post ? { id: post._id, title: post.title ?? '' } : null
    },
  },
}

/** The owning sources' own APIs, asked for one item's title by its own id (docs/ranking.md, rule 7). */
export function sourceTitles(client: SourceClient, urls: SourceUrls): TitleSource {
  return {
    async title({ source, sourceId }, signal) {
      if (!isNewsSource(source))
        throw notVouched(source, sourceId, 'no source vouches for titles of this kind')
      const owner = OWNERS[source]
      const question = owner.ask(urls[source], sourceId)
      const answer = await client.ask<unknown>({ ...question, absent: null, read: (json) => json }, signal)
      return vouch(owner, source, sourceId, answer, question.url)
    },
  }
}

function vouch(owner: Owner, source: string, sourceId: string, answer: unknown, url: string): VerifiedTitle {
  let item
  try {
    item = owner.read(answer)
  } catch (cause) {
    const detail = `${url}: its answer has another shape than expected`
    throw new Refusal<TitleRefusal>('source_unavailable', detail, { cause })
  }
  if (item === null) throw notVouched(source, sourceId, 'the source has deleted it or does not know it')
  if (item.id !== sourceId)
    throw notVouched(source, sourceId, `the source answered for ${JSON.stringify(item.id)}`)
  if (item.title.trim() === '' || item.title.includes('\0') || !item.title.isWellFormed()) {
    throw notVouched(source, sourceId, 'the source gives no usable title')
  }
  // One character more than an event may have shows that the title is too long; no more of it needs to be kept.
  return { title: firstCodePoints(item.title, TITLE_MAX_LENGTH + 1), provenance: owner.provenance }
}

function notVouched(source: string, sourceId: string, why: string): Refusal<TitleRefusal> {
  return new Refusal<TitleRefusal>('title_not_vouched', `${source} ${sourceId}: ${why}`)
}
