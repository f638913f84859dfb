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
 * @param timeoutMs for the whole answer, however slowly it drips in
 * @throws Refusal `source_unavailable` for everything else: not reachable, another status, too slow, too large, not JSON
 */
export async function requestJson(
  dispatcher: Dispatcher,
  { url, body }: JsonRequest,
  signal: AbortSignal,
  timeoutMs = ANSWER_TIMEOUT_MS,
): Promise<unknown> {
  signal.throwIfAborted()
  // Node 20 collects `AbortSignal.timeout()` as garbage before it fires when only `AbortSignal.any()` knows it.
  const limit = new AbortController()
  const stop = (): void => limit.abort()
  const timer = setTimeout(stop, timeoutMs)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await ask(dispatcher, { url, body }, limit.signal)
  } catch (error) {
    if (error instanceof Refusal) throw error
    signal.throwIfAborted()
    const why = limit.signal.aborted ? `no answer within ${timeoutMs} ms` : describe(error)
    throw unavailable(url, why, error)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

async function ask(
  dispatcher: Dispatcher,
  { url, body }: JsonRequest,
  signal: AbortSignal,
): Promise<unknown> {
  const response = await request(url, {
    dispatcher,
    signal,
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      accept: 'application/json',
      'user-agent': USER_AGENT,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  })
  if (response.statusCode === 200) return JSON.parse(await readText(response.body, url)) as unknown
  await response.body.dump({ limit: ANSWER_MAX_BYTES, signal })
  if (response.statusCode === 404 || response.statusCode === 410) return null
  throw unavailable(url, `it answered ${response.statusCode}`)
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
