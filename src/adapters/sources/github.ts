import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import { addDays } from '../../domain/time.ts'
import { instant, LIST_MAX_BYTES, listOfRows, liveSource, looseNames } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

/** Ages in days of the repositories searched: the last week, and the last month for those that keep growing. */
const CREATED_WITHIN_DAYS = [7, 30]

const REPOSITORIES_MAX = 100

const result = z.object({ items: listOfRows, incomplete_results: z.boolean().nullish() })

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
        const { items, incomplete_results: incomplete } = await batch.fetchJson({ ...list, shape: result })
        batch.putRows(url, items, repository)
        if (incomplete === true) throw new SourceUnavailable(`${url}: the search timed out and is incomplete`)
      })
    }
  })
}
