import { z } from 'zod'
import type { LiveSource } from '../../domain/ports.ts'
import { instant, LIST_MAX_BYTES, listOfRows, liveSource } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

/** Pages of 25 models, newest version first. */
const PAGES = 4

const page = z.object({ results: listOfRows, next: z.string().nullish() })

const model = z
  .object({
    owner: z.string().min(1),
    name: z.string().min(1),
    url: z.string().nullish(),
    visibility: z.string().nullish(),
    description: z.string().nullish(),
    run_count: z.int().nullish(),
    latest_version: z.object({ created_at: instant.nullish() }).nullish(),
  })
  .transform((found): SourceRow | null => {
    if (found.visibility === 'private') return null
    const id = `${found.owner}/${found.name}`
    return {
      sourceId: id,
      title: id,
      channel: 'models',
      url: found.url,
      points: found.run_count,
      publishedAt: found.latest_version?.created_at,
      author: found.owner,
      description: found.description,
    }
  })

/** Replicate: the public models with the newest versions. Needs a token. */
export function replicate(client: SourceClient, base: string, token: string | null): LiveSource {
  const missing = token === null ? ['REPLICATE_API_TOKEN'] : []
  return liveSource(client, 'hype:replicate', missing, async function* (batch) {
    let cursor: string | null = ''
    for (let number = 1; number <= PAGES && cursor !== null; number += 1) {
      const url: string = `${base}/models${cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`}`
      const { results, next } = await batch.ask({
        url,
        headers: { authorization: `Bearer ${token ?? ''}` },
        credential: 'REPLICATE_API_TOKEN',
        conditional: true,
        // Each model comes with the description of its interface.
        maxBytes: 2 * LIST_MAX_BYTES,
        shape: page,
      })
      yield batch.putRows(url, results, model)
      cursor = cursorOf(next)
    }
  })
}

/** Of the address of the next page only its position is used: the token goes to no other place than the base. */
function cursorOf(next: string | null | undefined): string | null {
  const query = next?.split('?')[1]
  return query === undefined ? null : new URLSearchParams(query).get('cursor') || null
}
