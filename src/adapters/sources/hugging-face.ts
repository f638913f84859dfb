import { z } from 'zod'
import type { LiveSource } from '../../domain/ports.ts'
import { liveSource, instant, listOfRows, shapeReader } from './source-batch.ts'
import type { SourceRow } from './source-batch.ts'
import type { SourceClient } from './source-client.ts'

const MODELS_MAX = 100

const LIST_MAX_BYTES = 4 * 1024 * 1024

const model = z.object({
  id: z.string(),
  private: z.boolean().nullish(),
  author: z.string().nullish(),
  likes: z.int().nullish(),
  createdAt: instant.nullish(),
  pipeline_tag: z.string().nullish(),
  tags: z.array(z.string()).nullish().catch(null),
})
type Model = z.infer<typeof model>

/** Hugging Face: the models that trend. Works without a token. */
export function huggingFace(client: SourceClient, base: string, token: string | null): LiveSource {
  return liveSource(client, 'hype:huggingface', [], async function* (desk) {
    const query = new URLSearchParams({
      sort: 'trendingScore',
      direction: '-1',
      limit: String(MODELS_MAX),
    })
    const url = `${base}/models?${query.toString()}`
    const rows = await desk.ask({
      url,
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
      credential: 'HF_TOKEN',
      conditional: true,
      maxBytes: LIST_MAX_BYTES,
      read: shapeReader(listOfRows),
    })
    desk.putRows(url, rows, model, rowOf)
    yield
  })
}

function rowOf(found: Model): SourceRow | null {
  if (found.private === true) return null
  const [owner, name] = found.id.split('/')
  return {
    sourceId: found.id,
    title: found.id,
    url: `https://huggingface.co/${found.id.split('/').map(encodeURIComponent).join('/')}`,
    points: found.likes ?? null,
    comments: null,
    publishedAt: found.createdAt ?? null,
    channel: 'models',
    author: found.author ?? (name === undefined ? null : (owner ?? null)),
    tags: found.tags ?? [],
    description: found.pipeline_tag ?? null,
  }
}
