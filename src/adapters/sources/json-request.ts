import { Agent, request } from 'undici'
import type { Dispatcher } from 'undici'
import type { TitleRefusal } from '../../domain/ports.ts'
import { Refusal } from '../../domain/refusal.ts'

/** Names the product to the sources it reads, as their operators ask of readers. */
const USER_AGENT = 'dash (AI and trends dashboard; reads public items)'

/** Time for a whole answer, connection included. */
const ANSWER_TIMEOUT_MS = 10_000

/** No item is near this size. */
const ANSWER_MAX_BYTES = 1024 * 1024

export interface JsonRequest {
  url: string
  /** A JSON body makes it a POST. */
  body?: unknown
}

/** A pool of connections to the sources; whoever opens it closes it. */
export function openSourceAgent(): Agent {
  return new Agent({
    connect: { timeout: ANSWER_TIMEOUT_MS },
    headersTimeout: ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
    connections: 4,
  })
}

/**
 * One JSON answer of a source, or `null` for a 404 or 410.
 *
 * @throws Refusal `source_unavailable` for everything else: not reachable, another status, too slow, too large, not JSON
 */
export async function requestJson(
  dispatcher: Dispatcher,
  { url, body }: JsonRequest,
  signal: AbortSignal,
): Promise<unknown> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)])
  try {
    const response = await request(url, {
      dispatcher,
      signal: limited,
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'application/json',
        'user-agent': USER_AGENT,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    })
    if (response.statusCode !== 200) {
      await response.body.dump()
      if (response.statusCode === 404 || response.statusCode === 410) return null
      throw unavailable(url, `it answered ${response.statusCode}`)
    }
    return JSON.parse(await readText(response.body, url)) as unknown
  } catch (error) {
    if (error instanceof Refusal) throw error
    signal.throwIfAborted()
    throw unavailable(
      url,
      limited.aborted ? `no answer within ${ANSWER_TIMEOUT_MS} ms` : describe(error),
      error,
    )
  }
}

async function readText(body: AsyncIterable<Uint8Array>, url: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > ANSWER_MAX_BYTES) throw unavailable(url, `its answer is larger than ${ANSWER_MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
}

function unavailable(url: string, why: string, cause?: unknown): Refusal<TitleRefusal> {
  return new Refusal<TitleRefusal>('source_unavailable', `${url}: ${why}`, { cause })
}

function describe(error: unknown): string {
  if (error instanceof SyntaxError) return 'its answer is not JSON'
  return error instanceof Error ? error.message || error.name : String(error)
}
