import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'undici'
import type { Dispatcher } from 'undici'
import { SourceUnavailable } from '../../domain/feed/live-source.ts'
import { HOW_TO_REACH, networkReason } from '../../domain/network-reason.ts'
import { TimeLimitExceeded, withTimeLimit } from '../time-limit.ts'

/** What of an answer that is no success is read, so that its connection can be used again. */
const OTHER_ANSWER_MAX_BYTES = 64 * 1024

export interface Question {
  url: string
  headers: Record<string, string>
  /** Makes it a POST. */
  body: string | null
  /** Largest body of a 200. */
  maxBytes: number
  /** For the whole answer, however slowly it drips in. */
  answerMs: number
}

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  /** Of a 200 alone. */
  text: string
}

/**
 * Sends one question once. Redirections are answers like any other: nothing is ever followed, so that no token is
 * sent where it does not belong.
 *
 * @throws SourceUnavailable when no whole answer comes: not reachable, cut, too slow, too large, not UTF-8
 */
export async function exchange(
  dispatcher: Dispatcher,
  question: Question,
  signal: AbortSignal,
): Promise<Answer> {
  try {
    return await withTimeLimit(question.answerMs, signal, (limited) => send(dispatcher, question, limited))
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof SourceUnavailable) throw error
    const why = error instanceof TimeLimitExceeded ? error.message : networkReason(error)
    throw new SourceUnavailable(`${question.url}: ${why}; ${HOW_TO_REACH}`, { cause: error })
  }
}

async function send(dispatcher: Dispatcher, question: Question, signal: AbortSignal): Promise<Answer> {
  const { url, body } = question
  const response = await request(url, {
    dispatcher,
    signal,
    method: body === null ? 'GET' : 'POST',
    headers: question.headers,
    body,
  })
  const { statusCode: status, headers } = response
  const encoding = headers['content-encoding'] ?? 'identity'
  if (status === 200 && encoding === 'identity') {
    return { status, headers, text: await readText(response.body, question) }
  }
  // Destroying the body instead would throw where nobody can catch it.
  await response.body.dump({ limit: OTHER_ANSWER_MAX_BYTES, signal })
  if (status !== 200) return { status, headers, text: '' }
  throw new SourceUnavailable(
    `${url}: it answered in the encoding ${String(encoding)}, which was not asked for`,
  )
}

async function readText(body: AsyncIterable<Uint8Array>, { url, maxBytes }: Question): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > maxBytes) throw new SourceUnavailable(`${url}: its answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (cause) {
    throw new SourceUnavailable(`${url}: its answer is not UTF-8`, { cause })
  }
}
