import { z } from 'zod'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import type { LiveSource } from '../../domain/ports.ts'
import { addDays } from '../../domain/time.ts'
import { liveSource, instant, listOfRows, shapeReader } from './source-batch.ts'
import type { Desk, SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

/** Repositories created in the last week, and those of the last month that go on growing. */
const CREATED_WITHIN_DAYS = [7, 30]

const REPOSITORIES_MAX = 100

const LIST_MAX_BYTES = 4 * 1024 * 1024

const result = z.object({ items: listOfRows, incomplete_results: z.boolean().nullish() })

const repository = z.object({
  full_name: z.string(),
  private: z.boolean().nullish(),
  html_url: z.string().nullish(),
  description: z.string().nullish(),
  stargazers_count: z.int().nullish(),
  created_at: instant.nullish(),
  owner: z.object({ login: z.string() }).nullish().catch(null),
  topics: z.array(z.string()).nullish().catch(null),
})
type Repository = z.infer<typeof repository>

/** GitHub: the young public repositories with most stars. Works without a token, at a tenth of the rate. */
export function gitHub(client: SourceClient, base: string, token: string | null): LiveSource {
  const headers = {
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  }
  return liveSource(client, 'hype:github', [], async function* (desk) {
    for (const days of CREATED_WITHIN_DAYS) {
      await desk.attempt(() => putSearch(desk, base, days, headers))
      yield
    }
  })
}

async function putSearch(
  desk: Desk,
  base: string,
  days: number,
  headers: Record<string, string>,
): Promise<void> {
  const query = new URLSearchParams({
    // A token may see private repositories.
    q: `is:public created:>=${addDays(desk.day, -days)}`,
    sort: 'stars',
    order: 'desc',
    per_page: String(REPOSITORIES_MAX),
  })
  const url = `${base}/search/repositories?${query.toString()}`
  const { items, incomplete_results: incomplete } = await desk.ask({
    url,
    headers,
    credential: 'GITHUB_TOKEN',
    conditional: true,
    maxBytes: LIST_MAX_BYTES,
    read: shapeReader(result),
  })
  desk.putRows(url, items, repository, rowOf)
  if (incomplete === true) throw new SourceUnavailable(`${url}: the search ran out of time and is incomplete`)
}

function rowOf(found: Repository): SourceRow | null {
  if (found.private === true) return null
  return {
    sourceId: found.full_name,
    title: found.full_name,
    url: found.html_url ?? null,
    points: found.stargazers_count ?? null,
    comments: null,
    publishedAt: found.created_at ?? null,
    channel: 'search',
    author: found.owner?.login ?? null,
    tags: found.topics ?? [],
    description: found.description ?? null,
  }
}
