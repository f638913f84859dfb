import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import { addDays } from '../../domain/time.ts'
import { instant, LIST_MAX_BYTES, listOfRows, liveSource, looseNames } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

/** Sources of trending repositories and models: GitHub, Hugging Face and Replicate. */

/** Ages in days of the repositories searched: the last week, and the last month for those that keep growing. */
const CREATED_WITHIN_DAYS = [7, 30]

const REPOSITORIES_MAX = 100

const searchResult = z.object({ items: listOfRows, incomplete_results: z.boolean().nullish() })

const repository = z
  .object({
    full_name: z.string(),
    private: z.boolean().nullish(),
    html_url: z.string().nullish(),
    description: z.string().nullish(),
    stargazers_count: z.int().nullish(),
    created_at: instant.nullish(),
    owner: z.object({ login: z.string() }).nullish().catch(null),
    topics: looseNames,
  })
  .transform((item): SourceRow | null => {
    if (item.private === true) return null
    return {
      sourceId: item.full_name,
      title: item.full_name,
      channel: 'search',
      url: item.html_url,
      points: item.stargazers_count,
      publishedAt: item.created_at,
      author: item.owner?.login,
      tags: item.topics,
      description: item.description,
    }
  })

/** GitHub: the new public repositories with the most stars. Works without a token, at a third of the rate limit. */
export function gitHub(client: SourceClient, base: string, token: string | null): LiveSource {
  const headers = {
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  }
  return liveSource(client, 'hype:github', [], async function* (batch) {
    for (const days of CREATED_WITHIN_DAYS) {
      const query = new URLSearchParams({
        // A token may have access to private repositories.
        q: `is:public created:>=${addDays(batch.day, -days)}`,
        sort: 'stars',
        order: 'desc',
        per_page: String(REPOSITORIES_MAX),
      })
      const url = `${base}/search/repositories?${query.toString()}`
      const list = { url, headers, credential: 'GITHUB_TOKEN', conditional: true, maxBytes: LIST_MAX_BYTES }
      yield await batch.attempt(async () => {
        const { items, incomplete_results: incomplete } = await batch.fetchJson({
          ...list,
          shape: searchResult,
        })
        batch.putRows(url, items, repository)
        if (incomplete === true) throw new SourceUnavailable(`${url}: the search timed out and is incomplete`)
      })
    }
  })
}

const HUGGING_FACE_MODELS_MAX = 100

const huggingFaceModel = z
  .object({
    id: z.string(),
    private: z.boolean().nullish(),
    author: z.string().nullish(),
    likes: z.int().nullish(),
    createdAt: instant.nullish(),
    pipeline_tag: z.string().nullish(),
    tags: looseNames,
  })
  .transform((item): SourceRow | null => {
    if (item.private === true) return null
    const [owner, name] = item.id.split('/')
    return {
      sourceId: item.id,
      title: item.id,
      channel: 'models',
      url: `https://huggingface.co/${item.id.split('/').map(encodeURIComponent).join('/')}`,
      points: item.likes,
      publishedAt: item.createdAt,
      author: item.author ?? (name === undefined ? null : owner),
      tags: item.tags,
      description: item.pipeline_tag,
    }
  })

/** Hugging Face: the trending models. Works without a token. */
export function huggingFace(client: SourceClient, base: string, token: string | null): LiveSource {
  return liveSource(client, 'hype:huggingface', [], async function* (batch) {
    const query = new URLSearchParams({
      sort: 'trendingScore',
      direction: '-1',
      limit: String(HUGGING_FACE_MODELS_MAX),
    })
    const url = `${base}/models?${query.toString()}`
    const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
    const list = { url, headers, credential: 'HF_TOKEN', maxBytes: LIST_MAX_BYTES, shape: listOfRows }
    yield await batch.putList(list, huggingFaceModel)
  })
}

/** Pages of 25 models, newest version first. */
const REPLICATE_PAGES = 4

const replicatePage = z.object({ results: listOfRows, next: z.string().nullish() })

const replicateModel = z
  .object({
    owner: z.string().min(1),
    name: z.string().min(1),
    url: z.string().nullish(),
    visibility: z.string().nullish(),
    description: z.string().nullish(),
    run_count: z.int().nullish(),
    latest_version: z.object({ created_at: instant.nullish() }).nullish(),
  })
  .transform((item): SourceRow | null => {
    if (item.visibility === 'private') return null
    const id = `${item.owner}/${item.name}`
    return {
      sourceId: id,
      title: id,
      channel: 'models',
      url: item.url,
      points: item.run_count,
      publishedAt: item.latest_version?.created_at,
      author: item.owner,
      description: item.description,
    }
  })

/** Replicate: the public models with the newest versions. Needs a token. */
export function replicate(client: SourceClient, base: string, token: string | null): LiveSource {
  const missing = token === null ? ['REPLICATE_API_TOKEN'] : []
  return liveSource(client, 'hype:replicate', missing, async function* (batch) {
    let cursor: string | null = ''
    for (let number = 1; number <= REPLICATE_PAGES && cursor !== null; number += 1) {
      const url: string = `${base}/models${cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`}`
      const { results, next } = await batch.fetchJson({
        url,
        headers: { authorization: `Bearer ${token ?? ''}` },
        credential: 'REPLICATE_API_TOKEN',
        conditional: true,
        // Each model includes the description of its interface.
        maxBytes: 2 * LIST_MAX_BYTES,
        shape: replicatePage,
      })
      yield batch.putRows(url, results, replicateModel)
      cursor = cursorOf(next)
    }
  })
}

/** Returns only the cursor of the next page's URL, so that the token is sent to the base only. */
function cursorOf(next: string | null | undefined): string | null {
  const query = next?.split('?')[1]
  return query === undefined ? null : new URLSearchParams(query).get('cursor') || null
}
