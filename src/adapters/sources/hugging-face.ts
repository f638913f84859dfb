import { z } from 'zod'
import type { LiveSource } from '../../domain/ports.ts'
import { instant, LIST_MAX_BYTES, listOfRows, liveSource, looseNames } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

const MODELS_MAX = 100

const model = z
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
      limit: String(MODELS_MAX),
    })
    const url = `${base}/models?${query.toString()}`
    const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
    const list = { url, headers, credential: 'HF_TOKEN', maxBytes: LIST_MAX_BYTES, shape: listOfRows }
    yield await batch.putList(list, model)
  })
}
