import type { Dispatcher } from 'undici'
import type { ChatApiRefusal } from '../../domain/agent/chat-api.ts'
import { AGENT_ERRORS } from '../../domain/agent/refusals.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Instant } from '../../domain/time.ts'
import { retryAt } from '../retry-after.ts'

/** No answer but a stream is near this size. */
const TEXT_MAX_BYTES = 64 * 1024

/** The body of an answer that is no stream. */
export async function readText(
  { body }: Dispatcher.ResponseData,
  root: string,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength
      // What is too large is none of ours; its beginning is enough to tell.
      if (size > TEXT_MAX_BYTES) break
      chunks.push(chunk)
    }
  } catch (error) {
    signal.throwIfAborted()
    const why = error instanceof Error ? error.message : String(error)
    throw new Refusal<ChatApiRefusal>(
      'server_unreachable',
      `the server ${root} broke off its answer (${why})`,
      { cause: error },
    )
  }
  return Buffer.concat(chunks).toString()
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Media type of an answer, without its parameters. */
export function typeOf({ headers }: Dispatcher.ResponseData): string {
  const type = headers['content-type']
  return typeof type === 'string' ? (type.split(';')[0]?.trim().toLowerCase() ?? '') : ''
}

/**
 * What an answer other than 200 says: a refusal of the interface with its members (`reason`, `scope`,
 * `retryAfterSeconds`, and the `status`), or that this is no such server. A 429 is a limit whoever sends it: what stands
 * before a server may have limits of its own.
 */
export function declined(
  root: string,
  response: Dispatcher.ResponseData,
  text: string,
  now: Instant,
): Refusal {
  const body = parseJson(text)
  const given = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  const code =
    AGENT_ERRORS.find((known) => known === given['error']) ??
    (response.statusCode === 429 ? ('rate_limited' as const) : undefined)
  if (code === undefined) return foreign(root, '', response)
  const members: Record<string, string | number> = { status: response.statusCode }
  for (const name of ['reason', 'scope'] as const) {
    const value = given[name]
    if (typeof value === 'string' && /^[a-z_-]{1,64}$/.test(value)) members[name] = value
  }
  const seconds = given['retryAfterSeconds']
  if (Number.isSafeInteger(seconds) && Number(seconds) >= 0) members['retryAfterSeconds'] = Number(seconds)
  else {
    const until = retryAt(response.headers, now)
    if (until !== null) members['retryAfterSeconds'] = Math.ceil((until - now) / 1000)
  }
  return new Refusal(code, undefined, { members })
}

/** An answer that no server of this interface gives. */
export function foreign(
  root: string,
  path: string,
  response: Dispatcher.ResponseData,
  cause?: unknown,
): Refusal<ChatApiRefusal> {
  const { statusCode: status, headers } = response
  const type = typeOf(response)
  const what = status === 200 ? type || 'no type' : `status ${status}${type === '' ? '' : `, ${type}`}`
  const target = headers['location']
  const redirect =
    status >= 300 && status < 400 && typeof target === 'string' && /^[\x21-\x7e]{1,200}$/.test(target)
      ? `; it redirects to ${target}, so perhaps that is the address to give`
      : ''
  return new Refusal(
    'server_foreign',
    `${root}${path} does not answer as the chat of dash does (${what})${redirect}; check the address`,
    { cause },
  )
}
