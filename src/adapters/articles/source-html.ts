import { z } from 'zod'
import type { NewsSource } from '../../domain/feed/source.ts'
import { PageProblem } from './page-problem.ts'

/** Asks an API for a JSON answer; null for a 404 or 410, and anything else that is no answer is thrown. */
export type AskJson = (request: { url: string; body?: unknown }, signal: AbortSignal) => Promise<unknown>

/** Base of each owning source's API, without a trailing slash. */
export type ArticleSourceUrls = Record<NewsSource, string>

interface Owner {
  provenance: string
  ask(base: string, sourceId: string): { url: string; body?: unknown }
  /** The item's own id and its text as HTML, or null when there is no such item. */
  read(answer: unknown): { id: string; html: string } | null
}

const hackerNewsItem = z.object({
  id: z.int(),
  text: z.string().nullish(),
  deleted: z.boolean().nullish(),
  dead: z.boolean().nullish(),
})

const lobstersStory = z.object({ short_id: z.string(), description: z.string().nullish() })

const lessWrongAnswer = z.object({
  data: z.object({
    post: z
      .object({
        result: z
          .object({ _id: z.string(), contents: z.object({ html: z.string().nullish() }).nullish() })
          .nullable(),
      })
      .nullable(),
  }),
})

const LESSWRONG_QUERY =
  'query Body($id: String) { post(input: { selector: { _id: $id } }) { result { _id contents { html } } } }'

const OWNERS: Record<NewsSource, Owner> = {
  hn: {
    provenance: 'hn:item-text',
    ask: (base, id) => ({ url: `${base}/item/${encodeURIComponent(id)}.json` }),
    read(answer) {
      const item = hackerNewsItem.nullable().parse(answer)
      if (item === null || item.deleted === true || item.dead === true) return null
      return { id: String(item.id), html: item.text ?? '' }
    },
  },
  lobsters: {
    provenance: 'lobsters:story-description',
    ask: (base, id) => ({ url: `${base}/s/${encodeURIComponent(id)}.json` }),
    read(answer) {
      const story = lobstersStory.nullable().parse(answer)
      return story && { id: story.short_id, html: story.description ?? '' }
    },
  },
  lesswrong: {
    provenance: 'lesswrong:post-body',
    ask: (base, id) => ({ url: base, body: { query: LESSWRONG_QUERY, variables: { id } } }),
    read(answer) {
      const post = lessWrongAnswer.nullable().parse(answer)?.data.post?.result
      return post ? { id: post._id, html: post.contents?.html ?? '' } : null
    },
  },
}

/**
 * The text a news source itself holds of an item, as HTML; empty when it holds none.
 *
 * @throws PageProblem `gone` when the source does not know the item or has deleted it; a failure when it does not
 *   answer, or for another item
 */
export async function sourceHtml(
  askJson: AskJson,
  urls: ArticleSourceUrls,
  { source, sourceId }: { source: NewsSource; sourceId: string },
  signal: AbortSignal,
): Promise<{ html: string; provenance: string }> {
  const owner = OWNERS[source]
  const question = owner.ask(urls[source], sourceId)
  const answer = await askJson(question, signal)
  let item
  try {
    item = owner.read(answer)
  } catch (cause) {
    throw new PageProblem(null, `${question.url}: its answer has another shape than expected`, { cause })
  }
  if (item === null) throw new PageProblem('gone', `${source} ${sourceId}: its source has it no more`)
  if (item.id !== sourceId) {
    throw new PageProblem(null, `${question.url}: it answered for ${JSON.stringify(item.id.slice(0, 80))}`)
  }
  return { html: item.html, provenance: owner.provenance }
}
